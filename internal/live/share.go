package live

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/runner"
	"weir/internal/store"
)

// Processes share the shards of a model evenly. Each of them computes the shares from what it
// reads anyway: the leases of merged logs say which processes there are, the leases of shards
// say what each of them holds. No process asks another for anything. One that has more than
// its share releases shards, and one that has less takes free shards. The shares depend only on
// how many shards each process holds, and a process that holds more keeps what is left over. So
// nothing moves once the shares are even.
//
// Before a shard is released, it is drained: nothing more of it is read, and every group
// applies what the spool has. So its next process needs no record of this disk, and finds no
// batch pending. Nothing depends on that: a shard that changes hands otherwise is taken over
// as from a dead process.

// shares returns how many shards each process is to hold, given how many it holds. They add up
// to the number of shards, and differ by 1 at most. Of all such shares, these let the
// fewest shards move.
func shares(shards int, held map[string]int) map[string]int {
	out := make(map[string]int, len(held))
	names := make([]string, 0, len(held))
	for name := range held {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		out[name] = shards / len(names)
		if i < shards%len(names) {
			out[name]++
		}
	}
	return out
}

const (
	// A shard that stays free although it is in the share of another process is taken after
	// orphanAfter leases: that process cannot take it, and tries again after awayFor leases.
	// It is then kept for keepsFor leases.
	orphanAfter = 2
	awayFor     = 4
	keepsFor    = 20
	// drainLook is how many times in a lease a draining shard is looked at. One that did
	// not drain within a lease is read on.
	drainLook = 50
)

// class is a class of shards that are shared evenly: open shards, and closed ones, of which only
// what was written is left. The shares of open shards then do not change when one ends.
type class struct{ closed bool }

// wish is a shard that this process does not hold, and what its lease says.
// A wish is worked out from rows that may have changed since: taking the lease is conditional on
// lease as it was read.
type wish struct {
	place
	class
	lease  owntable.LeaseRow
	free   bool
	orphan bool // free for so long that its process cannot take it
}

// balance takes free shards up to the share of this process, and releases what it holds
// beyond it.
func (r *Reader) balance(ctx context.Context) error {
	wishes, err := r.wishes(ctx)
	if err != nil {
		return err
	}
	classes := r.classes()
	mine := map[class][]*holding{}
	for _, h := range r.holdings() {
		if c, shared := classes[h.place]; shared {
			mine[c] = append(mine[c], h)
		}
	}
	var takes []wish
	var gives []*holding
	r.short = false
	for _, c := range []class{{false}, {true}} {
		of := slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool { return w.class != c })
		room := r.share(of, len(mine[c])) - len(mine[c])
		taken := r.choose(of, room)
		takes = append(takes, taken...)
		r.short = r.short || len(taken) < room && len(r.away) == 0
		gives = append(gives, r.surplus(mine[c], -room)...)
	}
	return errors.Join(r.takeAll(ctx, takes), r.give(ctx, gives))
}

// classes returns the shards of which something is left to read or to apply, of all tables
// whose streams were listed.
func (r *Reader) classes() map[place]class {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[place]class{}
	for table, shards := range r.listed {
		for _, s := range shards {
			if p := (place{table, s.ID}); !r.done[p] && r.unlisted[table] == nil {
				out[p] = class{s.Closed}
			}
		}
	}
	for p := range r.gone {
		if !r.done[p] && r.unlisted[p.table] == nil {
			out[p] = class{true}
		}
	}
	return out
}

// wishes reads the leases of the shards that this process does not hold and of which something
// is left to read or to apply. A lease that cannot be read stands still.
func (r *Reader) wishes(ctx context.Context) (out []wish, err error) {
	want, classes := r.wanted(), r.classes()
	if len(want) == 0 {
		return nil, nil
	}
	refs := make([]store.Ref, len(want))
	for i, p := range want {
		refs[i] = r.lease(p)
	}
	before := r.now()
	rows, err := r.run.Store.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	after := r.now()
	for i, p := range want {
		now, err := owntable.DecodeLease(rows[i])
		if err != nil {
			r.stands(stepTake, p, err)
			continue
		}
		is := wish{place: p, class: classes[p], lease: now}
		r.mu.Lock()
		w := r.watched[p]
		if w == nil {
			w = &watch{}
			r.watched[p] = w
		}
		is.free = w.see(now, before, after, r.opts.Lease)
		since := before.Sub(w.since)
		r.mu.Unlock()
		if !is.free {
			r.stands(stepTake, p, nil)
		}
		if now.Owner != "" {
			since -= r.opts.Lease
		}
		is.orphan = is.free && since >= orphanAfter*r.opts.Lease
		out = append(out, is)
	}
	return out, nil
}

// share is how many shards of a class this process is to hold. It holds so many of them, and
// the others are given.
func (r *Reader) share(others []wish, holds int) int {
	held := make(map[string]int, len(r.owners))
	for owner := range r.owners {
		held[owner] = 0
	}
	held[r.opts.Owner] = holds
	for _, w := range others {
		if _, lives := held[w.lease.Owner]; lives && !w.free {
			held[w.lease.Owner]++
		}
	}
	return shares(holds+len(others), held)[r.opts.Owner]
}

// choose returns the free shards that this process takes: as many as it has room for, and
// those that no other process takes. Each process begins at another one, so that several do
// not try to take the same.
func (r *Reader) choose(of []wish, room int) (out []wish) {
	names := make([]string, 0, len(r.owners))
	for owner := range r.owners {
		names = append(names, owner)
	}
	slices.Sort(names)
	now := r.now()
	maps.DeleteFunc(r.away, func(_ place, until time.Time) bool { return len(r.owners) == 1 || !now.Before(until) })
	of = slices.DeleteFunc(of, func(w wish) bool { return !w.free || !r.away[w.place].IsZero() })
	first := slices.Index(names, r.opts.Owner) * len(of) / len(names)
	for i := range of {
		w := of[(first+i)%len(of)]
		if w.orphan = w.orphan && len(out) >= room; len(out) < room || w.orphan {
			out = append(out, w)
		}
	}
	return out
}

// takeAll takes free shards. One that stands still holds up no other.
// Only an error that concerns all shards is returned, such as a store that does not answer.
func (r *Reader) takeAll(ctx context.Context, ws []wish) error {
	return parallel.Do(len(ws), r.opts.AtOnce, func(i int) error {
		w, stays := ws[i], time.Time{}
		if w.orphan {
			stays = r.now().Add(keepsFor * r.opts.Lease)
		}
		err := r.takeOne(ctx, w.place, w.lease, stays)
		if err != nil && !errors.Is(err, runner.ErrShard) && !errors.Is(err, owntable.ErrRow) {
			return err
		}
		if r.stands(stepTake, w.place, err); err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.away[w.place] = r.now().Add(awayFor * r.opts.Lease)
		}
		return nil
	})
}

// surplus chooses so many shards that are to be released, first those that drain already, and
// lets the others be read on. A shard that was read to its end is not released: little of it
// is left to do. Shards that stay count as released: other shards are not in their place.
func (r *Reader) surplus(held []*holding, n int) (out []*holding) {
	now := r.now()
	may := func(h *holding) bool {
		_, ended := h.spool.position()
		return !ended && !now.Before(h.stays)
	}
	for _, h := range held {
		n -= btoi(now.Before(h.stays))
	}
	order := slices.Clone(held)
	slices.SortStableFunc(order, func(a, b *holding) int { return -cmp.Compare(btoi(!a.drains.IsZero()), btoi(!b.drains.IsZero())) })
	for _, h := range order {
		if len(out) < n && may(h) {
			out = append(out, h)
		} else {
			h.drain(time.Time{})
		}
	}
	for _, h := range out {
		if h.drains.IsZero() {
			h.drain(now)
		}
	}
	return out
}

// btoi is 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// drain stops reading the stream, since a time, or goes on with it if that is zero.
func (h *holding) drain(since time.Time) {
	h.drains = since
	h.draining.Store(!since.IsZero())
}

// give releases shards as they are drained. It waits for them for as long as it is from one
// round to the next; the next one goes on.
func (r *Reader) give(ctx context.Context, hs []*holding) error {
	for start := r.now(); len(hs) > 0 && ctx.Err() == nil; {
		if r.opts.Wait(ctx, nil, r.opts.Lease/drainLook); ctx.Err() != nil {
			break
		}
		drained, left, err := r.drained(ctx, hs)
		if err != nil {
			return err
		}
		if err := parallel.Do(len(drained), r.opts.AtOnce, func(i int) error { return r.hand(ctx, drained[i]) }); err != nil {
			return err
		}
		if hs = left; r.since(start) >= r.calm() {
			break
		}
	}
	for _, h := range hs {
		if r.since(h.drains) >= r.opts.Lease { // its sink is slow
			h.stays = r.now().Add(keepsFor * r.opts.Lease)
			h.drain(time.Time{})
		}
	}
	return nil
}

// drained divides shards into those of which every group has applied all that was read, and
// the others.
func (r *Reader) drained(ctx context.Context, hs []*holding) (drained, left []*holding, err error) {
	groups := r.run.Groups()
	var refs []store.Ref
	for _, h := range hs {
		for _, g := range groups {
			refs = append(refs, owntable.Checkpoint(r.run.Model.Name, g, h.table, h.shard))
		}
	}
	for _, h := range hs {
		h.upTo, _ = h.spool.position()
	}
	rows, err := r.run.Store.Get(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	for i, h := range hs {
		is := true
		for j := range groups {
			row, err := owntable.DecodeCheckpoint(rows[i*len(groups)+j])
			is = is && err == nil && row.At.Compare(h.upTo) >= 0
		}
		if is {
			drained = append(drained, h)
		} else {
			left = append(left, h)
		}
	}
	return drained, left, nil
}

// hand releases a shard that is drained, and removes its spool, unless a last page came into it.
// After a crash in between, its lease runs out.
func (r *Reader) hand(ctx context.Context, h *holding) error {
	if !r.lose(h) {
		return nil
	}
	r.note(Released)
	r.opts.Log.Info("releasing a shard for another process", "table", h.table, "shard", h.shard)
	var err error
	if last, _ := h.spool.position(); last == h.upTo {
		err = r.opts.Disk.RemoveAll(r.spoolDir(h.place))
	}
	return errors.Join(err, release(ctx, r.run.Store, r.lease(h.place), h.fence))
}
