package status

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// recomputesAtOnce is how often a row may change during a recompute before the batch fails and
// is read again.
const recomputesAtOnce = 10

// recomputeRows recomputes the statuses of rows. A row that does not exist needs none: when it is
// inserted, its own record leads to a recompute. For each row recompute returns why the row
// refuses its values, or nil; such a row has a dead letter. put are the facts that were put for each row, nil if that is not known.
func recomputeRows(ctx context.Context, r *runner.Runner, refs []store.Ref, put [][]owntable.PutFacts) (refused []error, err error) {
	refused = make([]error, len(refs))
	if len(refs) == 0 {
		return refused, nil
	}
	ledgers, err := raiseLedgers(ctx, r, refs, put)
	if err != nil {
		return nil, err
	}
	todo := make([]int, 0, len(refs))
	for i := range refs {
		if ledgers[i] != nil {
			todo = append(todo, i)
		}
	}
	for range recomputesAtOnce {
		if todo, err = recomputeOnce(ctx, r, refs, ledgers, todo, refused); err != nil {
			return nil, err
		}
		if len(todo) == 0 {
			return refused, noteRefused(ctx, r, refs, ledgers, refused)
		}
	}
	return nil, fmt.Errorf("%s changes faster than its steps can be told", r.DescribeRow(refs[todo[0]]))
}

// noteRefused has dead letters say which rows refuse their values.
func noteRefused(ctx context.Context, r *runner.Runner, refs []store.Ref, ledgers []value.Item, refused []error) error {
	for i := range refs {
		if ledgers[i] == nil {
			continue
		}
		if _, err := r.NoteShown(ctx, refs[i], ledgers[i], refused[i]); err != nil {
			return err
		}
	}
	return nil
}

// raiseLedgers gives each target's ledger a new version and returns the ledgers. A skip of a ledger loses the part in which facts may
// have been put.
func raiseLedgers(ctx context.Context, r *runner.Runner, refs []store.Ref, put [][]owntable.PutFacts) ([]value.Item, error) {
	ledgers := make([]value.Item, len(refs))
	todo := make([]int, len(refs))
	for i := range refs {
		todo[i] = i
	}
	for try := 0; len(todo) > 0; try++ {
		ws := make([]store.Write, len(todo))
		for j, i := range todo {
			switch at := owntable.Ledger(r.Model.Name, refs[i]); {
			case put == nil || try == raisesAtOnce || len(put[i]) > owntable.MaxPut:
				ws[j] = owntable.RaiseLedger(at, r.FirstVersion(), nil, noSkips(r.Model.Table(refs[i].Table))...)
			case try == 0:
				ws[j] = owntable.RaiseLedger(at, r.FirstVersion(), put[i])
			default:
				ws[j] = raiseAsRead(at, r.FirstVersion(), ledgers[i], put[i])
			}
			ledgers[i] = nil
			if r.GroupAt(refs[i]) != nil { // the row that counts for it keeps the ledger, and a recompute may be the last that comes to it
				ws[j] = owntable.ExpiringWrite(ws[j])
			}
		}
		out, err := r.Write(ctx, ws)
		if err != nil {
			return nil, err
		}
		var again []int
		for j, i := range todo {
			switch {
			case errors.Is(out[j].Err, store.ErrRefused):
				return nil, out[j].Err
			case out[j].Err == nil:
				ledgers[i] = out[j].Row
			case put != nil && try < raisesAtOnce && len(put[i]) > 0:
				ledgers[i] = out[j].Row // with the skips that facts are within
				again = append(again, i)
			}
		}
		todo = again
	}
	return ledgers, nil
}

// raisesAtOnce is how often a raise looks at skips before it takes all away.
const raisesAtOnce = 3

// raiseAsRead is the write that raises a ledger as it was read, and cuts its skips where facts
// were put.
func raiseAsRead(at store.Ref, first value.Value, ledger value.Item, put []owntable.PutFacts) store.Write {
	l := owntable.LedgerRow(ledger)
	var same store.Cond
	var cut []owntable.Skip
	for _, p := range put {
		same = append(same, l.SameSkip(p.Attr)...)
		if s, within := l.CutSkip(p.Attr, p.Names); within {
			cut = append(cut, s)
		}
	}
	w := owntable.RaiseLedger(at, first, nil, cut...)
	w.If = same
	return w
}

// noSkips takes away the skips of all latest on rows of a table.
func noSkips(t *model.Table) (none []owntable.Skip) {
	for _, e := range t.Entities {
		for _, l := range e.Latest {
			attr := l.Set[0].Name
			if !slices.ContainsFunc(none, func(s owntable.Skip) bool { return s.Attr == attr }) {
				none = append(none, owntable.Skip{Attr: attr})
			}
		}
	}
	return none
}

// recomputeOnce recomputes the rows of todo once and returns those that changed meanwhile.
// Each write holds only under the version of its ledger. A row that is gone has its ledger expire;
// one that a write was refused on is noted in refused and stops no other.
func recomputeOnce(ctx context.Context, r *runner.Runner, refs []store.Ref, ledgers []value.Item, todo []int, refused []error) ([]int, error) {
	ask := make([]store.Ref, len(todo))
	for j, i := range todo {
		ask[j] = refs[i]
	}
	rows, err := r.Get(ctx, ask)
	if err != nil {
		return nil, err
	}
	all := make([]recomputed, len(todo))
	errs := make([]error, len(todo))
	_ = parallel.Do(len(todo), r.AtOnce(readAtOnce), func(j int) error {
		all[j], errs[j] = recomputeAt(ctx, r, ask[j], rows[j], ledgers[todo[j]])
		return nil
	})
	var ws []store.Write
	var of, again, gone []int
	for j, i := range todo {
		if errs[j] == nil && !all[j].stale {
			ledgers[i], errs[j] = r.NoteComputed(ctx, refs[i], ledgers[i], CannotCompute(all[j].many))
		}
		switch err := errs[j]; {
		case errors.Is(err, store.ErrCondition): // another worker raised the version: later reads serve under that one
			ledger, err := r.GetRow(ctx, owntable.Ledger(r.Model.Name, refs[i]))
			if err != nil {
				return nil, err
			}
			if ledger == nil {
				raised, err := raiseLedgers(ctx, r, refs[i:i+1], nil)
				if err != nil {
					return nil, err
				}
				ledger = raised[0]
			}
			ledgers[i], again = ledger, append(again, i)
		case errors.Is(err, store.ErrRefused):
			refused[i] = err
		case err != nil:
			return nil, err
		case all[j].write.Ops != nil || all[j].write.Delete:
			ws, of = append(ws, all[j].write), append(of, i)
		case rows[j] == nil:
			gone = append(gone, i)
		}
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for j, i := range of {
		switch {
		case errors.Is(out[j].Err, store.ErrRefused):
			refused[i] = out[j].Err
		case out[j].Err != nil && out[j].Row != nil:
			again = append(again, i)
		case ws[j].Delete:
			gone = append(gone, i)
		}
	}
	for _, i := range gone {
		if ledgers[i], err = r.NoteShown(ctx, refs[i], ledgers[i], nil); err != nil {
			return nil, err
		}
		if err := r.ExpireLedgers(ctx, refs[i:i+1], ledgers[i:i+1]); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// readAtOnce is for how many targets facts are read concurrently.
const readAtOnce = 16

// recomputed is the outcome of a recompute of one row.
type recomputed struct {
	write store.Write // the write that shows it; without Ops and Delete if there is nothing to show
	many  []*TooMany  // the stages that cannot be computed
	stale bool        // the row shows a later recompute
}

// recomputeAt computes the write that shows everything derived on a row. There is nothing to show if the row
// does not exist, unless it is a group's, belongs to another entity, or shows a later recompute.
func recomputeAt(ctx context.Context, r *runner.Runner, target store.Ref, row, b value.Item) (recomputed, error) {
	e := r.GroupAt(target)
	if e == nil {
		e = r.Model.Table(target.Table).Classify(row)
	}
	if e == nil || !e.IsRecomputed() {
		return recomputed{}, nil
	}
	version, stale, err := showCondition(ctx, r, e, target, row.Get(owntable.Version), b)
	if err != nil || stale {
		return recomputed{stale: stale}, err
	}
	facts := known{ctx, r, owntable.Ledger(r.Model.Name, target), owntable.LedgerRow(b)}
	if e.Group != nil {
		latest, err := latestOf(e, target, facts)
		if err != nil {
			return recomputed{}, err
		}
		wr, err := r.ShowGroup(target, e, row, b, latest, version)
		return recomputed{write: wr}, err
	}
	want, many, err := Recompute(e, target, row, facts)
	if err != nil {
		return recomputed{}, err
	}
	wr := recomputeWrite(r, e, target, row, b, want)
	wr.If = append(wr.If, version)
	return recomputed{write: wr, many: many}, nil
}

// showCondition returns the condition under which a row that shows this version may be written
// under its ledger's version. stale is true if the row shows a later recompute. A version
// that the ledger never had was not written by weir (the row may be a copy of another
// row), and may be overwritten.
func showCondition(ctx context.Context, r *runner.Runner, e *model.Entity, target store.Ref, shown value.Value, b value.Item) (cond []store.Test, stale bool, err error) {
	n := owntable.LedgerRow(b).Version()
	if shown.IsMissing() || shown.Kind() == value.Number && value.Compare(shown, n) <= 0 {
		return []store.Test{{Attr: owntable.Version, Is: store.Absent}, {Attr: owntable.Version, Is: store.Le, Value: n}}, false, nil
	}
	ledger, err := r.GetRow(ctx, owntable.Ledger(r.Model.Name, target))
	if err != nil {
		return nil, false, err
	}
	if stale = shown.Kind() == value.Number && value.Compare(shown, runner.VersionOf(ledger)) <= 0; !stale {
		if err := r.StillShows(ctx, e); err != nil { // the version may be of a build's ledger
			return nil, false, err
		}
	}
	return []store.Test{{Attr: owntable.Version, Is: store.Eq, Value: shown}}, stale, nil
}

// recomputeWrite returns the write that makes a row show its recomputed values, with the row's tallies, under
// the ledger's version. Its condition fails if anything that the status depends on has changed since
// the row was read.
func recomputeWrite(r *runner.Runner, e *model.Entity, target store.Ref, row, b, want value.Item) store.Write {
	wr := store.Write{Ref: target, Return: true, If: append(r.IsOf(e), runner.AsItWas(e, row)...)}
	for _, name := range BasisAttributes(e) {
		is, will := row.Get(name), want.Get(name)
		wr.If = append(wr.If, []store.Test{store.AsRead(name, is)})
		if !value.Equal(is, will) {
			wr.Ops = append(wr.Ops, store.Assign(name, will))
		}
	}
	tallies, _ := projections.PublishedValues(r.ShownTallies(e), b)
	wr.Ops = append(wr.Ops, store.AssignAll(tallies)...)
	wr.Ops = append(wr.Ops, store.Assign(owntable.Version, owntable.LedgerRow(b).Version()))
	return wr
}

// known reads facts from our own table.
type known struct {
	ctx context.Context
	*runner.Runner
	at     store.Ref
	ledger owntable.LedgerRow // of the target, as it was raised before any fact is read
}

// skipAfter is how many withdrawn facts are read before they become part of the skip of the ledger. A hole of
// the skip that has no fact any more counts as one.
const skipAfter = 4

// First reads a list in pages, of which the first is one row, up to the first fact that holds,
// and leaves out the skip of the ledger, but for its holes. Many withdrawn facts become part of the skip: every later
// worker that puts a fact before it raises the ledger afterwards, and makes a hole in the skip there.
func (k known) First(list string, l *model.Latest) (value.Item, error) {
	skip := k.ledger.Skip(l.Set[0].Name)
	s := &search{known: k}
	var err error
	if skip.End == "" {
		err = s.readUntilHolds(owntable.FactsFrom(k.Model.Name, list, "", 1))
		skip.Begin, skip.End = s.begin, s.last
	} else {
		skip, err = s.readAroundSkip(list, skip)
	}
	if err == nil && s.withdrawn >= skipAfter {
		_, err = k.Write(k.ctx, []store.Write{k.ledger.MoveSkip(k.at, skip)})
	}
	return s.first, err
}

// readAroundSkip reads the facts that a skip leaves: the names before it, its holes, and the names after it, until a fact holds. It
// returns the skip with the facts that were read. Its first hole begins with the fact that holds.
func (s *search) readAroundSkip(list string, skip owntable.Skip) (owntable.Skip, error) {
	left := append([]owntable.Names{{Below: skip.Begin}}, skip.But...)
	for len(left) > 0 {
		before := s.withdrawn
		err := s.readUntilHolds(owntable.FactsWithin(s.Model.Name, list, left[0].From, left[0].Below, 1))
		if err != nil {
			return skip, err
		}
		if s.first != nil {
			break
		}
		if s.withdrawn == before && left[0].From != "" {
			s.withdrawn++
		}
		left = left[1:]
	}
	if s.begin != "" && s.begin < skip.Begin {
		skip.Begin = s.begin
	}
	if skip.But = left; len(left) > 0 {
		left[0].From = s.last
		return skip, nil
	}
	s.last = skip.End
	err := s.readUntilHolds(owntable.FactsFrom(s.Model.Name, list, skip.End, 1))
	skip.End = s.last
	return skip, err
}

// search is a search for the first fact that holds.
type search struct {
	known
	first     value.Item
	withdrawn int
	begin     string // the first fact that was read, and is withdrawn
	last      string // the last fact that was read: all before it are withdrawn
}

// readUntilHolds reads until a fact holds. It counts the withdrawn facts that it has read.
func (s *search) readUntilHolds(q store.Query) error {
	for {
		page, err := s.Store.Query(s.ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			f := owntable.MemberFrom(row)
			if s.last = f.Name; f.Says != nil {
				s.first = f.Says
				return nil
			}
			if s.withdrawn++; s.begin == "" {
				s.begin = f.Name
			}
		}
		if page.Next == nil {
			return nil
		}
		q.After, q.Limit = page.Next, 2*q.Limit
	}
}

// Each reads a partition in pages, each twice as large as the one before, and no fact with another
// name. Reads are strong. yield returns false to stop.
func (k known) Each(list string, names Names, yield func(string, value.Item) bool) error {
	q := owntable.FactsNamed(k.Model.Name, list, names.Begins, names.From, names.Page)
	for {
		page, err := k.Store.Query(k.ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			f := owntable.MemberFrom(row)
			if f.Says != nil && !yield(f.Name, f.Says) {
				return nil
			}
		}
		if page.Next == nil {
			return nil
		}
		q.After, q.Limit = page.Next, 2*q.Limit
	}
}

// Get reads facts by key.
func (k known) Get(list string, names []string) ([]value.Item, error) {
	refs := make([]store.Ref, len(names))
	for i, name := range names {
		refs[i] = owntable.Fact(k.Model.Name, list, name)
	}
	rows, err := k.Runner.Get(k.ctx, refs)
	if err != nil {
		return nil, err
	}
	out := make([]value.Item, len(rows))
	for i, row := range rows {
		out[i] = owntable.MemberFrom(row).Says
	}
	return out, nil
}
