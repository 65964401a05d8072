package console

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"weir/internal/model"
	"weir/internal/scratch"
	"weir/internal/system"
)

// A recount compares at most compareDiffering differences, and a page lists listDiffering of them.
const (
	compareDiffering = 10000
	listDiffering    = 200
)

// check is the last recount of a model's derived values, or the one that runs: at most one at a time.
// The findings of the last recount stay until the next one begins, so a
// page shows a whole result or one that grows.
type check struct {
	mu      sync.Mutex // guards the following
	running bool
	stop    context.CancelFunc
	began   time.Time // zero if none has begun
	found   recounted
}

// recounted is the findings of a recount until now.
type recounted struct {
	Rows, Checked int // rows read, and values compared
	Differ        int
	More          bool // there are differences that were not compared
	// Differences has the first listDiffering ones.
	Differences  []differenceLine
	Cannot       int            // values that cannot be computed
	Kept         map[string]int // scratch.Verify.NotCompared
	Took, Failed string
}

// checkPage is a check as the page of health shows it.
type checkPage struct {
	recounted
	Running, Done          bool
	Began, Action, Command string
}

// differenceLine is one difference of a recount, with the shown value and the right one.
type differenceLine struct {
	Derivation string
	Row        link
	Have, Want string
}

// toggleVerify begins a recount, or ends the one that runs. To begin while one runs, and to stop none, changes nothing.
// A new one forgets the findings of the last. The answer does not wait for it: it ends by itself, or soon after the console.
func (c *Console) toggleVerify(r *request) error {
	k, part := c.checks[r.part.Model.Name], r.part
	k.mu.Lock()
	defer k.mu.Unlock()
	switch action := r.PostForm.Get("action"); {
	case action == "stop":
		if k.running {
			k.stop()
		}
	case action != "verify":
		return errNoAction
	case c.ctx.Err() != nil:
		return &mistake{http.StatusServiceUnavailable, "The program is stopping."}
	case !k.running:
		ctx, stop := context.WithCancel(c.ctx)
		k.running, k.stop, k.began, k.found = true, stop, time.Now(), recounted{}
		c.working.Go(func() {
			defer stop()
			k.run(ctx, c.system, part)
		})
	}
	return r.redirectTo(r.path("/health") + "#verify")
}

// run recounts, beside the follower and the applications.
// It reads each row at least twice. A reported difference was the same both times, so a
// change that was being applied is not a difference (scratch.Verify.Twice).
func (k *check) run(ctx context.Context, s *system.System, part *system.Part) {
	v := scratch.Of(s, part)
	v.Progress = func(rows int) {
		k.mu.Lock()
		k.found.Rows = rows
		k.mu.Unlock()
	}
	more, err := v.Twice(ctx, compareDiffering, func(d scratch.Difference) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.found.Differ++; len(k.found.Differences) < listDiffering {
			k.found.Differences = append(k.found.Differences, differenceOf(part.Model, &d))
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &k.found
	f.Took, f.Checked, f.More, f.Cannot, f.Kept, k.running = took(time.Since(k.began)), v.Checked, more, len(v.Unshown), v.NotCompared, false
	switch {
	case errors.Is(err, context.Canceled):
		f.Failed = "It was stopped before it ended."
	case err != nil:
		f.Failed = "It failed: " + brief(err.Error(), longRunes)
	}
}

// checkOf is a snapshot of the model's recount for the page, with the zero page if there has been
// none since the program started.
func (c *Console) checkOf(r *request) *checkPage {
	k := c.checks[r.part.Model.Name]
	k.mu.Lock()
	defer k.mu.Unlock()
	return &checkPage{k.found, k.running, !k.running && !k.began.IsZero(), stamp(&k.began), r.path("/verify"), r.part.Model.Command("verify")}
}

// differenceOf shows a difference.
func differenceOf(m *model.Model, d *scratch.Difference) differenceLine {
	shown := d.Shown(m)
	d = &shown
	l := differenceLine{Derivation: d.Derivation, Row: link{Text: brief(d.Row, cellRunes)}, Have: brief(d.Have, cellRunes), Want: brief(d.Want, cellRunes)}
	if at, err := scratch.Parse(m, d.Row); err == nil && len(at) == 1 {
		l.Row = rowLink(m, at[0].Row)
	}
	return l
}
