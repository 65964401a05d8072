package document

import (
	"maps"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// Fold returns the documents of a change: the row's document as of
// this change, or its deletion. It returns nothing for an index that already has the row
// if the change affects nothing that the index holds, and for the deletion of a document
// whose id is too long: the index refused it, and a dead letter says so.
func Fold(m *model.Model, c *projections.Change) []search.Document {
	var docs []search.Document
	if c.Is != nil {
		for _, s := range c.Is.Search {
			docs = appendDocument(docs, m, c, s)
		}
	}
	if c.Was != nil && c.Was != c.Is {
		for _, s := range c.Was.Search {
			docs = appendDocument(docs, m, c, s)
		}
	}
	return docs
}

// appendDocument appends the document of a change for one search index, if any.
func appendDocument(docs []search.Document, m *model.Model, c *projections.Change, s *model.Search) []search.Document {
	had, has := hasDocument(s, c.Was, c.Old), hasDocument(s, c.Is, c.New)
	switch {
	case !had && !has, had && has && sameFields(s, c.Old, c.New):
		return docs
	case !has:
		id := search.ID(c.Row.Key)
		if len(id) > search.MaxID { // no index can hold it
			return docs
		}
		return append(docs, search.Document{Index: IndexName(m, s), ID: id, Deleted: true, Position: c.Position})
	}
	is := documentOf(m, s, c.Row.Key, c.New)
	if had && sameDocument(documentOf(m, s, c.Row.Key, c.Old), is) {
		return docs
	}
	is.Position = c.Position
	return append(docs, is)
}

// hasDocument reports whether the index has a document for a row of entity e.
func hasDocument(s *model.Search, e *model.Entity, row value.Item) bool {
	return e == s.Of && row != nil && s.Input.Uses(row)
}

// imageFaults notes why searches cannot use the images of a change.
func imageFaults(c *projections.Change) (f projections.Faults) {
	note := func(e *model.Entity, image value.Item, old bool) {
		if e == nil || image == nil {
			return
		}
		for _, s := range e.Search {
			f.IsUsable(&s.Input, image, old)
		}
	}
	note(c.Was, c.Old, true)
	note(c.Is, c.New, false)
	return f
}

// sameFields reports whether two rows agree in every field that documents are made of.
// Two rows that differ there may still have the same document.
func sameFields(s *model.Search, a, b value.Item) bool {
	for _, fs := range [...][]*model.Field{s.Text, s.Filters, s.Sorts} {
		for _, f := range fs {
			if !value.Equal(f.Stored(a), f.Stored(b)) {
				return false
			}
		}
	}
	return true
}

// sameDocument reports whether two documents have the same texts and values.
func sameDocument(a, b search.Document) bool {
	return slices.Equal(a.Text, b.Text) && maps.EqualFunc(a.Values, b.Values, value.Equal)
}

// DocumentOf returns the document that a row has by itself. ok is false if the index does
// not hold the row.
func DocumentOf(m *model.Model, s *model.Search, e *model.Entity, key store.Key, row value.Item) (search.Document, bool) {
	if !hasDocument(s, e, row) {
		return search.Document{}, false
	}
	return documentOf(m, s, key, row), true
}

// documentOf makes the document of a row, without a position. It leaves out attributes of
// weir's own bookkeeping.
func documentOf(m *model.Model, s *model.Search, key store.Key, row value.Item) search.Document {
	d := search.Document{Index: IndexName(m, s), ID: search.ID(key), Values: map[string]value.Value{}}
	for _, f := range s.Text {
		d.Text = appendText(d.Text, f.Stored(row))
	}
	for _, fs := range [...][]*model.Field{s.Filters, s.Sorts} {
		for _, f := range fs {
			if v := f.Stored(row); !v.IsMissing() && !owntable.IsOurs(f.Name) {
				d.Values[f.Name] = IndexedValue(f, f.Elements(v))
			}
		}
	}
	return d
}

// IndexedValue returns a value of a filter or a sort as documents have it, so that every index compares it as its
// declared type is compared: times by when they are, a number that is stored as text as a number.
func IndexedValue(f *model.Field, v value.Value) value.Value {
	if f.Declared != nil {
		v, _ = f.Declared.Read(v, f.Key != nil)
		if instant, ok := value.Instant(v); ok && f.Declared.Type == model.TypeTime {
			return value.OfString(instant)
		}
	}
	if (f.Key != nil || f.Type == model.TypeFlag) && value.Scalar(v) != "" {
		return value.OfString(value.Scalar(v))
	}
	return v
}

// IndexName returns the name that a model's search index has everywhere outside the model.
func IndexName(m *model.Model, s *model.Search) string { return m.Name + "-" + s.Name }

// appendText appends the texts in a value. It descends into lists, sets and maps.
func appendText(texts []string, v value.Value) []string {
	switch v.Kind() {
	case value.String, value.Number:
		return append(texts, v.Text())
	case value.List, value.StringSet, value.NumberSet:
		for _, e := range v.Elements() {
			texts = appendText(texts, e.Value)
		}
	case value.Map:
		for _, a := range v.Item() {
			texts = appendText(texts, a.Value)
		}
	}
	return texts
}
