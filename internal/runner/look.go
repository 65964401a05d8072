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

// looksAtOnce is how often a row may change under a look before the batch comes
// again.
const looksAtOnce = 10

// look tells the steps of rows anew. A row that is not there needs none: its own
// record, when it comes, makes us look. It returns for each why it cannot be told,
// nil for good. A parked target waits, unless parked says that its turn has come.
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
	return nil, fmt.Errorf("%s changes faster than its steps can be told", r.describe(refs[todo[0]]))
}

// raise gives each target's book a new version, and returns the books; nil where
// the target is parked.
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
	out, err := r.write(ctx, ws)
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

// lookOnce looks at the rows of todo, and returns those that changed meanwhile.
func (r *Runner) lookOnce(ctx context.Context, refs []store.Ref, books []value.Item, todo []int, refused []error) ([]int, error) {
	ask := make([]store.Ref, len(todo))
	for j, i := range todo {
		ask[j] = refs[i]
	}
	rows, err := r.get(ctx, ask)
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
	out, err := r.write(ctx, ws)
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

// atOnce is how many targets are read for at a time.
func (r *Runner) atOnce() int {
	if r.Alone {
		return 1
	}
	return 16
}

// lookAt is the write that shows what is derived on a row, without Ops when there
// is nothing to show: it is not there, of another entity, or shows a later look.
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

// showable is the condition under which a row that shows this version may be
// written under the book's. It is stale when the row shows a later look. A version
// that the book never had was never given by weir, as on a row that was made as a
// copy of another, and yields.
func (r *Runner) showable(ctx context.Context, target store.Ref, shown value.Value, b value.Item) (cond []store.Test, stale bool, err error) {
	n := b.Get(book.Count)
	if shown.IsMissing() || shown.Kind() == value.Number && value.Compare(shown, n) <= 0 {
		return []store.Test{{Attr: book.Version, Is: store.Absent}, {Attr: book.Version, Is: store.Le, Value: n}}, false, nil
	}
	rows, err := r.get(ctx, []store.Ref{book.Of(r.Model.Name, target)})
	if err != nil {
		return nil, false, err
	}
	stale = shown.Kind() == value.Number && value.Compare(shown, versionOf(rows[0])) <= 0
	return []store.Test{{Attr: book.Version, Is: store.Eq, Value: shown}}, stale, nil
}

// lookWrite shows all that is derived on the row under the book's version, if it
// still is what the steps go by.
func (r *Runner) lookWrite(ctx context.Context, e *model.Entity, target store.Ref, row, b value.Item) (store.Write, error) {
	want, err := projections.Look(e, target, row, known{ctx, r})
	if err != nil {
		return store.Write{}, err
	}
	shown, _ := projections.Published(e, b)
	wr := store.Write{Ref: target, Return: true, If: store.Cond{r.present(target.Table)}}
	for _, name := range projections.Basis(e) {
		is, will := row.Get(name), want.Get(name)
		wr.If = append(wr.If, []store.Test{store.AsRead(name, is)})
		if !value.Equal(is, will) {
			wr.Ops = append(wr.Ops, set(name, will))
		}
	}
	for _, a := range shown {
		wr.Ops = append(wr.Ops, set(a.Name, a.Value))
	}
	wr.Ops = append(wr.Ops, set(book.Version, b.Get(book.Count)))
	return wr, nil
}

// known is what is told, as our table has it.
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

// Get reads by key.
func (k known) Get(list string, names []string) ([]value.Item, error) {
	refs := make([]store.Ref, len(names))
	for i, name := range names {
		refs[i] = book.Fact(k.Model.Name, list, name)
	}
	rows, err := k.get(k.ctx, refs)
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
