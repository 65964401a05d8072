package console

import (
	"encoding/base64"
	"net/http"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// keyText writes a value of a key for a URL: a text and a number as they are, a binary in base64.
// A key without a sort key gives "".
func keyText(v value.Value) string {
	if v.Kind() == value.Binary {
		return base64.StdEncoding.EncodeToString([]byte(v.Text()))
	}
	return text(v)
}

// keyValue reads the text of keyText, or one that a person typed, for an attribute of a key.
// An empty text is Missing, which no key attribute can be; a table without a sort key has the
// attribute "" and takes nothing.
func keyValue(a store.KeyAttr, s string) (value.Value, error) {
	if a.Name == "" || s == "" {
		return value.Value{}, nil
	}
	v, err := value.ParseAs(a.Type, s)
	if err != nil {
		want := map[value.Kind]string{value.Number: "a number", value.Binary: "a binary in base64"}[a.Type]
		return value.Value{}, &mistake{http.StatusBadRequest, a.Name + " must be " + want + "."}
	}
	return v, nil
}

// rowLink links a row, with its key as the text.
func rowLink(m *model.Model, ref store.Ref) link {
	s := brief(keyText(ref.Key.Partition), cellRunes)
	if !ref.Key.Sort.IsMissing() {
		s += " · " + brief(keyText(ref.Key.Sort), cellRunes)
	}
	return link{Text: s, Href: modelPath(m.Name, "/row", "table", ref.Table, "pk", keyText(ref.Key.Partition), "sk", keyText(ref.Key.Sort))}
}

// table returns the table that the request names.
func (r *request) table() (*model.Table, error) {
	if t := r.part.Model.Table(r.param("table")); t != nil {
		return t, nil
	}
	return nil, &mistake{http.StatusNotFound, "The model has no table of this name."}
}

// ref returns the row that the request names.
// The key is whole and fits the table's types. The row itself need not exist.
func (r *request) ref() (t *model.Table, ref store.Ref, err error) {
	if t, err = r.table(); err != nil {
		return nil, ref, err
	}
	ref.Table = t.Name
	if ref.Key.Partition, err = keyValue(t.Key.Partition, r.param("pk")); err != nil {
		return nil, ref, err
	}
	if ref.Key.Sort, err = keyValue(t.Key.Sort, r.param("sk")); err != nil {
		return nil, ref, err
	}
	if t.CheckKey(ref.Key) != nil {
		return nil, ref, &mistake{http.StatusBadRequest, "This is not a whole key of the table."}
	}
	return t, ref, nil
}

// stored returns the row that the request names, as it is stored: nil if there is none.
// It is a strong read, so the page shows a row that was written just before.
func (r *request) stored() (t *model.Table, ref store.Ref, row value.Item, err error) {
	if t, ref, err = r.ref(); err != nil {
		return nil, ref, nil, err
	}
	row, err = store.GetRow(r.ctx, r.c.system.Store, ref)
	return t, ref, row, err
}

// A cursor is the key of the last row read, and its key in the index. It is not signed: a page
// shows any row, so another cursor only begins at another one.
func cursorText(t *model.Table, ix *store.Index, c *store.Cursor) string {
	if c == nil {
		return ""
	}
	it := t.Item(c.Key)
	if ix != nil {
		it = it.With(value.Attr{Name: ix.Key.Partition.Name, Value: c.Entry.Partition}, value.Attr{Name: ix.Key.Sort.Name, Value: c.Entry.Sort})
	}
	return base64.RawURLEncoding.EncodeToString(value.AppendItem(nil, it))
}

// cursorFrom reads the text of cursorText. Bytes that are no key of this table and index are the
// reader's mistake (400), never an error of the store.
func cursorFrom(t *model.Table, ix *store.Index, s string) (*store.Cursor, error) {
	if s == "" {
		return nil, nil
	}
	bad := &mistake{http.StatusBadRequest, "This is not a place in these rows. Begin at the first page."}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, bad
	}
	it, rest, err := value.DecodeItem(b)
	if err != nil || len(rest) > 0 {
		return nil, bad
	}
	key, ok := t.KeyOf(it)
	if !ok || t.CheckKey(key) != nil {
		return nil, bad
	}
	c := &store.Cursor{Key: key}
	if ix != nil {
		c.Entry = store.Key{Partition: it.Get(ix.Key.Partition.Name)}
		ok = c.Entry.Partition.Kind() == ix.Key.Partition.Type
		if ix.Key.Sort.Name != "" {
			c.Entry.Sort = it.Get(ix.Key.Sort.Name)
			ok = ok && c.Entry.Sort.Kind() == ix.Key.Sort.Type
		}
		if !ok {
			return nil, bad
		}
	}
	return c, nil
}
