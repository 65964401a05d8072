package runner

import (
	"context"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// A job updates the rows of a long list step by step. Our own table keeps it until it is
// done: the list, the position of the list's value, and how far the job has come. A newer
// value restarts the job. A crash repeats at most one step, which is safe.

func (r *Runner) startJob(ctx context.Context, list, cursor string, p events.Position) error {
	_, err := r.Write(ctx, []store.Write{r.jobWrite(list, cursor, p)})
	return err
}

func (r *Runner) jobWrite(list, cursor string, p events.Position) store.Write {
	return store.Write{
		Ref: book.Job(r.Model.Name, list), If: store.Cond{Below(book.Position, p.Value())},
		Ops: []store.Op{
			Set(JobList, value.OfString(list)), Set(JobCursor, value.OfString(cursor)), Set(book.Position, p.Value()),
		},
	}
}

// Jobs does one step of each job and reports whether any jobs are left.
func (r *Runner) Jobs(ctx context.Context) (left bool, err error) {
	page, err := r.Store.Query(ctx, store.Query{Table: book.TableName, Partition: value.OfString(book.Jobs(r.Model.Name)), Limit: 100})
	if err != nil {
		return false, err
	}
	if len(page.Rows) > 0 {
		if err := r.Admit(ctx, nil, GroupRows); err != nil {
			return true, err
		}
	}
	for _, job := range page.Rows {
		more, err := r.step(ctx, job)
		if err != nil {
			return true, err
		}
		left = left || more
	}
	if n := len(page.Rows); n > 0 {
		if _, is := book.LetterNoteFrom(page.Rows[n-1]); is {
			return left, nil // notes come last
		}
	}
	return left || page.Next != nil, nil
}

// step does one step of a job. It deletes the job after the last step, unless the job was
// restarted meanwhile. more is true if the job is left.
func (r *Runner) step(ctx context.Context, job value.Item) (more bool, err error) {
	if note, is := book.LetterNoteFrom(job); is {
		return false, r.keepOn(ctx, note)
	}
	for _, k := range r.Kinds {
		if mine, more, err := k.Job(ctx, r, job); mine || err != nil {
			return more, err
		}
	}
	list := job.Get(JobList)
	rows, err := r.Get(ctx, []store.Ref{book.Ref(list.Text(), "")})
	if err != nil {
		return true, err
	}
	if rows[0] == nil { // the followed row is gone, and all of its followers know that
		_, err := r.Write(ctx, []store.Write{{
			Ref: book.Job(r.Model.Name, list.Text()), Delete: true,
			If: store.Cond{{{Attr: book.Position, Is: store.Eq, Value: job.Get(book.Position)}}},
		}})
		return false, err
	}
	v := keptIn(rows[0])
	ws, of, last, err := r.members(ctx, list, job.Get(JobCursor).Text(), v)
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
		w.Ops = []store.Op{Set(JobCursor, value.OfString(last))}
	}
	_, err = r.Write(ctx, []store.Write{w})
	return last != "", err
}
