package ingest

import (
	"strconv"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// facts is what is known of rows while a batch is planned: as they were read, and,
// once commands are taken in their order, as the commands before leave them.
type facts struct {
	rows  map[string]value.Item  // by nameOf; nil where there is none
	found map[string][]store.Ref // what indexes answered, by question
}

func newFacts(n int) *facts {
	return &facts{rows: make(map[string]value.Item, n), found: map[string][]store.Ref{}}
}

func (f *facts) learn(ref store.Ref, row value.Item) { f.rows[nameOf(ref)] = row }

// nameOf names a row, different rows differently.
func nameOf(ref store.Ref) string {
	p, s := ref.Key.Partition.Text(), ref.Key.Sort.Text()
	b := make([]byte, 0, len(ref.Table)+len(p)+len(s)+8)
	b = strconv.AppendInt(append(append(b, ref.Table...), 0), int64(len(p)), 10)
	return string(append(append(append(b, ':'), p...), s...))
}

// known is what a plan goes by. A plan asks for what it needs; as long as something
// is open, the plan is none, and is made again when that was read.
type known struct {
	*facts
	now   time.Time
	newID func() string // names what nothing else is named
	used  []string      // the rows that the plan went by
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

// row is a row as it is known; false says that it has to be read.
func (k *known) row(ref store.Ref) (value.Item, bool) {
	name := nameOf(ref)
	row, ok := k.rows[name]
	if k.used = append(k.used, name); !ok {
		k.open = append(k.open, ref)
	}
	return row, ok
}

// there is the row at the command's key. One that a create is to make is taken to be
// missing until a write finds it there.
func (c *checked) there(k *known) (row value.Item, ok bool) {
	row, ok = k.rows[c.name]
	if k.used = append(k.used, c.name); !ok && (k.sure || c.Op != Create) {
		k.open = append(k.open, c.ref)
		return nil, false
	}
	return row, true
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
