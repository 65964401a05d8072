package live

import (
	"context"
	"errors"
	"time"

	"weir/internal/book"
	"weir/internal/store"
	"weir/internal/value"
)

// A lease says which process reads a shard. Its row counts holds (n) and, while one
// lasts, beats (b). Nobody compares clocks: a process that sees neither move for as
// long as a lease lasts, by its own clock, takes over; a holder that could not beat
// for that long, by its own, lets go. A pause of a whole process is seen by both.
const (
	ownerAttr = "o"
	holdAttr  = "n"
	beatAttr  = "b"
)

// lease is a shard's row as it was seen.
type lease struct {
	owner string
	hold  int64
	beat  int64
}

func leaseOf(row value.Item) lease {
	n, _ := row.Get(holdAttr).Int64()
	b, _ := row.Get(beatAttr).Int64()
	return lease{row.Get(ownerAttr).Text(), n, b}
}

func op(kind store.OpKind, name string, v value.Value) store.Op {
	return store.Op{Kind: kind, Attr: name, Value: v}
}

func equal(name string, v value.Value) []store.Test {
	return []store.Test{{Attr: name, Is: store.Eq, Value: v}}
}

// take begins a hold on a lease that was seen free or still; it fails, without an
// error, where somebody was first.
func take(ctx context.Context, s store.Store, at store.Ref, seen lease, owner string) (hold int64, ok bool, err error) {
	w := store.Write{Ref: at, Return: true, Ops: []store.Op{
		op(store.Set, ownerAttr, value.OfString(owner)), op(store.Add, holdAttr, value.OfInt(1)), op(store.Set, beatAttr, value.OfInt(0)),
	}}
	if seen.hold == 0 {
		w.If = store.Cond{{{Attr: book.Partition, Is: store.Absent}}}
	} else {
		w.If = store.Cond{equal(holdAttr, value.OfInt(seen.hold)), equal(beatAttr, value.OfInt(seen.beat))}
	}
	out, err := s.Write(ctx, []store.Write{w})
	if err != nil || out[0].Err != nil {
		return 0, false, unlessCondition(out, err)
	}
	return leaseOf(out[0].Row).hold, true, nil
}

// beat says that a hold lasts. It fails, without an error, where it is over.
func beat(ctx context.Context, s store.Store, at store.Ref, hold int64) (ok bool, err error) {
	out, err := s.Write(ctx, []store.Write{{Ref: at,
		If: store.Cond{equal(holdAttr, value.OfInt(hold))}, Ops: []store.Op{op(store.Add, beatAttr, value.OfInt(1))},
	}})
	if err != nil || out[0].Err != nil {
		return false, unlessCondition(out, err)
	}
	return true, nil
}

// release ends a hold, so that others need not wait.
func release(ctx context.Context, s store.Store, at store.Ref, hold int64) error {
	out, err := s.Write(ctx, []store.Write{{Ref: at,
		If: store.Cond{equal(holdAttr, value.OfInt(hold))}, Ops: []store.Op{{Kind: store.Remove, Attr: ownerAttr}},
	}})
	return unlessCondition(out, err)
}

func unlessCondition(out []store.Outcome, err error) error {
	if err == nil && len(out) > 0 && !errors.Is(out[0].Err, store.ErrCondition) {
		err = out[0].Err
	}
	return err
}

// watch is what is known of a lease that is not ours.
type watch struct {
	lease
	since time.Time // when it was first seen as it is
}

// see notes the lease as it was read between two moments, and reports whether it may
// be taken. Of both moments it believes the one that waits longer: the holder counts
// from before its last beat.
func (w *watch) see(now lease, before, after time.Time, lasts time.Duration) bool {
	if now != w.lease || w.since.IsZero() {
		w.lease, w.since = now, after
	}
	return now.owner == "" || before.Sub(w.since) >= lasts
}
