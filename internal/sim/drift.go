package sim

import (
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
)

// drift holds what verify prints when records were missing against the truth: the
// rows and documents that it names are those that are wrong, and no others. History
// and weir's own tables are more than the truth can tell.
func (w *world) drift() {
	if w.keepsMore() {
		return // of what is kept verify says so
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
		if d.What.Kind == verify.Document {
			name, ok = docName(&search.Document{Index: projections.IndexName(w.model, d.What.Search), ID: d.What.Name}), true
		}
		k := t.rows[name]
		if d.What.Kind == verify.Following && (misled(found, d.Row) || k != nil && slices.Contains(k.last, d.What.Field)) {
			continue // it is held against another row's value, or the last one, which weir alone can say
		}
		ok = ok && !beyond(d)
		if named[name] = true; ok && !w.unshown(&d) && !t.differ[name] && !t.differ[w.shownBy(name)] {
			w.fail(Unaccounted, "verify: after a gap it finds %+v, where nothing is wrong", d)
		}
	}
	kept := slices.ContainsFunc(found, func(d verify.Difference) bool { return strings.HasSuffix(d.Derivation, " as followed") })
	for _, name := range slices.Sorted(maps.Keys(t.differ)) {
		if k := t.rows[name]; kept && k != nil && k.entity != nil && slices.ContainsFunc(k.entity.MadeBy, followsOthers) {
			continue // it is held against the value that is kept for those who follow, and that is named
		}
		if !named[name] && !t.differ[w.shownBy(name)] {
			w.fail(Lost, "verify: after a gap it does not find %q, which is wrong", name)
		}
	}
}

// keepsMore reports whether more is kept than gaps that were named.
func (w *world) keepsMore() bool {
	return slices.ContainsFunc(w.kept(), func(d value.Item) bool { return d.Get("kind").Text() != string(runner.DeadGap) })
}

// unsearchable says of a difference that it is of a row whose key is too long for a
// document: with its record lost nothing that is kept says so.
func unsearchable(d verify.Difference) bool {
	return d.What.Kind == verify.Document && len(d.What.Name) > search.MaxID
}

func followsOthers(r *model.RowRule) bool {
	return slices.ContainsFunc(r.Fields, func(f model.Assign) bool { return f.Expr.Follow != nil })
}

// beyond says of a difference that there is more than the max of a step allows, which
// would be kept had its record not been lost: nobody can say what the row must show.
func beyond(d verify.Difference) bool {
	return d.Have == "parked" && strings.Contains(d.Want, "the max of this step")
}

// shownBy is the row that a document shows: verify holds the one against the other as
// it stands, right or wrong. It is nothing for what is no document.
func (w *world) shownBy(name string) string {
	for _, s := range w.model.Searches {
		if id, is := strings.CutPrefix(name, projections.IndexName(w.model, s)+"\x00"); is {
			if key, err := search.ParseID(id); err == nil {
				return refName(store.Ref{Table: s.Of.Table.Name, Key: key})
			}
		}
	}
	return ""
}

// unshown says of a difference that it is one of weir's own tables, or of which row another
// follows: a row need not show it.
func (w *world) unshown(d *verify.Difference) bool {
	what := d.Derivation
	if ofLink(d) {
		return true
	}
	set := func(e *model.Entity) bool { return e.SetOf() != nil && e.SetOf().Name == what } // its counts of members
	return slices.ContainsFunc(w.model.Entities, set) || strings.HasPrefix(what, "book ") || what == "dead letter" || what == "told" || what == "followers" || strings.HasSuffix(what, " as followed")
}

// ofLink says of a difference that it is of which row another follows.
func ofLink(d *verify.Difference) bool {
	return strings.HasSuffix(d.Derivation, " followed") && d.What.Kind != verify.Following
}

// misled reports whether the row was found to follow another than it is to.
func misled(found []verify.Difference, row string) bool {
	return slices.ContainsFunc(found, func(d verify.Difference) bool { return d.Row == row && ofLink(&d) })
}

// printed are the names of rows, those that must be there and those that are, by how
// verify prints them. All rows of a set go by the name of its first.
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
