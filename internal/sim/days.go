package sim

import (
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// In some runs days pass, a few hours at a time. Streams then expire records that are a day
// old and stop listing a shard a day after its end. TTL deletes what weir keeps for a
// limited time. Positions of shards that are over are removed. No consumer falls so far
// behind that records which it has not applied expire in this way: that is what trims is
// for.

// The times that apply in runs in which days pass.
const (
	retention = 24 * time.Hour // of a stream
	furthest  = 23 * time.Hour // how far a consumer is behind at most
	tombs     = 47 * time.Hour // how long a tombstone is kept at least
)

// leapTime lets up to the given time pass. A process in the middle of a call dies, because no
// call of a service lasts that long. Of the others some die, and the rest count as paused.
func (w *world) leapTime(most time.Duration) {
	hours := time.Duration(1+w.sched.n(int(most/time.Minute))) * time.Minute
	if w.way != byFollower { // the embedded store keeps records that are not applied
		hours = min(hours, furthest-w.clock.Sub(w.oldestPending()))
	}
	if hours <= 0 {
		return
	}
	for _, n := range slices.Clone(w.nodes) {
		if w.sched.chance(0.5) || slices.ContainsFunc(n.fibers, func(f *fiber) bool { return !f.over && !f.idle }) {
			n.killProcess()
		}
	}
	w.clock = w.clock.Add(hours)
	w.hours += hours
	w.traceStep("world", "hours go by: "+hours.String(), nil)
	w.expireDayOld()
	w.sweepOwnTable()
}

// oldestPending is the time of the first change that some consumer has not applied.
func (w *world) oldestPending() time.Time {
	oldest := w.clock
	for _, mt := range w.model.Tables {
		t := w.base.tables[mt.Name]
		for _, s := range t.shards {
			if from := w.appliedRecords(t, s); from < len(s.records) && s.records[from].Time.Before(oldest) {
				oldest = s.records[from].Time
			}
		}
	}
	return oldest
}

// appliedRecords is how many of a shard's first records all consumers have applied.
func (w *world) appliedRecords(t *table, s *shard) int {
	if w.mapping != nil {
		for _, q := range w.mapping.queues {
			if q.shard == s {
				return q.done
			}
		}
		return 0
	}
	return s.upTo(w.appliedPosition(t, s))
}

// expireDayOld expires records that are a day old.
func (w *world) expireDayOld() {
	if w.way == byFollower {
		return
	}
	for _, mt := range w.model.Tables {
		for _, s := range w.base.tables[mt.Name].shards {
			n := 0
			for _, r := range s.records[s.trimmed:] {
				if w.clock.Sub(r.Time) > retention {
					n++
				}
			}
			if s.Closed && w.clock.Sub(s.ended) > retention || n > 0 {
				w.expireRecords(s, n)
			}
		}
	}
}

// sweepOwnTable lets TTL delete rows of weir's own table, as late as it likes.
func (w *world) sweepOwnTable() {
	t := w.base.tables[owntable.TableName]
	var over []store.Key
	t.eachRow(func(k store.Key, _ value.Item) {
		over = append(over, k)
	})
	w.base.who = "ttl"
	for _, k := range over {
		x, ok := t.get(k).Get(owntable.Expiry).Int64()
		if ok && x <= w.clock.Unix() && w.sched.chance(0.7) {
			w.base.expire(t, k)
			w.counted["outlived"]++
		}
	}
}
