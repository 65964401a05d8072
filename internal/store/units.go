package store

import "weir/internal/value"

// DynamoDB's write and read units are of so many bytes, each begun unit counts.
const (
	writeUnitBytes = 1 << 10
	ReadUnitBytes  = 4 << 10
)

// WriteUnits returns the write units of a row of so many bytes: one for each KB begun, and one for a
// row that does not exist. A transaction takes twice as many.
func WriteUnits(bytes int) int { return max(1, (bytes+writeUnitBytes-1)/writeUnitBytes) }

// ReadUnits returns the read units of a row, or of a page of rows, that is read strongly: one for each
// 4 KB begun, and one for nothing.
func ReadUnits(bytes int) int { return max(1, (bytes+ReadUnitBytes-1)/ReadUnitBytes) }

// EntryUnits returns the write units of the entries in t's indexes when a row changes: nil is no row. An
// entry that appears, changes or goes is one write, and one whose key changes is two. It takes one unit for each KB
// begun, in a transaction too. An index has the whole row, or only its keys. See
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html (write capacity).
func (t *Table) EntryUnits(before, after value.Item) (units int) {
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		was, is := t.entry(ix, before), t.entry(ix, after)
		if was != nil && is != nil && ix.sameKey(before, after) {
			if !ix.KeysOnly && !value.EqualItems(before, after) {
				units += WriteUnits(max(was.Size(), is.Size()))
			}
			continue
		}
		for _, entry := range []value.Item{was, is} {
			if entry != nil {
				units += WriteUnits(entry.Size())
			}
		}
	}
	return units
}

// entry returns an index's entry of a row, nil if it has nothing.
func (t *Table) entry(ix *Index, row value.Item) (entry value.Item) {
	switch {
	case !row.Has(ix.Key.Partition.Name), ix.Key.Sort.Name != "" && !row.Has(ix.Key.Sort.Name):
		return nil
	case !ix.KeysOnly:
		return row
	}
	for _, a := range row {
		switch a.Name {
		case t.Key.Partition.Name, t.Key.Sort.Name, ix.Key.Partition.Name, ix.Key.Sort.Name:
			entry = append(entry, a)
		}
	}
	return entry
}

func (ix *Index) sameKey(a, b value.Item) bool {
	same := func(attr string) bool { return value.Equal(a.Get(attr), b.Get(attr)) }
	return same(ix.Key.Partition.Name) && same(ix.Key.Sort.Name)
}
