package embedded

import (
	"slices"
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// index is an open index. The expiry index has the name "" and the TTL attribute as its
// key.
type index struct {
	store.Index
	id              uint16
	partition, sort int // places of its key attributes in the table's indexed
}

// isExpiry reports whether it is the index of the table's TTL, which no query can name.
func (ix *index) isExpiry() bool { return ix.Name == "" }

// addIndex opens an index.
func (t *table) addIndex(ix store.Index, id uint16) {
	t.indexes = append(t.indexes, &index{Index: ix, id: id})
	for _, name := range []string{ix.Key.Partition.Name, ix.Key.Sort.Name} {
		if at, found := slices.BinarySearch(t.indexed, name); !found {
			t.indexed = slices.Insert(t.indexed, at, name)
		}
	}
	for _, ix := range t.indexes {
		ix.partition, _ = slices.BinarySearch(t.indexed, ix.Key.Partition.Name)
		ix.sort, _ = slices.BinarySearch(t.indexed, ix.Key.Sort.Name)
	}
}

// indexNamed is the index of a name, nil if the table has none.
func (t *table) indexNamed(name string) *index {
	return seq.Find(t.indexes, func(ix *index) bool { return ix.Name == name && !ix.isExpiry() })
}

// keyValues appends a row's values of the table's indexed attributes, in their order.
// One walk over the row collects the values that all indexes need.
func (t *table) keyValues(b []value.Value, row value.Item) []value.Value {
	for _, name := range t.indexed {
		for len(row) > 0 && strings.Compare(row[0].Name, name) < 0 {
			row = row[1:]
		}
		var v value.Value
		if len(row) > 0 && row[0].Name == name {
			v = row[0].Value
		}
		b = append(b, v)
	}
	return b
}

// entryKey is a row's key in the index, from the row's keyValues. Only a row that existed
// before the index can have values that cause an error.
func (ix *index) entryKey(vs []value.Value) (k store.Key, ok bool, err error) {
	if ix.isExpiry() {
		_, ok := vs[ix.partition].Int64()
		return store.Key{Partition: vs[ix.partition]}, ok, nil
	}
	return ix.Entry(vs[ix.partition], vs[ix.sort])
}

// checkRow refuses a row for faults that only the whole row shows. stored is the length of its
// stored form.
// DynamoDB refuses the same rows: those above 400 KB, and those whose index key has a wrong type or
// is empty.
func (t *table) checkRow(row value.Item, stored int) error {
	// DynamoDB's count is at most about twice the size of the stored form.
	if stored > store.MaxItemBytes/3 {
		if err := store.CheckSize(row); err != nil {
			return err
		}
	}
	var buf [16]value.Value
	vs := t.keyValues(buf[:0], row)
	for _, ix := range t.indexes {
		if _, _, err := ix.entryKey(vs); err != nil {
			return err
		}
	}
	return nil
}

// eachEntry calls do with the keys of the index entries that go and come when a row changes. An entry goes where the row
// leaves its place in an index, and comes where it takes one. A value that cannot be in a key has no entry. key is memory
// to use, which is returned.
func (t *table) eachEntry(id store.Key, was, is value.Item, key []byte, do func(key []byte, gone bool) error) ([]byte, error) {
	var buf [16]value.Value
	vs := t.keyValues(t.keyValues(buf[:0], was), is)
	before, now := vs[:len(t.indexed)], vs[len(t.indexed):]
	for _, ix := range t.indexes {
		if value.Equal(before[ix.partition], now[ix.partition]) && value.Equal(before[ix.sort], now[ix.sort]) {
			continue
		}
		for i, side := range [][]value.Value{before, now} {
			entry, ok, err := ix.entryKey(side)
			if !ok || err != nil {
				continue
			}
			key = appendEntryKey(key[:0], ix, entry, id)
			if err := do(key, i == 0); err != nil {
				return key, err
			}
		}
	}
	return key, nil
}
