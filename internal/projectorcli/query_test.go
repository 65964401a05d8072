package projectorcli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/sample"
	"weir/internal/system"
)

// TestQueryBehind: where rows were written that nothing has followed, a query says so, and no more
// once they are followed.
func TestQueryBehind(t *testing.T) {
	dir := t.TempDir()
	m, err := model.Load("gallery")
	failtest.On(t, err)
	run := func(do func(p *program, s *system.System) error) {
		t.Helper()
		p := &program{ctx: t.Context(), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
		s, err := system.Open(t.Context(), dir, []*model.Model{m}, system.Options{Writes: true})
		failtest.On(t, err)
		defer s.Close()
		failtest.On(t, s.Start(t.Context()))
		failtest.On(t, do(p, s))
	}
	ask := func() string {
		t.Helper()
		var out, said bytes.Buffer
		c := &queryCommand{Model: "gallery", Name: "albums"}
		c.Data = dir
		failtest.On(t, c.Run(&program{ctx: t.Context(), stdout: &out, stderr: &said}))
		if out.Len() == 0 {
			t.Error("no rows")
		}
		return said.String()
	}
	run(func(p *program, s *system.System) error {
		return write(p.ctx, s, s.Models[0], sample.Commands(m, time.Now()))
	})
	if said := ask(); !strings.Contains(said, "is not derived yet; projector run gallery --data "+dir+" derives it") {
		t.Errorf("it does not say that it is behind: %q", said)
	}
	run(func(p *program, s *system.System) error {
		if err := p.fill(s); err != nil {
			return err
		}
		return catchUp(p, s)
	})
	if said := ask(); said != "" {
		t.Errorf("it says more than it should: %q", said)
	}
}

func catchUp(p *program, s *system.System) error {
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: s.Models[0].Runner}
	return f.CatchUp(p.ctx, done)
}
