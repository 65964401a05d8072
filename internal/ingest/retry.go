package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

const (
	maxTries  = 10 * time.Second // how long a command or a move is planned again while other writers interfere
	maxAtOnce = 16               // transactions, and queries to indexes, at a time
)

// newPauses returns the pauses between tries of something that other writers change, for maxTries together.
func newPauses() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Millisecond), backoff.WithMaxInterval(50*time.Millisecond), backoff.WithMaxElapsedTime(maxTries))
}

// retryUntilDone calls do until nothing is left to do. do returns the name of a row that is left
// because another writer came in between, "" for none. The error says so if other
// writers keep changing rows for longer than maxTries.
func retryUntilDone(ctx context.Context, what string, do func() (left string, err error)) error {
	wait := backoff.WithContext(newPauses(), ctx)
	for {
		left, err := do()
		if err != nil || left == "" {
			return err
		}
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			return errors.Join(ctx.Err(), fmt.Errorf("%s %s: others keep changing it", what, left))
		}
		if err := parallel.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// readAll reads rows, each once. The result is by the texts of their references.
// A row that does not exist is nil in the map.
func readAll(ctx context.Context, db store.Store, refs []store.Ref) (map[string]value.Item, error) {
	out := make(map[string]value.Item, len(refs))
	once := refs[:0:0]
	for _, r := range refs {
		if _, have := out[r.String()]; !have {
			out[r.String()], once = nil, append(once, r)
		}
	}
	if len(once) == 0 {
		return out, nil
	}
	got, err := db.Get(ctx, once)
	if err != nil {
		return nil, err
	}
	for i, r := range once {
		out[r.String()] = got[i]
	}
	return out, nil
}
