// Package repair puts derived values right from the core rows: what verify finds is
// noted, recounted and written, each under the condition that nobody has changed it
// meanwhile (package runner, repair.go). Applications may go on writing and readers
// applying. A crash leaves some things put right and others not, and nothing half
// done: whoever begins again goes on.
package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
)

// Repair puts one model right.
type Repair struct {
	Verify *verify.Verify
	Runner *runner.Runner
	// Passed returns when the group rows has applied all that was written before it was
	// called; nil is the runner's, for which somebody else has to be applying.
	Passed func(context.Context) error
	// NoCounts leaves what counts as it is: nobody can tell when all is applied.
	NoCounts bool
	// Only, when set, chooses.
	Only func(*verify.Difference) bool
	// Dry writes nothing: everything that could be put right is yielded.
	Dry bool
	// Yield is told of each difference that is put right, once a later verification does
	// not find it any more.
	Yield func(verify.Difference)

	unconfirmed []*thing // written since the last verification
}

// Left is a difference that is not put right, and why.
type Left struct {
	verify.Difference
	Why error
}

// Why something is left.
var (
	ErrBusy     = errors.New("it changes as often as it is recounted; run it again when less is written")
	ErrFunction = errors.New("a function reads the streams of this model, and nobody can tell how far it has counted")
	ErrBeyond   = errors.New("what it should be is known, but not how it could become so")
	ErrOnlySaid = errors.New("verify only says so")
)

// attempts is how often a recount is tried that puts nothing right because others go
// on changing what it is of.
const attempts = 8

// Run repairs until nothing is left to do, and answers what is left all the same.
// Gaps that were named before a verification that finds nothing more are given up:
// what they touched is right, but for history, which nothing can tell.
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

func (r *Repair) passed(ctx context.Context) error {
	if r.Passed != nil {
		return r.Passed(ctx)
	}
	return r.Runner.Passed(ctx)
}

// Round is what became of the differences of one verification.
type Round struct {
	Mended int                 // things that were written, which the next verification confirms or not
	Busy   []verify.Difference // changed meanwhile
	Fine   []verify.Difference // all right when they were looked at again
	Left   []Left
}

// thing is what one or several differences are about.
type thing struct {
	verify.What
	name        string
	differences []verify.Difference
	tries       int                          // how often it was written, and was found again
	row         value.Item                   // as noted
	nodes       map[string]*projections.Node // of a set, as noted
}

// Round verifies, and puts right what can be, once.
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

// find verifies. Several differences may be about one thing.
func (r *Repair) find(ctx context.Context, round *Round) (things []*thing, err error) {
	at := map[string]*thing{}
	err = r.Verify.Run(ctx, func(d verify.Difference) {
		if r.Only != nil && !r.Only(&d) {
			return
		}
		if d.What.Kind == 0 {
			round.Left = append(round.Left, Left{d, ErrOnlySaid})
			return
		}
		name := nameOf(d.What)
		if at[name] == nil {
			at[name] = &thing{What: *d.What, name: name}
			things = append(things, at[name])
		}
		at[name].differences = append(at[name].differences, d)
	})
	return things, err
}

func nameOf(w *verify.What) string {
	search := ""
	if w.Search != nil {
		search = w.Search.Name
	}
	return fmt.Sprintf("%d\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s", w.Kind, book.RowText(w.Row), book.RowText(w.Of), w.List, w.Name, w.Field, search)
}

func (r *Repair) yield(t *thing) {
	for _, d := range t.differences {
		r.Yield(d)
	}
}

// confirm yields what was written before this verification and is not found by it any
// more. It returns the things found, without those that were written as often as it is
// worth: they differ as they did before, or others change them all the time.
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

func sameDifferences(a, b *thing) bool {
	return slices.EqualFunc(a.differences, b.differences, func(x, y verify.Difference) bool { return x.Plain() == y.Plain() })
}

// mending is one round's work.
type mending struct {
	*Repair
	round    *Round
	function bool
	floor    events.Position
}

// became notes what became of a thing. Errors that are about it alone leave it.
func (m *mending) became(t *thing, done, differs bool, err error) error {
	for _, why := range []error{runner.ErrParked, runner.ErrNotOurs, runner.ErrDamaged, runner.ErrLag, book.ErrRow, store.ErrRefused, search.ErrRefused, ErrFunction, ErrBeyond} {
		if errors.Is(err, why) {
			for _, d := range t.differences {
				m.round.Left = append(m.round.Left, Left{d, err})
			}
			return nil
		}
	}
	switch {
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

// tip is a position that everything visible has passed, zero where the store has none.
func (m *mending) tip() { m.floor = m.Runner.Store.Tip().Seen }

// counts puts right what is recounted: notes, recounts, waits, writes.
func (m *mending) counts(ctx context.Context, things []*thing) error {
	var todo []*thing
	waits := false
	for _, t := range things {
		switch counts := t.Kind == verify.Book || t.Kind == verify.Set; {
		case counts && (m.function || m.NoCounts):
			why := runner.ErrLag
			if m.function {
				why = ErrFunction
			}
			if err := m.became(t, false, true, why); err != nil {
				return err
			}
		case counts:
			todo, waits = append(todo, t), true
		case t.Kind == verify.Told || t.Kind == verify.Listed:
			todo = append(todo, t)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	for _, t := range todo {
		if err := m.note(ctx, t); err != nil {
			return err
		}
	}
	m.tip()
	count, err := m.Verify.Count(ctx)
	if err != nil {
		return err
	}
	var places []runner.Place
	var unread error // of a checkpoint: what counts is left, for how far it has counted is not known
	if waits {
		if unread = m.passed(ctx); unread == nil {
			places, unread = m.Runner.Counted(ctx)
		}
		if unread != nil && !errors.Is(unread, book.ErrRow) {
			return unread
		}
	}
	for _, t := range todo {
		done, differs, err := false, true, unread
		if unread == nil || t.Kind != verify.Book && t.Kind != verify.Set {
			done, differs, err = m.count(ctx, t, count, places)
		}
		if err := m.became(t, done, differs, err); err != nil {
			return err
		}
	}
	return nil
}

func (m *mending) ref(t *thing) store.Ref {
	switch t.Kind {
	case verify.Book:
		return book.Ref(t.Name, "")
	case verify.Told:
		return book.Fact(m.Runner.Model.Name, t.List, t.Name)
	}
	return book.Ref(book.Followers(m.Runner.Model.Name, t.List).Key.Partition.Text(), t.Name)
}

func (m *mending) note(ctx context.Context, t *thing) (err error) {
	if t.Kind == verify.Set {
		t.nodes, err = m.Runner.Nodes(ctx, book.Nodes(m.Runner.Model.Name)+t.Name)
		return err
	}
	rows, err := m.Runner.Store.Get(ctx, []store.Ref{m.ref(t)})
	if err == nil {
		t.row = rows[0]
	}
	return err
}

func (m *mending) count(ctx context.Context, t *thing, count verify.Count, places []runner.Place) (done, differs bool, err error) {
	switch t.Kind {
	case verify.Book:
		target, e, sums := count.Ledger(t.Name)
		return m.Runner.RepairBook(ctx, m.ref(t), target, e, t.row, sums, places)
	case verify.Set:
		return m.Runner.RepairSet(ctx, t.Entity, t.Row, book.Nodes(m.Runner.Model.Name)+t.Name, t.nodes, count.Members(t.Name), places)
	case verify.Told:
		return m.Runner.RepairFact(ctx, t.List, t.Name, t.row, count.Told(t.List, t.Name), m.floor)
	}
	var join *projections.Join
	if j, ok := count.Join(t.List, t.Name); ok {
		join = &j
	}
	return m.Runner.RepairFollower(ctx, t.List, t.Name, t.row, join, m.floor)
}

// order is that of the kinds that are made from what stands elsewhere: each from what
// comes before it.
var order = []verify.Kind{verify.Followed, verify.Copy, verify.Linked, verify.Following, verify.Leaf, verify.Shown, verify.Document}

func (m *mending) rest(ctx context.Context, things []*thing) error {
	for _, kind := range order {
		for _, t := range things {
			if t.Kind != kind {
				continue
			}
			m.tip()
			done, differs, err := m.one(ctx, t)
			if err := m.became(t, done, differs, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mending) one(ctx context.Context, t *thing) (done, differs bool, err error) {
	r := m.Runner
	switch t.Kind {
	case verify.Followed:
		return r.RepairFollowed(ctx, t.Entity, t.Field, t.Row, m.floor)
	case verify.Copy:
		return r.RepairCopy(ctx, t.Rule, t.Row, t.Of, m.floor)
	case verify.Linked:
		return r.RepairLink(ctx, t.Row, t.Follow, t.Of)
	case verify.Following:
		return r.RepairFollowing(ctx, t.Row, t.Field, t.Of)
	case verify.Leaf:
		return r.RepairLeaf(ctx, t.Entity, t.Row, t.Of, t.Name)
	case verify.Shown:
		return r.RepairShown(ctx, t.Row)
	}
	return r.RepairDocument(ctx, t.Search, t.Name, m.floor)
}

// History are the rules of a model that make history, which nothing recounts.
func History(m *model.Model) (names []string) {
	for _, rule := range m.Rows {
		if len(rule.Keep) > 0 {
			names = append(names, rule.Name)
		}
	}
	return names
}
