package sim

import (
	"cmp"
	"context"
	"errors"
	"time"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// driverPatience is how long a driver tries a write before it gives up.
const driverPatience = 30 * time.Second

var errDenied = errors.New("access denied")

// denies reports whether a table takes no writes of weir now, which may begin. Until when is kept in
// world.down: a short time, or as long as faults strike.
func (l *link) denies(table string) bool {
	if table == owntable.TableName || l.faults.over {
		return false
	}
	times := 1.0
	if l.moving {
		times = 5
	}
	if until, was := l.down[table]; was {
		if l.clock.Before(until) {
			return true
		}
		times = 0.1 // again
	}
	if !l.might(TableDown, times) {
		return false
	}
	l.down[table] = l.clock.Add(pick(l.faults.dice, []time.Duration{20 * time.Second, 2 * time.Minute, 4 * time.Minute, 24 * time.Hour}))
	l.counted["outages of a table"]++
	if l.unread[table] = newDice(l.seed, "unread", l.counted["outages of a table"]).chance(0.4); l.unread[table] {
		l.counted["outages of a table that cannot be read"]++
	}
	return true
}

// unreadable reports whether a table that takes no writes of weir cannot be read either, as one that was deleted.
func (l *link) unreadable(table string) bool {
	return !l.faults.over && l.unread[table] && l.clock.Before(l.down[table])
}

// deny takes the writes to such tables out of a call, with their outcomes.
func (l *link) deny(ws []store.Write, out []store.Outcome) (denied bool) {
	for i := range ws {
		if l.denies(ws[i].Table) {
			out[i].Err, denied = errDenied, true
		}
	}
	if denied {
		l.world.clock = l.world.clock.Add(driverPatience)
	}
	return denied
}

// countOwed counts what is named that waits for a table.
func (w *world) countOwed(t *table, key store.Key, now value.Item) {
	if t.Name == owntable.TableName && now != nil && owntable.Kind(key.Partition.Text()) == owntable.KindOwed {
		w.counted["owed "+cmp.Or(owntable.OwedFrom(now).Kind, "target")]++
	}
}

// outages reports whether a table was found to take no writes, and what waits for it is not done.
func (w *world) outages() (any bool) {
	w.base.tables[owntable.TableName].each(func(_ store.Key, row value.Item) {
		if _, is := owntable.OutageJobFrom(row); is {
			any = true
		}
	})
	return any
}

// mends lets the time pass after which a table is tried again. A function has its next event then.
func (w *world) mends() {
	w.reach("outages that jobs end")
	w.clock = w.clock.Add(30 * time.Second)
	if w.mapping == nil {
		return
	}
	err := w.alone("the next event", func(r *runner.Runner) error {
		_, err := (&runner.Jobs{Runner: r}).Step(context.Background())
		return err
	})
	if still := new(runner.StandingJobs); err != nil && !errors.As(err, &still) {
		w.fail(Stuck, "the job of an outage: %v", err)
	}
}
