package sim

import (
	"maps"
	"slices"
	"strings"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/scratch"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// compareDrift compares the output of verify after records were missing with the truth: the rows and
// documents that verify names must be exactly those that are wrong. It leaves out history
// and weir's own tables, of which the truth knows less.
func (w *world) compareDrift() {
	if slices.ContainsFunc(w.operatorLetters(), func(d owntable.LetterRow) bool { return d.Kind != string(deadletter.Gap) }) {
		return // verify reports dead letters, too
	}
	w.counted["drifts"]++
	t := w.app.computeTruth()
	t.differ = map[string]bool{}
	t.compareRows()
	t.compareSets()
	names := t.printedNames()
	for _, d := range w.index.docs { // of rows that are gone
		if ref, ok := w.documentedRow(d.Index, d.ID); ok {
			names[w.documentRow(d.Index, d.ID)] = ref
		}
	}
	found := w.runVerify()
	named := map[string]bool{}
	for _, d := range found {
		ref, ok := names[d.Row]
		name := refName(ref)
		if of, is := strings.CutPrefix(d.Derivation, "search "); is {
			name, ok = documentOf(w.model, of, ref), true
		}
		k := t.rows[name]
		last := k != nil && len(k.last) > 0 && strings.HasSuffix(d.Derivation, " followed") // which the truth does not know after a gap
		if named[name] = true; ok && !last && !w.isUnshown(&d) && !t.differ[name] && !t.differ[w.shownBy(name)] {
			w.addFailure(Unaccounted, "verify: after a gap it finds %+v, where nothing is wrong", d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.differ)) {
		if !named[name] && !t.differ[w.shownBy(name)] {
			w.addFailure(Lost, "verify: after a gap it does not find %q, which is wrong", name)
		}
	}
}

// isUnshown reports whether a difference is one of weir's own tables, or of which row another
// one follows. No row need show it.
func (w *world) isUnshown(d *scratch.Difference) bool {
	what := d.Derivation
	return d.Have == "follows another row" || strings.HasPrefix(what, "ledger ") || strings.HasSuffix(what, " as followed") || strings.HasSuffix(what, " followers") ||
		slices.Contains([]string{"dead letter", "fact", "subscribers", "members of a set", "rows of a set"}, what)
}

// documentOf is the name of a search's document of a row.
func documentOf(m *model.Model, of string, row store.Ref) string {
	s := m.Searches[slices.IndexFunc(m.Searches, func(s *model.Search) bool { return s.Name == of })]
	return docName(&search.Document{Index: document.IndexName(m, s), ID: search.ID(row.Key)})
}

// shownBy is the row that a document shows, "" if name is no document. verify compares a
// document with its row as it is, right or wrong.
func (w *world) shownBy(name string) string {
	index, id, _ := strings.Cut(name, "\x00")
	if ref, ok := w.documentedRow(index, id); ok {
		return refName(ref)
	}
	return ""
}

// printedNames are the names of rows, by how verify prints them: of those that must exist and of
// those that do. All rows of a set have the name of its first row.
func (t *truth) printedNames() map[string]store.Ref {
	out := map[string]store.Ref{}
	add := func(table *store.Table, k, of store.Key) {
		out[table.Name+" "+string(value.AppendPlainItem(nil, table.Item(k)))] = store.Ref{Table: table.Name, Key: of}
	}
	for _, k := range t.rows {
		add(&k.table.Table, k.key, k.key)
	}
	for _, s := range t.members { // the first row of a set may be missing
		add(&s.table.Table, s.key, s.key)
	}
	for _, mt := range t.model.Tables {
		t.base.tables[mt.Name].eachRow(func(k store.Key, row value.Item) {
			e := mt.Classify(row)
			if e == nil || !isHistory(e) && e.SetOf() == nil {
				add(&mt.Table, k, k)
			} else if e.SetOf() != nil {
				if root, _, ok := e.LeafPath(k); ok {
					add(&mt.Table, k, root)
				}
			}
		})
	}
	return out
}
