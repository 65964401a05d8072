package runner

import (
	"context"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// lookAll recomputes the next targets of a list, after a name. It returns the name of the
// last one, or "" if there are no more.
func (r *Runner) lookAll(ctx context.Context, list, after string) (last string, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: book.TableName, Partition: book.Fact(r.Model.Name, list, "").Key.Partition, Limit: PageOfList,
		Sort: store.Range{From: value.OfString(max(book.TargetsBegin, after+"\x00"))},
	})
	if err != nil {
		return "", err
	}
	var refs []store.Ref
	for _, row := range page.Rows {
		if ref, ok := projections.TargetTold(r.Model, row.Get(book.Told).Item()); ok {
			refs = append(refs, ref)
		}
	}
	refused, err := r.look(ctx, refs, false)
	if err != nil {
		return "", err
	}
	for i, reason := range refused {
		if reason != nil {
			if err := r.parkShown(ctx, refs[i], reason.Error()); err != nil {
				return "", err
			}
		}
	}
	if page.Next == nil || len(page.Rows) == 0 {
		return "", nil
	}
	return page.Rows[len(page.Rows)-1].Get(book.Sort).Text(), nil
}

// lookAttr is the attribute of a job that holds the list whose targets it recomputes.
const lookAttr = "look"

// startLooking creates a job for the targets after a name. If the list has such a job
// already, that job begins again after the name: the targets up to it were recomputed
// after this change.
func (r *Runner) startLooking(ctx context.Context, list, after string) error {
	_, err := r.Write(ctx, []store.Write{{
		Ref: book.Job(r.Model.Name, lookAttr+"|"+list),
		Ops: []store.Op{
			Set(lookAttr, value.OfString(list)), Set(JobCursor, value.OfString(after)),
			{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1), From: value.OfInt(r.Now().UnixMicro())},
		},
	}})
	return err
}

// lookOn does one step of such a job. If the job was restarted meanwhile, its new start
// stays.
func (r *Runner) lookOn(ctx context.Context, job value.Item) (more bool, err error) {
	list := job.Get(lookAttr).Text()
	last, err := r.lookAll(ctx, list, job.Get(JobCursor).Text())
	if err != nil {
		return true, err
	}
	wr := store.Write{
		Ref: book.Job(r.Model.Name, lookAttr+"|"+list),
		If:  store.Cond{{{Attr: book.Count, Is: store.Eq, Value: job.Get(book.Count)}}},
	}
	if wr.Delete = last == ""; !wr.Delete {
		wr.Ops = []store.Op{Set(JobCursor, value.OfString(last))}
	}
	out, err := r.Write(ctx, []store.Write{wr})
	return err != nil || last != "" || out[0].Err != nil, err
}
