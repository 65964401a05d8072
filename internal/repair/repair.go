// Package repair corrects derived values from the source rows. For each thing that verify
// finds, it notes the current state, recounts it, and writes the result on condition that
// the thing has not changed since it was noted (runner.Fix). This package knows no
// projection kind. Applications may go on writing, and readers may go on applying records.
// After a crash some things are corrected and others are not, but none is half corrected;
// running it again continues.
package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/verify"
)

// Repair corrects the derived values of one model. Set Verify, Runner and Yield; then call
// Run.
type Repair struct {
	Verify *verify.Verify
	Runner *runner.Runner
	// Passed waits until the consumer group "rows" has applied everything that was written
	// before the call. If it is nil, Repair uses the runner's own Passed, which only waits:
	// another process has to apply the records.
	Passed func(context.Context) error
	// NoCounts leaves counts, sums and sets as they are. Set it if it cannot be known when
	// all records are applied.
	NoCounts bool
	// Only, if set, selects the differences to correct.
	Only func(*verify.Difference) bool
	// Dry writes nothing and yields every difference that could be corrected.
	Dry bool
	// Yield is called for each corrected difference, once a later verification no longer
	// finds it.
	Yield func(verify.Difference)

	unconfirmed []*thing // written since the last verification
}

// Left is a difference that was not corrected, and the reason.
type Left struct {
	verify.Difference
	Why error
}

// Reasons why a difference was not corrected. Other reasons are errors of the packages runner
// and store.
const (
	ErrBusy     = runner.Unfixable("it changes as often as it is recounted; run it again when less is written")
	ErrFunction = runner.Unfixable("a function reads the streams of this model, and how far it has counted is unknown")
	ErrBeyond   = runner.Unfixable("what it should be is known, but not how it could become so")
	ErrOnlySaid = runner.Unfixable("verify only says so")
)

// attempts limits how often repair recounts in vain because other writers keep changing the
// rows.
const attempts = 8

// Run repairs until it can do nothing more. It returns the differences that it could not
// correct. If the last verification finds no differences, Run discards the gaps that were
// known before that verification, and returns them: all that they may have affected is now
// correct, except history, which cannot be recounted.
func (r *Repair) Run(ctx context.Context) (left []Left, gaps []runner.Dead, err error) {
	before := map[verify.Difference]bool{} // of the last round, what it could do nothing about
	for idle := 0; ; {
		if gaps, err = r.Runner.Gaps(ctx); err != nil {
			return nil, nil, err
		}
		round, err := r.Round(ctx)
		if err != nil {
			return nil, nil, err
		}
		fine := map[verify.Difference]bool{}
		again := false
		for _, d := range round.Fine {
			again = again || !before[d.Plain()]
			fine[d.Plain()] = true
		}
		switch before = fine; {
		case r.Dry:
			return round.Left, nil, nil
		case round.Mended > 0:
			idle = 0
			if r.NoCounts {
				continue
			}
			if err := r.passed(ctx); err != nil { // what comes of it
				return nil, nil, err
			}
			continue
		case len(round.Busy) > 0 && idle < attempts, again && idle < attempts:
			idle++
			continue
		}
		for _, d := range round.Busy {
			round.Left = append(round.Left, Left{d, ErrBusy})
		}
		why := ErrBeyond // what differs all the time, and is as it should be
		if idle == attempts {
			why = ErrBusy
		}
		for _, d := range round.Fine {
			round.Left = append(round.Left, Left{d, why})
		}
		if len(round.Left) > 0 || r.Only != nil {
			return round.Left, nil, nil
		}
		for _, g := range gaps {
			if err := r.Runner.Discard(ctx, g.ID); err != nil && !errors.Is(err, runner.ErrNoDead) {
				return nil, nil, err
			}
		}
		return nil, gaps, nil
	}
}

// passed waits until all that was written before the call is applied.
func (r *Repair) passed(ctx context.Context) error {
	if r.Passed != nil {
		return r.Passed(ctx)
	}
	return r.Runner.Passed(ctx)
}

// Round is the outcome for the differences of one verification.
type Round struct {
	Mended int                 // things that were written; the next verification checks them
	Busy   []verify.Difference // changed by other writers meanwhile
	Fine   []verify.Difference // correct when they were checked again
	Left   []Left
}

// thing is one derived thing that repair corrects, with all differences about it.
type thing struct {
	runner.Fix
	name        string
	differences []verify.Difference
	tries       int // how often it was written and found to differ again
}

// Round verifies once and corrects what it can. The next Round confirms the corrections. After an error
// the Round says what was done before it. Each correction is written by itself, under the version that
// it was computed from, so a Round may be interrupted at any moment and begun again.
func (r *Repair) Round(ctx context.Context) (*Round, error) {
	round := &Round{}
	things, err := r.find(ctx, round)
	if err != nil {
		return round, err
	}
	if r.Dry {
		for _, t := range things {
			round.Mended++
			r.yield(t)
		}
		return round, nil
	}
	if things = r.confirm(round, things); len(things) == 0 {
		return round, nil
	}
	w := &mending{Repair: r, round: round}
	if w.function, err = r.Runner.ByFunction(ctx); err != nil {
		return round, err
	}
	if err := w.counts(ctx, things); err != nil {
		return round, err
	}
	return round, w.rest(ctx, things)
}

// find verifies and returns the things that differ. Several differences may be about one
// thing.
func (r *Repair) find(ctx context.Context, round *Round) (things []*thing, err error) {
	at := map[string]*thing{}
	err = r.Verify.Run(ctx, func(d verify.Difference) {
		if r.Only != nil && !r.Only(&d) {
			return
		}
		if d.Fix == nil {
			round.Left = append(round.Left, Left{d, ErrOnlySaid})
			return
		}
		name := fmt.Sprintf("%T\x00%s", d.Fix, d.Fix.Thing())
		if at[name] == nil {
			at[name] = &thing{Fix: d.Fix, name: name}
			things = append(things, at[name])
		}
		at[name].differences = append(at[name].differences, d)
	})
	return things, err
}

// yield reports each difference of a thing.
func (r *Repair) yield(t *thing) {
	for _, d := range t.differences {
		r.Yield(d)
	}
}

// confirm yields the things that were written before this verification and that it no longer
// finds. It returns the found things that are worth writing, without those that were written
// too often already: these differ as before, or other writers change them all the time.
func (r *Repair) confirm(round *Round, found []*thing) (todo []*thing) {
	before := map[string]*thing{}
	for _, t := range r.unconfirmed {
		before[t.name] = t
	}
	var spent []*thing
	for _, t := range found {
		was := before[t.name]
		delete(before, t.name)
		if was != nil {
			t.tries = was.tries + 1
		}
		if t.tries < attempts {
			todo = append(todo, t)
			continue
		}
		spent = append(spent, t)
		switch {
		case sameDifferences(was, t):
			for _, d := range t.differences {
				round.Left = append(round.Left, Left{d, ErrBeyond})
			}
		default:
			round.Busy = append(round.Busy, t.differences...)
		}
	}
	for _, t := range r.unconfirmed {
		if before[t.name] != nil {
			r.yield(t)
		}
	}
	r.unconfirmed = spent
	return todo
}

// sameDifferences reports whether two rounds found the same, in the same order and words.
func sameDifferences(a, b *thing) bool {
	return slices.EqualFunc(a.differences, b.differences, func(x, y verify.Difference) bool { return x.Plain() == y.Plain() })
}

// mending is the work of one round.
type mending struct {
	*Repair
	round    *Round
	function bool
}

// onlyThis reports whether an error concerns only one thing.
func onlyThis(err error) bool {
	var unfixable runner.Unfixable
	return errors.As(err, &unfixable) || errors.Is(err, owntable.ErrRow) || errors.Is(err, store.ErrRefused) || errors.Is(err, search.ErrRefused)
}

// became records the outcome for a thing. An error that concerns only this thing adds it to
// Left; became returns any other error.
func (m *mending) became(t *thing, done, differs bool, err error) error {
	switch {
	case onlyThis(err):
		for _, d := range t.differences {
			m.round.Left = append(m.round.Left, Left{d, err})
		}
	case err != nil:
		return fmt.Errorf("%s of %s: %w", t.differences[0].Derivation, t.differences[0].Row, err)
	case !done:
		m.round.Busy = append(m.round.Busy, t.differences...)
	case !differs:
		m.round.Fine = append(m.round.Fine, t.differences...)
	default:
		m.round.Mended++
		m.unconfirmed = append(m.unconfirmed, t)
	}
	return nil
}

// tip returns a position that is not before any visible change, zero if the store has none.
func (m *mending) tip() events.Position { return m.Runner.Store.Tip().Seen }

// counts corrects everything that needs a recount, in this order: note the current state,
// recount, wait until all is applied, write.
func (m *mending) counts(ctx context.Context, things []*thing) error {
	var todo []*thing
	waits := false
	for _, t := range things {
		switch counts := t.Stage() == runner.StageCounts; {
		case counts && (m.function || m.NoCounts):
			why := runner.ErrLag
			if m.function {
				why = ErrFunction
			}
			if err := m.became(t, false, true, why); err != nil {
				return err
			}
		case counts, t.Stage() == runner.StageFacts:
			todo, waits = append(todo, t), waits || counts
		}
	}
	if len(todo) == 0 {
		return nil
	}
	for _, t := range todo {
		if err := t.Note(ctx, m.Runner); err != nil {
			return err
		}
	}
	now := &runner.Recounted{Floor: m.tip()}
	var err error
	if now.Recounts, err = m.Verify.Count(ctx); err != nil {
		return err
	}
	var unread error // of a checkpoint: what counts is left, for how far it has counted is not known
	if waits {
		if unread = m.passed(ctx); unread == nil {
			now.Applied, unread = m.Runner.Counted(ctx)
		}
		if unread != nil && !errors.Is(unread, owntable.ErrRow) {
			return unread
		}
	}
	for _, t := range todo {
		done, differs, err := false, true, unread
		if unread == nil || t.Stage() != runner.StageCounts {
			done, differs, err = t.Correct(ctx, m.Runner, now)
		}
		if err := m.became(t, done, differs, err); err != nil {
			return err
		}
	}
	return nil
}

// rest corrects the things that need no recount, stage by stage.
func (m *mending) rest(ctx context.Context, things []*thing) error {
	for stage := runner.StageFacts + 1; stage < runner.Stages; stage++ {
		for _, t := range things {
			if t.Stage() != stage {
				continue
			}
			done, differs, err := t.Correct(ctx, m.Runner, &runner.Recounted{Floor: m.tip()})
			if err := m.became(t, done, differs, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// History returns the names of a model's rules that make history. No recount can check these
// rows.
func History(m *model.Model) (names []string) {
	for _, rule := range m.Rows {
		if len(rule.Keep) > 0 {
			names = append(names, rule.Name)
		}
	}
	return names
}
