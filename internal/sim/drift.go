package sim

import (
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/projections/follow"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
)

// drift compares what verify prints after records were missing with the truth: the rows and
// documents that verify names must be exactly those that are wrong. It leaves out history
// and weir's own tables, of which the truth knows less.
func (w *world) drift() {
	if w.keepsMore() {
		return // verify reports what is kept
	}
	w.counted["drifts"]++
	t := w.app.truth()
	t.differ = map[string]bool{}
	t.state()
	t.compareSets()
	names := t.printed()
	found := w.verify()
	named := map[string]bool{}
	for _, d := range found {
		name, ok := names[d.Row]
		if doc, is := d.Fix.(*document.Fix); is {
			name, ok = docName(&search.Document{Index: document.Index(w.model, doc.Search), ID: doc.ID}), true
		}
		k := t.rows[name]
		if f, is := d.Fix.(*follow.FollowerFix); is && (misled(found, d.Row) || k != nil && slices.Contains(k.last, f.Attr)) {
			continue // only weir knows the value it is compared with
		}
		if named[name] = true; ok && !w.unshown(&d) && !t.differ[name] && !t.differ[w.shownBy(name)] && !t.secondHand(name) {
			w.fail(Unaccounted, "verify: after a gap it finds %+v, where nothing is wrong", d)
		}
	}
	kept := slices.ContainsFunc(found, func(d verify.Difference) bool { return strings.HasSuffix(d.Derivation, " as followed") })
	for _, name := range slices.Sorted(maps.Keys(t.differ)) {
		if k := t.rows[name]; kept && k != nil && k.entity != nil && slices.ContainsFunc(k.entity.MadeBy, followsOthers) {
			continue // it is compared with the kept value that it follows, which is named
		}
		if !named[name] && !t.differ[w.shownBy(name)] && !t.secondHand(name) {
			w.fail(Lost, "verify: after a gap it does not find %q, which is wrong", name)
		}
	}
}

// secondHand reports whether a row is derived from rows that weir makes, or from what is derived on
// rows, of which one is wrong. verify compares it with those as they are.
func (t *truth) secondHand(name string) bool {
	of := t.entityOf(name)
	if of == nil {
		return false
	}
	from := map[*model.Entity]bool{}
	reads := func(e *model.Entity, where []model.Test, by []model.Assign, fields ...*model.Field) {
		for _, w := range where {
			fields = append(fields, w.Field)
		}
		for _, a := range by {
			fields = append(fields, a.Expr.Field)
		}
		from[e] = from[e] || e.Derived || slices.ContainsFunc(fields, func(f *model.Field) bool { return f != nil && tallied(e, f.Attr) })
	}
	for _, r := range of.MadeBy {
		reads(r.Source, r.Where, r.Fields)
		for _, a := range r.Fields {
			if f := a.Expr.Follow; f != nil {
				reads(f.Source, nil, nil, f.Field)
			}
		}
	}
	for _, y := range of.Values {
		for _, s := range y.Sources {
			var of []*model.Field
			if s.Amount != nil {
				of = s.Amount.Fields
			}
			reads(s.Entity, s.Where, s.To, of...)
		}
	}
	for _, l := range of.Latest {
		reads(l.Source, l.Where, append(slices.Clone(l.To), l.Set...), l.By)
	}
	for _, s := range of.Statuses {
		for _, stage := range s.Stages {
			reads(stage.Source, stage.Where, append(slices.Clone(stage.To), stage.Set...), stage.Who)
		}
	}
	for other := range t.differ {
		if from[t.entityOf(other)] {
			return true
		}
	}
	return false
}

// entityOf is the entity of a row that must exist, or that exists; nil for none.
func (t *truth) entityOf(name string) (e *model.Entity) {
	if k := t.rows[name]; k != nil {
		return k.entity
	}
	for _, mt := range t.model.Tables {
		t.base.tables[mt.Name].each(func(k store.Key, row value.Item) {
			if refName(store.Ref{Table: mt.Name, Key: k}) == name {
				e = mt.Classify(row)
			}
		})
	}
	return e
}

// keepsMore reports whether there are dead letters other than gaps.
func (w *world) keepsMore() bool {
	return slices.ContainsFunc(w.kept(), func(d owntable.LetterRow) bool { return d.Kind != string(runner.DeadGap) })
}

// unsearchable reports whether a difference is of a row whose key is too long for a
// document. If the row's record was lost, no dead letter says so.
func unsearchable(d verify.Difference) bool {
	doc, is := d.Fix.(*document.Fix)
	return is && len(doc.ID) > search.MaxID
}

// followsOthers reports whether a rule makes rows that follow attributes of other rows.
func followsOthers(r *model.RowRule) bool {
	return slices.ContainsFunc(r.Fields, func(f model.Assign) bool { return f.Expr.Follow != nil })
}

// shownBy is the row that a document shows, "" if name is no document. verify compares a
// document with its row as it is, right or wrong.
func (w *world) shownBy(name string) string {
	for _, s := range w.model.Searches {
		if id, is := strings.CutPrefix(name, document.Index(w.model, s)+"\x00"); is {
			if key, err := search.ParseID(id); err == nil {
				return refName(store.Ref{Table: s.Of.Table.Name, Key: key})
			}
		}
	}
	return ""
}

// unshown reports whether a difference is one of weir's own tables, or of which row another
// one follows. No row need show it.
func (w *world) unshown(d *verify.Difference) bool {
	what := d.Derivation
	if ofLink(d) {
		return true
	}
	// The rows that count the members of a set.
	set := func(e *model.Entity) bool { return e.SetOf() != nil && e.SetOf().Name == what }
	return slices.ContainsFunc(w.model.Entities, set) || strings.HasPrefix(what, "ledger ") || what == "dead letter" || what == "fact" || what == "subscribers" || strings.HasSuffix(what, " as followed")
}

// ofLink reports whether a difference is of which row another one follows.
func ofLink(d *verify.Difference) bool {
	_, shows := d.Fix.(*follow.FollowerFix)
	return strings.HasSuffix(d.Derivation, " followed") && !shows
}

// misled reports whether verify found the row to follow another row than it should.
func misled(found []verify.Difference, row string) bool {
	return slices.ContainsFunc(found, func(d verify.Difference) bool { return d.Row == row && ofLink(&d) })
}

// printed are the names of rows, by how verify prints them: of those that must exist and of
// those that do. All rows of a set have the name of its first row.
func (t *truth) printed() map[string]string {
	out := map[string]string{}
	add := func(table *store.Table, k, of store.Key) {
		out[table.Name+" "+string(value.AppendPlainItem(nil, table.Item(k)))] = refName(store.Ref{Table: table.Name, Key: of})
	}
	for _, k := range t.rows {
		add(&k.table.Table, k.key, k.key)
	}
	for _, s := range t.members { // the first row of a set may be missing
		add(&s.table.Table, s.key, s.key)
	}
	for _, mt := range t.model.Tables {
		t.base.tables[mt.Name].each(func(k store.Key, row value.Item) {
			switch e := mt.Classify(row); {
			case e == nil || !history(e) && e.SetOf() == nil:
				add(&mt.Table, k, k)
			case e.SetOf() != nil:
				if root, _, ok := e.LeafPath(k); ok {
					add(&mt.Table, k, root)
				}
			}
		})
	}
	return out
}
