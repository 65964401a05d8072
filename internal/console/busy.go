package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"weir/internal/ingest"
	"weir/internal/sample"
	"weir/internal/system"
	"weir/internal/value"
)

// A workload writes at most busyMost rows a second, for at most busyTime. The ids of its rows
// begin with busyName, so that it never touches a row of anybody else.
const (
	busyMost = 500
	busyTime = 10 * time.Minute
	busyName = "busy-"
)

// busy is the workload of a model.
// A workload is of one process and is not stored: after a crash the rows that it has written stay,
// under ids that begin with busyName, and the next workload of the model writes and deletes the
// same ones.
type busy struct {
	work
	// These are of the last workload once it has ended.
	perSec int
	writes int
	failed string
}

// busyPage is a workload as the page shows it.
type busyPage struct {
	Running        bool
	PerSec, Writes int
	Since, Failed  string
	Action         string
	Most           int
	Minutes        int
}

// busyOf is a snapshot: the workload goes on while the page is made.
// A workload that never ran offers 20 writes in a second.
func (c *Console) busyOf(r *request) *busyPage {
	b := c.busy[r.part.Model.Name]
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &busyPage{Running: b.running, PerSec: b.perSec, Writes: b.writes, Failed: b.failed, Action: r.path("/busy"), Most: busyMost, Minutes: int(busyTime.Minutes()), Since: stamp(&b.began)}
	if p.PerSec == 0 {
		p.PerSec = 20
	}
	return p
}

// makeBusy begins the workload of a model, or ends it.
// The answer comes before the workload has ended; it clears its rows after that.
func (c *Console) makeBusy(r *request) error {
	b, part := c.busy[r.part.Model.Name], r.part
	n, err := strconv.Atoi(r.PostForm.Get("rate"))
	err = c.turn(r, &b.work, "start", func() error {
		if err != nil || n < 1 || n > busyMost {
			return &mistake{http.StatusBadRequest, "The rate is from 1 to " + strconv.Itoa(busyMost) + " rows a second."}
		}
		b.perSec, b.writes, b.failed = n, 0, ""
		return nil
	}, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, busyTime)
		defer cancel()
		b.run(ctx, c.system, part, n)
	})
	if err != nil {
		return err
	}
	return r.done(r.path("/try"))
}

// run writes the rows of a sample and deletes them, in turn, so that what is stored does not grow.
// At its end it deletes all of them.
// The context ends it: after busyTime, by the stop button, or when the program stops. A model of
// whose rows none has an id that can begin with busyName has no workload, and the page says so.
func (b *busy) run(ctx context.Context, s *system.System, part *system.Part, perSec int) {
	w := &ingest.Writer{Model: part.Model, Store: s.Store, Brief: true}
	limit := rate.NewLimiter(rate.Limit(perSec), max(1, perSec/20))
	var rows []ingest.Command
	for _, c := range sample.Apart(part.Model, time.Now(), busyName) {
		if e := part.Model.Entity(c.Entity); strings.Contains(keyOf(c, e.KeyNames()), busyName) {
			rows = append(rows, c)
		}
	}
	do := func(ctx context.Context, c ingest.Command) error {
		err := w.Do(ctx, []ingest.Command{c})[0].Err
		b.mu.Lock()
		defer b.mu.Unlock()
		b.writes++
		return err
	}
	for round := 0; len(rows) > 0; round++ {
		for _, c := range rows {
			if limit.Wait(ctx) != nil {
				clearRows(part, rows, do)
				return
			}
			c.Op = ingest.Put
			if round%2 == 1 {
				c = deletion(part, c)
			}
			if err := do(ctx, c); err != nil && ctx.Err() == nil {
				b.fails(c, err)
			}
		}
	}
	b.fails(ingest.Command{}, nil)
	clearRows(part, rows, do)
}

// fails notes the first command that was not done.
// err nil means that no command could be made up. Later failures are not shown.
func (b *busy) fails(c ingest.Command, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failed != "":
	case err == nil:
		b.failed = "The model has no rows that can be made up."
	default:
		b.failed = brief(string(c.Op)+" "+c.Entity+": "+err.Error(), longRunes)
	}
}

// clearRows deletes the rows of the workload.
// It has five seconds of its own, because the context of the workload has ended by then. Rows that
// it does not reach in that time stay, and the next workload deletes them.
func clearRows(part *system.Part, rows []ingest.Command, do func(context.Context, ingest.Command) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range rows {
		_ = do(ctx, deletion(part, c)) // a row that is not there is no matter
	}
}

// deletion is the command that deletes the row of another one.
func deletion(part *system.Part, c ingest.Command) ingest.Command {
	key := part.Model.Entity(c.Entity).KeyNames()
	return ingest.Command{Op: ingest.Delete, Entity: c.Entity, Item: c.Item.Filter(func(name string) bool { return slices.Contains(key, name) })}
}

// keyOf returns the texts that make a command's key.
func keyOf(c ingest.Command, names []string) (out string) {
	for _, name := range names {
		out += value.Scalar(c.Item.Get(name)) + " "
	}
	return out
}
