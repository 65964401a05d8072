package status

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// recomputeAll recomputes the next targets of a list, after a name. It returns the name of the
// last one, or "" if there are no more.
func recomputeAll(ctx context.Context, r *runner.Runner, list, after string) (last string, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: owntable.TableName, Partition: owntable.Fact(r.Model.Name, list, "").Key.Partition, Limit: runner.PageOfList,
		Sort: store.Range{From: value.OfString(max(owntable.TargetsBegin, after+"\x00"))},
	})
	if err != nil {
		return "", err
	}
	var refs []store.Ref
	for _, row := range page.Rows {
		if ref, ok := TargetTold(r.Model, row.Get(owntable.Told).Item()); ok {
			refs = append(refs, ref)
		}
	}
	refused, err := recompute(ctx, r, refs, false)
	if err != nil {
		return "", err
	}
	for i, reason := range refused {
		if reason != nil {
			if err := r.ParkShown(ctx, refs[i], reason.Error()); err != nil {
				return "", err
			}
		}
	}
	if page.Next == nil || len(page.Rows) == 0 {
		return "", nil
	}
	return page.Rows[len(page.Rows)-1].Get(owntable.Sort).Text(), nil
}

// lookAttr is the attribute of a job that holds the list whose targets it recomputes.
const lookAttr = "look"

// startJob creates a job for the targets after a name. If the list has such a job
// already, that job begins again after the name: the targets up to it were recomputed
// after this change.
func startJob(ctx context.Context, r *runner.Runner, list, after string) error {
	_, err := r.Write(ctx, []store.Write{{
		Ref: owntable.Job(r.Model.Name, lookAttr+"|"+list),
		Ops: []store.Op{
			runner.Set(lookAttr, value.OfString(list)), runner.Set(runner.JobCursor, value.OfString(after)),
			{Kind: store.Add, Attr: owntable.Count, Value: value.OfInt(1), From: value.OfInt(r.Now().UnixMicro())},
		},
	}})
	return err
}

// Job does one step of a job that recomputes a list of targets. If the job was restarted meanwhile, its new start
// stays.
func (Kind) Job(ctx context.Context, r *runner.Runner, job value.Item) (mine, more bool, err error) {
	if !job.Has(lookAttr) {
		return false, false, nil
	}
	list := job.Get(lookAttr).Text()
	last, err := recomputeAll(ctx, r, list, job.Get(runner.JobCursor).Text())
	if err != nil {
		return true, true, err
	}
	wr := store.Write{
		Ref: owntable.Job(r.Model.Name, lookAttr+"|"+list),
		If:  store.Cond{{{Attr: owntable.Count, Is: store.Eq, Value: job.Get(owntable.Count)}}},
	}
	if wr.Delete = last == ""; !wr.Delete {
		wr.Ops = []store.Op{runner.Set(runner.JobCursor, value.OfString(last))}
	}
	out, err := r.Write(ctx, []store.Write{wr})
	return true, err != nil || last != "" || out[0].Err != nil, err
}
