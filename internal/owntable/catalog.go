package owntable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// The row of catalog|MODEL is the model's catalog: which tables it belongs to, who reads
// their streams, and the derivations, by which definitions. The first start of a model
// creates it, or the command that makes the tables; starts and operators' commands change
// it, each on condition that it is as it was read. Every batch reads it. It has about 250
// bytes for each table and 20 for each derivation besides its name, so that a model of 100
// derivations stays within 4 KB, which is one read unit.
const (
	catalogFormat = "f" // CatalogFormat of the program that wrote it
	catalogCount  = Count
	catalogOwn    = "o"  // the id of our own table, when the row was written
	catalogSearch = "x"  // the search generation whose documents are kept
	catalogTable  = "t:" // and a table's name: a map with its Pin
	catalogName   = "d:" // and a derivation's name: "HASH GENERATION STATE SINCE"
	// buildsEntry: see build.go
)

// CatalogFormat is the format of a catalog and of the rows of our own table beside it. A program
// refuses every other one, since it would write the row without the attributes that it does not know.
const CatalogFormat = 1

// Complete says how it is known that the stream of a table, when weir began to read it, had
// every change since the table was made.
type Complete string

// The ways to know. "" is that it is not known.
const (
	CompleteMade    Complete = "made"    // the table was made together with its stream
	CompleteWhole   Complete = "whole"   // the store said so
	CompleteAssumed Complete = "assumed" // an operator said so
)

// Pin is the catalog's entry of a table.
type Pin struct {
	ID       string       `row:"i"`
	ARN      string       `row:"a"`
	Stream   string       `row:"l"` // the label of the stream
	First    string       `row:"f"` // that of the first stream that this own table has known; "" if that is not known
	Images   store.Images `row:"v"`
	Made     time.Time    `row:"m"` // when the table was made; zero if the store does not know
	Complete Complete     `row:"c"`
	Since    time.Time    `row:"s"` // since when Complete is so
	Reader   string       `row:"r"` // the reader of the stream; "" before the first batch
	Read     time.Time    `row:"b"` // since when
}

// State is the state of a derivation.
type State string

// The states. A derivation that is live or verified is shown. One that is building is
// counted in the ledgers of its build.
const (
	Unbuilt  State = "unbuilt"  // rows that were there before weir are not in it; nothing is applied
	Building State = "building" // it is being built from the rows, and rows show an old value or none
	Live     State = "live"     // every change is applied
	Verified State = "verified" // live, and audited after a build
	Retired  State = "retired"  // the model no longer has it; its values are still there
)

// states are the states by their letters in the row.
var states = map[string]State{"u": Unbuilt, "b": Building, "l": Live, "v": Verified, "r": Retired}

// Derived is the catalog's entry of a derivation: that the values shown are of definition
// Hash, built as Generation, and in State since Since.
type Derived struct {
	Hash       string
	Generation int64
	State      State
	Since      time.Time
}

// CatalogRow is a model's catalog. The zero CatalogRow stands for one that does not exist.
type CatalogRow struct {
	Own         string             // the id of our own table when a program last started; "" if it is not known
	Tables      map[string]Pin     // by the model's name of the table
	Derivations map[string]Derived // by name
	Builds      Builds             // of ledgers
	Search      string             // the search generation whose documents every reader writes, or notes as pending; "" for none
	Count       int64              // how often it was written; 0 if it does not exist
	was         value.Value
	others      []value.Attr // of a newer version with the same format: they stay
}

// Catalog refers to a model's catalog.
func Catalog(model string) store.Ref { return Ref("catalog|"+model, "") }

const catalogDo = "stop what derives the model, and restore the row from a backup; a row without attributes g:… may be deleted instead: start again with --assume-complete if the model is the one that was running, and run projector verify MODEL"

// ErrNewer is wrapped by the error for a catalog that a newer weir wrote.
var ErrNewer = fmt.Errorf("a newer weir wrote it")

// WasRead reports whether the stream of any table was read.
func (c CatalogRow) WasRead() bool {
	for _, pin := range c.Tables {
		if pin.Reader != "" {
			return true
		}
	}
	return false
}

// DecodeCatalog decodes a model's catalog, nil if there is none. The error wraps ErrRow
// or ErrNewer.
func DecodeCatalog(row value.Item) (c CatalogRow, err error) {
	c = CatalogRow{Tables: map[string]Pin{}, Derivations: map[string]Derived{}, was: row.Get(catalogCount)}
	if row == nil {
		return c, nil
	}
	format, err := decodeInt(row, catalogFormat, 1, catalogDo)
	if err != nil {
		return c, err
	}
	if format != CatalogFormat {
		return c, fmt.Errorf("%w: row %s of table %s has format %d, this program knows %d", ErrNewer, quoteText(row.Get(Partition)), TableName, format, CatalogFormat)
	}
	if c.Count, err = decodeInt(row, catalogCount, 1, catalogDo); err != nil {
		return c, err
	}
	if v := row.Get(catalogOwn); v.Kind() != value.String && !v.IsMissing() {
		return c, unreadableError(row, catalogOwn, "the id of a table", catalogDo)
	}
	c.Own = row.Get(catalogOwn).Text()
	if v := row.Get(catalogSearch); v.Kind() != value.String && !v.IsMissing() {
		return c, unreadableError(row, catalogSearch, "a search generation", catalogDo)
	}
	c.Search = row.Get(catalogSearch).Text()
	known := []string{Partition, Sort, catalogFormat, catalogCount, catalogOwn, catalogSearch}
	for _, a := range row {
		if name, ok := strings.CutPrefix(a.Name, catalogTable); ok {
			if c.Tables[name], err = decodePin(row, a); err != nil {
				return c, err
			}
		} else if name, ok := strings.CutPrefix(a.Name, catalogName); ok {
			d, ok := decodeDerived(a.Value.Text())
			if !ok || a.Value.Kind() != value.String {
				return c, unreadableError(row, a.Name, "a hash, a generation, a state and a time", catalogDo)
			}
			c.Derivations[name] = d
		} else if name, ok := strings.CutPrefix(a.Name, buildsEntry); ok {
			b, ok := buildFrom(name, a.Value.Text())
			if !ok {
				return c, unreadableError(row, a.Name, "a state, two times, a version and an entity", catalogDo)
			}
			c.Builds = append(c.Builds, b)
		} else if !slices.Contains(known, a.Name) {
			c.others = append(c.others, a)
		}
	}
	slices.SortFunc(c.Builds, func(x, y Build) int { return cmp.Compare(x.Generation, y.Generation) })
	return c, nil
}

// Clone returns a catalog that can be changed without changing this one.
func (c CatalogRow) Clone() CatalogRow {
	c.Tables, c.Derivations, c.Builds = maps.Clone(c.Tables), maps.Clone(c.Derivations), slices.Clone(c.Builds)
	return c
}

// IsPending reports whether a derivation is being built for the first time, or again with
// another definition: it is counted in its new ledgers only, and not shown yet.
func (c CatalogRow) IsPending(derivation string) bool {
	return c.Derivations[derivation].State == Building
}

// decodePin decodes the catalog's entry of one table. An entry that is not as this version
// writes it is an error with the remedy, and never a default: a table that looks new would
// be counted again.
func decodePin(row value.Item, a value.Attr) (p Pin, err error) {
	if a.Value.Kind() != value.Map {
		return p, unreadableError(row, a.Name, "a map", catalogDo)
	}
	if readTagged(a.Value.Item(), &p, catalogDo) != nil {
		err = unreadableError(row, a.Name, "a map of texts and times", catalogDo)
	}
	if err == nil && p.ID == "" {
		err = unreadableError(row, a.Name, "a map with the id of a table", catalogDo)
	}
	return p, err
}

// decodeDerived decodes the state of a derivation, four words; false for anything else.
func decodeDerived(text string) (d Derived, ok bool) {
	f := strings.Fields(text)
	if len(f) != 4 {
		return d, false
	}
	generation, err := strconv.ParseInt(f[1], 36, 64)
	since, also := strconv.ParseInt(f[3], 36, 64)
	state, known := states[f[2]]
	return Derived{f[0], generation, state, time.Unix(since, 0).UTC()}, err == nil && also == nil && known && generation > 0
}

// Becomes replaces the catalog by next, on condition that it has not changed since it was
// read. Attributes that this version does not know stay. The write returns the row.
func (c CatalogRow) Becomes(at store.Ref, next CatalogRow) store.Write {
	attrs := []value.Attr{newAttr(catalogFormat, value.OfInt(CatalogFormat)), newAttr(catalogCount, value.OfInt(c.Count+1))}
	if next.Own != "" {
		attrs = append(attrs, newAttr(catalogOwn, value.OfString(next.Own)))
	}
	if next.Search != "" {
		attrs = append(attrs, newAttr(catalogSearch, value.OfString(next.Search)))
	}
	attrs = append(attrs, c.others...)
	attrs = append(attrs, seq.Map(next.Builds, func(b Build) value.Attr { return b.attr() })...)
	for name, p := range next.Tables {
		attrs = append(attrs, newAttr(catalogTable+name, value.OfMap(p.encodePin())))
	}
	for name, d := range next.Derivations {
		attrs = append(attrs, newAttr(catalogName+name, value.OfString(d.text())))
	}
	return store.Write{
		Ref: at, Return: true, If: store.Cond{{store.AsRead(catalogCount, c.was)}}, Put: RefItem(at).With(attrs...),
	}
}

// text is the form that derived decodes.
func (d Derived) text() string {
	letter := ""
	for l, s := range states {
		if s == d.State {
			letter = l
		}
	}
	return d.Hash + " " + strconv.FormatInt(d.Generation, 36) + " " + letter + " " + strconv.FormatInt(d.Since.Unix(), 36)
}

// encodePin is the form that pin decodes. A fact that is not known is left out.
func (p Pin) encodePin() value.Item { return value.NewItem(writeTagged(p)...) }

// Same reports whether two catalogs say the same.
func (c CatalogRow) Same(d CatalogRow) bool {
	return c.Own == d.Own && c.Search == d.Search && maps.EqualFunc(c.Tables, d.Tables, func(a, b Pin) bool { return a == b || value.EqualItems(a.encodePin(), b.encodePin()) }) &&
		maps.EqualFunc(c.Derivations, d.Derivations, func(a, b Derived) bool { return a == b || a.text() == b.text() }) &&
		slices.EqualFunc(c.Builds, d.Builds, func(a, b Build) bool {
			return a.attr().Value.Text() == b.attr().Value.Text() && a.Generation == b.Generation
		})
}
