package reader

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Note is an event in a reader that an operator may want to know of: a Gap, Old records, or
// one kind of failure that is retried; or the outcome of the lease.
type Note string

// The notes.
const (
	Gap     Note = "gap"   // records had expired before they were read
	Old     Note = "old"   // a page was read whose records were close to expiry
	Lists   Note = "list"  // shards could not be listed or their leases not taken
	Leases  Note = "lease" // the lease could not be renewed
	Reads   Note = "read"  // a shard could not be read
	Applies Note = "apply" // records that were read could not be applied

	Taken    Note = "taken"    // the lease was taken
	Lost     Note = "lost"     // another process took it over
	Released Note = "released" // this process gave it back
)

// Status describes one shard that this process reads.
type Status struct {
	Table, Shard string
	Unapplied    time.Duration // age of the oldest record that is not applied; 0 if the stream had no more
}

// Status returns the status of each shard that this process reads, sorted by table and
// shard. It is empty while the process stands by.
func (r *Leased) Status() (out []Status) {
	if r.currentFence() == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, p := range r.pages {
		if p.end {
			continue
		}
		is := Status{Table: at.table, Shard: at.shard}
		if !p.first.IsZero() {
			is.Unapplied = max(0, time.Since(p.first))
		}
		out = append(out, is)
	}
	slices.SortFunc(out, func(a, b Status) int {
		return strings.Compare(a.Table+"|"+a.Shard, b.Table+"|"+b.Shard)
	})
	return out
}

// StandsBy reports whether another process reads, and which.
func (r *Leased) StandsBy() (owner string, standing bool) {
	if r.currentFence() != 0 {
		return "", false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.other.Owner, true
}

// Stopped is a table, or one shard of it, that stands still.
type Stopped struct {
	Table string
	Shard string // "" for the whole table
	Why   string
}

// Stopped returns the shards that stand still at present, sorted by table and shard.
// A shard that stands still for several reasons is in it once.
func (r *Leased) Stopped() (out []Stopped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[shardName]bool{}
	for at, why := range r.still {
		if !seen[at.shardName] {
			seen[at.shardName], out = true, append(out, Stopped{at.table, at.shard, why})
		}
	}
	slices.SortFunc(out, func(a, b Stopped) int {
		return strings.Compare(a.Table+"|"+a.Shard, b.Table+"|"+b.Shard)
	})
	return out
}

// Steps of the work of a reader.
const (
	stepApply  = "apply"
	stepList   = "list"
	stepStream = "stream"
)

// fault names a shard that stands still, and for which step of the work.
type fault struct {
	step string
	shardName
}

// noteStanding notes that a table or a shard cannot go on, or, without an error, that it can. It
// logs each once.
func (r *Leased) noteStanding(step string, p shardName, err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	at := fault{step, p}
	r.mu.Lock()
	was := r.still[at]
	if r.still[at] = why; why == "" {
		delete(r.still, at)
	}
	r.mu.Unlock()
	switch {
	case why == was:
	case why == "":
		r.opts.Log.Info("goes on again", "model", r.run.Model.Name, "table", p.table, "shard", p.shard)
	default:
		r.opts.Log.Warn("stands still", "model", r.run.Model.Name, "table", p.table, "shard", p.shard, "error", why)
		if step == stepList {
			r.report(Lists)
		}
	}
}

// followerStopped is stands for a report of a Follower.
func (r *Leased) followerStopped(table, shard, why string) {
	var err error
	if why != "" {
		err = errors.New(why)
		r.report(Applies)
	}
	r.noteStanding(stepApply, shardName{table, shard}, err)
}

// report reports something that happened, if the owner of the reader wants to know.
func (r *Leased) report(n Note) {
	if r.opts.Noted != nil {
		r.opts.Noted(n)
	}
}
