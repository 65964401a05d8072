package live

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/book"
	"weir/internal/runner"
	"weir/internal/store"
)

// A stream makes new shards for ever: some six a day for each partition. What is kept
// of one (checkpoints, a lease, files, a position in each book that counted from it)
// goes when the shard is over: applied to its end by every group, missing from two
// lists, and for Retire by a note in its checkpoint, which outlives the process that
// made it. As a stream lists a shard for a day after its end, that is more than a day
// later.
//
// The checkpoints go in one transaction that keeps their counts. After it nobody
// knows the lane, which says that its positions may go out of books as well: who
// applies a shard has its checkpoint first.
//
// Whoever is later than that finds nothing that it may do. A batch is dropped after 15
// minutes, a list after 15, a hold after a lease, all by the clock that says more; so
// a process that slept for a day has none of them when it wakes, and the shard is
// neither listed nor begun.

// listLife is how long a list of shards may be acted on.
const listLife = 15 * time.Minute

// survey is what streams list and what groups have begun, at one time.
type survey struct {
	at     time.Time
	listed map[string][]store.Shard
	there  map[place]bool
	begun  map[place]state
	unread []error // of checkpoints that cannot be read; their shards are begun and not done
}

// state is how far the groups are with a shard.
type state struct {
	done    bool // all have applied it to its end
	missing time.Time
}

// survey lists the shards of all tables; then what was begun, so that who begins a
// shard that was not there yet is seen.
func (r *Reader) survey(ctx context.Context) (survey, error) {
	v := survey{at: r.now(), listed: map[string][]store.Shard{}, there: map[place]bool{}, begun: map[place]state{}}
	tables, err := r.run.Tables(ctx)
	if err != nil {
		return v, err
	}
	for _, t := range tables {
		if err := r.sameStream(ctx, t.Name); err != nil { // the shards of all that can be read are listed
			return v, err
		}
		shards, err := r.run.Store.Shards(ctx, t.Name)
		if err != nil {
			return v, err
		}
		v.listed[t.Name] = shards
		for _, s := range shards {
			v.there[place{t.Name, s.ID}] = true
		}
	}
	groups, finished := r.run.Groups(), map[place]int{}
	for _, g := range groups {
		places, err := r.run.Places(ctx, g)
		if err != nil && !errors.Is(err, book.ErrRow) {
			return v, err
		}
		v.unread = append(v.unread, err)
		for _, p := range places {
			at := place{p.Table, p.Shard}
			s := v.begun[at]
			if p.Done {
				finished[at]++
			}
			if !p.Missing.IsZero() {
				s.missing = p.Missing
			}
			s.done = finished[at] == len(groups)
			v.begun[at] = s
		}
	}
	return v, nil
}

// lanes are those that something may still come from.
func (v *survey) lanes() map[string]bool {
	out := make(map[string]bool, len(v.there)+len(v.begun))
	for p := range v.there {
		out[runner.Lane(p.table, p.shard)] = true
	}
	for p := range v.begun {
		out[runner.Lane(p.table, p.shard)] = true
	}
	return out
}

// retire notes which finished shards are not listed, and forgets those that have not
// been for long. Where others do the same it is done once.
func (r *Reader) retire(ctx context.Context, v survey) error {
	errs := v.unread
	for _, p := range slices.SortedFunc(maps.Keys(v.begun), place.compare) {
		s := v.begun[p]
		noted, there := !s.missing.IsZero(), v.there[p]
		switch {
		case !s.done || there && !noted:
		case there || !noted:
			errs = append(errs, r.run.Miss(ctx, p.table, p.shard, !there))
		case r.twice(p) && r.run.Now().Sub(s.missing) >= r.opts.Retire:
			errs = append(errs, r.forgetShard(ctx, p))
		}
	}
	return errors.Join(errs...)
}

// twice reports whether a finished shard was missing from two lists.
func (r *Reader) twice(p place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing[p] > 1
}

// forgetShard has everything of a shard that is over go, unless somebody else moves
// it, or was first.
func (r *Reader) forgetShard(ctx context.Context, p place) error {
	rows, err := r.run.Store.Get(ctx, []store.Ref{r.lease(p)})
	if err != nil {
		return err
	}
	l, err := book.DecodeLease(rows[0])
	if err != nil {
		return err
	}
	var also []store.Write
	if l.Hold > 0 {
		also = []store.Write{book.DropLease(r.lease(p), l.Hold)}
	}
	switch err := r.run.ForgetShard(ctx, p.table, p.shard, also...); {
	case errors.Is(err, store.ErrCondition), errors.Is(err, store.ErrConflict):
		return nil
	case err != nil:
		return err
	}
	r.opts.Log.Info("a shard is over", "table", p.table, "shard", p.shard)
	return nil
}

// Retired says that nothing comes from a lane any more. Of one that is not known the
// streams are listed anew and checkpoints read: whoever wrote the row in which it was
// found may have just begun it.
func (r *Reader) Retired(ctx context.Context, lane string) (bool, error) {
	r.mu.Lock()
	known, over := r.lanes[lane], r.over[lane]
	r.mu.Unlock()
	if known || over {
		return over, nil
	}
	v, err := r.survey(ctx)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lanes = v.lanes(); r.lanes[lane] {
		return false, nil
	}
	if len(r.over) >= maxOver {
		clear(r.over)
	}
	r.over[lane] = true
	return true, nil
}

// maxOver is how many lanes are remembered that are over.
const maxOver = 10_000

// sweep removes the files of shards that others finished.
func (r *Reader) sweep() {
	tables, err := r.opts.Disk.List(r.opts.Dir)
	if err != nil {
		return
	}
	for _, t := range tables {
		shards, err := r.opts.Disk.List(filepath.Join(r.opts.Dir, t))
		if err != nil {
			continue // a file
		}
		for _, shard := range shards {
			p := place{strings.ReplaceAll(t, dot, "."), shard}
			if !r.isOver(p) {
				continue
			}
			if err := r.opts.Disk.RemoveAll(r.spoolDir(p)); err != nil {
				r.opts.Log.Warn("removing the files of a finished shard", "table", p.table, "shard", p.shard, "error", err)
			}
		}
	}
}

// isOver reports whether a shard that is not ours was applied to its end, or is not
// known any more.
func (r *Reader) isOver(p place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[p] == nil && (r.done[p] || !r.lanes[runner.Lane(p.table, p.shard)])
}
