package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/contribution"
	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A generation of ledgers that was built has its own rows in our table: ledgers, marks and
// dead letters under a name of its own in place of the model's. So a runner of the same
// model under that name does with them all that is done with the first generation, which
// counts by positions: publishing, dead letters. Only the counting is by
// contribution.

// markLife is how long a mark of nothing stays while its build is not verified.
const markLife = catalog.BuildLife + 5*24*time.Hour

// marksAtOnce keeps a transaction with marks, a ledger and dead letters below its limit. passMarked
// is how many contributions are kept as letters in one.
const (
	marksAtOnce = 90
	passMarked  = 20
)

// markedBytes bounds the marks of one transaction, which has 4 MB.
const markedBytes = 2 << 20

// errGeneration is wrapped by the error for a build that this program cannot apply to.
var errGeneration = errors.New("a build is of something that this program does not know")

// ForGeneration returns the runner of a generation.
func (r *Runner) ForGeneration(b owntable.Build) *Runner {
	in, m := *r, *r.Model
	m.Name = b.Ledgers(r.Model.Name)
	in.Model, in.markExpiry, in.base, in.hidden = &m, markLife, b.Base, !b.State.IsShown()
	if b.State == owntable.BuildVerified {
		in.markExpiry = tombstoneLife
	}
	return &in
}

// Offer returns the offers of changes, which are in stream order, to tallies of one entity.
// counts leaves out changes. An Offer does no I/O.
type Offer func(of []*model.Tally, changes []projections.Change, counts func(*projections.Change) bool) []projections.Offered

// FirstVersion returns the version before the first one of a ledger.
func (r *Runner) FirstVersion() value.Value {
	if r.base > 0 {
		return value.OfInt(r.base)
	}
	return value.OfInt(r.Now().UnixMicro())
}

// withVersion returns a ledger with a version, also if it was never counted in. A worker with an
// older view may show an older ledger at any time; it must not replace a value of this one.
func (r *Runner) withVersion(ledger value.Item) value.Item {
	if r.base == 0 {
		return ledger
	}
	return value.Item(owntable.LedgerRow(ledger).WithVersion(r.base))
}

// Generation is a part of a batch's work: that for one generation.
type Generation struct {
	*Work  // with the runner of the generation (ForGeneration)
	Entity *model.Entity
	Build  owntable.Build
	all    *Work // of the batch
}

// Generations returns the batch's work for the generations of its view.
// It is an error, and the batch is not acknowledged, if this program cannot count in one of them.
func (w *Work) Generations() (out []*Generation, err error) {
	for _, b := range w.View.Builds.Counting() {
		g := &Generation{Entity: w.Model.Entity(b.Entity), Build: b, all: w}
		if h := b.HandOver; !w.View.Cuts && h.Announced() && h.Over.IsZero() {
			return nil, fmt.Errorf("%w: %q of model %s goes over to positions, which only readers of streams do", errGeneration, b.Entity, w.Model.Name)
		}
		if !w.Model.CanBuild(b.Entity) {
			return nil, fmt.Errorf("%w: %q of model %s; run the program that it was built by", errGeneration, b.Entity, w.Model.Name)
		}
		g.Work = &Work{Runner: w.ForGeneration(b), Batch: w.Batch, Gathered: &projections.Gathered{}, kept: make([]bool, len(w.Changes))}
		if b.State.IsShown() {
			g.kept = w.kept
		}
		out = append(out, g)
	}
	return out, nil
}

// CountsChange reports whether the generation counts a change of the batch, if not before.
func (g *Generation) CountsChange(c *projections.Change) bool {
	return g.View.Fence.Counts(g.Build.Generation, c.Position)
}

// wayOf returns how the generation counts a change of the batch in ledgers and sets.
func (g *Generation) wayOf(c *projections.Change) contribution.Way {
	switch h := g.Build.HandOver; {
	case g.View.Cuts || !h.Announced():
		return g.View.Fence.Way(g.Build.Generation, h, c.Position)
	case h.Over.IsZero():
		return contribution.ByMark
	}
	return contribution.ByPosition // of a function, which the catalog admits later
}

// CountsByMark reports whether the generation counts a change of the batch by contribution.
func (g *Generation) CountsByMark(c *projections.Change) bool {
	return g.wayOf(c) == contribution.ByMark
}

// KeepPositioned leaves those steps of targets that the generation counts by position.
func (g *Generation) KeepPositioned(targets []*projections.Target) (any bool) {
	for _, t := range targets {
		t.Steps = slices.DeleteFunc(t.Steps, func(s projections.Step) bool {
			return g.wayOf(&g.Changes[s.Change]) != contribution.ByPosition
		})
		any = any || len(t.Steps) > 0
	}
	return any
}

// Tallies returns the tallies that count in the generation. A tally that is pending is pending for
// another one if rows show this.
func (g *Generation) Tallies() []*model.Tally {
	if g.Build.State.IsShown() {
		return g.ShownTallies(g.Entity)
	}
	return g.Entity.Values
}

// CountsDerivation reports whether a derivation counts in the generation.
func (g *Generation) CountsDerivation(derivation string) bool {
	return !g.Build.State.IsShown() || !g.IsPending(derivation)
}

// IsShown reports whether rows show the generation. If something has just been put into it,
// that is read again: the builder may have shown the rows before.
func (g *Generation) IsShown(ctx context.Context, put bool) (bool, error) {
	if g.Build.State.IsShown() || !put {
		return g.Build.State.IsShown(), nil
	}
	row, err := g.all.Catalog.Row(ctx)
	if err != nil {
		return false, err
	}
	for _, now := range row.Builds {
		if now.Generation == g.Build.Generation && now.State.IsShown() {
			g.Runner = g.all.hidingPending(&row).ForGeneration(now)
			return true, nil
		}
	}
	return false, nil
}

// CountBuilds counts the batch in the generations of its view, which CountTallies does not
// know: it takes the targets away that show one of these. Rows with a status show their
// ledgers with it, so their targets stay, to be recomputed.
func (w *Work) CountBuilds(ctx context.Context, offer Offer) error {
	w.dropPending()
	gs, err := w.Generations()
	if err != nil {
		return err
	}
	for _, g := range gs {
		if g.Entity == nil || g.Entity.SetOf() != nil {
			continue
		}
		if err := g.countTallies(ctx, offer); err != nil {
			return fmt.Errorf("generation %d of the ledgers of %s: %w", g.Build.Generation, g.Build.Entity, err)
		}
	}
	return nil
}

// countTallies counts a batch in the ledgers of a build and shows those that are live. A crash
// after the first transaction leaves marks and ledgers that agree, so the same batch counts
// nothing again when it is redelivered; it only shows.
func (g *Generation) countTallies(ctx context.Context, offer Offer) error {
	offers := offer(g.Tallies(), g.Changes, g.CountsByMark)
	if err := g.CountOffers(ctx, offers, nil); err != nil {
		return err
	}
	if shown, err := g.IsShown(ctx, len(offers) > 0); err != nil || !shown {
		return err
	}
	if g.Entity.IsRecomputed() {
		if err := g.countPlaced(ctx); err != nil {
			return err
		}
		if err := g.noteRecomputed(ctx, offers); err != nil {
			return err
		}
		g.recomputeAll(offers)
		return nil
	}
	g.Targets = g.all.takeTargets(g.Entity)
	if placed := g.KeepPositioned(g.Targets); placed || !g.Build.HandOver.Passed.IsZero() {
		if err := g.CountTallies(ctx); err != nil || len(offers) == 0 {
			return err
		}
	}
	for _, o := range offers {
		g.ensureShown(g.Entity, o.Target)
	}
	return g.showTargets(ctx, map[*projections.Target]value.Item{})
}

// countPlaced counts by position the amounts that a batch adds to targets that are recomputed then.
func (g *Generation) countPlaced(ctx context.Context) error {
	w := *g.Work
	w.Gathered = &projections.Gathered{}
	for _, t := range g.all.Targets {
		if t.Entity == g.Entity {
			w.Targets = append(w.Targets, &projections.Target{Row: t.Row, Entity: t.Entity, Steps: slices.Clone(t.Steps)})
		}
	}
	if !g.KeepPositioned(w.Targets) {
		return nil
	}
	w.Targets = slices.DeleteFunc(w.Targets, func(t *projections.Target) bool { return len(t.Steps) == 0 })
	return w.CountTallies(ctx)
}

// noteRecomputed trims the ledgers of targets that are recomputed then, and makes their dead
// letters say which values cannot be shown.
func (g *Generation) noteRecomputed(ctx context.Context, offers []projections.Offered) error {
	if !slices.ContainsFunc(g.Entity.Values, func(t *model.Tally) bool { return t.Max > 0 }) {
		return nil // it can show all that they count
	}
	w := *g.Work
	w.Gathered = &projections.Gathered{}
	for _, t := range g.all.Targets {
		if t.Entity == g.Entity {
			w.Targets = append(w.Targets, &projections.Target{Row: t.Row, Entity: t.Entity})
		}
	}
	for _, o := range offers {
		w.ensureShown(g.Entity, o.Target)
	}
	return w.noteTargets(ctx, map[*projections.Target]value.Item{})
}

// recomputeAll asks for a recompute of all targets of the entity, instead of counting in
// the first generation.
func (g *Generation) recomputeAll(offers []projections.Offered) {
	for _, o := range offers {
		g.all.Gathered.AskRecompute(o.Offers[0].Change, o.Target, g.Entity)
	}
	for _, t := range g.all.Targets {
		if t.Entity == g.Entity {
			if len(t.Asked) == 0 && len(t.Steps) > 0 {
				t.Asked = []int{t.Steps[0].Change}
			}
			t.Steps, t.Check, t.Recompute = nil, false, true
		}
	}
}

// ShownBy returns the work on the generation that rows of an entity show: this, if that is
// the first one. put says that something was just put into a generation that is being
// built.
func (w *Work) ShownBy(ctx context.Context, name string, put bool) (*Work, error) {
	gs, err := w.Generations()
	if err != nil {
		return nil, err
	}
	by := w
	for _, g := range gs {
		if g.Build.Entity != name {
			continue
		}
		shown, err := g.IsShown(ctx, put)
		if err != nil {
			return nil, err
		}
		if shown {
			by = g.Work
			by.kept = w.kept
		}
	}
	return by, nil
}

// takeTargets removes the targets of an entity from the batch and returns them.
func (w *Work) takeTargets(e *model.Entity) (out []*projections.Target) {
	w.DropTargets(func(t *projections.Target) bool {
		if t.Entity == e {
			out = append(out, t)
		}
		return t.Entity == e
	})
	return out
}

// ensureShown makes sure that a target is shown.
func (w *Work) ensureShown(e *model.Entity, row store.Ref) {
	for _, t := range w.Targets {
		if projections.SameRow(t.Row, row) {
			return
		}
	}
	w.Targets = append(w.Targets, &projections.Target{Row: row, Entity: e})
}

// showTargets shows the ledgers of all targets of the batch.
func (w *Work) showTargets(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	if err := w.noteTargets(ctx, ledgers); err != nil {
		return err
	}
	return w.publishLedgers(ctx, ledgers)
}

// noteTargets reads the ledgers of all targets of the batch, and makes dead letters say
// the values in them that cannot be shown.
func (w *Work) noteTargets(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	refs := make([]store.Ref, len(w.Targets))
	for i, t := range w.Targets {
		refs[i] = owntable.Ledger(w.Model.Name, t.Row)
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, t := range w.Targets {
		ledgers[t] = w.withVersion(rows[i])
		if _, err := w.settleUnshown(ctx, refs[i], t.Row, t.Entity, rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// Into returns the writes that add steps to the rows that a target has instead of a ledger. They
// change it on condition that it is as it was read. steps are as many as contributions, and
// those that were made before are empty.
type Into func(ctx context.Context, steps []contribution.Step) ([]store.Write, error)

// CountOffers counts offers. into gives for a target the ledger that counts there, and how many
// contributions may be counted at a time; a nil into is for ledgers.
func (g *Generation) CountOffers(ctx context.Context, offers []projections.Offered, into func(target store.Ref) (Into, int)) error {
	for i := range offers {
		if err := g.countOffered(ctx, &offers[i], into); err != nil {
			return fmt.Errorf("counting for %s: %w", g.DescribeRow(offers[i].Target), err)
		}
	}
	return nil
}

// countOffered counts a batch's offers to a target.
func (w *Work) countOffered(ctx context.Context, o *projections.Offered, into func(target store.Ref) (Into, int)) error {
	var cs []counted
	for _, offer := range o.Offers {
		c := &w.Changes[offer.Change]
		cs = append(cs, counted{
			target: o.Target, source: c.Row, key: c.Table.Item(c.Row.Key), amounts: offer.Amounts,
			step: func(m contribution.Mark) (contribution.Step, bool) {
				return contribution.Record(m, offer.Position, offer.Amounts)
			},
			letter: w.parkedLetter(&projections.Target{Row: o.Target}, projections.Step{Change: offer.Change, Position: offer.Position}, ""),
			change: offer.Change,
		})
	}
	return w.contributeInto(ctx, o.Target, cs, nil, into)
}

// contributeInto counts contributions to one target, in its ledger or where into says: as many at a
// time as into says, and fewer if one transaction does not hold their writes.
func (w *Work) contributeInto(ctx context.Context, target store.Ref, cs []counted, guard []store.Write, into func(target store.Ref) (Into, int)) error {
	if into == nil {
		return w.countContributions(ctx, target, cs, guard)
	}
	adds, most := into(target)
	for len(cs) > 0 {
		some := cs[:min(most, len(cs))]
		err := w.contributeElsewhere(ctx, some, guard, adds)
		if errors.Is(err, store.ErrRefused) && len(some) > 1 { // too much for one transaction
			most = len(some) / 2
			continue
		}
		if err != nil {
			return err
		}
		cs = cs[len(some):]
	}
	return nil
}

// contributeElsewhere counts contributions in one transaction.
// The marks and the ledger of into change in one transaction, so a contribution is counted once,
// however often this is called.
func (w *Work) contributeElsewhere(ctx context.Context, cs []counted, guard []store.Write, into Into) error {
	var last error
	for range store.MaxRounds {
		if err := w.CheckAge(); err != nil {
			return err
		}
		marks, steps, err := w.decide(ctx, cs, w.readMarks)
		if err != nil || len(marks) == 0 {
			return err
		}
		adds, err := into(ctx, steps)
		if err != nil {
			return err
		}
		last = w.Store.Transact(ctx, slices.Concat(guard, marks, adds))
		if last == nil || !errors.Is(last, store.ErrCondition) && !errors.Is(last, store.ErrConflict) {
			return last
		}
		if err := w.CheckGuard(ctx, guard); err != nil {
			return err
		}
	}
	return last
}

// counted is the contribution of a source row to a target, and how that is decided.
type counted struct {
	target  store.Ref
	source  store.Ref
	key     value.Item
	amounts []value.Attr
	step    func(contribution.Mark) (contribution.Step, bool)
	letter  deadletter.Letter // the letter that is kept if the ledger refuses it
	change  int               // of the batch; -1 for none
}

// countContributions counts contributions to one target. guard is part of each transaction.
// Contributions of one call are counted in parts; a crash leaves some counted, and a repetition
// finds their marks.
func (w *Work) countContributions(ctx context.Context, target store.Ref, cs []counted, guard []store.Write) error {
	for len(cs) > 0 {
		n, _, _ := markedAtOnce(len(cs), func(i int) (value.Item, []value.Attr) { return cs[i].key, cs[i].amounts })
		if err := w.contributeSome(ctx, target, cs[:n], guard); err != nil {
			return err
		}
		cs = cs[n:]
	}
	return nil
}

// markedAtOnce returns how many of the first of some rows one transaction counts with their marks, at least one, and
// how many writes and bytes these are. row returns its counts: a key and amounts.
func markedAtOnce(rows int, row func(i int) (key value.Item, amounts []value.Attr)) (n, writes, size int) {
	const rest = 1 << 10 // bounds the bytes of a mark besides its key and amounts
	for ; n < rows; n++ {
		key, amounts := row(n)
		takes := markedWrites(amounts)
		if n > 0 && (size >= markedBytes || writes+takes > marksAtOnce) {
			break
		}
		writes, size = writes+takes, size+value.Item(amounts).Size()+key.Size()+rest
	}
	return n, writes, size
}

// markedWrites is how many writes of a transaction a mark takes whose row adds amounts. Values that
// the row had before are further ones; an amount that is too much is counted in halves.
func markedWrites(amounts []value.Attr) int { return 1 + owntable.CountHeld(amounts) }

// countOnce counts contributions in one transaction, target by target in their order, and
// returns the steps that it decided on. marks reads their marks.
func (w *Work) countOnce(ctx context.Context, cs []counted, guard []store.Write, marks reading) ([]contribution.Step, error) {
	ms, steps, err := w.decide(ctx, cs, marks)
	if err != nil || len(ms) == 0 {
		return steps, err
	}
	ws := append(slices.Clip(guard), ms...)
	var all []spreading
	for at, n := 0, 0; at < len(cs); at += n {
		n = 1
		for at+n < len(cs) && projections.SameRow(cs[at+n].target, cs[at].target) {
			n++
		}
		if amounts := totalSteps(steps[at : at+n]); len(amounts) > 0 {
			all = append(all, spreading{ledger: owntable.Ledger(w.Model.Name, cs[at].target), amounts: amounts})
		}
	}
	if err := w.spreadAll(ctx, all); err != nil {
		return nil, err
	}
	for _, s := range all {
		ws = append(append(ws, s.values...), owntable.AddLedger(s.ledger, s.adds, w.FirstVersion()))
	}
	return steps, w.Store.Transact(ctx, ws)
}

// contributeTries is how often a transaction is tried again that others interfered with.
const contributeTries = 20

// contributeSome counts contributions in one transaction, or keeps them as dead letters.
// A step that is too large for one expression is counted in halves, each in a transaction with its marks: after a crash between
// them the same contributions, delivered again, count the other half alone. After contributeTries the last
// conflict is the error, and the batch comes again.
func (w *Work) contributeSome(ctx context.Context, target store.Ref, cs []counted, guard []store.Write) error {
	var last error
	for range contributeTries {
		if err := w.CheckAge(); err != nil {
			return err
		}
		var steps []contribution.Step
		if steps, last = w.countOnce(ctx, cs, guard, w.readMarks); last == nil {
			return nil
		}
		switch {
		case errors.Is(last, store.ErrRefused) && len(cs) > 1 && tooMany(totalSteps(steps), len(cs)+len(guard)+1):
			half := len(cs) / 2
			if err := w.contributeSome(ctx, target, cs[:half], guard); err != nil {
				return err
			}
			return w.contributeSome(ctx, target, cs[half:], guard)
		case errors.Is(last, store.ErrRefused):
			return w.passContributions(ctx, target, cs, guard, last.Error())
		case errors.Is(last, store.ErrCondition), errors.Is(last, store.ErrConflict):
			if err := w.CheckGuard(ctx, guard); err != nil {
				return err
			}
		default:
			return last
		}
	}
	return last
}

// tooMany reports whether amounts are too many for one expression, or their values, with other
// writes, for one transaction.
func tooMany(amounts []value.Attr, others int) bool {
	return len(amounts) > addsAtOnce || owntable.CountHeld(amounts) > max(0, store.MaxTransact-others)
}

// reading returns the marks of contributions, nil for each that has none.
type reading func(context.Context, []counted) ([]value.Item, error)

// readMarks reads the marks of contributions.
func (w *Work) readMarks(ctx context.Context, cs []counted) ([]value.Item, error) {
	refs := make([]store.Ref, len(cs))
	for i := range cs {
		refs[i] = w.contributionOf(&cs[i])
	}
	return w.Get(ctx, refs)
}

// noMarks are the marks of contributions that have none, it seems. The writes fail otherwise.
func noMarks(_ context.Context, cs []counted) ([]value.Item, error) {
	return make([]value.Item, len(cs)), nil
}

// contributionOf is the contribution mark of a source row for a target.
func (w *Work) contributionOf(c *counted) store.Ref {
	return owntable.Mark(w.Model.Name, c.target, c.source)
}

// decide returns the writes of marks that contributions change, and the steps, which are as many
// as cs.
func (w *Work) decide(ctx context.Context, cs []counted, read reading) (marks []store.Write, steps []contribution.Step, err error) {
	rows, err := read(ctx, cs)
	if err != nil {
		return nil, nil, err
	}
	steps = make([]contribution.Step, len(cs))
	expiry := value.OfInt(w.Now().Add(w.markExpiry).Unix())
	for i := range cs {
		is, err := owntable.DecodeContribution(rows[i])
		if err != nil {
			return nil, nil, err
		}
		step, ok := cs[i].step(is.Mark)
		if !ok {
			continue
		}
		is.Source, is.Target, is.SourceKey = cs[i].source, cs[i].target, cs[i].key
		is.TargetKey = w.Model.Table(is.Target.Table).Item(is.Target.Key)
		steps[i] = step
		marks = append(marks, is.Becomes(w.contributionOf(&cs[i]), step.Mark, expiry))
	}
	return marks, steps, nil
}

// totalSteps adds up steps for a ledger: nothing if it stays as it is.
func totalSteps(steps []contribution.Step) []value.Attr {
	return contribution.Sum(seq.Flat(steps, func(s contribution.Step) []value.Attr { return s.Delta }))
}

// passContributions keeps contributions as dead letters. Their
// marks say that they were made: ledger and letters together hold the amounts of the marks.
func (w *Work) passContributions(ctx context.Context, target store.Ref, cs []counted, guard []store.Write, reason string) error {
	for len(cs) > 0 {
		some := cs[:min(passMarked, len(cs))]
		for tries := 0; ; tries++ {
			err := w.passSome(ctx, target, some, guard, reason)
			if err == nil {
				break
			}
			if tries == contributeTries || !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("keeping what %s cannot count: %w", w.DescribeRow(target), err)
			}
			if err := w.CheckGuard(ctx, guard); err != nil {
				return err
			}
		}
		cs = cs[len(some):]
	}
	return nil
}

// passSome keeps dead letters for contributions that their ledger refused, each with the
// amounts by which the ledger would have changed. Marks and letters
// are one transaction, under guard: a redelivered batch finds the marks and keeps no
// second letter.
func (w *Work) passSome(ctx context.Context, target store.Ref, cs []counted, guard []store.Write, reason string) error {
	marks, steps, err := w.decide(ctx, cs, w.readMarks)
	if err != nil || len(marks) == 0 {
		return err
	}
	var ds []deadletter.Letter
	for i := range cs {
		if len(steps[i].Delta) == 0 {
			continue
		}
		d := cs[i].letter
		d.Reason = reason
		for _, a := range steps[i].Delta {
			d.Adds = append(d.Adds, projections.Add{Target: target, Field: a.Name, Amount: a.Value})
		}
		ds = append(ds, d)
		if cs[i].change >= 0 {
			w.CountKept(cs[i].change)
		}
	}
	return w.Store.Transact(ctx, slices.Concat(guard, w.Letters().Keeping(ds), marks))
}
