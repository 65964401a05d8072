package system

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir/internal/search"
)

// errLate is the error of an index that is not open yet.
var errLate = fmt.Errorf("%w: its cluster did not answer when it was to be opened", search.ErrGone)

const (
	// reachEvery is how often a call that writes tries to open an index whose cluster did not answer, for reachTime.
	reachEvery = 10 * time.Second
	reachTime  = 2 * time.Second
)

// late is an index that is opened when its cluster answers, and again when it was left. Until then every call fails, so
// only search waits for the cluster.
type late struct {
	open func(context.Context) (search.Index, error)

	opening sync.Mutex // held by the one call of reachIndex that tries
	tried   time.Time  // when Apply did last

	mu   sync.Mutex
	ix   search.Index
	gone chan struct{} // receives when an open index was no longer there
	// ended says that the system was closed: an index that opens after that is closed at once.
	ended bool
}

// reachIndex opens the index if it is not open.
func (l *late) reachIndex(ctx context.Context) error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if _, err := l.index(); err == nil {
		return nil
	}
	ix, err := l.open(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errors.Join(errLate, ix.Close())
	}
	l.ix = ix
	return nil
}

// tryReach is reachIndex for a short time, if that was not tried a moment ago and no other call tries it.
func (l *late) tryReach(ctx context.Context) {
	if !l.opening.TryLock() {
		return
	}
	l.opening.Unlock()
	l.mu.Lock()
	now := time.Now()
	try := now.Sub(l.tried) >= reachEvery
	if try {
		l.tried = now
	}
	l.mu.Unlock()
	if try {
		ctx, cancel := context.WithTimeout(ctx, reachTime)
		defer cancel()
		_ = l.reachIndex(ctx)
	}
}

// leaveIndex has the next reach open the index again, and returns the Close of the one that is open. Calls that are under way end on
// their own.
func (l *late) leaveIndex() (closes func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ix == nil {
		return func() error { return nil }
	}
	closes, l.ix = l.ix.Close, nil
	return closes
}

// index is the index, or errLate.
func (l *late) index() (search.Index, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ix == nil {
		return nil, errLate
	}
	return l.ix, nil
}

// callOpened calls the index if it is open. One that is no longer there is left, and is to be reached again.
func callOpened[T any](l *late, call func(search.Index) (T, error)) (out T, err error) {
	ix, err := l.index()
	if err != nil {
		return out, err
	}
	if out, err = call(ix); err != nil {
		err = l.noteAnswer(ix, err)
	}
	return out, err
}

// noteAnswer is the error of a call of an index, which is left if it is gone: not the one that was opened in its place since.
func (l *late) noteAnswer(ix search.Index, err error) error {
	switch now, closed := l.index(); {
	case closed != nil || now != ix:
		return errors.Join(errLate, err)
	case errors.Is(err, search.ErrGone):
		go l.leaveIndex()()
		select {
		case l.gone <- struct{}{}:
		default:
		}
	}
	return err
}

// Apply and the methods below are those of search.Index. Until the index is open they do nothing and return
// errLate, or an empty answer where there is no error to return: a caller tries again later, as it does
// when an open index does not answer.
func (l *late) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	if _, closed := l.index(); closed != nil {
		l.tryReach(ctx)
	}
	return callOpened(l, func(ix search.Index) ([]error, error) {
		errs, err := ix.Apply(ctx, docs)
		if gone := errors.Join(errs...); err == nil && errors.Is(gone, search.ErrGone) {
			_ = l.noteAnswer(ix, gone)
		}
		return errs, err
	})
}

func (l *late) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	return callOpened(l, func(ix search.Index) ([]search.Hit, error) { return ix.Search(ctx, q) })
}

func (l *late) Holds(ctx context.Context, docs []search.Document) ([]bool, error) {
	return callOpened(l, func(ix search.Index) ([]bool, error) { return ix.Holds(ctx, docs) })
}

func (l *late) Fresh() []string {
	names, _ := callOpened(l, func(ix search.Index) ([]string, error) { return ix.Fresh(), nil })
	return names
}

func (l *late) Filled(name string) error {
	_, err := callOpened(l, func(ix search.Index) (any, error) { return nil, ix.Filled(name) })
	return err
}

func (l *late) Instance(name string) string {
	is, _ := callOpened(l, func(ix search.Index) (string, error) { return ix.Instance(name), nil })
	return is
}

func (l *late) Look(ctx context.Context) error {
	_, err := callOpened(l, func(ix search.Index) (any, error) { return nil, ix.Look(ctx) })
	return err
}

func (l *late) Place(name string) string {
	is, _ := callOpened(l, func(ix search.Index) (string, error) { return ix.Place(name), nil })
	return is
}

func (l *late) Drop(ctx context.Context, place string) error {
	_, err := callOpened(l, func(ix search.Index) (any, error) { return nil, ix.Drop(ctx, place) })
	return err
}

func (l *late) Refresh(ctx context.Context) error {
	_, err := callOpened(l, func(ix search.Index) (any, error) { return nil, ix.Refresh(ctx) })
	return err
}

// Close also ends an opening that is under way: an index that it opens is closed at once.
func (l *late) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.ix == nil {
		return nil
	}
	return l.ix.Close()
}
