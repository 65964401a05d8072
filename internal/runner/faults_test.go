package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"weir/internal/search"
	"weir/internal/store"
)

// breaker breaks the connection at one single write of a worker, be it a row, a
// transaction or a document; or puts the worker to sleep before it. Single writes
// of one call have no order among each other, so any part of a call may have
// happened when it breaks.
type breaker struct {
	at    int // the write that breaks, from 1; 0 for none
	how   how
	sleep *sleeper
	dies  bool // when it wakes up, that call is the last
	again bool // when it is done again, records come one by one

	mu    sync.Mutex
	calls int
}

// how says what of the call has happened when it breaks.
type how int

const (
	before how = iota // the writes that come before this one
	after             // this one too, and the answer is lost
	alone             // only this one
	others            // all but this one
	hows
)

func (h how) String() string { return [...]string{"before", "after", "alone", "others"}[h] }

var errBroken = errors.New("the connection broke")

// cut says which of the n writes of a call breaks.
func (b *breaker) cut(n int) (i int, hit bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i = b.at - b.calls - 1
	b.calls += n
	return i, i >= 0 && i < n
}

// part is what of a call happens before it breaks at i.
func part[T any](h how, all []T, i int) []T {
	switch h {
	case before:
		return all[:i]
	case after:
		return all[:i+1]
	case alone:
		return all[i : i+1]
	}
	return append(append([]T(nil), all[:i]...), all[i+1:]...)
}

// through does a call of which write i breaks, if any.
func through[T, R any](b *breaker, all []T, do func([]T) ([]R, error)) ([]R, error) {
	i, hit := b.cut(len(all))
	switch {
	case !hit:
		return do(all)
	case b.sleep == nil:
		_, _ = do(part(b.how, all, i)) // whatever came of it, nobody hears of it
		return nil, errBroken
	}
	first, err := do(all[:i])
	if err != nil {
		return nil, err
	}
	b.sleep.nap()
	rest, err := do(all[i:])
	if b.dies && err == nil {
		err = errBroken
	}
	return append(first, rest...), err
}

type faultyStore struct {
	store.Store
	*breaker
}

func (f *faultyStore) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	return through(f.breaker, ws, func(ws []store.Write) ([]store.Outcome, error) { return f.Store.Write(ctx, ws) })
}

func (f *faultyStore) Transact(ctx context.Context, ws []store.Write) error {
	_, err := through(f.breaker, [][]store.Write{ws}, func(all [][]store.Write) ([]struct{}, error) {
		for _, ws := range all {
			if err := f.Store.Transact(ctx, ws); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return err
}

type faultyIndex struct {
	search.Index
	*breaker
}

func (f *faultyIndex) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	return through(f.breaker, docs, func(docs []search.Document) ([]error, error) { return f.Index.Apply(ctx, docs) })
}

// moody is an index that refuses some documents, and fails others now and then.
type moody struct {
	search.Index
	refuses string         // a word that no document may have
	times   int            // how often each document fails
	fails   map[string]int // how often each did
	log     []string
}

func (m *moody) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	errs := make([]error, len(docs))
	for i := range docs {
		switch id := docs[i].ID; {
		case m.fails[id] < m.times:
			m.fails[id]++
			errs[i] = errors.New("too busy")
		case m.refuses != "" && holds(docs[i].Text, m.refuses):
			errs[i] = fmt.Errorf("%w: %s is no word", search.ErrRefused, m.refuses)
		default:
			got, err := m.Index.Apply(ctx, docs[i:i+1])
			if err != nil {
				return nil, err
			}
			errs[i] = got[0]
		}
		m.log = append(m.log, fmt.Sprintf("%d of %d: %v", i+1, len(docs), errs[i]))
	}
	return errs, nil
}

func holds(texts []string, word string) bool {
	for _, t := range texts {
		for _, w := range search.Words(t) {
			if w == word {
				return true
			}
		}
	}
	return false
}

// sleeper stops a worker in the middle of its work and lets it go on later.
type sleeper struct {
	asleep, awake, over chan struct{}
	err                 error // how it ended
	once                sync.Once
}

func newSleeper() *sleeper {
	return &sleeper{asleep: make(chan struct{}), awake: make(chan struct{}), over: make(chan struct{})}
}

func (s *sleeper) nap() {
	close(s.asleep)
	<-s.awake
}

func (s *sleeper) wake() { s.once.Do(func() { close(s.awake) }) }
