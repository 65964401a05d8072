package query

import (
	"context"
	"slices"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// answerSteps answers a query of steps: depth first, in the order of each step's key.
// The place stands behind the last row that was given, or, if the page was spent, behind the last
// that was read.
func (r *run) answerSteps(ctx context.Context, from place) ([]value.Item, place, error) {
	w := &walk{run: r, ctx: ctx}
	more, err := w.descendFrom(0, []found{{}}, from.at)
	items := w.items
	switch {
	case err != nil:
		return nil, place{}, err
	case more:
		return items, place{}, nil
	case w.over:
		return items, place{at: w.last}, nil
	}
	return items, place{at: w.done}, nil
}

// walk is one page of a walk. Its methods answer false when the page is full or
// has cost enough.
type walk struct {
	*run
	ctx   context.Context
	items []value.Item
	over  bool           // there is a row behind the wanted ones
	last  []store.Cursor // the place behind the last of items
	done  []store.Cursor // the place behind all that was looked at

	keep func(store.Key) // instead of giving rows out, only tell their keys
}

// found is a row of a step, and the place behind it.
type found struct {
	row value.Item
	at  []store.Cursor
}

// descendFrom continues from rows of the step above depth. A place to resume from
// belongs to the first of them.
func (w *walk) descendFrom(depth int, from []found, resume []store.Cursor) (bool, error) {
	if depth == len(w.plan.steps) {
		return w.giveRows(from), nil
	}
	st := w.plan.steps[depth]
	if len(st.lists) > 0 {
		var err error
		if from, err = w.forEach(st, from); err != nil {
			return false, err
		}
	}
	switch {
	case w.keep != nil && depth == len(w.plan.steps)-1 && st.Get && st.keyed:
		return w.tellKeys(depth, from)
	case st.Get && st.Entity.SetOf() != nil:
		return w.getSets(depth, from, resume)
	case st.Get:
		return w.getRows(depth, from, resume)
	}
	for i, f := range from {
		if i > 0 && w.notePassed(from[i-1].at) {
			return false, nil
		}
		if more, err := w.scanRange(depth, f, resume); !more || err != nil {
			return false, err
		}
		resume = nil
	}
	return true, nil
}

// notePassed notes that all is done up to a place, and reports whether to stop there.
func (w *walk) notePassed(at []store.Cursor) bool {
	if w.keep != nil || len(at) == 0 {
		return false
	}
	w.done = at
	return w.isSpent() || len(w.items) >= w.want
}

// giveRows gives rows out.
func (w *walk) giveRows(from []found) bool {
	last := w.plan.steps[len(w.plan.steps)-1]
	for _, f := range from {
		if w.keep != nil {
			if k, ok := last.Entity.Table.KeyOf(f.row); ok {
				w.keep(k)
			}
			continue
		}
		if len(w.items) == w.want {
			w.over = true
			return false
		}
		item := f.row
		if len(w.plan.returned) == 0 {
			item = last.outsideRow(f.row)
		}
		w.items, w.last = append(w.items, item), f.at
		if w.plan.Single {
			return false
		}
	}
	return true
}

// tellKeys tells the keys of the rows that a Get would read, without reading them.
func (w *walk) tellKeys(depth int, from []found) (bool, error) {
	st := w.plan.steps[depth]
	for i, f := range from {
		sc := w.scopeAfter(f.row)
		keys := st.keysOf(st.lookupFor(sc))
		if len(keys) > 1 { // the rows say which of them is asked for
			if more, err := w.getRows(depth, from[i:i+1], nil); !more || err != nil {
				return more, err
			}
			continue
		}
		for _, k := range keys {
			w.keep(k)
		}
	}
	return true, nil
}

// scopeAfter is the values of the fields of a step after the row before. It shares the row's memory, and
// the first step has no row before.
func (w *walk) scopeAfter(prior value.Item) scope { return scope{args: w.args, prior: prior} }

// getRows reads a row by its key for each row before, and goes on from those there. Where
// a key may be spelled in two ways it is the first that belongs.
// It reads maxBatch keys in one call. It reports whether the walk goes on.
func (w *walk) getRows(depth int, from []found, resume []store.Cursor) (bool, error) {
	st := w.plan.steps[depth]
	for start := 0; start < len(from); start += maxBatch {
		if start > 0 && w.notePassed(from[start-1].at) {
			return false, nil
		}
		batch := from[start:min(start+maxBatch, len(from))]
		var keys []store.Key
		var of []found
		var nth []int
		for i, f := range batch {
			sc := w.scopeAfter(f.row)
			for _, k := range st.keysOf(st.lookupFor(sc)) {
				keys, of, nth = append(keys, k), append(of, f), append(nth, i)
			}
		}
		rows, err := w.fetchRows(w.ctx, st, keys, func(i int) scope { return w.scopeAfter(of[i].row) })
		if err != nil {
			return false, err
		}
		var there []found
		last := -1
		for i, row := range rows {
			if row != nil && nth[i] != last {
				there, last = append(there, found{row, of[i].at}), nth[i]
			}
		}
		if more, err := w.descendFrom(depth+1, there, resume); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// scanRange reads a range of rows, and goes on from those that belong.
// It reports whether the walk goes on: false ends the page, which the last cursor given continues. A
// page that had few rows makes the next read larger, so a sparse range does not take a call for each row.
func (w *walk) scanRange(depth int, f found, resume []store.Cursor) (bool, error) {
	st := w.plan.steps[depth]
	sc := w.scopeAfter(f.row)
	if keys, ok := st.pickedKeys(sc); ok {
		return w.readPicked(depth, f, keys, resume)
	}
	qs := st.scopeQueries(sc)
	from := merged{apart: w.keep != nil}
	from.streams = seq.Map(qs, func(q reach) *stream { return newStream(st, q, from.apart) })
	if len(resume) > 0 {
		if more, err := w.resumeInside(depth, sc, f, resume); !more || err != nil {
			return false, err
		}
		own := queryReaching(qs, st.placeOf(resume[0]))
		if own < 0 {
			return true, nil
		}
		from.resumeBehind(own, resume[0])
	}
	for limit := w.firstLimit(); ; limit = doubleLimit(limit) {
		rows, err := from.nextRows(w, limit)
		if err != nil || len(rows) == 0 {
			return err == nil, err
		}
		foreign, err := w.foreignRows(st, rows)
		if err != nil {
			return false, err
		}
		var there []found
		var c store.Cursor
		for i, row := range rows {
			if c, err = st.cursorAfter(row); err != nil {
				return false, err
			}
			if !foreign[i] && st.rowBelongs(row, sc, w.now) {
				there = append(there, found{st.rowAsRead(row, w.now), behindRow(f.at, c)})
			}
		}
		if more, err := w.descendFrom(depth+1, there, nil); !more || err != nil {
			return false, err
		}
		if len(from.streams) == 0 {
			return true, nil
		}
		if w.notePassed(behindRow(f.at, c)) {
			return false, nil
		}
	}
}

// foreignRows says which rows of an index with keys only are of no entity that the step asks for, or are gone. Where the keys
// do not tell that, it reads the rows themselves.
func (w *walk) foreignRows(st *step, rows []value.Item) ([]bool, error) {
	out := make([]bool, len(rows))
	if !st.untold {
		return out, nil
	}
	t := st.Entity.Table
	for start := 0; start < len(rows); start += maxBatch {
		batch := rows[start:min(start+maxBatch, len(rows))]
		refs := make([]store.Ref, len(batch))
		for i, row := range batch {
			key, _ := t.KeyOf(row)
			refs[i] = store.Ref{Table: t.Name, Key: key}
		}
		whole, err := w.Store.Get(w.ctx, refs)
		if err != nil {
			return nil, err
		}
		w.reads++
		for i, row := range whole {
			e := t.Classify(row)
			w.bytes += row.Size()
			out[start+i] = row == nil || e != st.Entity && !slices.Contains(st.Also, e)
		}
	}
	return out, nil
}

// resumeInside goes on inside the row that was in progress, if it is still there.
func (w *walk) resumeInside(depth int, sc scope, f found, resume []store.Cursor) (bool, error) {
	if len(resume) == 1 {
		return true, nil
	}
	st := w.plan.steps[depth]
	rows, err := w.fetchRows(w.ctx, st, []store.Key{resume[0].Key}, func(int) scope { return sc })
	if err != nil || rows[0] == nil {
		return err == nil, err
	}
	return w.descendFrom(depth+1, []found{{rows[0], behindRow(f.at, resume[0])}}, resume[1:])
}

// behindRow is the place of a row under another's.
func behindRow(at []store.Cursor, c store.Cursor) []store.Cursor {
	return append(slices.Clip(slices.Clone(at)), c)
}

// Rows that a read asks for: as many as are wanted and one more, which says
// whether there are any left; each further one asks for more, since little of the
// one before belonged.
const (
	fewRows  = 25
	manyRows = MaxLimit + 1
)

// firstLimit is how many rows the first read asks for: as many as the page wants and a few more, or
// many if rows are picked out.
func (w *walk) firstLimit() int {
	if w.keep != nil {
		return manyRows
	}
	return min(w.want-len(w.items)+2, manyRows) // the last may wait for others of its second
}

// doubleLimit doubles a limit within its bounds: a read that found too few rows asks for more.
func doubleLimit(limit int) int { return min(max(limit*2, fewRows), manyRows) }

// readPage reads a page and counts it, for the limits and the metrics of a request.
func (r *run) readPage(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := r.Store.Query(ctx, q)
	r.reads++
	for _, row := range page.Rows {
		r.bytes += row.Size()
	}
	return page, err
}
