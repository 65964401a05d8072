package console

import (
	"context"
	"errors"
	"time"

	"weir/internal/model"
	"weir/internal/scratch"
	"weir/internal/system"
	"weir/internal/why"
)

// A recount compares at most compareDiffering differences, and a page lists listDiffering of them.
const (
	compareDiffering = 10000
	listDiffering    = 200
)

// check is the last recount of a model's derived values, or the one that runs.
// What the last recount found stays until the next one begins, so a
// page shows a whole result or one that grows.
type check struct {
	work
	took    time.Duration
	rows    int // read
	checked int
	differ  int
	more    bool
	// list has the first listDiffering differences; differ counts all of those that were compared,
	// and more says that there were others which were not.
	list   []scratch.Difference
	cannot int            // values that cannot be computed
	kept   map[string]int // scratch.Verify.NotCompared
	err    error
}

// checkPage is a check as the page of health shows it.
type checkPage struct {
	Running, Done, More   bool
	Began, Took, Failed   string
	Rows, Checked, Cannot int
	Kept                  map[string]int
	Differ                int
	Differences           []differenceLine
	Action, Command       string
}

// differenceLine is one difference of a recount, with what the row shows and what it should show.
type differenceLine struct {
	Derivation string
	Row        link
	Have, Want string
}

// verify begins a recount, or ends the one that runs.
// A new one forgets what the last found.
func (c *Console) verify(r *request) error {
	k, part := c.checks[r.part.Model.Name], r.part
	err := c.turn(r, &k.work, "verify", func() error {
		k.took, k.rows, k.checked, k.differ, k.more, k.list, k.cannot, k.kept, k.err = 0, 0, 0, 0, false, nil, 0, nil, nil
		return nil
	}, func(ctx context.Context) { k.run(ctx, c.system, part) })
	if err != nil {
		return err
	}
	return r.done(r.path("/health") + "#verify")
}

// run recounts, beside the follower and the applications.
// It reads each row at least twice. What it reports differed in the same way both times, so a
// change that was being applied is not a difference (scratch.Verify.Twice).
func (k *check) run(ctx context.Context, s *system.System, part *system.Part) {
	v := scratch.Of(s, part)
	v.Progress = func(rows int) {
		k.mu.Lock()
		k.rows = rows
		k.mu.Unlock()
	}
	more, err := v.Twice(ctx, compareDiffering, func(d scratch.Difference) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.differ++; len(k.list) < listDiffering {
			k.list = append(k.list, d)
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.took, k.checked, k.more, k.cannot, k.kept, k.err = time.Since(k.began), v.Checked, more, len(v.Unshown), v.NotCompared, err
}

// checkOf is a snapshot of the model's recount for the page, with the zero page if there has been
// none since the program started.
func (c *Console) checkOf(r *request) *checkPage {
	k, m := c.checks[r.part.Model.Name], r.part.Model
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &checkPage{
		Running: k.running, Done: !k.running && !k.began.IsZero(), More: k.more, Rows: k.rows, Checked: k.checked, Cannot: k.cannot, Kept: k.kept, Differ: k.differ, Began: stamp(&k.began), Took: took(k.took),
		Action: r.path("/verify"), Command: m.Command("verify"),
	}
	switch {
	case errors.Is(k.err, context.Canceled):
		p.Failed = "It was stopped before it ended."
	case k.err != nil:
		p.Failed = "It failed: " + brief(k.err.Error(), longRunes)
	}
	for i := range k.list {
		p.Differences = append(p.Differences, differenceOf(m, &k.list[i]))
	}
	return p
}

// differenceOf shows a difference.
func differenceOf(m *model.Model, d *scratch.Difference) differenceLine {
	shown := d.Shown(m)
	d = &shown
	l := differenceLine{Derivation: d.Derivation, Row: link{Text: brief(d.Row, cellRunes)}, Have: brief(d.Have, cellRunes), Want: brief(d.Want, cellRunes)}
	if at, err := why.Parse(m, d.Row); err == nil && len(at) == 1 {
		l.Row = rowLink(m, at[0].Row)
	}
	return l
}
