package query

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

func cursorWorld(t *testing.T) *world {
	w := newWorld(t, parseModel(t, shopModel), 0)
	putShelves(w, 3, 3)
	for _, p := range []string{"a", "b", "c"} {
		w.put("Product", "product", p, "title", "common", "code", "c")
	}
	return w
}

func (w *world) cursor(query string, given map[string]string) string {
	w.Helper()
	r, err := w.engine.Run(context.Background(), query, given, Page{Limit: 1})
	if err != nil || r.Cursor == "" {
		w.Fatalf("%s: cursor %q, %v", query, r.Cursor, err)
	}
	return r.Cursor
}

func TestCursorsCannotBeMade(t *testing.T) {
	w := cursorWorld(t)
	cases := []struct {
		query string
		given map[string]string
	}{
		{"shelves", nil}, {"places", params("shelf=s1")}, {"all-places", nil}, {"all-products", nil}, {"marks", params("user=u1")},
		{"search-products", params("q=common")}, {"search-products", params("q=common sort=at")},
	}
	for i, c := range cases {
		cursor := w.cursor(c.query, c.given)
		for j, other := range cases {
			if j != i {
				w.refused(other.query, other.given, Page{Cursor: cursor}, ErrCursor, "")
			}
		}
		raw, _ := base64.RawURLEncoding.DecodeString(cursor)
		for at := range raw {
			bad := bytes.Clone(raw)
			bad[at] ^= 1
			w.refused(c.query, c.given, Page{Cursor: base64.RawURLEncoding.EncodeToString(bad)}, ErrCursor, "")
			w.refused(c.query, c.given, Page{Cursor: base64.RawURLEncoding.EncodeToString(raw[:max(at, 1)])}, ErrCursor, "")
		}
		w.refused(c.query, c.given, Page{Cursor: cursor + "="}, ErrCursor, "")
		w.refused(c.query, c.given, Page{Cursor: cursor + "A"}, ErrCursor, "")
	}
	w.refused("places", params("shelf=s2"), Page{Cursor: w.cursor("places", params("shelf=s1"))}, ErrCursor, "")
	w.refused("marks", params("user=u1 type=like"), Page{Cursor: w.cursor("marks", params("user=u1"))}, ErrCursor, "")
	w.refused("shelves", nil, Page{Cursor: "nonsense"}, ErrCursor, "")
	w.refused("shelves", nil, Page{Cursor: string(bytes.Repeat([]byte("A"), maxCursor+4))}, ErrCursor, "")

	other := cursorWorld(t)
	other.engine.Secret = []byte("another secret of enough bytes..")
	w.refused("shelves", nil, Page{Cursor: other.cursor("shelves", nil)}, ErrCursor, "")
	other.engine.Secret, other.engine.Model.Name = testSecret, "mall"
	w.refused("shelves", nil, Page{Cursor: other.cursor("shelves", nil)}, ErrCursor, "")
}

// Parameters whose names and values run together sign different cursors.
func TestCursorsSignEachParameter(t *testing.T) {
	a := seal{secret: testSecret, model: "m", query: "q", params: map[string]string{"a": "bc"}}
	b := seal{secret: testSecret, model: "m", query: "q", params: map[string]string{"ab": "c"}}
	at := place{after: "x"}
	if _, err := b.openCursor(a.sealPlace(at)); !errors.Is(err, ErrCursor) {
		t.Error(err)
	}
	if got, err := a.openCursor(a.sealPlace(at)); err != nil || got.after != "x" {
		t.Error(got, err)
	}
}

// A cursor that was good under another shape of the model is refused, not used.
func TestCursorsOfAnotherShapeAreRefused(t *testing.T) {
	w := cursorWorld(t)
	key := func(vs ...value.Value) store.Key {
		return store.Key{Partition: vs[0], Sort: append(vs, value.Value{})[1]}
	}
	s, n := value.OfString("x"), value.OfInt(1)
	for query, places := range map[string][]place{
		"shelves": {
			{after: "x"}, {key: &store.Key{Partition: s, Sort: s}}, {at: []store.Cursor{{Key: key(s)}}}, {at: []store.Cursor{{Key: key(s, s)}}},
			{at: []store.Cursor{{Key: key(s, s), Entry: key(s, n)}}}, {at: make([]store.Cursor, 2)},
		},
		"all-products":    {{after: "x"}, {at: []store.Cursor{{Key: key(s, s), Entry: key(s, s)}}}, {key: &store.Key{Partition: s}}},
		"shelf":           {{at: []store.Cursor{{Key: key(s, s)}}}},
		"search-products": {{at: []store.Cursor{{Key: key(s, s)}}}, {after: "xxxxxxxxxxxxxxxxx"}},
	} {
		given := map[string]string{}
		if query == "shelf" {
			given["shelf"] = "s1"
		}
		if query == "search-products" {
			given["q"] = "common"
		}
		for _, at := range places {
			signed := seal{secret: testSecret, model: "shop", query: query, params: given}
			w.refused(query, given, Page{Cursor: signed.sealPlace(at)}, ErrCursor, "")
		}
	}
}

func TestSecretIsMadeOnce(t *testing.T) {
	ctx := context.Background()
	f := &fake{tables: map[string]*store.Table{}, rows: map[string][]value.Item{}}
	table := owntable.Table()
	f.tables[table.Name] = &table
	one, err := LoadSecret(ctx, f)
	if err != nil || len(one) != secretBytes {
		t.Fatal(one, err)
	}
	two, err := LoadSecret(ctx, f)
	if err != nil || !bytes.Equal(one, two) {
		t.Fatal("the second to ask has another secret", err)
	}
	late, err := LoadSecret(ctx, &lateStore{fake: f})
	if err != nil || !bytes.Equal(one, late) {
		t.Fatal("who came second to write has another secret", err)
	}
	f.rows[table.Name][0] = f.rows[table.Name][0].With(value.Attr{Name: "v", Value: value.OfString("x")})
	if _, err := LoadSecret(ctx, f); err == nil {
		t.Error("a damaged secret is taken")
	}
	f.rows[table.Name][0] = nil
	if _, err := LoadSecret(ctx, failing{f}); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
}

// lateStore does not see the row yet when it is read.
type lateStore struct{ *fake }

func (l *lateStore) Get(context.Context, []store.Ref) ([]value.Item, error) {
	return []value.Item{nil}, nil
}

// failing cannot write.
type failing struct{ *fake }

func (f failing) Get(context.Context, []store.Ref) ([]value.Item, error) {
	return []value.Item{nil}, nil
}

func (f failing) Write(context.Context, []store.Write) ([]store.Outcome, error) {
	return nil, store.ErrClosed
}

func FuzzCursor(f *testing.F) {
	s := seal{secret: testSecret, model: "m", query: "q"}
	key := store.Key{Partition: value.OfString("p"), Sort: value.OfInt(-7)}
	for _, at := range []place{{}, {after: "x"}, {key: &key}, {at: []store.Cursor{{Key: key, Entry: key}, {Key: store.Key{Partition: value.OfBinary("\x00")}}}}} {
		f.Add(s.sealPlace(at), appendPlace(nil, at))
		if got, err := s.openCursor(s.sealPlace(at)); err != nil || !samePlace(got, at) {
			f.Fatalf("%+v comes back as %+v, %v", at, got, err)
		}
	}
	f.Fuzz(func(t *testing.T, cursor string, b []byte) {
		if _, err := s.openCursor(cursor); err != nil && err != ErrCursor {
			t.Fatal(err)
		}
		at, err := parsePlace(b)
		if err != nil {
			return
		}
		if again, err := parsePlace(appendPlace(nil, at)); err != nil || !samePlace(again, at) {
			t.Fatalf("%q is %+v and then %+v, %v", b, at, again, err)
		}
	})
}

func samePlace(a, b place) bool {
	return cmp.Equal(a, b, cmp.AllowUnexported(place{}), cmp.Comparer(value.Equal))
}
