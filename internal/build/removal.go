package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// The values of a retired derivation stay in the rows until their removal is asked for. The catalog has a footprint of
// each definition that was live, which says on which rows that is, and which attributes; no model file is needed.
//
// A removal scans the tables and writes row by row, on condition that the row is as it was read. It keeps no notes while it
// works: after a crash, call it again. It may run beside programs of the model.

// Removal removes the values of retired derivations, and those of a definition that another one has replaced.
// Its creator sets the fields once.
type Removal struct {
	*Builder
	Only []string // these derivations; without any, all that are retired but history
	Dry  bool     // writes nothing, and counts the writes

	each []*Removed
	gone []*going
	kept []owntable.Footprint // derivations that stay
	read owntable.CatalogRow  // by which it was decided
}

// going is a footprint that goes.
type going struct {
	owntable.Footprint
	of *Removed
}

// Removed describes the values of one derivation that go.
type Removed struct {
	Derivation string
	Rows       int64    // that have them, of those that the removal has done
	Some       []string // a few of these rows, by their keys
	Made       bool     // the rows are weir's, and go as a whole
	Others     int64    // rows that stay: another program wrote them, or such an attribute on them
	Why        string   // why all of it stays; "" if it goes
}

// examples is how many rows a Removed names.
const examples = 3

// The errors of a removal.
var (
	// ErrEarlier: the model is not the one of today, or never had the derivations that are to go.
	ErrEarlier = errors.New("the model does not fit")
	// ErrDerived: a derivation that is to go is derived again.
	ErrDerived = errors.New("the model is derived")
)

// Begin decides which values go. It reads the catalog, and returns one Removed for each derivation that is retired or named,
// sorted. They belong to the removal until Run has returned, which counts in them. Nothing is written. An error that
// wraps ErrEarlier is the caller's mistake.
func (x *Removal) Begin(ctx context.Context) (_ []*Removed, err error) {
	if x.read, err = x.Runner.Catalog.Row(ctx); err != nil {
		return nil, err
	}
	prints, err := x.Runner.Catalog.Footprints(ctx)
	if err != nil {
		return nil, err
	}
	program := x.Runner.Catalog.Program()
	for name, is := range x.read.Derivations {
		_, search := model.SearchOf(name)
		if search || is.State == owntable.Retired || is.State == owntable.Unbuilt {
			continue
		}
		if !slices.ContainsFunc(program.Derivations, func(d model.Derivation) bool { return d.Name == name }) {
			return nil, fmt.Errorf("%w: %s is %s, and the model does not have it: give the model that programs run today, or retire it: %s", ErrEarlier, name, is.State, program.Command("build"))
		}
	}
	for _, name := range x.Only {
		if !slices.ContainsFunc(prints, func(f owntable.Footprint) bool { return f.Name == name }) {
			return nil, fmt.Errorf("%w: %s was never derived here", ErrEarlier, name)
		}
	}
	x.each, x.gone, x.kept = nil, nil, nil
	by := map[string]*Removed{}
	for _, f := range prints {
		is := x.read.Derivations[f.Name]
		rule, _, _ := strings.Cut(f.Name, ".") // the derivations that follow on rows go with them
		named := slices.Contains(x.Only, f.Name) || slices.Contains(x.Only, rule)
		retired := is.State == owntable.Retired || is.State == ""
		replaced := !retired && is.Hash != f.Hash && is.State != owntable.Building && is.State != owntable.Unbuilt && !f.History
		switch {
		case !f.Removed.IsZero() && !named: // the named derivations are looked at again
			continue
		case !retired && !replaced, len(x.Only) > 0 && !named:
			x.kept = append(x.kept, f)
		default:
			if by[f.Name] == nil {
				by[f.Name] = &Removed{Derivation: f.Name, Made: f.Makes, Why: x.Builder.inUse(owntable.Build{Since: is.Since})}
			}
			if retired { // a definition that another one has replaced needs no message
				by[f.Name].Why = cmp.Or(by[f.Name].Why, historyStays(&f, named))
			}
			x.gone = append(x.gone, &going{f, by[f.Name]})
		}
	}
	for _, g := range x.gone {
		if g.of.Why = cmp.Or(g.of.Why, x.whyItStays(&g.Footprint)); g.of.Why != "" {
			continue
		}
		other, err := x.Runner.Catalog.TakenBy(ctx, g.Table)
		if err != nil {
			return nil, err
		}
		if other != "" {
			g.of.Why = fmt.Sprintf("table %s belongs to model %s", g.Table, other)
		}
	}
	for _, g := range x.gone {
		if g.of.Why != "" {
			x.kept = append(x.kept, g.Footprint)
		}
		if retired := x.read.Derivations[g.Name].State; (retired == owntable.Retired || retired == "") && !slices.Contains(x.each, g.of) {
			x.each = append(x.each, g.of)
		}
	}
	x.gone = slices.DeleteFunc(x.gone, func(g *going) bool { return g.of.Why != "" })
	for _, name := range x.Only {
		if is := x.read.Derivations[name]; by[name] == nil {
			x.each = append(x.each, &Removed{Derivation: name, Why: fmt.Sprintf("it is %s since %s", is.State, is.Since.UTC().Format(time.DateTime))})
		}
	}
	slices.SortFunc(x.each, func(a, b *Removed) int { return strings.Compare(a.Derivation, b.Derivation) })
	return x.each, nil
}

// historyStays says that history stays unless it is named.
func historyStays(f *owntable.Footprint, named bool) string {
	if f.History && !named {
		return "it is history, which nothing can derive again: name it to remove it"
	}
	return ""
}

// whyItStays says why values stay: their table is gone, or the model of today has such rows or attributes as the
// application's, or builds others in their place. It goes by the shapes of keys, so of two entities whose rows can have
// one key it takes each for the other.
func (x *Removal) whyItStays(f *owntable.Footprint) string {
	m := x.Runner.Model
	if m.Table(f.Table) == nil {
		return fmt.Sprintf("the model has no table %s any more: remove it with a program of your own", f.Table)
	}
	meets := func(s owntable.Shape) bool { return slices.ContainsFunc(f.Rows, s.Overlaps) }
	for _, e := range m.Entities {
		if e.Derived || e.Table.Name != f.Table || !meets(catalog.ShapeOf(e)) {
			continue
		}
		if f.Made {
			return fmt.Sprintf("%s has such rows, which the application may write: take it out of the model, if weir alone has made them", e.Name)
		}
		for _, a := range e.Attributes {
			if slices.Contains(f.Attrs, a.Name) && !x.isShown(a.Name, meets) {
				return fmt.Sprintf("%s is an attribute of %s: take it out of the model, if the application does not write it", a.Name, e.Name)
			}
		}
	}
	for _, k := range x.kept {
		if x.read.Derivations[k.Name].State == owntable.Building && k.Table == f.Table && slices.ContainsFunc(k.Rows, meets) {
			return fmt.Sprintf("%s, which may take its place, is not live", k.Name)
		}
	}
	return ""
}

// isShown reports whether a derivation that stays shows an attribute on rows of a shape.
func (x *Removal) isShown(attr string, meets func(owntable.Shape) bool) bool {
	return slices.ContainsFunc(x.kept, func(k owntable.Footprint) bool {
		return slices.Contains(k.Attrs, attr) && slices.ContainsFunc(k.Rows, meets)
	})
}

// scanned is how many rows of a page are done at a time.
const scanned = 100

// Run removes the values that Begin has decided on, and their rows in weir's own table. The list that Begin returned has
// the rows that were done. It reads all rows of the tables concerned, whatever is left of them, in
// Segments parts at the same time, and writes within the budget.
//
// An error wraps ErrDerived if one of them is derived again meanwhile. After any error, the values that were
// removed stay removed.
func (x *Removal) Run(ctx context.Context) error {
	x.countReads()
	if len(x.gone) == 0 {
		return nil
	}
	for _, t := range x.Runner.Model.AllTables() {
		if !slices.ContainsFunc(x.gone, func(g *going) bool { return g.Table == t.Name }) {
			continue
		}
		segments := x.Segments
		if segments == 0 {
			segments = defaultSegments
		}
		err := parallel.Do(segments, x.Runner.AtOnce(segments), func(i int) error {
			return x.scanRows(ctx, store.Query{Table: t.Name, Segment: i, Segments: segments}, func(rows []value.Item) error { return x.removeFromRows(ctx, &t.Table, rows) })
		})
		if err != nil {
			return err
		}
	}
	err := x.scanRows(ctx, store.Query{Table: owntable.TableName}, func(rows []value.Item) error {
		var ws []store.Write
		units := 0
		for _, row := range rows {
			if x.ownsAlone(row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text()) {
				ws, units = append(ws, store.Write{Ref: rowRef(row), Delete: true}), units+store.WriteUnits(row.Size())
			}
		}
		return x.writeBudgeted(ctx, ws, units, func(int, bool) {})
	})
	if err != nil || x.Dry {
		return err
	}
	var ws []store.Write
	for _, g := range x.gone {
		g.Removed = x.Runner.Now()
		ws = append(ws, g.Put(x.Runner.Model.Name))
	}
	if _, err := x.Runner.Write(ctx, ws); err != nil {
		return err
	}
	return x.checkStillRetired(ctx)
}

// scanRows hands on the rows of a query, some at a time. The rows are read strongly, and each is handed
// on once, in no order. The first error ends it.
func (x *Removal) scanRows(ctx context.Context, q store.Query, do func([]value.Item) error) error {
	for page, err := range store.Pages(ctx, x.Runner.Store, q) {
		if err != nil {
			return err
		}
		x.addProgress(Progress{Rows: int64(len(page))})
		for rows := range slices.Chunk(page, scanned) {
			if err := do(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFromRows removes values from the rows of a table. A row that changes meanwhile is read again and decided
// again, so a write of an application is never undone. A row that changes all the time is an error.
func (x *Removal) removeFromRows(ctx context.Context, t *store.Table, rows []value.Item) error {
	for range fixTries {
		var ws []store.Write
		var of [][]*Removed
		units := 0
		for _, row := range rows {
			w, from := x.rowRemoval(t, row)
			if len(from) == 0 {
				continue
			}
			after, err := t.Apply(&w, row)
			if err != nil {
				return err
			}
			ws, of, units = append(ws, w), append(of, from), units+store.WriteUnits(row.Size())+t.EntryUnits(row, after)
		}
		var again []store.Ref
		err := x.writeBudgeted(ctx, ws, units, func(i int, done bool) {
			if !done {
				again = append(again, ws[i].Ref)
				return
			}
			x.countRow(of[i], ws[i].Ref)
		})
		if err != nil || len(again) == 0 {
			return err
		}
		if rows, err = x.Runner.Get(ctx, again); err != nil {
			return err
		}
	}
	return fmt.Errorf("rows of table %s change all the time; run it again", t.Name)
}

// rowRemoval returns the write that takes values from a row, and the names of their derivations; none if the row stays as it is. A
// row without Version was put again by another program, and its values are that program's, but for those that weir has
// noted in it. A row with something that does not go keeps its Version.
func (x *Removal) rowRemoval(t *store.Table, row value.Item) (w store.Write, of []*Removed) {
	key, ok := t.KeyOf(row)
	if !ok {
		return w, nil // of a row that was deleted meanwhile
	}
	stays, version := map[string]bool{}, false
	for i := range x.kept {
		if k := &x.kept[i]; k.MatchesRow(t.Name, key, row) {
			version = true
			for _, name := range slices.Concat(k.Attrs, k.Covers) {
				stays[name] = true
			}
		}
	}
	versioned := row.Has(owntable.Version)
	var attrs, covers []string
	for _, g := range x.gone {
		if !g.MatchesRow(t.Name, key, row) {
			continue
		}
		shows := slices.DeleteFunc(slices.Clone(g.Attrs), func(name string) bool { return stays[name] || !row.Has(name) })
		covered := slices.DeleteFunc(slices.Clone(g.Covers), func(name string) bool {
			_, _, noted := owntable.CoveredNote(row, name)
			return stays[name] || !noted
		})
		ours := versioned || slices.ContainsFunc(shows, owntable.IsOurs) // an application's row that follows may have no Version
		switch {
		case g.Makes && ours && !version:
			w.Delete = true
		case g.Makes, len(shows) > 0 && !ours && len(covered) == 0:
			x.countKept(g.of)
			continue
		case len(shows)+len(covered) == 0:
			continue
		}
		if ours {
			attrs = append(attrs, shows...)
		}
		covers = append(covers, covered...)
		if !slices.Contains(of, g.of) {
			of = append(of, g.of)
		}
	}
	if len(of) == 0 {
		return w, nil
	}
	w.Ref, w.If = store.Ref{Table: t.Name, Key: key}, store.Cond{{store.AsRead(owntable.Version, row.Get(owntable.Version))}}
	if !w.Delete {
		takeOff(&w, row, attrs, covers, versioned && !version)
	}
	return w, of
}

// takeOff adds to a write the removal of attributes from a row, gives an application back its own values under them, and removes the
// Version. A value that the application has written over the shown one stays, and only the note of the value
// below it goes. The condition is that all of this is as it was read.
func takeOff(w *store.Write, row value.Item, attrs, covers []string, version bool) {
	slices.Sort(attrs)
	slices.Sort(covers)
	attrs, covers = slices.Compact(attrs), slices.Compact(covers)
	read := slices.Concat(attrs, covers)
	w.Ops = append(w.Ops, seq.Map(attrs, func(name string) store.Op { return store.Op{Kind: store.Remove, Attr: name} })...)
	for _, name := range covers {
		if own, shown, _ := owntable.CoveredNote(row, name); value.Equal(shown, row.Get(name)) {
			w.Ops = append(w.Ops, store.Assign(name, own))
		}
	}
	if len(covers) > 0 {
		read = append(read, owntable.Own)
		notes := row.Get(owntable.Own).Item().Filter(func(name string) bool { return !slices.Contains(covers, name) })
		if len(notes) == 0 {
			w.Ops = append(w.Ops, store.Op{Kind: store.Remove, Attr: owntable.Own})
		} else {
			w.Ops = append(w.Ops, store.Assign(owntable.Own, value.OfMap(notes)))
		}
	}
	if version {
		w.Ops = append(w.Ops, store.Op{Kind: store.Remove, Attr: owntable.Version})
	}
	w.If = append(w.If, seq.Map(read, func(name string) []store.Test { return []store.Test{store.AsRead(name, row.Get(name))} })...)
}

// ownsAlone reports whether a row of the own table belongs to these derivations alone: a ledger, or a node of a set, on whose row nothing
// is counted that stays; the values of a distinct, also beside a ledger that goes on; facts, subscribers and followed
// values that no remaining derivation reads. The row itself may have gone. The counts of a build go with the build.
func (x *Removal) ownsAlone(partition, sort string) bool {
	only := func(is func(f *owntable.Footprint) bool) bool {
		return slices.ContainsFunc(x.gone, func(g *going) bool { return is(&g.Footprint) }) &&
			!slices.ContainsFunc(x.kept, func(k owntable.Footprint) bool { return is(&k) })
	}
	begins := func(prefix string) bool { return strings.HasPrefix(partition, prefix) }
	if only(func(f *owntable.Footprint) bool { return slices.ContainsFunc(f.Lists, begins) }) {
		return true
	}
	names := []string{x.Runner.Model.Name}
	names = append(names, seq.Map(x.read.Builds, func(b owntable.Build) string { return b.Ledgers(x.Runner.Model.Name) })...)
	for i, name := range names {
		facts, is := strings.CutPrefix(partition, owntable.Facts(name))
		if is && only(func(f *owntable.Footprint) bool {
			return slices.ContainsFunc(f.Facts, func(list string) bool { return strings.HasPrefix(facts, list) })
		}) {
			return true
		}
		text, is := strings.CutPrefix(partition, owntable.ValueRows(name))
		if is && only(func(f *owntable.Footprint) bool {
			return f.Values != "" && strings.HasPrefix(sort, owntable.ValuesOf(f.Values)) && f.FitsText(text)
		}) {
			return true
		}
		for _, first := range []string{owntable.Ledgers(name), owntable.Nodes(name)} {
			text, is := strings.CutPrefix(partition, first)
			if is && i == 0 && only(func(f *owntable.Footprint) bool { return f.Counts && f.FitsText(text) }) {
				return true
			}
		}
	}
	return false
}

// countRow adds a row to results. Several goroutines may call it. The results may be read when Run has returned.
func (x *Removal) countRow(of []*Removed, at store.Ref) {
	x.addProgress(Progress{Targets: 1})
	x.meter.mu.Lock()
	defer x.meter.mu.Unlock()
	for _, r := range of {
		if r.Rows++; len(r.Some) < examples {
			r.Some = append(r.Some, x.Runner.DescribeRow(at))
		}
	}
}

// countKept adds a row that stays to a result.
func (x *Removal) countKept(r *Removed) {
	x.meter.mu.Lock()
	defer x.meter.mu.Unlock()
	r.Others++
}

// writeBudgeted does writes within the budget, if it is no dry run, and calls done for each: it is false for one
// whose row has changed. It refuses if the derivations are not retired any more: the catalog is read after the
// wait for the budget, so no write is much older than the read on which it was decided. A dry run counts that
// read too.
func (x *Removal) writeBudgeted(ctx context.Context, ws []store.Write, units int, done func(i int, done bool)) error {
	if len(ws) == 0 {
		return nil
	}
	if x.Dry {
		x.addProgress(Progress{Units: int64(units), Reads: 1})
		for i := range ws {
			done(i, true)
		}
		return nil
	}
	if err := x.spendUnits(ctx, units); err != nil {
		return err
	}
	if err := x.checkStillRetired(ctx); err != nil {
		return err
	}
	out, err := x.Runner.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if err := out[i].Err; err != nil && !errors.Is(err, store.ErrCondition) {
			return fmt.Errorf("%s: %w", x.Runner.DescribeRow(ws[i].Ref), err)
		}
		done(i, out[i].Err == nil)
	}
	return nil
}

// checkStillRetired returns an error if one of the derivations is derived again. A build that has read a row
// before its value was removed would leave the row without it.
func (x *Removal) checkStillRetired(ctx context.Context) error {
	row, err := x.Runner.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	for _, g := range x.gone {
		if is, was := row.Derivations[g.Name], x.read.Derivations[g.Name]; is.State != was.State && is.State != "" || is.Hash != was.Hash {
			return fmt.Errorf("%w: %s is %s since %s, so its values are not removed any further; once it is live, %s puts back what is missing",
				ErrDerived, g.Name, is.State, is.Since.UTC().Format(time.DateTime), x.Runner.Model.Command("build", g.Name, "--again"))
		}
	}
	return nil
}
