package projectorcli

import (
	"context"
	"sync"
)

// killable are followers of streams that can be killed, as the console of dev does, and start again from their checkpoints.
// Its methods may be called from many goroutines.
type killable struct {
	mu    sync.Mutex
	kill  map[string]context.CancelFunc // by model, while it is followed
	kills map[string]int
}

func newKillable() *killable {
	return &killable{kill: map[string]context.CancelFunc{}, kills: map[string]int{}}
}

// Kill ends the follower of a model in the middle of its work. It returns how often that was done.
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

// begin begins the life of a follower of a model, which outlasts ctx. The caller calls end after it.
func (k *killable) begin(ctx context.Context, model string) (life context.Context, end func()) {
	life, end = context.WithCancel(context.WithoutCancel(ctx))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kill[model] = end
	return life, end
}
