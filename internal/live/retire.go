package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// A stream makes new shards for ever, some six a day for each partition. What weir keeps of
// a shard is its checkpoints, and a position in each ledger (`ledger` in the
// code) that counted records of it. All of it is removed when the shard is over. A shard is
// over when every group has applied it to its end, two listings have not shown it, and a
// note in its checkpoint has said so for as long as Options.Retire. The note outlives the
// process that made it. A stream lists a shard for a day after its end, so this happens
// more than a day later.
//
// One transaction removes the checkpoints and keeps their counts. After it the shard's position
// may be removed from ledgers, as a process that applies a shard first writes its
// checkpoint.
//
// A process that is later than the removal finds nothing that it may do. A batch is dropped
// after 15 minutes, a listing after 15, a lease after its time, each by the clock
// that shows more time. So a process that was suspended for a day has none of them when it
// resumes, and the shard is neither listed nor begun.

// listLife is how long a process may act on a listing of shards.
const listLife = 15 * time.Minute

// survey is what the streams list and what the groups have begun, at one time.
// It is one look at streams and checkpoints. Shards are listed before checkpoints are read, so one
// that is begun in between is seen as begun, not as unknown.
type survey struct {
	at     time.Time
	listed map[string][]store.Shard
	there  map[place]bool
	begun  map[place]state
	failed map[string]error // of tables whose stream could not be listed; listed has what was known before
	unread []error          // errors of unreadable checkpoints, whose shards are begun and not done
}

// state is how far the groups are with a shard.
type state struct {
	done    bool // every group has applied it to its end
	read    bool // some group has applied some of it
	left    bool // another process has removed the shard, except from our search generation
	missing time.Time
}

// survey lists the shards of all tables, and after that the checkpoints: in this order it
// sees a shard that another process begins although it was not listed yet.
func (r *Reader) survey(ctx context.Context) (survey, error) {
	v := survey{at: r.now(), listed: map[string][]store.Shard{}, there: map[place]bool{}, begun: map[place]state{}, failed: map[string]error{}}
	tables, err := r.run.Tables(ctx)
	if err != nil {
		return v, err
	}
	for _, t := range tables {
		err := r.sameStream(ctx, t.Name) // the shards of all that can be read are listed
		var shards []store.Shard
		if err == nil {
			shards, err = r.run.Store.Shards(ctx, t.Name)
		}
		if err != nil {
			v.fails(t.Name, fmt.Errorf("stream of %s: %w", t.Name, err), r.listing(t.Name))
			continue
		}
		v.lists(t.Name, shards)
	}
	if err := cmp.Or(ctx.Err(), v.allFailed()); err != nil {
		return v, err
	}
	groups, finished := r.run.Groups(), map[place]int{}
	known := map[place]bool{} // to the group of rows
	for _, g := range groups {
		places, err := r.run.Places(ctx, g)
		if err != nil && !errors.Is(err, owntable.ErrRow) {
			return v, err
		}
		v.unread = append(v.unread, err)
		for _, p := range places {
			at := place{p.Table, p.Shard}
			if p.Expires && !v.there[at] { // a function read it, and its mapping knows how far
				continue
			}
			s := v.begun[at]
			if p.Done {
				finished[at]++
			}
			s.read = s.read || p.Done || !p.At.IsZero()
			known[at] = known[at] || g == runner.GroupRows
			if !p.Missing.IsZero() {
				s.missing = p.Missing
			}
			s.done = finished[at] == len(groups)
			v.begun[at] = s
		}
	}
	for at, s := range v.begun {
		// A process with another search generation has removed what it kept of the shard:
		// the shard is over, and what is left is the checkpoint of our generation.
		if !known[at] && finished[at] == len(groups)-1 && !v.there[at] && v.failed[at.table] == nil {
			s.done, s.left = true, true
			v.begun[at] = s
		}
	}
	return v, nil
}

// lists takes in the shards of a table.
func (v *survey) lists(table string, shards []store.Shard) {
	v.listed[table] = shards
	for _, s := range shards {
		v.there[place{table, s.ID}] = true
	}
}

// fails takes in that a table's stream could not be listed, and what was known of it before.
func (v *survey) fails(table string, err error, before []store.Shard) {
	v.failed[table] = err
	v.lists(table, before)
}

// allFailed is the error of a survey that could list nothing.
func (v *survey) allFailed() error {
	if len(v.failed) == 0 || len(v.failed) < len(v.listed) {
		return nil
	}
	return errors.Join(slices.Collect(maps.Values(v.failed))...)
}

// listing is what was last known of a table's shards.
func (r *Reader) listing(table string) []store.Shard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed[table]
}

// retire notes which finished shards are not listed, and removes those that have not been
// listed for as long as Options.Retire. If several processes do this at once, it happens
// once.
func (r *Reader) retire(ctx context.Context, v survey) error {
	errs := v.unread
	for _, p := range slices.SortedFunc(maps.Keys(v.begun), place.compare) {
		s := v.begun[p]
		if v.failed[p.table] != nil {
			continue
		}
		noted, there := !s.missing.IsZero(), v.there[p]
		switch {
		case s.left && r.twice(p):
			errs = append(errs, r.forgetShard(ctx, p))
		case !s.done || there && !noted:
		case there || !noted:
			errs = append(errs, r.run.Miss(ctx, p.table, p.shard, !there))
		case r.twice(p) && r.run.Now().Sub(s.missing) >= r.opts.Retire:
			errs = append(errs, r.forgetShard(ctx, p))
		}
	}
	return errors.Join(errs...)
}

// twice reports whether a finished shard was missing from two listings.
func (r *Reader) twice(p place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing[p] > 1
}

// forgetShard removes all that is kept of a shard that is over. It does nothing if another
// process changes the shard's rows at the same time or has removed them before.
func (r *Reader) forgetShard(ctx context.Context, p place) error {
	switch err := r.run.ForgetShard(ctx, p.table, p.shard); {
	case errors.Is(err, store.ErrCondition), errors.Is(err, store.ErrConflict):
		return nil
	case err != nil:
		return err
	}
	r.opts.Log.Info("a shard is over", "table", p.table, "shard", p.shard)
	return nil
}
