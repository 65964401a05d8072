package projectorcli

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"weir/internal/console"
	"weir/internal/failtest"
	"weir/internal/metrics"
	"weir/internal/sample"
	"weir/internal/scratch"
	"weir/internal/system"
)

// TestFollowersAreKilled: what is derived is right after a follower was killed again and again while rows are
// written, and each record is counted once.
func TestFollowersAreKilled(t *testing.T) {
	p := &program{ctx: t.Context(), stderr: io.Discard, stdout: io.Discard}
	s, err := p.openSystem(data{Data: t.TempDir()}, []string{"gallery"}, system.Options{Writes: true})
	failtest.On(t, err)
	defer s.Close()
	failtest.On(t, s.Start(t.Context()))
	failtest.On(t, p.fill(s))
	indexed := make(chan struct{})
	close(indexed)
	k, part := newKillable(), s.Models[0]
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- alone(s, slog.New(slog.DiscardHandler), metrics.New(), console.NewActivity(s.Models), false, k)(ctx, part)
	}()
	kills := 0
	for i := range 12 {
		name := string(rune('a' + i))
		failtest.On(t, write(t.Context(), s, part, sample.Apart(part.Model, time.Now(), name)))
		kills = k.Kill("gallery")
		time.Sleep(time.Duration(i) * time.Millisecond)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		lag := 0 // documents come behind their rows
		failtest.On(t, scratch.Of(s, part).Run(t.Context(), func(scratch.Difference) { lag++ }))
		if lag == 0 {
			break
		}
	}
	stop()
	failtest.On(t, <-ended)
	if kills < 3 {
		t.Errorf("only %d kills", kills)
	}
	v := scratch.Of(s, part)
	failtest.On(t, v.Run(t.Context(), func(d scratch.Difference) {
		t.Errorf("%s of %s: is %s, should be %s", d.Derivation, d.Row, d.Have, d.Want)
	}))
	if v.Checked == 0 {
		t.Error("nothing was checked")
	}
}
