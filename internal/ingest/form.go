package ingest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/query"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// form is an entity as commands see it. It never changes after newForm has made it.
type form struct {
	*model.Entity
	model   *model.Model
	view    *query.View
	keeps   *form // of the rows that hold idempotency keys; nil for our own table
	attrs   map[string]*model.Attribute
	keys    []string // names of the primary key that must be given
	named   []string // all names of the primary key
	only    []string // names that stand only in the keys of indexes
	stamps  []value.Attr
	made    map[string]bool        // attributes that are computed: keys by template, stamps
	indexed map[string][]string    // for a declared attribute, the indexes that have it as a key; for a name in no other place, those that have it in one
	indexes [][]*model.KeyTemplate // for each index, the templates that make its key
	parts   int                    // the number of these templates
	absent  store.Cond             // the row does not exist
	fields  []string               // names that an item may have, for hints
	leads   bool                   // other things are derived from the rows
	reserve int                    // bytes that weir may add to a row
}

// newForm makes the form of an entity. Writer.init adds keeps once all forms are made.
// A form is made once for each entity and never changes after Writer.init, so all commands share
// it.
func newForm(m *model.Model, e *model.Entity) *form {
	f := &form{
		Entity: e, model: m, view: query.NewView(e), keys: e.KeyNames(), only: e.IndexNames(),
		attrs: map[string]*model.Attribute{}, made: map[string]bool{}, indexed: map[string][]string{},
		leads: projections.LeadsOn(e), reserve: projections.ReservedBytes(e),
		absent: store.Cond{{{Attr: e.Table.Key.Partition.Name, Is: store.Absent}}},
	}
	for _, a := range e.Attributes {
		f.attrs[a.Name] = a
		f.fields = append(f.fields, a.Name)
	}
	f.named = append(f.named, seq.Flat(e.PrimaryKey(), func(k *model.KeyTemplate) []string { return k.Template.Names() })...)
	for _, name := range slices.Concat(f.named, f.only) {
		if f.attrs[name] == nil {
			f.fields = append(f.fields, name)
		}
	}
	for _, k := range e.Keys {
		if f.attrs[k.Attr.Name] == nil && !slices.Contains(f.named, k.Attr.Name) {
			f.made[k.Attr.Name] = true
		}
	}
	for _, t := range e.Where {
		if v, ok := t.Only(); ok && t.Field.Key == nil && f.attrs[t.Field.Name] == nil {
			name := t.Field.Name
			f.stamps = append(f.stamps, value.Attr{Name: t.Field.Attr, Value: v})
			f.made[name] = true
		}
	}
	for i := range e.Table.Indexes {
		ix := &e.Table.Indexes[i]
		f.indexes = append(f.indexes, f.templatesOf(ix))
		f.parts += len(f.indexes[i])
		for _, k := range [...]store.KeyAttr{ix.Key.Partition, ix.Key.Sort} {
			if f.attrs[k.Name] != nil {
				f.indexed[k.Name] = append(f.indexed[k.Name], ix.Name)
			} else if t := e.KeyTemplate(k.Name); t != nil {
				for _, name := range seq.Where(t.Template.Names(), func(name string) bool { return slices.Contains(f.only, name) }) {
					f.indexed[name] = append(f.indexed[name], ix.Name)
				}
			}
		}
	}
	return f
}

// templatesOf returns the templates that make an index's key.
func (f *form) templatesOf(ix *store.Index) (out []*model.KeyTemplate) {
	for _, ka := range [...]store.KeyAttr{ix.Key.Partition, ix.Key.Sort} {
		if k := f.KeyTemplate(ka.Name); k != nil && !slices.Contains(f.PrimaryKey(), k) && f.attrs[ka.Name] == nil {
			out = append(out, k)
		}
	}
	return out
}

// isOwned reports whether commands write the attribute.
func (f *form) isOwned(name string) bool {
	return f.attrs[name] != nil || f.made[name] || slices.ContainsFunc(f.PrimaryKey(), func(k *model.KeyTemplate) bool { return k.Attr.Name == name })
}

// isDerived reports whether weir itself writes the attribute.
func (f *form) isDerived(name string) bool {
	return owntable.IsOurs(name) || projections.IsDerived(f.Entity, name)
}

// applicationRow is the row as the application wrote it, with the attributes that no model
// declares.
func (f *form) applicationRow(row value.Item) value.Item {
	return projections.OwnRow(f.Entity, row).Filter(func(name string) bool { return !f.isDerived(name) })
}

// revisionOf names the state of a row. It changes only with the application's attributes, hidden attributes
// included, and is keyed: guessed values cannot be compared with it without the secret of the store.
func (c *checked) revisionOf(row value.Item) string {
	if row == nil {
		return ""
	}
	h := hmac.New(sha256.New, c.secret)
	h.Write([]byte("weir revision 1\x00" + c.model.Name + "\x00"))
	h.Write(value.AppendItem(make([]byte, 0, 512), c.applicationRow(row)))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
