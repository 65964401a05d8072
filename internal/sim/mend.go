package sim

import (
	"context"
	"errors"
	"slices"

	"weir/internal/repair"
	"weir/internal/runner"
	"weir/internal/verify"
)

// mends is how many rounds a repair may take: what is put right may be what something else
// is derived from.
const mends = 2 * rounds

// mend lets repair put right what missing records left wrong. It then compares everything
// with the truth as if no record had been missing, except history, which nothing can
// restore. After that the application goes on, and everything must still be right.
func (w *world) mend() {
	if len(w.failures) > 0 || w.keepsMore() {
		return // what is kept has to be dealt with first
	}
	for n := 0; ; n++ {
		round := w.repair()
		w.settle()
		if len(w.failures) > 0 {
			return
		}
		round.Left = slices.DeleteFunc(round.Left, func(l repair.Left) bool { return unsearchable(l.Difference) })
		if round.Mended > 0 && n < mends {
			w.counted["mended"] += round.Mended
			continue
		}
		if len(round.Left)+len(round.Busy)+len(round.Fine)+round.Mended > 0 {
			w.fail(Stuck, "repair: it still changes: %d put right, left %v, changed meanwhile %v, all right %v", round.Mended, round.Left, round.Busy, round.Fine)
			return
		}
		break
	}
	w.counted["gaps healed"]++
	w.healed()
	for _, d := range w.kept() {
		_ = w.alone("settled", func(r *runner.Runner) error { return r.Discard(context.Background(), d.ID) })
	}
	for i := range goesOn {
		w.app.act(whatFollows + i)
	}
	if w.heal(); len(w.kept()) == 0 && len(w.failures) == 0 {
		w.healed()
		w.recount()
	}
}

// goesOn is how many acts follow a repair, and whatFollows the number of the first: no run
// has that many before.
const goesOn, whatFollows = 12, 1 << 20

// healed compares all state with the truth.
func (w *world) healed() {
	before := len(w.failures)
	t := w.app.truth()
	t.state()
	t.compareSets()
	w.accounts()
	for i := before; i < len(w.failures); i++ {
		w.failures[i].What = "after a repair: " + w.failures[i].What
	}
}

// repair does one round of the real repair.
func (w *world) repair() (round *repair.Round) {
	err := w.alone("repair", func(r *runner.Runner) (err error) {
		p := repair.Repair{Verify: w.verifier(), Runner: r, Yield: func(verify.Difference) {}, Passed: func(context.Context) error {
			if !w.trims.caughtUp() {
				return errors.New("it is not caught up")
			}
			return nil
		}}
		round, err = p.Round(context.Background())
		return err
	})
	if err != nil || round == nil {
		w.fail(Stuck, "repair: %v", err)
		return &repair.Round{}
	}
	return round
}
