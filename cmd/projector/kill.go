package main

import (
	"context"
	"log/slog"
	"sync"

	"weir/internal/console"
	"weir/internal/metrics"
	"weir/internal/system"
)

// killable follows streams as alone does, with followers that can be killed and start again from their checkpoints.
// Its methods may be called from many goroutines.
type killable struct {
	mu    sync.Mutex
	kill  map[string]context.CancelFunc // by model, while it is followed
	kills map[string]int
}

func newKillable() *killable {
	return &killable{kill: map[string]context.CancelFunc{}, kills: map[string]int{}}
}

// Kill ends the follower of a model in the middle of what it does. It returns how often that was done.
func (k *killable) Kill(model string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if end := k.kill[model]; end != nil {
		delete(k.kill, model)
		k.kills[model]++
		end()
	}
	return k.kills[model]
}

// follow follows a model until ctx is done; a follower that was killed is followed by another one.
func (k *killable) follow(s *system.System, log *slog.Logger, told *metrics.Metrics, activity *console.Activity) func(context.Context, *system.Part) error {
	of := map[*system.Part]*metrics.Model{}
	for _, part := range s.Models {
		of[part] = told.Of(part.Runner)
	}
	return func(ctx context.Context, part *system.Part) error {
		for {
			life, end := context.WithCancel(context.WithoutCancel(ctx))
			k.mu.Lock()
			k.kill[part.Model.Name] = end
			k.mu.Unlock()
			err := follow(ctx, life, part, log, of[part], activity, false)
			killed := life.Err() != nil
			end()
			if !killed || ctx.Err() != nil {
				return err
			}
			log.Info("the follower was killed, and starts again from its checkpoints", "model", part.Model.Name)
		}
	}
}
