package projectorcli

import (
	"context"
	"io"
	"testing"

	"weir/internal/cli"
)

// TestToldToStopAtOnce: a service manager that stops the program while it still opens
// and fills what it needs is answered as at any other time.
func TestToldToStopAtOnce(t *testing.T) {
	for cause, want := range map[error]int{cli.ErrTerminated: exitGood, context.Canceled: exitInterrupted} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if code := run(ctx, []string{"run", "gallery", "--data", t.TempDir(), "--addr", "127.0.0.1:0"}, nil, io.Discard, io.Discard); code != want {
			t.Errorf("%v: exit %d, want %d", cause, code, want)
		}
	}
}
