package store

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"weir/internal/value"
)

// CheckQuery returns the fault of a query of this table, whatever rows the table
// has. It also returns the key that the query uses: the table's or the index's.
func (t *Table) CheckQuery(q *Query) (*KeySchema, error) {
	keys := &t.Key
	if q.Index != "" {
		ix := t.Index(q.Index)
		if ix == nil {
			return nil, fmt.Errorf("index %q: %w", q.Index, ErrNoTable)
		}
		keys = &ix.Key
	}
	if err := q.check(keys); err != nil {
		return nil, err
	}
	if q.After == nil {
		return keys, nil
	}
	if err := t.CheckKey(q.After.Key); err != nil {
		return nil, fmt.Errorf("cursor: %w", err)
	}
	if e := q.After.Entry; q.Index != "" && (e.Partition.Kind() != keys.Partition.Type || e.Sort.Kind() != keys.Sort.Type) {
		return nil, fmt.Errorf("cursor: it is not one of index %s", q.Index)
	}
	return keys, nil
}

// check refuses a query that the keys of the table or index cannot answer: a range without a
// sort key, two ranges at once, values of another kind than the key.
func (q *Query) check(keys *KeySchema) error {
	r := &q.Sort
	given := 0
	for _, v := range [...]value.Value{r.Equal, r.Prefix, r.From, r.Below} {
		if v.IsMissing() {
			continue
		}
		given++
		if keys.Sort.Name == "" {
			return errors.New("a range needs a sort key")
		}
		if err := sameKind("range", v, keys.Sort); err != nil {
			return err
		}
	}
	if err := q.checkSegments(); err != nil {
		return err
	}
	switch {
	case q.Partition.IsMissing() && given > 0:
		return errors.New("a range needs a partition")
	case given > 2 || given == 2 && (r.From.IsMissing() || r.Below.IsMissing()):
		return errors.New("a range is one of equal, prefix and bounds")
	case r.Prefix.Kind() == value.Number:
		return errors.New("a number has no prefix")
	case q.Partition.IsMissing():
		return nil
	}
	return sameKind("partition", q.Partition, keys.Partition)
}

// sameKind refuses a key value of another type than the key's: DynamoDB answers a ValidationException,
// and the embedded store must not find nothing instead.
func sameKind(what string, v value.Value, a KeyAttr) error {
	if v.Kind() != a.Type {
		return fmt.Errorf("the %s is a %v, %s is a %v", what, v.Kind(), a.Name, a.Type)
	}
	return nil
}

// checkSegments allows segments to a forward scan of a whole table only, as DynamoDB does
// (Scan, TotalSegments).
func (q *Query) checkSegments() error {
	switch {
	case q.Segments == 0 && q.Segment == 0:
		return nil
	case !q.Partition.IsMissing() || q.Index != "" || q.Reverse:
		return errors.New("only a scan of a table has segments, and it is not reversed")
	case q.Segments < 1 || q.Segments > MaxSegments || q.Segment < 0 || q.Segment >= q.Segments:
		return fmt.Errorf("there is no segment %d of %d", q.Segment, q.Segments)
	}
	return nil
}

// InSegment reports whether a partition is in the query's segment, for a store that has no
// division of its own.
func (q *Query) InSegment(partition value.Value) bool {
	if q.Segments <= 1 {
		return true
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, partition.Text())
	return h.Sum64()%uint64(q.Segments) == uint64(q.Segment)
}
