package owntable

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

func someCatalog(derivations int) CatalogRow {
	at := time.Unix(1800000000, 0).UTC()
	c := CatalogRow{Count: 6, Tables: map[string]Pin{
		"gallery": {
			ID: "6b1f3c9a-4a7e-4b60-9a53-0f7d2b1c1e55", ARN: "arn:aws:dynamodb:eu-west-1:123456789012:table/gallery-prod-1XYZ", Stream: "2026-11-23T05:48:56.218",
			Images: store.NewAndOldImages, Made: at, Complete: CompleteMade, Since: at, Reader: "process", Read: at,
		},
		"other": {ID: "x/1"},
	}, Derivations: map[string]Derived{}}
	for i := range derivations {
		c.Derivations[fmt.Sprintf("Album%d.mediaCount", i)] = Derived{"8-1-Hn3q6k7k", int64(i + 1), []State{Live, Unbuilt, Building, Verified, Retired}[i%5], at}
	}
	return c
}

// TestCatalogRow: what is written is read.
func TestCatalogRow(t *testing.T) {
	c := someCatalog(7)
	w := CatalogRow{Count: 6, was: value.OfInt(6)}.Becomes(Catalog("m"), c)
	got, err := DecodeCatalog(w.Put)
	if err != nil {
		t.Fatal(err)
	}
	if got.Count != 7 || !reflect.DeepEqual(got.Tables, c.Tables) || !reflect.DeepEqual(got.Derivations, c.Derivations) || !got.Same(c) {
		t.Errorf("%+v\nwant %+v", got, c)
	}
	c.Derivations["more"] = Derived{"h", 1, Live, time.Unix(1, 0)}
	if got.Same(c) {
		t.Error("a catalog with one more derivation is the same")
	}
	if none, err := DecodeCatalog(nil); err != nil || none.Count != 0 || none.Tables == nil {
		t.Errorf("%+v, %v", none, err)
	}
}

// TestCatalogOfANewerVersion: what a newer version noted in a catalog of the same format stays when
// this one writes it.
func TestCatalogOfANewerVersion(t *testing.T) {
	note := value.Attr{Name: "z:noted", Value: value.OfString("x")}
	c, err := DecodeCatalog(CatalogRow{}.Becomes(Catalog("m"), someCatalog(3)).Put.With(note))
	if err != nil {
		t.Fatal(err)
	}
	next := c.Clone()
	next.Own = "another"
	next.Builds = Builds{}
	row := c.Becomes(Catalog("m"), next).Put
	if is, err := DecodeCatalog(row); err != nil || is.Own != "another" || !value.Equal(row.Get(note.Name), note.Value) {
		t.Errorf("%+v, %v", row, err)
	}
}

// TestCatalogSize: a model of two tables and 100 derivations costs one read unit.
func TestCatalogSize(t *testing.T) {
	w := CatalogRow{}.Becomes(Catalog("gallery"), someCatalog(70))
	t.Logf("70 derivations: %d bytes", w.Put.Size())
	if n := w.Put.Size(); n > 4096 {
		t.Errorf("%d bytes", n)
	}
	t.Logf("100 derivations: %d bytes", CatalogRow{}.Becomes(Catalog("gallery"), someCatalog(100)).Put.Size())
}

// TestCatalogOnceAgain: of two programs that read the same catalog, one writes it.
func TestCatalogOnceAgain(t *testing.T) {
	w := CatalogRow{was: value.OfInt(3), Count: 3}.Becomes(Catalog("m"), someCatalog(1))
	if want := (store.Cond{{{Attr: "n", Is: store.Eq, Value: value.OfInt(3)}}}); !reflect.DeepEqual(w.If, want) {
		t.Errorf("%+v", w.If)
	}
	if w := (CatalogRow{}).Becomes(Catalog("m"), someCatalog(1)); w.If[0][0].Is != store.Absent {
		t.Errorf("%+v", w.If)
	}
}

// TestBadCatalogs: a row that cannot be read is an error that names it, and says what to do.
func TestBadCatalogs(t *testing.T) {
	good := CatalogRow{}.Becomes(Catalog("m"), someCatalog(1)).Put
	for name, c := range map[string]struct {
		attr string
		v    value.Value
		want error
	}{
		"no format":        {catalogFormat, value.Value{}, ErrRow},
		"a newer format":   {catalogFormat, value.OfInt(CatalogFormat + 1), ErrNewer},
		"no count":         {catalogCount, value.OfString("3"), ErrRow},
		"a pin":            {"t:gallery", value.OfString("x"), ErrRow},
		"a pin without id": {"t:gallery", value.OfMap(value.Item{}), ErrRow},
		"a pin of numbers": {"t:gallery", value.OfMap(value.NewItem(value.Attr{Name: "i", Value: value.OfInt(3)})), ErrRow},
		"a time":           {"t:gallery", value.OfMap(value.NewItem(value.Attr{Name: "i", Value: value.OfString("x")}, value.Attr{Name: "m", Value: value.OfString("now")})), ErrRow},
		"a derivation":     {"d:A.b", value.OfString("hash"), ErrRow},
		"a state":          {"d:A.b", value.OfString("hash 1 z 1"), ErrRow},
		"a generation":     {"d:A.b", value.OfString("hash 0 l 1"), ErrRow},
		"a number":         {"d:A.b", value.OfInt(1), ErrRow},
	} {
		if _, err := DecodeCatalog(good.With(value.Attr{Name: c.attr, Value: c.v})); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
