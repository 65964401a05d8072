package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/aggregate"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/store"
	"weir/internal/value"
)

// What a retired derivation has shown stays in the rows until its removal is asked for: an application
// may write an attribute of that name since, and nothing on a row tells that from weir's. The earlier
// version of the model, by which the values were derived, says which they are.
//
// A removal scans the tables and writes row by row, on condition that the row is as it was read. It
// keeps no notes: after a crash, call it again. It may run beside programs of the later model.

// Removal removes what retired derivations have shown. Its creator sets the fields once.
type Removal struct {
	*Builder
	Earlier *model.Model
	Only    []string // these derivations; without any, all that are retired but history
	Dry     bool     // writes nothing, and counts what it would write

	each    []*Removed
	by      map[*model.Entity]*leaving // by the entity of Earlier on whose rows it is
	ours    []model.Derivation         // of the model of today
	before  []model.Derivation         // of Earlier
	read    owntable.CatalogRow        // by which it was decided
	renamed map[string]string          // what takes the place of a derivation of Earlier, by its name
}

// leaving is what goes from rows of an entity, and what does not.
type leaving struct {
	goes  []*Removed
	shown bool                // something else is shown on such rows, so they keep their Version
	kept  projections.Remains // what makes such rows and does not go
	rest  []string            // attributes that Earlier shows on such rows and that do not go
}

// Removed says what becomes of the values of a derivation.
type Removed struct {
	Derivation string
	Rows       int64  // that have them, of those that the removal has done
	Made       bool   // the rows are weir's, and go as a whole
	Others     int64  // rows that stay: another program wrote them, or such an attribute on them
	Why        string // why all of it stays; "" if it goes

	named   bool
	since   time.Time
	remains projections.Remains
}

// ErrEarlier is wrapped by the error for an earlier version that is none of the model, or does
// not have what is to be removed, and for a model that is not the one of today.
var ErrEarlier = errors.New("the models do not fit")

// Begin decides what goes. It reads the catalog, and returns one Removed for each derivation that
// is named, or retired, sorted. They belong to the removal until Run has returned, which counts in
// them. Nothing is written. An error that wraps ErrEarlier is the caller's mistake.
func (x *Removal) Begin(ctx context.Context) ([]*Removed, error) {
	m := x.Runner.Model
	if x.Earlier.Name != m.Name {
		return nil, fmt.Errorf("%w: it is model %s, and not %s", ErrEarlier, x.Earlier.Name, m.Name)
	}
	row, err := x.Runner.Catalog.Row(ctx)
	if err != nil {
		return nil, err
	}
	x.each, x.by, x.ours, x.before, x.renamed = nil, map[*model.Entity]*leaving{}, m.Derivations(), x.Earlier.Derivations(), map[string]string{}
	for _, d := range model.DiffOf(x.Earlier, m).Derivations {
		if d.What == model.Renamed { // a new name with another definition is not found, and keeps nothing
			x.renamed[d.Was] = d.Name
		}
	}
	x.read = row
	for name, is := range row.Derivations {
		has := slices.ContainsFunc(x.ours, func(d model.Derivation) bool { return d.Name == name })
		if _, search := model.SearchOf(name); !search && !has && is.State != owntable.Retired && is.State != owntable.Unbuilt {
			return nil, fmt.Errorf("%w: %s is %s, and the model does not have it: give the model that programs run today, or retire it: projector build %s", ErrEarlier, name, is.State, m.Command())
		}
	}
	for _, name := range x.Only {
		if !slices.ContainsFunc(x.before, func(d model.Derivation) bool { return d.Name == name }) {
			return nil, fmt.Errorf("%w: it does not have %s", ErrEarlier, name)
		}
		if _, search := model.SearchOf(name); search {
			return nil, fmt.Errorf("%w: %s is a search index, which goes with --prune alone", ErrEarlier, name)
		}
	}
	for i := range x.before {
		d, is := &x.before[i], row.Derivations[x.before[i].Name]
		made := madeWith(x.before, d.Name)
		named := slices.Contains(x.Only, d.Name) || made != nil && slices.Contains(x.Only, made.Name)
		if _, search := model.SearchOf(d.Name); search || !named && (len(x.Only) > 0 || is.State != owntable.Retired) {
			continue
		}
		r := &Removed{Derivation: d.Name, since: is.Since, named: named, remains: remainsOf(x.Earlier, d)}
		r.Made = r.remains.Makes != nil
		x.each = append(x.each, r)
		history := d.History || made != nil && made.History
		if r.Why = x.retired(d, is, named); r.Why == "" && history && !named {
			r.Why = "it is history, which nothing can derive again: name it to remove it"
		}
		if r.Why == "" {
			e := x.Earlier.Entity(d.Into)
			if x.by[e] == nil {
				x.by[e] = &leaving{}
			}
			x.by[e].goes = append(x.by[e].goes, r)
		}
	}
	for _, e := range x.Earlier.Entities {
		if l := x.by[e]; l != nil {
			if err := x.beside(ctx, e, l, row); err != nil {
				return nil, err
			}
		}
	}
	return x.each, nil
}

// remainsOf returns what a derivation of a model leaves.
func remainsOf(m *model.Model, d *model.Derivation) projections.Remains {
	for _, k := range kinds.All() {
		if is := k.Remains(m, d); is.Makes != nil || len(is.Attrs)+len(is.Over) > 0 {
			return is
		}
	}
	return projections.Remains{}
}

// madeWith returns the rule or the group that makes the rows on which a derivation shows a value,
// nil for a value on another row.
func madeWith(ds []model.Derivation, name string) *model.Derivation {
	rule, _, dotted := strings.Cut(name, ".")
	i := slices.IndexFunc(ds, func(d model.Derivation) bool { return d.Name == rule })
	if i < 0 || !dotted {
		return nil
	}
	return &ds[i]
}

// retired says why a derivation stays that is not retired as the earlier model defines it, or was so
// within InUse. One that the catalog has forgotten, or never had, goes only if it is named.
func (x *Removal) retired(d *model.Derivation, is owntable.Derived, named bool) string {
	m := x.Runner.Model
	switch {
	case m.Table(x.Earlier.Entity(d.Into).Table.Name) == nil:
		return fmt.Sprintf("the model has no table %s any more: remove them with a program of your own", x.Earlier.Entity(d.Into).Table.Name)
	case is.State == "" && named: // the catalog has forgotten it, or it was never derived
		return ""
	case is.State != owntable.Retired:
		return fmt.Sprintf("it is %s since %s", is.State, is.Since.UTC().Format(time.DateTime))
	case is.Hash != d.Hash:
		return "what was retired is of another definition, which projector status prints: give the version of the model that has it"
	}
	return x.Builder.inUse(owntable.Build{Since: is.Since})
}

// beside takes back what goes from rows of an entity where something else is shown or made there,
// and notes whether these rows keep their Version. It goes by the shapes of keys, so of two entities
// whose rows can have one key it takes each for the other: what stays may then be more than it must.
func (x *Removal) beside(ctx context.Context, e *model.Entity, l *leaving, row owntable.CatalogRow) error {
	others, err := x.Runner.Catalog.ShownByOthers(ctx, e.Table.Name)
	if err != nil {
		return err
	}
	shape := catalog.ShapeOf(e)
	goes := func(name string) bool {
		return slices.ContainsFunc(l.goes, func(r *Removed) bool { return r.Derivation == name })
	}
	for name := range row.Derivations {
		l.shown = l.shown || strings.HasPrefix(name, e.Name+".") && !goes(name)
	}
	for _, d := range x.before {
		if is := remainsOf(x.Earlier, &d); d.Into == e.Name && is.Makes != nil && !goes(d.Name) {
			l.kept = l.kept.With(is)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(others)) {
		for _, their := range others[model] {
			if !their.Meets(shape) {
				continue
			}
			l.shown = true
			l.stays(fmt.Sprintf("model %s shows %s on such rows", model, strings.Join(their.Of, ", ")), func(r *Removed) bool {
				return r.Made || e.Derived || len(their.Attrs) == 0 || has(r, their.Attrs)
			})
		}
	}
	x.besideOurs(e, l, shape, row)
	if of := x.entriesOf(e); len(of) > 0 {
		l.stays(fmt.Sprintf("%s keep edits of such rows, or notify of them, and the application would have one fewer attribute: name it to remove it", strings.Join(of, ", ")),
			func(r *Removed) bool { return !r.Made && !r.named && r.Why == "" })
	}
	l.goes = slices.DeleteFunc(l.goes, func(r *Removed) bool { return r.Why != "" })
	for _, k := range kinds.All() {
		for _, name := range k.Derives(e) {
			if !slices.ContainsFunc(l.goes, func(r *Removed) bool { return has(r, []string{name}) }) {
				l.rest = append(l.rest, name)
			}
		}
	}
	return nil
}

// stays notes why some of what goes does not. A later reason replaces an earlier one.
func (l *leaving) stays(why string, which func(*Removed) bool) {
	for _, r := range l.goes {
		if which(r) {
			r.Why = why
		}
	}
}

// besideOurs is beside for what the model itself derives or declares. A derivation that is retired by
// the same definition is no reason to keep anything: the model is then the earlier one itself.
// Rows of an entity that rules made, and that the model has as one of the application's, may have
// become the application's.
func (x *Removal) besideOurs(e *model.Entity, l *leaving, shape owntable.Shape, row owntable.CatalogRow) {
	m := x.Runner.Model
	for _, d := range x.ours {
		into := m.Entity(d.Into)
		if into == nil || into.Table.Name != e.Table.Name || isRetired(row, &d) {
			continue
		}
		if !catalog.ShapeOf(into).Meets(shape) {
			continue
		}
		is := remainsOf(m, &d)
		derived := slices.Concat(is.Attrs, is.Over)
		if is.Makes != nil {
			l.kept = l.kept.With(is)
			for _, k := range kinds.All() {
				derived = append(derived, k.Derives(into)...)
			}
		}
		l.shown = true
		l.stays(fmt.Sprintf("the model derives %s on such rows", d.Name), func(r *Removed) bool { return has(r, derived) })
	}
	for _, now := range m.Entities {
		if now.Derived || now.Table.Name != e.Table.Name || !catalog.ShapeOf(now).Meets(shape) {
			continue
		}
		l.stays(fmt.Sprintf("%s has such rows, which the application may write: take it out of the model, if weir alone has made them", now.Name), func(r *Removed) bool {
			return r.Made || e.Derived
		})
		for _, a := range now.Attributes {
			l.stays(fmt.Sprintf("%s is an attribute of %s: take it out of the model, if the application does not write it", a.Name, now.Name), func(r *Removed) bool {
				return slices.Contains(r.remains.Attrs, a.Name)
			})
		}
	}
	for was, name := range x.renamed {
		if s := row.Derivations[name].State; s != owntable.Live && s != owntable.Verified {
			l.stays(fmt.Sprintf("%s, which takes its place, is not live", name), func(r *Removed) bool { return r.Derivation == was })
		}
	}
}

// has reports whether what goes writes one of the attributes.
func has(r *Removed, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(r.remains.Attrs, n) || slices.Contains(r.remains.Over, n) })
}

// Entries returns the derivations of the model that make an entry, or a notification, of each change of
// a row whose attributes go. It is sorted. Call it after Begin.
func (x *Removal) Entries() (out []string) {
	for e, l := range x.by {
		if slices.ContainsFunc(l.goes, func(r *Removed) bool { return !r.Made }) {
			out = append(out, x.entriesOf(e)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// entriesOf returns the rules of the model that keep edits of such rows, or notify of them.
func (x *Removal) entriesOf(e *model.Entity) (out []string) {
	for _, rule := range x.Runner.Model.Rows {
		if slices.Contains(rule.Keep, "MODIFY") && rule.Source.Table.Name == e.Table.Name && catalog.ShapeOf(rule.Source).Meets(catalog.ShapeOf(e)) {
			out = append(out, rule.Name)
		}
	}
	return out
}

// isRetired reports whether a derivation is retired by the definition that it has.
func isRetired(row owntable.CatalogRow, d *model.Derivation) bool {
	is := row.Derivations[d.Name]
	return is.State == owntable.Retired && is.Hash == d.Hash
}

// scanned is how many rows of a page are done at a time.
const scanned = 100

// Run removes what Begin has decided, and what weir's own table has for it. What Begin returned has
// the rows that were done. It reads all rows of the tables concerned, whatever is left of them, in
// Segments parts at the same time, and writes within the budget.
//
// An error wraps ErrDerived if something of it is derived again meanwhile. After any error, what was
// removed stays removed.
func (x *Removal) Run(ctx context.Context) error {
	x.counts()
	for _, t := range x.Runner.Model.AllTables() {
		if !x.goesFrom(func(e *model.Entity) bool { return e.Table.Name == t.Name }) {
			continue
		}
		segments := x.Segments
		if segments == 0 {
			segments = DefaultSegments
		}
		err := parallel.Do(segments, x.Runner.AtOnce(segments), func(i int) error {
			return x.scan(ctx, store.Query{Table: t.Name, Segment: i, Segments: segments}, func(rows []value.Item) error { return x.rows(ctx, &t.Table, rows) })
		})
		if err != nil {
			return err
		}
	}
	if own := x.own(); own != nil {
		err := x.scan(ctx, store.Query{Table: owntable.TableName}, func(rows []value.Item) error {
			var ws []store.Write
			units := 0
			for _, row := range rows {
				if own(row) {
					ws, units = append(ws, store.Write{Ref: rowRef(row), Delete: true}), units+store.WriteUnits(row.Size())
				}
			}
			return x.write(ctx, ws, units, func(int, bool) {})
		})
		if err != nil {
			return err
		}
	}
	if err := x.letters(ctx); err != nil {
		return err
	}
	return x.still(ctx)
}

// letterUnits are the write units of settling a dead letter: a transaction of the letter and the ledger.
const letterUnits = 4

// letters deletes the dead letters about rows of what goes whose cause has gone with it: no record comes for
// its sake. A letter that says something else of such a row stays, or says that alone.
func (x *Removal) letters(ctx context.Context) error {
	ids, err := x.Runner.Unshown(ctx, func(at store.Ref) bool {
		return x.goesFrom(func(e *model.Entity) bool { return e.CanBe(at) })
	})
	if err != nil {
		return err
	}
	if x.Dry {
		x.add(Progress{Units: letterUnits * int64(len(ids))})
		return nil
	}
	return x.Runner.RetryUnshown(ctx, ids, func() error { return x.spend(ctx, letterUnits) })
}

// goesFrom reports whether something goes from rows of an entity that is one of those.
func (x *Removal) goesFrom(is func(*model.Entity) bool) bool {
	return slices.ContainsFunc(x.Earlier.Entities, func(e *model.Entity) bool { return x.by[e] != nil && len(x.by[e].goes) > 0 && is(e) })
}

// scan hands on the rows of a query, some at a time. The rows are read strongly, and each is handed
// on once, in no order. The first error ends it.
func (x *Removal) scan(ctx context.Context, q store.Query, do func([]value.Item) error) error {
	for page, err := range store.Pages(ctx, x.Runner.Store, q) {
		if err != nil {
			return err
		}
		x.add(Progress{Rows: int64(len(page))})
		for rows := range slices.Chunk(page, scanned) {
			if err := do(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows removes what goes from rows of a table. A row that changes meanwhile is read again and decided
// again, so a write of an application is never undone. A row that changes all the time is an error.
func (x *Removal) rows(ctx context.Context, t *store.Table, rows []value.Item) error {
	for range fixTries {
		var ws []store.Write
		var goes [][]*Removed
		units := 0
		for _, row := range rows {
			if w, of, ok := x.row(t, row); ok {
				after, err := t.Apply(&w, row)
				if err != nil {
					return err
				}
				ws, goes, units = append(ws, w), append(goes, of), units+store.WriteUnits(row.Size())+t.EntryUnits(row, after)
			}
		}
		var again []store.Ref
		err := x.write(ctx, ws, units, func(i int, done bool) {
			if !done {
				again = append(again, ws[i].Ref)
				return
			}
			for _, r := range goes[i] {
				x.count(&r.Rows)
			}
			x.add(Progress{Targets: 1})
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

// row decides what becomes of a row, and of whom it has something. A row of which nothing goes is
// counted at once, since it is not read again. ok is false if the row stays.
func (x *Removal) row(t *store.Table, row value.Item) (w store.Write, of []*Removed, ok bool) {
	e := x.Earlier.Table(t.Name).Classify(row)
	l := x.by[e]
	if l == nil {
		return w, nil, false
	}
	key, _ := t.KeyOf(row)
	at, all := store.Ref{Table: t.Name, Key: key}, projections.Remains{}
	for _, r := range l.goes {
		is := r.remains
		// A row that a rule may have made which does not go is left as it is.
		stays := l.kept.Made(row) || l.kept.Makes != nil && !is.Told
		switch {
		case is.Within != nil && (stays || !is.Within(row)):
		case is.On(row) && !(r.Made && stays):
			all, of = all.With(is), append(of, r)
		case is.Made(row) || slices.ContainsFunc(is.Attrs, row.Has):
			x.count(&r.Others)
		}
	}
	// The Version of a row that weir makes says so, and a later removal of the rest needs it.
	version := e.Derived || l.shown || slices.ContainsFunc(l.rest, row.Has)
	w, ok = all.Remove(at, row, version)
	return w, of, ok
}

// count adds a row to a result. Several goroutines may call it. The result may be read when Run has
// returned.
func (x *Removal) count(n *int64) {
	x.meter.mu.Lock()
	defer x.meter.mu.Unlock()
	*n++
}

// write does writes within the budget, if it is no dry run, and calls done for each: it is false for one
// whose row has changed. It refuses if what goes is not retired any more: the catalog is read after the
// wait for the budget, so no write is much older than what it was decided by. A dry run counts that
// read too.
func (x *Removal) write(ctx context.Context, ws []store.Write, units int, done func(i int, done bool)) error {
	if len(ws) == 0 {
		return nil
	}
	if x.Dry {
		x.add(Progress{Units: int64(units), Reads: 1})
		for i := range ws {
			done(i, true)
		}
		return nil
	}
	if err := x.spend(ctx, units); err != nil {
		return err
	}
	if err := x.still(ctx); err != nil {
		return err
	}
	out, err := x.Runner.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if err := out[i].Err; err != nil && !errors.Is(err, store.ErrCondition) {
			return fmt.Errorf("%s: %w", x.Runner.Describe(ws[i].Ref), err)
		}
		done(i, out[i].Err == nil)
	}
	return nil
}

// still returns an error if something of what goes is derived again. A build that has read a row
// before its value was removed would leave the row without it.
func (x *Removal) still(ctx context.Context) error {
	row, err := x.Runner.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	for _, r := range x.each {
		if is := row.Derivations[r.Derivation]; r.Why == "" && (is.State != owntable.Retired && is.State != "" || !is.Since.Equal(r.since)) {
			return fmt.Errorf("%w: %s is %s since %s, so its values are not removed any further; once it is live, projector build %s %s --again puts back what is missing",
				ErrDerived, r.Derivation, is.State, is.Since.UTC().Format(time.DateTime), x.Runner.Model.Command(), r.Derivation)
		}
	}
	return nil
}

// own returns a function that reports whether a row of the own table is of what goes alone;
// nil if nothing is. Ledgers of builds go with Prune. A ledger, or a set, goes if all that the
// earlier model shows on its row goes and nothing else is shown there; facts with their status or latest, and the values of a
// distinct of any size, also those of builds; a list of subscribers with its rule; and a followed value with the last
// attribute that follows it. The row itself may have gone, or may never have come.
func (x *Removal) own() func(row value.Item) bool {
	goes := map[string]bool{}
	for _, r := range x.each {
		goes[r.Derivation] = r.Why == ""
	}
	of, stays := map[string]bool{}, map[string]bool{}
	for name, build := range x.Earlier.Builds() {
		if l := x.by[x.Earlier.Entity(build)]; goes[name] && l != nil && !l.shown {
			of[build] = true
		} else {
			stays[build] = true
		}
	}
	maps.DeleteFunc(of, func(build string, _ bool) bool { return stays[build] })
	lists := slices.Concat(x.facts(goes), x.subscribers(goes), x.followed(goes))
	values := slices.ContainsFunc(x.Earlier.Tallies, func(t *model.Tally) bool { return t.Kind == aggregate.Spread && goes[t.Name] })
	if len(of)+len(lists) == 0 && !values {
		return nil
	}
	ledgers := firstLedgers(x.Earlier, of, false)
	return func(row value.Item) bool {
		partition := row.Get(owntable.Partition).Text()
		return ledgers(partition) && !x.countsToday(partition) ||
			slices.ContainsFunc(lists, func(list string) bool { return strings.HasPrefix(partition, list) }) ||
			values && x.isValue(goes, partition, row.Get(owntable.Sort).Text())
	}
}

// names returns the names under which the own table has what is counted: the model's, and those of builds.
func (x *Removal) names() []string {
	out := []string{x.Runner.Model.Name}
	for _, b := range x.read.Builds {
		out = append(out, b.Ledgers(x.Runner.Model.Name))
	}
	return out
}

// facts returns what the partitions of facts begin with that no status and no latest reads which does not go.
func (x *Removal) facts(goes map[string]bool) (out []string) {
	kept := map[string]bool{}
	read := func(list, by string) { kept[list] = kept[list] || !goes[by] }
	for _, m := range []*model.Model{x.Earlier, x.Runner.Model} {
		for _, l := range m.Latest {
			read(l.Name, l.Name)
		}
		for _, s := range m.Statuses {
			read(s.Name, s.Name)
			for _, st := range s.Stages {
				if st.List != nil && st.List.Others != nil {
					read(st.List.Others.Name, s.Name)
				}
			}
		}
	}
	for list, is := range kept {
		for _, name := range x.names() {
			if !is {
				out = append(out, owntable.Facts(name)+owntable.FactList(list, ""))
			}
		}
	}
	return out
}

// subscribers returns what the partitions of the lists of subscribers of rules that go begin with.
func (x *Removal) subscribers(goes map[string]bool) (out []string) {
	for _, r := range x.Earlier.Rows {
		if r.Subscribers != nil && goes[r.Name] {
			out = append(out, owntable.SubscriberLists(x.Runner.Model.Name)+r.Name+"<")
		}
	}
	return out
}

// followed returns what the partitions of values begin with that nothing follows which does not go.
func (x *Removal) followed(goes map[string]bool) (out []string) {
	kept := map[string]bool{}
	for _, m := range []*model.Model{x.Earlier, x.Runner.Model} {
		for _, f := range m.Follows {
			kept[f.Source.Name+"."+f.Field.Name] = kept[f.Source.Name+"."+f.Field.Name] || !goes[f.Rule.Name+"."+f.Attr]
		}
	}
	for field, is := range kept {
		if !is {
			out = append(out, owntable.FollowedOf(x.Runner.Model.Name, field))
		}
	}
	return out
}

// countsToday reports whether a partition is a ledger, or a node of a set, of a row for which the model of today may count
// something. Ledgers know rows by their keys alone.
func (x *Removal) countsToday(partition string) bool {
	text, ok := firstLedger(x.Runner.Model.Name, partition)
	return ok && slices.ContainsFunc(countedAt(x.Runner.Model, text), func(e *model.Entity) bool {
		return slices.ContainsFunc(x.ours, func(d model.Derivation) bool { return d.Into == e.Name && !isRetired(x.read, &d) })
	})
}

// isValue reports whether a row of the own table counts a value of a distinct that goes, and of none that stays, beside a
// ledger that a build made or none did.
func (x *Removal) isValue(goes map[string]bool, partition, sort string) bool {
	of := func(m *model.Model) []*model.Entity { return nil }
	if text, first := strings.CutPrefix(partition, owntable.ValueRows(x.Runner.Model.Name)); first {
		of = func(m *model.Model) []*model.Entity { return countedAt(m, text) }
	}
	for _, b := range x.read.Builds {
		if strings.HasPrefix(partition, owntable.ValueRows(b.Ledgers(x.Runner.Model.Name))) {
			of = func(m *model.Model) []*model.Entity { return []*model.Entity{m.Entity(b.Entity)} }
		}
	}
	is, stays := false, false
	for _, m := range []*model.Model{x.Earlier, x.Runner.Model} {
		for _, e := range of(m) {
			for _, t := range projections.Tallies(e) {
				if strings.HasPrefix(sort, owntable.ValuesOf(t.Attr)) {
					is, stays = is || goes[t.Name], stays || !goes[t.Name]
				}
			}
		}
	}
	return is && !stays
}
