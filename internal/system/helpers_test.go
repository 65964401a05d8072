package system_test

import (
	"context"

	"weir/internal/reader"
	"weir/internal/scratch"
	"weir/internal/system"
)

func verifyAll(s *system.System) ([]scratch.Difference, error) {
	var out []scratch.Difference
	v := scratch.Of(s, s.Models[0])
	v.InMemory = true
	err := v.Run(context.Background(), func(d scratch.Difference) { out = append(out, d) })
	return out, err
}

func catchUp(ctx context.Context, s *system.System) error {
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: s.Models[0].Runner}
	return f.CatchUp(ctx, done)
}
