package ingest

import (
	"strconv"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// facts is the known state of rows while a batch is planned: the rows as they were read,
// and then, as commands are planned in their order, as each command leaves them.
type facts struct {
	rows  map[string]value.Item  // by nameOf; nil for a row that does not exist
	found map[string][]store.Ref // the answers of indexes, by question
}

// newFacts has room for n rows.
func newFacts(n int) *facts {
	return &facts{rows: make(map[string]value.Item, n), found: map[string][]store.Ref{}}
}

// noteRow notes a row as it was read, nil if it does not exist. A later reading replaces it.
func (f *facts) noteRow(ref store.Ref, row value.Item) { f.rows[nameOf(ref)] = row }

// nameOf names a row. Different rows have different names.
func nameOf(ref store.Ref) string {
	p, s := ref.Key.Partition.Text(), ref.Key.Sort.Text()
	b := make([]byte, 0, len(ref.Table)+len(p)+len(s)+8)
	b = strconv.AppendInt(append(append(b, ref.Table...), 0), int64(len(p)), 10)
	return string(append(append(append(b, ':'), p...), s...))
}

// known is the base of a plan. A plan asks for the rows that it needs. While
// something is still to be read, the plan is incomplete, and it is made again after the
// read.
type known struct {
	*facts
	now   time.Time
	newID func() string // makes unique names
	used  []string      // the rows that the plan depends on
	open  []store.Ref
	finds []find
	sure  bool // rows that were assumed missing must be read
}

// find asks an index for rows.
type find struct {
	name string
	store.Query
	keep func(row value.Item) bool
}

// knownRow is a row as it is known; false means that it has to be read first.
func (k *known) knownRow(ref store.Ref) (value.Item, bool) {
	name := nameOf(ref)
	row, ok := k.rows[name]
	if k.used = append(k.used, name); !ok {
		k.open = append(k.open, ref)
	}
	return row, ok
}

// rowAtKey is the row at the command's key. A row that a create is to make is assumed
// missing until a write finds it.
func (c *checked) rowAtKey(k *known) (row value.Item, ok bool) {
	row, ok = k.rows[c.name]
	if k.used = append(k.used, c.name); !ok && (k.sure || c.Op != Create) {
		k.open = append(k.open, c.ref)
		return nil, false
	}
	return row, true
}

// foundRows returns the rows that an index returned; false means that it has to be asked
// first.
func (k *known) foundRows(q find) ([]store.Ref, bool) {
	refs, ok := k.found[q.name]
	if !ok {
		k.finds = append(k.finds, q)
	}
	return refs, ok
}

// isWaiting reports whether the plan asked for something that has not been read yet.
func (k *known) isWaiting() bool { return len(k.open)+len(k.finds) > 0 }
