package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/projections/follow"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// verifyAndSpoil runs verify: it must find nothing, and then exactly the value that was spoilt on purpose.
func (w *world) verifyAndSpoil() {
	if len(w.operatorLetters()) > 0 { // verify reports dead letters
		return
	}
	if found := w.runVerify(); len(found) > 0 {
		w.addFailure(Reordered, "verify: it finds %+v, where all is well", found[0])
		return
	}
	d := newDice(w.seed, "spoil", 0)
	for range 3 {
		c := w.spoilValue(d)
		if c == nil {
			continue
		}
		w.counted["spoilt"]++
		w.counted["spoilt "+c.kind]++
		mend := c.do()
		found := w.runVerify()
		for _, f := range found {
			if !c.isNamedBy(&f) {
				w.addFailure(Reordered, "verify: it finds %+v, where nothing is wrong but %s", f, c.what)
			}
		}
		if !slices.ContainsFunc(found, func(f scratch.Difference) bool { return c.isNamedBy(&f) }) {
			w.addFailure(Lost, "verify: it does not find %s", c.what)
		}
		mend()
	}
	if found := w.runVerify(); len(found) > 0 {
		w.addFailure(Reordered, "verify: it finds %+v, which was mended", found[0])
	}
}

// newVerify is the real verify, over the rows and documents of the run.
func (w *world) newVerify() *scratch.Verify {
	v := &scratch.Verify{Model: w.model, Store: w.base, InMemory: true, Now: func() time.Time { return w.clock }}
	if len(w.model.Searches) > 0 && !w.built { // indexes are not built here
		v.Index = w.index
	}
	return v
}

// runVerify runs verify.
func (w *world) runVerify() (found []scratch.Difference) {
	err := w.newVerify().Run(context.Background(), func(d scratch.Difference) { found = append(found, d) })
	if err != nil {
		w.addFailure(Stuck, "verify: %v", err)
	}
	return found
}

// spoilt is a derived value that can be made wrong. do makes it wrong and returns the
// function that undoes this.
type spoilt struct {
	kind, what string
	row        string // as a difference names it; if "", derivation names it
	short      string // the same of a row whose key is long
	derivation string
	do         func() (undo func())
}

// isNamedBy reports whether a difference is about the spoilt value.
func (s *spoilt) isNamedBy(d *scratch.Difference) bool {
	return s.row != "" && (d.Row == s.row || s.short != "" && strings.HasPrefix(d.Row, s.short)) || s.row == "" && d.Derivation == s.derivation
}

// spoilRow replaces a row, or deletes it if row is nil.
func (t *table) spoilRow(kind string, k store.Key, row value.Item) spoilt {
	name := t.Name + " " + string(value.AppendPlainItem(nil, t.Item(k)))
	return spoilt{kind: kind, what: kind + " of " + name, row: name, do: func() func() {
		old := t.get(k)
		t.put(k, row)
		return func() { t.put(k, old) }
	}}
}

// wrong is a number that no sum comes to.
var wrong = value.OfInt(7777777)

// spoilValue chooses one derived value to be made wrong without a record. It first chooses the
// kind, so that each kind is as likely as the others.
func (w *world) spoilValue(d *dice) *spoilt {
	all := map[string][]spoilt{}
	add := func(s spoilt) { all[s.kind] = append(all[s.kind], s) }
	for _, mt := range w.model.Tables {
		t := w.base.tables[mt.Name]
		t.eachRow(func(k store.Key, row value.Item) {
			if e := mt.Classify(row); e != nil {
				w.spoilRow(t, e, k, row, add)
			}
		})
	}
	t := w.base.tables[owntable.TableName]
	t.eachRow(func(k store.Key, row value.Item) {
		for _, a := range row {
			if strings.HasPrefix(k.Partition.Text(), owntable.Ledgers(w.model.Name)) && strings.HasPrefix(a.Name, owntable.SumAccumulator("")) {
				s := t.spoilRow("sum", k, row.With(value.Attr{Name: a.Name, Value: wrong}))
				s.row, s.derivation = "", "ledger "+a.Name
				add(s)
			}
		}
	})
	w.spoilFollowed(add)
	w.spoilDocuments(add)
	if len(all) == 0 {
		return nil
	}
	of := all[pick(d, slices.Sorted(maps.Keys(all)))]
	return &of[d.n(len(of))]
}

// spoilRow adds the values derived on a row that can be made wrong.
func (w *world) spoilRow(t *table, e *model.Entity, k store.Key, row value.Item, add func(spoilt)) {
	for _, y := range e.Values {
		if y.Hidden {
			continue
		}
		if !y.IsSet() {
			add(t.spoilRow(y.Kind.Keyword, k, row.With(value.Attr{Name: y.Attr, Value: wrong})))
		} else if row.Has(y.Attr) {
			root, _, _ := e.LeafPath(k)
			named := func(s spoilt) {
				ref := store.Ref{Table: t.Name, Key: root}
				s.row, s.short = runner.RowText(w.model, ref), owntable.RowText(ref)
				add(s)
			}
			named(t.spoilRow("part of a set", k, nil))
			v, _ := value.OfElements(row.Get(y.Attr).Kind(), row.Get(y.Attr).Elements()[1:])
			if row.Get(y.Attr).Len() > 1 {
				named(t.spoilRow("member of a set", k, row.With(value.Attr{Name: y.Attr, Value: v})))
			}
		}
	}
	for _, s := range e.Statuses {
		if row.Get(owntable.Own).Item().Get(s.Attr.Name).IsMissing() {
			continue // the value there is the application's
		}
		add(t.spoilRow("status", k, row.With(value.Attr{Name: s.Attr.Name, Value: value.OfString("77")})))
	}
	for _, l := range e.Latest {
		for i, name := range l.Attributes() {
			if e.Attribute(name) != nil && e.Group == nil && row.Get(owntable.Own).Item().Get(name).IsMissing() {
				continue
			}
			s := t.spoilRow("latest", k, row.With(value.Attr{Name: name, Value: value.OfString("77")}))
			if s.derivation = l.Name; i > 0 {
				s.derivation += " " + name
			}
			add(s)
		}
	}
	if !e.Derived || e.SetOf() != nil || isHistory(e) {
		return
	}
	if e.Group != nil {
		add(t.spoilRow("row of a group gone", k, nil))
		for _, w := range e.Where {
			add(t.spoilRow("word of a group", k, row.With(value.Attr{Name: w.Field.Attr, Value: value.OfString("77")})))
		}
		return
	}
	add(t.spoilRow("copy gone", k, nil))
	for _, r := range e.MadeBy {
		for _, f := range r.Fields {
			if e.Attribute(f.Name) != nil && !inKey(e, f.Name) && !isStamped(e, f.Name) && f.Expr.Follow == nil {
				add(t.spoilRow("copy", k, row.With(value.Attr{Name: f.Name, Value: value.OfString("77")})))
			}
		}
	}
}

// spoilFollowed adds the values that follow existing or deleted rows, including those on
// rows that are history.
func (w *world) spoilFollowed(add func(spoilt)) {
	for _, name := range w.app.order {
		o := w.app.own[name]
		for _, f := range w.model.Follows {
			of := f.Source
			if of.Table != o.table {
				continue
			}
			list := owntable.Followed(w.model.Name, follow.FieldName(of, f.Field.Name), store.Ref{Table: o.table.Name, Key: o.key}).Key.Partition
			p := w.base.tables[owntable.TableName].parts[partName(list)]
			if p == nil {
				continue
			}
			for _, entry := range p.rows {
				w.spoilFollower(list.Text(), entry, add)
			}
		}
	}
}

// spoilFollower adds a row's value that follows another row, if it follows that row now.
func (w *world) spoilFollower(list string, entry value.Item, add func(spoilt)) {
	f := owntable.FollowerFrom(entry)
	mt := w.model.Table(f.Row.Table)
	if mt == nil {
		return
	}
	t, attr := w.base.tables[mt.Name], f.Attr
	key, _ := mt.KeyOf(f.Row.Key)
	row := t.get(key)
	e := mt.Classify(row)
	if e == nil || row.Get(owntable.FollowsAttr(attr)).Text() != owntable.Hash(list) {
		return
	}
	if keepsUntold(e, attr, row) {
		return
	}
	if w.base.tables[owntable.TableName].get(owntable.FollowedList(list).Key) == nil && follow.KeepsLast(w.model, e, attr, list) {
		return // nor does weir know the last value any more
	}
	kind := "followed"
	if isHistory(e) {
		kind = "followed by history"
	}
	s := t.spoilRow(kind, key, row.With(value.Attr{Name: attr, Value: value.OfString("77")}))
	add(s)
}

// keepsUntold reports whether an attribute keeps the value of a row that is gone, and the row does not say itself which row that
// was: verify takes the value that it shows for the last one.
func keepsUntold(e *model.Entity, attr string, row value.Item) bool {
	return slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool {
		return slices.ContainsFunc(r.Fields, func(a model.Assign) bool {
			f := a.Expr.Follow
			if f == nil || f.Attr != attr || !f.Keep {
				return false
			}
			_, told := follow.FollowedBy(f, row)
			return !told
		})
	})
}

// spoilDocuments adds, for each document, that it is missing and that there is another one.
func (w *world) spoilDocuments(add func(spoilt)) {
	for _, name := range slices.Sorted(maps.Keys(w.index.docs)) {
		was := w.index.docs[name]
		be := func(kind string, doc search.Document) {
			add(spoilt{kind: kind, what: kind + " " + name, row: w.documentRow(doc.Index, doc.ID), do: func() func() {
				w.index.docs[docName(&doc)] = doc
				return func() {
					if delete(w.index.docs, docName(&doc)); docName(&doc) == name {
						w.index.docs[name] = was
					}
				}
			}})
		}
		if !was.Deleted {
			be("document gone", search.Document{Index: was.Index, ID: was.ID, Position: was.Position, Deleted: true})
			more := was
			more.ID += "77"
			be("document of nothing", more)
		}
	}
}

// documentRow is the row of a document, as verify prints it.
func (w *world) documentRow(index, id string) string {
	if ref, ok := w.documentedRow(index, id); ok {
		return runner.RowText(w.model, ref)
	}
	return id
}

// documentedRow is the row of a document.
func (w *world) documentedRow(index, id string) (store.Ref, bool) {
	for _, s := range w.model.Searches {
		if key, err := search.ParseID(id); err == nil && document.IndexName(w.model, s) == index {
			return store.Ref{Table: s.Of.Table.Name, Key: key}, true
		}
	}
	return store.Ref{}, false
}
