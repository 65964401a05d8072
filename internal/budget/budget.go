// Package budget counts the units that a program uses on each table, by purpose, and holds a program to
// a number of write units in a second.
//
// The number is that of a table, for all programs together. A program gets an equal share: its
// owner says with Share how many programs there are. The own table has no limit, because leases
// and checkpoints must not wait.
package budget

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Writes are the write units of a program. A nil *Writes counts nothing and limits nothing. All
// methods may be called concurrently.
type Writes struct {
	units float64 // of a table in a second, for all programs; 0 is any number
	own   string  // the table without a limit
	now   func() time.Time

	mu     sync.Mutex
	tables map[string]*table
	shared chan struct{} // closed when a share changes
	again  map[Cause]int64
}

// table is one table. left may be below 0, which is a debt: the cost of a write is known
// afterwards.
type table struct {
	among, left float64
	at          time.Time
	used        map[Purpose]Units
	throttled   int64
	waited      time.Duration
}

// Use is the units that a program has used of a table since it started.
type Use struct {
	Table     string
	Units     float64 // write units
	By        map[Purpose]Units
	Throttled int64         // writes that the table refused for now
	Waited    time.Duration // for which writes waited for the budget, all added up
	Share     float64       // write units in a second that the program may use, 0 for any number
}

// New returns Writes of so many units in a second for each table, 0 for any number. The table own
// has no limit. Until Share is called for one of the others, its writes wait.
func New(units float64, own string) *Writes {
	return &Writes{units: units, own: own, now: time.Now, tables: map[string]*table{}, shared: make(chan struct{})}
}

// of returns a table. w.mu is locked.
func (w *Writes) of(name string) *table {
	t := w.tables[name]
	if t == nil {
		t = &table{at: w.now(), used: map[Purpose]Units{}}
		w.tables[name] = t
	}
	return t
}

// Share says how many programs share the budget of tables; at least 1.
func (w *Writes) Share(tables []string, among int) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range tables {
		t := w.of(name)
		w.refill(t)
		t.among = float64(max(1, among))
	}
	close(w.shared)
	w.shared = make(chan struct{})
}

// refill adds to a table the units that it got since it was filled last. Units that are not used within a tenth of
// a second is lost, so that no burst follows a pause. w.mu is locked.
func (w *Writes) refill(t *table) {
	now := w.now()
	if t.among > 0 {
		rate := w.units / t.among
		t.left = min(rate/10, t.left+now.Sub(t.at).Seconds()*rate)
	}
	t.at = now
}

// Await waits until the program has no debt on the tables, or until ctx is done, whose error it returns.
// It takes nothing: a caller that writes says afterwards what that cost. So several that wait may go on
// together, and the debt that they make is paid before the next write. Our own table has no budget.
func (w *Writes) Await(ctx context.Context, tables ...string) error {
	if w == nil || w.units <= 0 {
		return nil
	}
	for _, name := range tables {
		if name == w.own {
			continue
		}
		for {
			wait, shared := w.debt(name)
			if wait <= 0 {
				break
			}
			start := w.now()
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-shared:
			case <-ctx.Done():
			}
			timer.Stop()
			w.noteDelay(name, w.now().Sub(start))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// unshared is how long writes wait before they look again for a share.
const unshared = time.Minute

// debt is how long it takes to pay the debt of a table; shared is closed when a share changes.
func (w *Writes) debt(name string) (wait time.Duration, shared <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.of(name)
	if t.among == 0 {
		return unshared, w.shared
	}
	if w.refill(t); t.left >= 0 {
		return 0, nil
	}
	return max(time.Millisecond, time.Duration(-t.left/w.units*t.among*float64(time.Second))), w.shared
}

// noteDelay notes that a write of a table waited for the budget, for the metric of waiting.
func (w *Writes) noteDelay(name string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(name).waited += d
}

// Spent counts the cost of a write.
func (w *Writes) Spent(ctx context.Context, name string, units float64) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.of(name)
	w.refill(t)
	t.left -= units
	is := t.used[purposeOf(ctx)]
	is.Write += units
	t.used[purposeOf(ctx)] = is
}

// Read counts the cost of a read. Reads have no limit.
func (w *Writes) Read(ctx context.Context, name string, units float64) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.of(name)
	is := t.used[purposeOf(ctx)]
	is.Read += units
	t.used[purposeOf(ctx)] = is
}

// Again counts a request that is sent again.
func (w *Writes) Again(why Cause) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again == nil {
		w.again = map[Cause]int64{}
	}
	w.again[why]++
}

// Retries are how many requests were sent again, by cause.
func (w *Writes) Retries() map[Cause]int64 {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.again)
}

// Throttled counts a write that the table refused for now.
func (w *Writes) Throttled(name string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(name).throttled++
}

// Uses are the uses of all tables, by name.
func (w *Writes) Uses() (out []Use) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, t := range w.tables {
		u := Use{Table: name, By: maps.Clone(t.used), Throttled: t.throttled, Waited: t.waited}
		for _, used := range t.used {
			u.Units += used.Write
		}
		if t.among > 0 && name != w.own {
			u.Share = w.units / t.among
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Use) int { return strings.Compare(a.Table, b.Table) })
	return out
}

// Purpose is the work that units are used for.
type Purpose string

// The purposes. Other is all the rest: commands, queries, starts.
const (
	Rows  Purpose = "rows"  // records are applied to rows
	Lease Purpose = "lease" // shards are shared with other processes
	Build Purpose = "build" // existing rows are derived from
	Other Purpose = "other"
)

type purposeKey struct{}

// For returns a context in which units are used for a purpose.
func For(ctx context.Context, p Purpose) context.Context {
	return context.WithValue(ctx, purposeKey{}, p)
}

// purposeOf returns the purpose of the units that are used in a context.
func purposeOf(ctx context.Context) Purpose {
	p, _ := ctx.Value(purposeKey{}).(Purpose)
	return cmp.Or(p, Other)
}

// Units are units of reading and writing.
type Units struct{ Read, Write float64 }

// Cause is why a request is sent again.
type Cause string

// The causes.
const (
	CauseThrottled  Cause = "throttled"  // the table refused it for now
	CauseConflict   Cause = "conflict"   // another transaction was at a row of it, or it was done in part
	CauseServer     Cause = "server"     // the service failed
	CauseConnection Cause = "connection" // there was no connection, or it broke
	CauseLate       Cause = "late"       // the answer took longer than answers take
)
