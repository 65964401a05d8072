package owntable

import (
	"maps"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of search|MODEL, s HASH, are the search generations of a model: one for each set
// of definitions of its indexes, in each kind of index. A row says where the indexes are,
// which instances of them have all documents, and how far filling them from the rows is. A
// program whose generation has no row creates it; a process that fills, keeps or follows the
// generation writes it, each on condition that it is as it was read. Pruning deletes it,
// after the indexes and the checkpoints. It has about 300 bytes and 150 for each index.
//
// The row s function says which generation the model's functions apply. A function writes
// it when it takes over. There is one for each model, about 100 bytes; nothing deletes it.
const (
	genDriver   = "d"  // the kind of index
	genIndexes  = "i"  // by index: a map of genHash, genPlace and genInstance
	genHash     = "h"  // of its definition
	genPlace    = "p"  // where the driver keeps it
	genInstance = "i"  // which one it is
	genBase     = "b"  // and of genIndexes: what a driver is told to have been filled, until it is
	genFilled   = "f"  // all rows that existed are in it
	genSince    = "e"  // since when, Unix seconds
	genReached  = "z"  // and every change up to the end of the streams after that
	genBegun    = "g"  // the checkpoints are where filling began
	genPart     = "a"  // the table that is being read
	genCursor   = "c"  // the key after which filling continues
	genRows     = "r"  // how many rows were read
	genOwner    = "o"  // the process that fills it
	genUntil    = "u"  // until when it may be filling, Unix seconds
	genKept     = "y"  // when it was last certain that a program applies every change, Unix seconds
	genCount    = "n"  // how often the row was written
	funcHash    = "h"  // the generation that functions apply
	funcSince   = "b"  // since when, Unix seconds
	funcSettled = "ok" // no function applies another one any more
)

// Generations returns the partition key of a model's search generations, and of the row that says which
// of them its functions apply.
func Generations(model string) string { return "search|" + model }

// Generation refers to a search generation of a model.
func Generation(model, hash string) store.Ref { return Ref(Generations(model), hash) }

// FunctionSearch refers to the row that says which generation a model's functions apply.
func FunctionSearch(model string) store.Ref { return Ref(Generations(model), sortFunction) }

const sortFunction = "function"

// GenerationIndex is what a generation has of one index.
type GenerationIndex struct{ Hash, Place, Instance, Base string }

// GenerationRow is a search generation. The zero GenerationRow stands for one that does not
// exist.
type GenerationRow struct {
	// Driver is the kind of index, by which another kind's generations are left alone.
	Driver string
	// Indexes has, by name, the definition, place and instance of each index.
	Indexes map[string]GenerationIndex
	Base    string
	// Filled says that all rows that existed are in the indexes.
	Filled  bool
	Since   time.Time // when it was filled
	Reached bool      // it has caught up with the streams since
	Begun   bool      // the checkpoints of its group are where filling began
	// Part and Cursor say where filling continues: a table and a key in it. Rows were read by
	// then.
	Part   string
	Cursor value.Item
	Rows   int64
	// Owner is the process that fills, until Until. After that another one may.
	Owner string
	Until time.Time
	// Kept is when it was last certain that a program applies every change.
	Kept time.Time

	count int64
	was   value.Value
}

// Noted returns what a driver is told to have been filled of an index.
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
// replaced on condition of what it was.
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
	if g.count, err = whole(row, genCount, 1, generationDo); err != nil {
		return empty, err
	}
	for _, t := range []struct {
		attr string
		to   *string
	}{{genDriver, &g.Driver}, {genBase, &g.Base}, {genPart, &g.Part}, {genOwner, &g.Owner}} {
		if *t.to, err = text(row, t.attr, generationDo); err != nil {
			return empty, err
		}
	}
	for _, t := range []struct {
		attr string
		to   *time.Time
	}{{genUntil, &g.Until}, {genSince, &g.Since}, {genKept, &g.Kept}} {
		if *t.to, err = moment(row, t.attr, generationDo); err != nil {
			return empty, err
		}
	}
	if g.Filled, err = flag(row, genFilled, generationDo); err != nil {
		return empty, err
	}
	if g.Reached, err = flag(row, genReached, generationDo); err != nil {
		return empty, err
	}
	if g.Begun, err = flag(row, genBegun, generationDo); err != nil {
		return empty, err
	}
	if row.Has(genRows) {
		if g.Rows, err = whole(row, genRows, 0, generationDo); err != nil {
			return empty, err
		}
	}
	for _, attr := range []string{genIndexes, genCursor} {
		if v := row.Get(attr); !v.IsMissing() && v.Kind() != value.Map {
			return empty, unreadable(row, attr, "a map", generationDo)
		}
	}
	g.Cursor = row.Get(genCursor).Item()
	g.Indexes = map[string]GenerationIndex{}
	for _, a := range row.Get(genIndexes).Item() {
		is := a.Value.Item()
		g.Indexes[a.Name] = GenerationIndex{is.Get(genHash).Text(), is.Get(genPlace).Text(), is.Get(genInstance).Text(), is.Get(genBase).Text()}
	}
	return g, nil
}

// moment returns an attribute that is a time in Unix seconds, zero if the row does not have
// it.
func moment(row value.Item, attr, do string) (time.Time, error) {
	if !row.Has(attr) {
		return time.Time{}, nil
	}
	n, err := whole(row, attr, 0, do)
	return time.Unix(n, 0), err
}

// Becomes replaces the row by next, on condition that it has not changed since it was read.
// The write returns the row.
func (g GenerationRow) Becomes(at store.Ref, next GenerationRow) store.Write {
	own := Table()
	attrs := []value.Attr{{Name: genCount, Value: value.OfInt(g.count + 1)}}
	texts := map[string]string{genDriver: next.Driver, genBase: next.Base, genPart: next.Part, genOwner: next.Owner}
	for name, t := range texts {
		if t != "" {
			attrs = append(attrs, value.Attr{Name: name, Value: value.OfString(t)})
		}
	}
	for name, at := range map[string]time.Time{genUntil: next.Until, genSince: next.Since, genKept: next.Kept} {
		if !at.IsZero() {
			attrs = append(attrs, value.Attr{Name: name, Value: value.OfInt(at.Unix())})
		}
	}
	for name, is := range map[string]bool{genFilled: next.Filled, genReached: next.Reached, genBegun: next.Begun} {
		if is {
			attrs = append(attrs, value.Attr{Name: name, Value: value.OfBool(true)})
		}
	}
	if next.Rows > 0 {
		attrs = append(attrs, value.Attr{Name: genRows, Value: value.OfInt(next.Rows)})
	}
	if next.Cursor != nil {
		attrs = append(attrs, value.Attr{Name: genCursor, Value: value.OfMap(next.Cursor)})
	}
	var indexes []value.Attr
	for name, ix := range next.Indexes {
		is := []value.Attr{{Name: genHash, Value: value.OfString(ix.Hash)}, {Name: genPlace, Value: value.OfString(ix.Place)}}
		for attr, t := range map[string]string{genInstance: ix.Instance, genBase: ix.Base} {
			if t != "" {
				is = append(is, value.Attr{Name: attr, Value: value.OfString(t)})
			}
		}
		indexes = append(indexes, value.Attr{Name: name, Value: value.OfMap(value.NewItem(is...))})
	}
	attrs = append(attrs, value.Attr{Name: genIndexes, Value: value.OfMap(value.NewItem(indexes...))})
	return store.Write{
		Ref: at, Return: true, If: store.Cond{{store.AsRead(genCount, g.was)}},
		Put: value.NewItem(append(own.Item(at.Key), attrs...)...),
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

// GenerationOf returns the hash of the generation that a row of Generations(model) holds;
// ok is false for the row of functions.
func GenerationOf(row value.Item) (hash string, ok bool) {
	hash = row.Get(Sort).Text()
	return hash, hash != sortFunction
}

// FunctionSearchRow says which generation functions apply. The zero row stands for one that
// does not exist.
type FunctionSearchRow struct {
	Hash    string
	Since   time.Time
	Settled bool // no function applies an earlier one any more
	was     value.Value
}

const functionSearchDo = "delete the row, and run projector build MODEL --hand-over 16m"

// DecodeFunctionSearch decodes the row of functions, nil if there is none. The error wraps
// ErrRow.
func DecodeFunctionSearch(row value.Item) (f FunctionSearchRow, err error) {
	f.was = row.Get(genCount)
	if row == nil {
		return f, nil
	}
	if f.Hash, err = text(row, funcHash, functionSearchDo); err != nil {
		return f, err
	}
	if f.Since, err = moment(row, funcSince, functionSearchDo); err != nil {
		return f, err
	}
	f.Settled, err = flag(row, funcSettled, functionSearchDo)
	return f, err
}

// Becomes replaces the row by next, on condition that it has not changed since it was read.
func (f FunctionSearchRow) Becomes(at store.Ref, next FunctionSearchRow) store.Write {
	own := Table()
	n, _ := f.was.Int64()
	attrs := []value.Attr{
		{Name: genCount, Value: value.OfInt(n + 1)}, {Name: funcHash, Value: value.OfString(next.Hash)}, {Name: funcSince, Value: value.OfInt(next.Since.Unix())},
	}
	if next.Settled {
		attrs = append(attrs, value.Attr{Name: funcSettled, Value: value.OfBool(true)})
	}
	return store.Write{Ref: at, If: store.Cond{{store.AsRead(genCount, f.was)}}, Put: value.NewItem(append(own.Item(at.Key), attrs...)...)}
}
