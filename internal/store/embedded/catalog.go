package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// Format is the version of the format of a directory. A store of another one is refused.
const Format = 1

// catalog is the JSON under "mtables": the store's knowledge about its tables. An id is
// never used twice, so that the remains of a dropped index cannot be mistaken for
// another index. The catalog is written as a whole, in the same batch as the change
// that it describes.
type catalog struct {
	Store     string `json:"store,omitempty"` // tells the store from all others
	LastID    uint16 `json:"lastID"`          // of tables and indexes
	LastShard uint32 `json:"lastShard"`       // of shards
	// Numbered is the greatest number that rows may carry and no record has: a Load gave it.
	Numbered uint64                `json:"numbered,omitempty"`
	Tables   map[string]*tableMeta `json:"tables"`
}

// tableMeta is the catalog's entry of a table.
type tableMeta struct {
	ID      uint16                `json:"id"`
	Key     []keyMeta             `json:"key"`
	Indexes map[string]*indexMeta `json:"indexes,omitempty"`
	Expiry  *indexMeta            `json:"expiry,omitempty"` // its Key is the TTL attribute
	Shards  []*shard              `json:"shards,omitempty"` // parents before children
	// First is the first shard of the stream that is on.
	First uint32 `json:"first,omitempty"`
	// Streamed: the stream has been on since the table was made.
	Streamed bool `json:"streamed,omitempty"`
}

// keyMeta is an attribute of a key as the catalog has it.
type keyMeta struct {
	Name string `json:"name"`
	Type string `json:"type"` // S, N or B, as in DynamoDB
}

// indexMeta is the catalog's entry of an index.
type indexMeta struct {
	ID       uint16    `json:"id"`
	Key      []keyMeta `json:"key"`
	Building bool      `json:"building,omitempty"` // entries are still missing
}

// shard is a part of a table's stream. While it is open, it gets the records of the
// rows whose partition key's hash is in [Low, High].
type shard struct {
	ID     uint32 `json:"id"`
	Parent uint32 `json:"parent,omitempty"`
	Low    uint64 `json:"low"`
	High   uint64 `json:"high"`
	Closed bool   `json:"closed,omitempty"`
	Start  uint64 `json:"start"` // all its records have greater numbers

	trimmed atomic.Uint64 // the number of the last trimmed record; stored under "mtrim"
	last    atomic.Uint64 // the number of the last record, or of one that was given up
}

// keyMetas is a key in the catalog's form, the partition key first.
func keyMetas(ks store.KeySchema) []keyMeta {
	out := []keyMeta{{ks.Partition.Name, ks.Partition.Type.Descriptor()}}
	if ks.Sort.Name != "" {
		out = append(out, keyMeta{ks.Sort.Name, ks.Sort.Type.Descriptor()})
	}
	return out
}

// String is the attribute in messages, with its type.
func (k keyMeta) String() string { return k.Name + " (" + k.Type + ")" }

// loadCatalog checks the format version and reads the catalog, which is empty in a new
// store. A directory of another format is refused, and nothing is changed in it.
func loadCatalog(db *pebble.DB) (*catalog, error) {
	c := &catalog{Tables: map[string]*tableMeta{}}
	version, err := getCopy(db, keyFormat)
	if err != nil || version == nil {
		return c, err
	}
	switch v, err := strconv.Atoi(string(version)); {
	case err != nil:
		return nil, fmt.Errorf("format version %.20q is corrupt", version)
	case v != Format:
		return nil, fmt.Errorf("the directory has format version %d, this program knows %d: another weir wrote it; use that one, or replay into another directory", v, Format)
	}
	b, err := getCopy(db, keyCatalog)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("catalogue is corrupt: %w", err)
	}
	return c, nil
}

// saveCatalog adds the catalog to a batch.
func (c *catalog) saveCatalog(b *pebble.Batch) error {
	doc, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return errors.Join(
		b.Set(keyFormat, strconv.AppendInt(nil, Format, 10), nil),
		b.Set(keyCatalog, doc, nil))
}

// newID returns an id that no table or index of this directory ever had, so that keys of a
// dropped one can never be read as another's.
func (c *catalog) newID() (uint16, error) {
	if c.LastID == math.MaxUint16 {
		return 0, errors.New("no ids are left for tables and indexes")
	}
	c.LastID++
	return c.LastID, nil
}

// newShards opens n shards that divide the range of hashes between them.
func (c *catalog) newShards(n int, low, high uint64, parent uint32, start uint64) []*shard {
	out := make([]*shard, n)
	step := (high-low)/uint64(n) + 1
	for i := range out {
		c.LastShard++
		out[i] = &shard{ID: c.LastShard, Parent: parent, Low: low, High: low + step - 1, Start: start}
		low += step
	}
	out[n-1].High = high
	return out
}

// reconcileTables changes the catalog so that it describes the given tables, and adds to the
// batch the removal of indexes that they no longer have. New indexes are Building. Tables that
// are not given stay as they are.
// Nothing is durable before the caller commits the batch, so a crash leaves the old catalog whole.
func (c *catalog) reconcileTables(tables []store.Table, shards int, last uint64, b *pebble.Batch) error {
	for i := range tables {
		t := &tables[i]
		meta := c.Tables[t.Name]
		if meta == nil {
			id, err := c.newID()
			if err != nil {
				return err
			}
			meta = &tableMeta{ID: id, Key: keyMetas(t.Key), Indexes: map[string]*indexMeta{}, Streamed: t.Stream}
			c.Tables[t.Name] = meta
		}
		if want := keyMetas(t.Key); !slices.Equal(want, meta.Key) {
			return fmt.Errorf("table %s has the key %v in this directory and %v in the model: a key cannot change, use another directory and replay", t.Name, meta.Key, want)
		}
		if err := c.reconcileIndexes(t, meta, b); err != nil {
			return err
		}
		c.reconcileStream(t, meta, shards, last)
	}
	return nil
}

// reconcileIndexes drops the indexes that the model no longer has, with their entries, and
// gives new ones an id.
func (c *catalog) reconcileIndexes(t *store.Table, meta *tableMeta, b *pebble.Batch) error {
	if meta.Indexes == nil {
		meta.Indexes = map[string]*indexMeta{}
	}
	for _, name := range slices.Sorted(maps.Keys(meta.Indexes)) {
		if t.Index(name) != nil {
			continue
		}
		if err := dropIndex(meta.Indexes[name], b); err != nil {
			return err
		}
		delete(meta.Indexes, name)
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		kept, err := c.reconcileIndex(meta.Indexes[ix.Name], keyMetas(ix.Key), b)
		if err != nil {
			return err
		}
		meta.Indexes[ix.Name] = kept
	}
	var want []keyMeta
	if t.TTL != "" {
		want = []keyMeta{{t.TTL, value.Number.Descriptor()}}
	}
	kept, err := c.reconcileIndex(meta.Expiry, want, b)
	meta.Expiry = kept
	return err
}

// reconcileIndex keeps an index whose key has not changed. Otherwise it drops the index
// and makes another one. With an empty key it makes none.
func (c *catalog) reconcileIndex(have *indexMeta, want []keyMeta, b *pebble.Batch) (*indexMeta, error) {
	if have != nil && slices.Equal(have.Key, want) {
		if have.Building { // its build was interrupted: start again
			return have, dropIndex(have, b)
		}
		return have, nil
	}
	if have != nil {
		if err := dropIndex(have, b); err != nil {
			return nil, err
		}
	}
	if want == nil {
		return nil, nil
	}
	id, err := c.newID()
	return &indexMeta{ID: id, Key: want, Building: true}, err
}

// dropIndex adds to the batch the removal of all entries of an index.
func dropIndex(ix *indexMeta, b *pebble.Batch) error {
	low := appendSpace(nil, spaceIndex, ix.ID)
	return b.DeleteRange(low, keyAfter(appendSpace(nil, spaceIndex, ix.ID)), nil)
}

// reconcileStream opens shards for a stream that is switched on, and closes the shards
// of one that is switched off. If a stream is switched on again, its new shards have no
// parents: changes in between are not in the stream.
func (c *catalog) reconcileStream(t *store.Table, meta *tableMeta, n int, last uint64) {
	open := 0
	for _, s := range meta.Shards {
		if !s.Closed && !t.Stream {
			s.Closed, meta.Streamed = true, false
		}
		if !s.Closed {
			open++
		}
	}
	if t.Stream && open == 0 {
		shards := c.newShards(n, 0, math.MaxUint64, 0, last)
		meta.First, meta.Shards = shards[0].ID, append(meta.Shards, shards...)
	}
}
