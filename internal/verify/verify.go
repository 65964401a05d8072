// Package verify recounts every derived value from the source rows and reports the
// differences. It reads rows, ledgers ("books" in the code) and indexes, and writes nothing.
//
// The recount does not use the stream. It applies f, the contribution of one row, to every
// existing row and adds up the results. It scans the tables twice, first to recount and then
// to compare, so that it keeps the accumulators of the targets in memory and not the rows.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// Difference is a derived value that differs from what the source rows give.
type Difference struct {
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Want       string `json:"want"`
	Have       string `json:"have"`
	What       *What  `json:"-"` // for package repair
}

// Verify checks one model. Set Model, Store and, to check search indexes, Index; then call
// Run. One Verify runs once at a time.
type Verify struct {
	Model *model.Model
	Store store.Store
	Index search.Index // nil leaves search out
	// Progress, if set, is called with the number of rows read so far.
	Progress func(rows int)

	yield   func(Difference)
	expect  map[string]*target         // by the partition key of the book
	docs    map[string]map[string]bool // by index: the documents, and whether they match their rows
	told    told
	sets    map[string]*set // by the text of its first row
	joins   map[string]projections.Join
	read    int
	Checked int       // derived values compared
	Unshown []Unshown // what the last Run found that cannot be computed or derived

	countOnly bool
}

// target is what a row's ledger must hold. Values that are 0 may be missing.
type target struct {
	row    store.Ref
	entity *model.Entity
	sums   map[string]value.Value
}

// Unshown is a correct gap, which is no Difference: a value that no number can hold and that
// its row therefore does not show, or a contribution that a row cannot make.
type Unshown struct {
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Why        string `json:"cannotBeComputed"`
}

// Run calls yield for every difference. If other processes write meanwhile, it may also find
// differences that are only due to that; an embedded store has no other writers.
func (v *Verify) Run(ctx context.Context, yield func(Difference)) error {
	v.begin(yield)
	if err := v.scan(ctx, v.recount); err != nil {
		return err
	}
	v.told.sort()
	if err := v.scan(ctx, v.compare); err != nil {
		return err
	}
	if err := v.books(ctx); err != nil {
		return err
	}
	v.compareSets()
	return v.indexes(ctx)
}

// begin resets what an earlier run found.
func (v *Verify) begin(yield func(Difference)) {
	v.yield, v.expect, v.docs, v.told, v.sets = yield, map[string]*target{}, map[string]map[string]bool{}, told{}, map[string]*set{}
	v.joins, v.Unshown = map[string]projections.Join{}, nil
}

// found is a row of the model, with the change that inserting it would be.
type found struct {
	projections.Change
}

// scan calls use with all rows of the model's tables, one page after the other. Rows of no entity
// are included; their Is is nil.
func (v *Verify) scan(ctx context.Context, use func(context.Context, []found) error) error {
	for _, t := range v.Model.Tables {
		q := store.Query{Table: t.Name}
		for {
			page, err := v.Store.Query(ctx, q)
			if err != nil {
				return fmt.Errorf("reading %s: %w", t.Name, err)
			}
			rows := make([]found, 0, len(page.Rows))
			for _, row := range page.Rows {
				if key, ok := t.KeyOf(row); ok {
					rows = append(rows, found{projections.Change{
						Table: t, Row: store.Ref{Table: t.Name, Key: key}, New: row, Is: t.Classify(row),
					}})
				}
			}
			if err := use(ctx, rows); err != nil {
				return err
			}
			v.read += len(page.Rows)
			if v.Progress != nil {
				v.Progress(v.read)
			}
			if page.Next == nil {
				break
			}
			q.After = page.Next
		}
	}
	return nil
}

// recount adds the contributions of the rows.
func (v *Verify) recount(ctx context.Context, rows []found) error {
	for i := range rows {
		e := projections.Fold(&rows[i].Change)
		for _, a := range e.Adds {
			if a.Entity.SetOf() != nil {
				v.member(a)
				continue
			}
			name := book.Of(v.Model.Name, a.Target).Key.Partition.Text()
			t := v.expect[name]
			if t == nil {
				t = &target{row: a.Target, entity: a.Entity, sums: map[string]value.Value{}}
				v.expect[name] = t
			}
			if sum, err := value.AddNumbers(t.sums[a.Field], a.Amount); err == nil { // not in 10^15 rows
				t.sums[a.Field] = sum
			}
		}
		if !v.countOnly {
			for _, f := range e.Faults {
				v.Unshown = append(v.Unshown, Unshown{f.Derivation, rowText(v.Model, rows[i].Row), "cannot be derived: " + f.Reason})
			}
		}
		v.told.add(e.Facts)
		for _, j := range e.Joins {
			v.joins[v.follower(j)] = j
		}
	}
	if v.countOnly {
		return nil
	}
	return v.documents(ctx, rows)
}

// compare compares what rows show with the recount, and copies with their sources in both
// directions.
func (v *Verify) compare(ctx context.Context, rows []found) error {
	for i := range rows {
		if e := rows[i].Is; e != nil && e.SetOf() != nil {
			v.leaf(&rows[i])
		} else if e != nil && len(e.Values) > 0 {
			v.shown(&rows[i])
		}
		if err := v.moved(&rows[i]); err != nil {
			return err
		}
	}
	if err := v.made(ctx, rows); err != nil {
		return err
	}
	if err := v.makers(ctx, rows); err != nil {
		return err
	}
	if err := v.lists(ctx, rows); err != nil {
		return err
	}
	return v.follows(ctx, rows)
}

// shown compares the tallies that a target row shows with its recounted ledger.
func (v *Verify) shown(f *found) {
	of := v.expect[book.Of(v.Model.Name, f.Row).Key.Partition.Text()]
	want, cannot := projections.Published(f.Is, of.ledger())
	for i := range cannot {
		v.Unshown = append(v.Unshown, Unshown{cannot[i].Tally.Name, rowText(v.Model, f.Row), cannot[i].String()})
	}
	for _, a := range want {
		v.check(f.Is.Name+"."+a.Name, f.Row, a.Value, f.New.Get(a.Name), What{Kind: Shown, Row: f.Row})
	}
}

// ledger returns the recounted ledger of a target, nil for none.
func (t *target) ledger() value.Item {
	if t == nil {
		return nil
	}
	attrs := make([]value.Attr, 0, len(t.sums))
	for name, n := range t.sums {
		attrs = append(attrs, value.Attr{Name: name, Value: n})
	}
	return value.NewItem(attrs...)
}

// check counts one comparison and yields a Difference if the values differ.
func (v *Verify) check(derivation string, row store.Ref, want, have value.Value, what What) {
	v.Checked++
	if !value.Equal(want, have) {
		v.differs(derivation, rowText(v.Model, row), text(want), text(have), what)
	}
}

func (v *Verify) differs(derivation, row, want, have string, what What) {
	v.yield(Difference{derivation, row, want, have, &what})
}

// made checks that each source row has its copy.
func (v *Verify) made(ctx context.Context, rows []found) error {
	var puts []projections.Put
	var refs, sources []store.Ref
	for i := range rows {
		e := projections.Fold(&rows[i].Change)
		for _, p := range e.Puts {
			if len(p.Rule.Keep) == 0 {
				puts, refs, sources = append(puts, p), append(refs, p.Row), append(sources, rows[i].Row)
			}
		}
	}
	got, err := v.get(ctx, refs)
	if err != nil {
		return err
	}
	var fs []follower
	for i, p := range puts {
		want, have := value.Value{}, value.Value{}
		if got[i] != nil {
			have = value.OfMap(plain(p.Rule, got[i]))
			fs = append(fs, v.links(&p, sources[i], got[i])...)
		}
		want = value.OfMap(plain(p.Rule, p.Image))
		v.check(p.Rule.Name, p.Row, want, have, What{Kind: Copy, Row: p.Row, Rule: p.Rule, Of: sources[i]})
	}
	return v.places(ctx, fs)
}

// plain returns the attributes of a row that a rule alone determines: no bookkeeping, and
// none that follow another row.
func plain(rule *model.RowRule, row value.Item) value.Item {
	return row.Filter(func(name string) bool {
		if book.IsOurs(name) || projections.IsDerived(rule.Into, name) {
			return false
		}
		for i := range rule.Fields {
			if rule.Fields[i].Name == name && rule.Fields[i].Expr.Follow != nil {
				return false
			}
		}
		return true
	})
}

// makers checks that each copy has its source row.
func (v *Verify) makers(ctx context.Context, rows []found) error {
	type copy struct {
		*found
		rule *model.RowRule
	}
	var copies []copy
	var refs []store.Ref
	for i := range rows {
		if rows[i].Is == nil {
			continue
		}
		for _, rule := range rows[i].Is.MadeBy {
			if len(rule.Keep) > 0 {
				continue
			}
			if ref, ok := projections.SourceOf(rule, rows[i].New); ok {
				copies, refs = append(copies, copy{&rows[i], rule}), append(refs, ref)
			}
		}
	}
	got, err := v.get(ctx, refs)
	if err != nil {
		return err
	}
	for i, c := range copies {
		p, ok := projections.Put{}, false
		if got[i] != nil && v.Model.Table(refs[i].Table).Classify(got[i]) == c.rule.Source {
			p, ok = projections.Make(c.rule, got[i])
		}
		if !ok || !projections.SameRow(p.Row, c.Row) {
			v.check(c.rule.Name, c.Row, value.Value{}, value.OfMap(plain(c.rule, c.New)), What{Kind: Copy, Row: c.Row, Rule: c.rule, Of: refs[i]})
		}
	}
	return nil
}

// books compares the accumulators of all ledgers, also of targets that do not exist.
func (v *Verify) books(ctx context.Context) error {
	begins, facts, sets, lists := book.Books(v.Model.Name), book.Facts(v.Model.Name), book.Nodes(v.Model.Name), book.Lists(v.Model.Name)
	q := store.Query{Table: book.TableName}
	followed, at := book.FollowedIn(v.Model.Name), place{}
	for {
		page, err := v.Store.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("reading the books: %w", err)
		}
		for _, b := range page.Rows {
			switch name := b.Get(book.Partition).Text(); {
			case strings.HasPrefix(name, begins):
				if err := v.book(ctx, name, b); err != nil {
					return err
				}
				delete(v.expect, name)
			case strings.HasPrefix(name, followed):
				if err := v.abandoned(ctx, &at, b); err != nil {
					return err
				}
			case strings.HasPrefix(name, facts):
				v.fact(strings.TrimPrefix(name, facts), b)
			case strings.HasPrefix(name, sets):
				v.node(strings.TrimPrefix(name, sets), b)
			case strings.HasPrefix(name, lists):
				v.listed(strings.TrimPrefix(name, lists), b)
			}
		}
		if page.Next == nil {
			break
		}
		q.After = page.Next
	}
	for _, name := range slices.Sorted(maps.Keys(v.expect)) {
		if err := v.book(ctx, name, value.Item{}); err != nil {
			return err
		}
	}
	v.untold()
	v.unlisted()
	return nil
}

// book compares one ledger with the recounted one. name is its partition key; b is empty if the
// ledger does not exist. It also compares the dead letter about sums that cannot be shown.
func (v *Verify) book(ctx context.Context, name string, b value.Item) error {
	v.Checked++
	row, want, of := strings.TrimPrefix(name, book.Books(v.Model.Name)), value.Item(nil), target{}
	if t := v.expect[name]; t != nil {
		row, want, of = rowText(v.Model, t.row), t.ledger(), *t
	}
	differs := func(what, want, have string) { v.differs(what, row, want, have, What{Kind: Book, Name: name}) }
	for _, field := range accumulators(want, b) {
		is, be := held(b, field), held(want, field)
		if be == nothing {
			be = "0"
		}
		if be != is && (be != "0" || is != nothing) {
			differs("book "+field, be, is)
		}
	}
	why := projections.CannotShow(of.entity, want)
	said, err := (&runner.Runner{Kinds: kinds.All(), Model: v.Model, Store: v.Store}).SaidUnshown(ctx, of.row, b, why)
	if err == nil && said != why {
		differs("dead letter", cmp.Or(why, nothing), cmp.Or(said, nothing))
	}
	return err
}

// accumulators returns the sorted names of the accumulators of some ledgers. The bands of a
// sum count as one.
func accumulators(ledgers ...value.Item) (fields []string) {
	for _, l := range ledgers {
		for _, a := range l {
			if attr, _, ok := book.Band(a.Name); ok {
				fields = append(fields, book.Sum(attr))
			} else if book.IsSum(a.Name) {
				fields = append(fields, a.Name)
			}
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// held returns what a ledger holds in an accumulator, as text.
func held(ledger value.Item, field string) string {
	attr, _, ok := book.Band(field)
	if !ok {
		return text(ledger.Get(field))
	}
	if !slices.ContainsFunc(ledger, func(a value.Attr) bool {
		of, _, sum := book.Band(a.Name)
		return sum && of == attr
	}) {
		return nothing
	}
	sum, err := book.Total(attr, ledger)
	if err != nil {
		return text(ledger.Get(field))
	}
	return sum.String()
}

func (v *Verify) get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return v.Store.Get(ctx, refs)
}

func rowText(m *model.Model, r store.Ref) string {
	t := m.Table(r.Table)
	if t == nil {
		return r.String()
	}
	return r.Table + " " + string(value.AppendPlainItem(nil, t.Item(r.Key)))
}

// nothing is printed in place of a missing value.
const nothing = "nothing"

func text(v value.Value) string {
	if v.IsMissing() {
		return nothing
	}
	return string(value.AppendPlain(nil, v))
}
