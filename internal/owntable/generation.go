package owntable

import (
	"maps"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of search|MODEL, s HASH, are the search generations of a model: one for each set
// of definitions of its indexes, in each kind of index. A row says where the indexes are,
// which instances of them have all documents, and how far filling them from the rows is. The catalog says which of them
// readers keep (CatalogRow.Search). A
// program whose generation has no row creates it; one that fills the
// generation writes it, each on condition that it is as it was read. Pruning deletes it,
// after the indexes. It has about 300 bytes and 150 for each index. For example,
//
//	k search|gallery  s 5f0c2a…  d opensearch  f true  z true  i {gallery-albums: {h …, p weir-gallery-albums-…, i …}}  n 7
const (
	genIndexes = "i" // by index: a map with its GenerationIndex
	genCount   = "n" // how often the row was written
)

// Generations returns the partition key of a model's search generations.
func Generations(model string) string { return "search|" + model }

// Generation refers to a search generation of a model.
func Generation(model, hash string) store.Ref { return Ref(Generations(model), hash) }

// GenerationIndex is a generation's entry of one index.
type GenerationIndex struct {
	Hash     string `row:"h,0"` // of its definition
	Place    string `row:"p,0"` // where the driver keeps it
	Instance string `row:"i"`   // which one it is
	Base     string `row:"b"`   // the instance that a driver is told to have been filled, until it is
}

// GenerationRow is a search generation. The zero GenerationRow stands for one that does not
// exist.
type GenerationRow struct {
	// Driver is the kind of index, by which another kind's generations are left alone.
	Driver string `row:"d"`
	// Indexes has, by name, the definition, place and instance of each index.
	Indexes map[string]GenerationIndex
	Base    string `row:"b"` // as that of an index
	// Filled says that all rows that existed are in the indexes.
	Filled  bool      `row:"f"`
	Since   time.Time `row:"e"` // when it was filled
	Reached bool      `row:"z"` // documents that were pending then are written
	// Part and Cursor say where filling continues: a table and a key in it. Rows were read by
	// then.
	Part   string     `row:"a"`
	Cursor value.Item `row:"c"`
	Rows   int64      `row:"r"`
	// Owner is the process that fills, until Until. After that another one may.
	Owner string    `row:"o"`
	Until time.Time `row:"u"`

	count int64
	was   value.Value
}

// Noted returns the instance that a driver is told to have been filled of an index.
func (g GenerationRow) Noted(index string) string {
	switch is, known := g.Indexes[index]; {
	case g.Filled:
		return is.Instance
	case known:
		return is.Base
	}
	return g.Base
}

// Exists reports whether there is a row. One that could not be decoded counts as none, and is
// replaced on condition of its former content.
func (g GenerationRow) Exists() bool { return g.count > 0 }

const generationDo = "delete the row; the next program or projector build MODEL fills the index again"

// DecodeGeneration decodes a search generation, nil if there is none. The error wraps
// ErrRow; the row that is returned with it can be replaced.
func DecodeGeneration(row value.Item) (g GenerationRow, err error) {
	g.was = row.Get(genCount)
	if row == nil {
		return g, nil
	}
	empty := g
	if g.count, err = decodeInt(row, genCount, 1, generationDo); err != nil {
		return empty, err
	}
	if err = readTagged(row, &g, generationDo); err != nil {
		return empty, err
	}
	if v := row.Get(genIndexes); !v.IsMissing() && v.Kind() != value.Map {
		return empty, unreadableError(row, genIndexes, "a map", generationDo)
	}
	g.Indexes = map[string]GenerationIndex{}
	for _, a := range row.Get(genIndexes).Item() {
		var is GenerationIndex
		if readTagged(a.Value.Item(), &is, generationDo) != nil {
			return empty, unreadableError(row, genIndexes, "a map of maps of texts", generationDo)
		}
		g.Indexes[a.Name] = is
	}
	return g, nil
}

// Becomes replaces the row by next, on condition that it has not changed since it was read.
// The write returns the row.
func (g GenerationRow) Becomes(at store.Ref, next GenerationRow) store.Write {
	var indexes []value.Attr
	for name, ix := range next.Indexes {
		indexes = append(indexes, newAttr(name, value.OfMap(value.NewItem(writeTagged(ix)...))))
	}
	attrs := append(writeTagged(next), newAttr(genCount, value.OfInt(g.count+1)), newAttr(genIndexes, value.OfMap(value.NewItem(indexes...))))
	return store.Write{
		Ref: at, Return: true, If: store.Cond{{store.AsRead(genCount, g.was)}}, Put: RefItem(at).With(attrs...),
	}
}

// Drop deletes the row, on condition that it has not changed since it was read.
func (g GenerationRow) Drop(at store.Ref) store.Write {
	return store.Write{Ref: at, Delete: true, If: store.Cond{{store.AsRead(genCount, g.was)}}}
}

// Clone returns a copy that shares no map with g.
func (g GenerationRow) Clone() GenerationRow {
	g.Indexes = maps.Clone(g.Indexes)
	if g.Indexes == nil {
		g.Indexes = map[string]GenerationIndex{}
	}
	return g
}

// GenerationOf returns the hash of the generation that a row of Generations(model) holds.
func GenerationOf(row value.Item) string { return row.Get(Sort).Text() }
