package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// looksAtOnce is how often a row may change during a recompute before the batch fails and
// is read again.
const looksAtOnce = 10

// look recomputes the statuses of rows. A row that does not exist needs none: when it is
// inserted, its own record leads to a recompute. For each row look returns why its status
// cannot be computed, or nil. It leaves out parked targets, unless parked says that their
// turn has come.
func (r *Runner) look(ctx context.Context, refs []store.Ref, parked bool) (refused []error, err error) {
	refused = make([]error, len(refs))
	books, err := r.raise(ctx, refs, parked)
	if err != nil {
		return nil, err
	}
	todo := make([]int, 0, len(refs))
	for i := range refs {
		if books[i] != nil {
			todo = append(todo, i)
		}
	}
	for range looksAtOnce {
		if todo, err = r.lookOnce(ctx, refs, books, todo, refused); err != nil || len(todo) == 0 {
			return refused, err
		}
	}
	return nil, fmt.Errorf("%s changes faster than its steps can be told", r.Describe(refs[todo[0]]))
}

// raise gives each target's ledger a new version and returns the ledgers. The result is
// nil for a parked target.
func (r *Runner) raise(ctx context.Context, refs []store.Ref, parked bool) ([]value.Item, error) {
	ws := make([]store.Write, len(refs))
	for i := range refs {
		ws[i] = store.Write{Ref: book.Of(r.Model.Name, refs[i]), Return: true, Ops: []store.Op{
			{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1), From: value.OfInt(r.Now().UnixMicro())},
		}}
		if !parked {
			ws[i].If = store.Cond{open()}
		}
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	books := make([]value.Item, len(refs))
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			return nil, out[i].Err
		}
		if out[i].Err == nil {
			books[i] = out[i].Row
		}
	}
	return books, nil
}

// lookOnce recomputes the rows of todo once and returns those that changed meanwhile.
func (r *Runner) lookOnce(ctx context.Context, refs []store.Ref, books []value.Item, todo []int, refused []error) ([]int, error) {
	ask := make([]store.Ref, len(todo))
	for j, i := range todo {
		ask[j] = refs[i]
	}
	rows, err := r.Get(ctx, ask)
	if err != nil {
		return nil, err
	}
	looks := make([]store.Write, len(todo))
	errs := make([]error, len(todo))
	_ = parallel.Do(len(todo), r.atOnce(), func(j int) error {
		looks[j], errs[j] = r.lookAt(ctx, ask[j], rows[j], books[todo[j]])
		return nil
	})
	var ws []store.Write
	var of []int
	for j, i := range todo {
		switch err := errs[j]; {
		case errors.Is(err, store.ErrRefused):
			refused[i] = err
		case err != nil:
			return nil, err
		case looks[j].Ops != nil:
			ws, of = append(ws, looks[j]), append(of, i)
		}
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	var again []int
	for j, i := range of {
		switch {
		case errors.Is(out[j].Err, store.ErrRefused):
			refused[i] = out[j].Err
		case out[j].Err != nil && out[j].Row != nil:
			again = append(again, i)
		}
	}
	return again, nil
}

// atOnce returns for how many targets facts are read concurrently.
func (r *Runner) atOnce() int {
	if r.Alone {
		return 1
	}
	return 16
}

// lookAt returns the write that shows everything derived on a row. It has no Ops if there
// is nothing to write: the row does not exist, belongs to another entity, or shows a
// later recompute.
func (r *Runner) lookAt(ctx context.Context, target store.Ref, row, b value.Item) (store.Write, error) {
	e := r.Model.Table(target.Table).Classify(row)
	if e == nil || len(e.Steps) == 0 {
		return store.Write{}, nil
	}
	version, stale, err := r.showable(ctx, target, row.Get(book.Version), b)
	if err != nil || stale {
		return store.Write{}, err
	}
	wr, err := r.lookWrite(ctx, e, target, row, b)
	wr.If = append(wr.If, version)
	return wr, err
}

// showable returns the condition under which a row that shows this version may be written
// under its ledger's version. stale is true if the row shows a later recompute. A version
// that the ledger never had was not written by weir (the row may be a copy of another
// row), and may be overwritten.
func (r *Runner) showable(ctx context.Context, target store.Ref, shown value.Value, b value.Item) (cond []store.Test, stale bool, err error) {
	n := b.Get(book.Count)
	if shown.IsMissing() || shown.Kind() == value.Number && value.Compare(shown, n) <= 0 {
		return []store.Test{{Attr: book.Version, Is: store.Absent}, {Attr: book.Version, Is: store.Le, Value: n}}, false, nil
	}
	rows, err := r.Get(ctx, []store.Ref{book.Of(r.Model.Name, target)})
	if err != nil {
		return nil, false, err
	}
	stale = shown.Kind() == value.Number && value.Compare(shown, versionOf(rows[0])) <= 0
	return []store.Test{{Attr: book.Version, Is: store.Eq, Value: shown}}, stale, nil
}

// lookWrite returns the write that shows everything derived on the row under the ledger's
// version. Its condition fails if anything that the status depends on has changed since
// the row was read.
func (r *Runner) lookWrite(ctx context.Context, e *model.Entity, target store.Ref, row, b value.Item) (store.Write, error) {
	want, err := projections.Look(e, target, row, known{ctx, r})
	if err != nil {
		return store.Write{}, err
	}
	shown, _ := projections.Published(e, b)
	wr := store.Write{Ref: target, Return: true, If: store.Cond{r.Present(target.Table)}}
	for _, name := range projections.Basis(e) {
		is, will := row.Get(name), want.Get(name)
		wr.If = append(wr.If, []store.Test{store.AsRead(name, is)})
		if !value.Equal(is, will) {
			wr.Ops = append(wr.Ops, Set(name, will))
		}
	}
	for _, a := range shown {
		wr.Ops = append(wr.Ops, Set(a.Name, a.Value))
	}
	wr.Ops = append(wr.Ops, Set(book.Version, b.Get(book.Count)))
	return wr, nil
}

// known reads facts from our own table.
type known struct {
	ctx context.Context
	*Runner
}

// Each reads a partition in pages, each twice as large as the one before.
func (k known) Each(list string, names projections.Names, yield func(string, value.Item) bool) error {
	ref := book.Fact(k.Model.Name, list, max(names.Begins, names.From))
	q := store.Query{Table: book.TableName, Partition: ref.Key.Partition, Sort: store.Range{From: ref.Key.Sort}, Limit: names.Page}
	for {
		page, err := k.Store.Query(k.ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			name := row.Get(book.Sort).Text()
			if !strings.HasPrefix(name, names.Begins) {
				return nil
			}
			if told := row.Get(book.Told); !told.IsMissing() && !yield(name, told.Item()) {
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
		refs[i] = book.Fact(k.Model.Name, list, name)
	}
	rows, err := k.Runner.Get(k.ctx, refs)
	if err != nil {
		return nil, err
	}
	out := make([]value.Item, len(rows))
	for i, row := range rows {
		if told := row.Get(book.Told); !told.IsMissing() {
			out[i] = told.Item()
			if out[i] == nil {
				out[i] = value.Item{}
			}
		}
	}
	return out, nil
}
