package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// full takes so many writes, then has no room.
type full int

func (f *full) Write(b []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestOutput: a command whose results cannot be written ends, and not well, whether it
// looks at its writes or not.
func TestOutput(t *testing.T) {
	p := &Program{Name: "weir"}
	for name, c := range map[string]struct {
		room int
		do   func(ctx context.Context, out *Output) error
		code int
	}{
		"all is written":       {2, func(_ context.Context, out *Output) error { fmt.Fprintln(out, "a"); return nil }, Good},
		"nobody looks":         {1, func(_ context.Context, out *Output) error { fmt.Fprintln(out, "a"); fmt.Fprintln(out, "b"); return nil }, Down},
		"a check failed too":   {0, func(_ context.Context, out *Output) error { fmt.Fprintln(out, "a"); return Failed(Check) }, Down},
		"it waits for the end": {0, func(ctx context.Context, out *Output) error { fmt.Fprintln(out, "a"); <-ctx.Done(); return ctx.Err() }, Down},
		"it gives the error":   {0, func(_ context.Context, out *Output) error { _, err := fmt.Fprintln(out, "a"); return err }, Down},
		"another error":        {2, func(_ context.Context, out *Output) error { return errors.New("down") }, Down},
	} {
		room, stderr := full(c.room), new(bytes.Buffer)
		ctx, out := p.Results(t.Context(), &room)
		code := out.Code(p.Fail(ctx, c.do(ctx, out), stderr), stderr)
		said := strings.Contains(stderr.String(), "the results cannot be written: no space left on device")
		if code != c.code || said != (room < 0) || strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%s: exit %d, want %d: %s", name, code, c.code, stderr)
		}
	}
}
