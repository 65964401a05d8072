package ingest

import (
	"context"

	"weir/internal/model"
	"weir/internal/parallel"
	"weir/internal/store"
)

// planTasks plans tasks. It reads the rows that the plans ask for until they ask for no
// more.
func (b *batch) planTasks(ctx context.Context, todo []*task, f *facts) error {
	for len(todo) > 0 {
		var open []*task
		for _, t := range todo {
			t.known = known{facts: f, now: b.now, newID: b.NewID, sure: t.known.sure}
			if t.plan = t.checked.planCommand(&t.known); t.known.isWaiting() {
				open = append(open, t)
			}
		}
		if err := b.readRows(ctx, open, f); err != nil {
			return err
		}
		if err := b.queryIndexes(ctx, open, f); err != nil {
			return err
		}
		todo = open
	}
	return nil
}

// readRows reads, in one call, all rows that tasks ask for.
// Reads are strong. A row that several tasks ask for is read once.
func (b *batch) readRows(ctx context.Context, todo []*task, f *facts) error {
	var refs []store.Ref
	asked := map[string]bool{}
	for _, t := range todo {
		for _, ref := range t.known.open {
			if name := nameOf(ref); !asked[name] {
				asked[name], refs = true, append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := b.Store.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, ref := range refs {
		f.noteRow(ref, rows[i])
	}
	return nil
}

// queryIndexes sends indexes the queries that tasks ask for.
// Queries of different tasks run side by side, at most maxAtOnce of them.
func (b *batch) queryIndexes(ctx context.Context, todo []*task, f *facts) error {
	type question struct {
		find
		table *model.Table
		refs  []store.Ref
	}
	var all []*question
	asked := map[string]bool{}
	for _, t := range todo {
		for _, q := range t.known.finds {
			if !asked[q.name] {
				asked[q.name], all = true, append(all, &question{find: q, table: t.Table})
			}
		}
	}
	err := parallel.Do(len(all), maxAtOnce, func(i int) (err error) {
		all[i].refs, err = b.queryIndex(ctx, all[i].table, all[i].find)
		return err
	})
	if err != nil {
		return err
	}
	for _, q := range all {
		f.found[q.name] = q.refs
	}
	return nil
}

// queryIndex asks an index one query, page after page, and returns the references of the
// rows that the query keeps.
func (b *batch) queryIndex(ctx context.Context, table *model.Table, q find) (refs []store.Ref, err error) {
	for row, err := range store.EachRow(ctx, b.Store, q.Query) {
		if err != nil {
			return nil, err
		}
		if key, ok := table.KeyOf(row); ok && q.keep(row) {
			refs = append(refs, store.Ref{Table: table.Name, Key: key})
		}
	}
	return refs, nil
}
