package ingest

import (
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// known is what was read for a command. A plan asks for what it needs; as long as
// something is open, the plan is none, and is made anew when that was read.
type known struct {
	now   time.Time
	newID func() string          // names what nothing else is named
	rows  map[string]value.Item  // by row; nil where there is none
	found map[string][]store.Ref // by question
	open  []store.Ref
	finds []find
	sure  bool // rows that were taken to be missing are read
}

// find asks an index for rows.
type find struct {
	name string
	store.Query
	keep func(row value.Item) bool
}

// row is a row as it was read; false says that it has to be.
func (k *known) row(ref store.Ref) (value.Item, bool) {
	name := ref.String()
	row, ok := k.rows[name]
	if !ok {
		k.open = append(k.open, ref)
	}
	return row, ok
}

// unlikely is a row that is probably not there, and taken to be missing until a
// write finds it there.
func (k *known) unlikely(ref store.Ref) (value.Item, bool) {
	switch {
	case !k.sure && len(k.rows) == 0:
		return nil, true
	case !k.sure:
		return k.rows[ref.String()], true
	}
	return k.row(ref)
}

// find are the rows that an index had.
func (k *known) find(q find) ([]store.Ref, bool) {
	refs, ok := k.found[q.name]
	if !ok {
		k.finds = append(k.finds, q)
	}
	return refs, ok
}

func (k *known) waiting() bool { return len(k.open)+len(k.finds) > 0 }

func (k *known) learn(ref store.Ref, row value.Item) {
	if k.rows == nil {
		k.rows = map[string]value.Item{}
	}
	k.rows[ref.String()] = row
}
