package runner

import (
	"context"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// A job is a long list being served, kept in our table until it is done: which
// list, at which position of its value, and how far. A newer value starts the job
// over. A crash repeats at most one step, which is safe.

func (r *Runner) startJob(ctx context.Context, list, cursor string, p events.Position) error {
	_, err := r.write(ctx, []store.Write{r.jobWrite(list, cursor, p)})
	return err
}

func (r *Runner) jobWrite(list, cursor string, p events.Position) store.Write {
	return store.Write{
		Ref: book.Job(r.Model.Name, list), If: store.Cond{below(book.Position, p.Value())},
		Ops: []store.Op{
			set(listAttr, value.OfString(list)), set(cursorAttr, value.OfString(cursor)), set(book.Position, p.Value()),
		},
	}
}

// Jobs does one step of each job there is, and reports whether any are left.
func (r *Runner) Jobs(ctx context.Context) (left bool, err error) {
	page, err := r.Store.Query(ctx, store.Query{Table: book.TableName, Partition: value.OfString(book.Jobs(r.Model.Name)), Limit: 100})
	if err != nil {
		return false, err
	}
	for _, job := range page.Rows {
		more, err := r.step(ctx, job)
		if err != nil {
			return true, err
		}
		left = left || more
	}
	if n := len(page.Rows); n > 0 && page.Rows[n-1].Has(noteOf) {
		return left, nil // notes come last
	}
	return left || page.Next != nil, nil
}

func (r *Runner) step(ctx context.Context, job value.Item) (more bool, err error) {
	if job.Has(noteOf) {
		return false, r.keepOn(ctx, job)
	}
	if job.Has(lookAttr) {
		return r.lookOn(ctx, job)
	}
	if job.Has(tellRule) {
		return r.tellOn(ctx, job)
	}
	list := job.Get(listAttr)
	rows, err := r.get(ctx, []store.Ref{book.Ref(list.Text(), "")})
	if err != nil {
		return true, err
	}
	if rows[0] == nil { // its row is gone, and all its followers know that
		_, err := r.write(ctx, []store.Write{{
			Ref: book.Job(r.Model.Name, list.Text()), Delete: true,
			If: store.Cond{{{Attr: book.Position, Is: store.Eq, Value: job.Get(book.Position)}}},
		}})
		return false, err
	}
	v := keptIn(rows[0])
	ws, of, last, err := r.members(ctx, list, job.Get(cursorAttr).Text(), v)
	if err == nil {
		_, err = r.serveAll(ctx, ws, of)
	}
	if err == nil && last == "" {
		err = r.outlives(ctx, book.Ref(list.Text(), ""), v)
	}
	if err != nil {
		return true, err
	}
	w := store.Write{
		Ref: book.Job(r.Model.Name, list.Text()),
		If:  store.Cond{{{Attr: book.Position, Is: store.Eq, Value: job.Get(book.Position)}}},
	}
	if last == "" {
		w.Delete = true
	} else {
		w.Ops = []store.Op{set(cursorAttr, value.OfString(last))}
	}
	_, err = r.write(ctx, []store.Write{w})
	return last != "", err
}
