package scratch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Said is one derived value of a row. Two stores agree if their rows have the same values, in whatever rows.
type Said struct {
	Derivation string // as verify prints it
	Row        string // its subject, for people
	Part       string // of the row; "" for all
	Value      string
}

// A side of a comparison.
const (
	wanted  = "0"
	built   = "1" // the value
	left    = "2" // the same where nothing tells whether it is of a generation that another one has replaced
	lacking = "3" // the engine could not show it
	other   = "4" // the state of a document that is not as its row says
	met     = "5" // there is a row that could show something
)

// reader reads the derived values of rows of one store.
type reader struct {
	*model.Model
	scratch bool                // the store is that of an Engine
	catalog owntable.CatalogRow // which generations targets show
	now     time.Time           // decides which rows TTL may have deleted
	derived map[*model.Entity][]string
	left    map[*model.Entity][]string // the values of retired derivations until they are pruned
	lists   map[string]string          // by kind of row and name, the generation of each list in weir's own table that the model reads; those of retired derivations stay, and nothing reads them
}

func newReader(m *model.Model, c owntable.CatalogRow, now time.Time, scratch bool) *reader {
	r := &reader{Model: m, scratch: scratch, catalog: c, now: now, derived: map[*model.Entity][]string{}}
	for _, e := range m.Entities {
		r.derived[e] = kinds.DerivedAttributes(e)
	}
	r.lists = map[string]string{}
	builds := m.Builds()
	reads := func(kind, list, derivation, build string) {
		if !c.IsPending(derivation) {
			r.lists[kind+"|"+list] = r.ledgersName(build)
		}
	}
	for _, l := range m.Latest {
		reads(owntable.KindFact, l.Name, l.Name, builds[l.Name])
	}
	for _, s := range m.Statuses {
		reads(owntable.KindFact, s.Name, s.Name, builds[s.Name])
		for _, st := range s.Stages {
			if st.List != nil && st.List.Others != nil {
				reads(owntable.KindFact, st.List.Others.Name, s.Name, builds[s.Name])
			}
		}
	}
	for _, f := range m.Follows {
		reads(owntable.KindFollow, kinds.FieldName(f), kinds.FieldName(f), model.BuildInPlace)
	}
	for _, rule := range m.Rows {
		if rule.Subscribers != nil {
			reads(owntable.KindSubscribers, rule.Name, rule.Name, builds[rule.Name])
		}
	}
	return r
}

// ledgersName returns the name under which the rows stand in weir's own table that a build's targets show: the model's,
// if none was built.
func (r *reader) ledgersName(build string) string {
	if b, _ := r.catalog.Builds.Of(build); !r.scratch && build != model.BuildInPlace && b.State.IsShown() {
		return b.Ledgers(r.Name)
	}
	return r.Name
}

// yieldRow yields the values of a row of an application's table.
func (r *reader) yieldRow(t *model.Table, row value.Item, give func(Said, string)) {
	yield := func(s Said) { give(s, r.sideName()) }
	e := t.Classify(row)
	key, ok := t.KeyOf(row)
	if e == nil || !ok || e.Derived && t.Expired(row, r.now) {
		return
	}
	text := runner.RowText(r.Model, store.Ref{Table: t.Name, Key: key})
	follows := r.yieldFollowed(e, store.Ref{Table: t.Name, Key: key}, text, row, give)
	if e.IsHistory() {
		return
	}
	if set := e.SetOf(); set != nil {
		root, path, ok := e.LeafPath(key)
		if !ok {
			yield(Said{set.Name, text, "", "a row that is none of a set's"})
			return
		}
		if !r.scratch {
			give(Said{"rows of a set", owntable.RowText(store.Ref{Table: t.Name, Key: root}), unsaid + path, partOfSet(path, row.Has(owntable.InnerLeaf))}, built)
		}
		text = runner.RowText(r.Model, store.Ref{Table: t.Name, Key: root})
		for _, m := range elementTexts(row.Get(set.Attr)) {
			yield(Said{set.Name, text, unsaid + m, m})
		}
		return
	}
	for _, name := range r.derived[e] {
		if v := row.Get(name); !v.IsMissing() && !r.catalog.IsPending(e.Name+"."+name) && !slices.Contains(follows, name) && !isMade(e, name) {
			part := ""
			if keepsLast(e, name) {
				part = keeps
			}
			yield(Said{e.Name + "." + name, text, part, runner.ValueText(v)})
		}
	}
	if e.Derived && !r.catalog.IsPending(e.Name) {
		yield(Said{e.Name, text, "", r.ruleMade(e, row)})
	}
}

// ruleMade is the part of a row that weir made by its rule, without other derivations' values on it.
func (r *reader) ruleMade(e *model.Entity, row value.Item) string {
	return runner.ValueText(value.OfMap(row.Filter(func(name string) bool {
		return !owntable.IsOurs(name) && !slices.Contains(r.left[e], name) && (!slices.Contains(r.derived[e], name) || isMade(e, name))
	})))
}

// name is how verify calls an entity, or an attribute of one: just so.
func (r *reader) name(of string) (derivation, part string) { return of, "" }

// sideName is that of the store's values.
func (r *reader) sideName() string {
	if r.scratch {
		return wanted
	}
	return built
}

// yieldFollowed yields the values that a row must show of the rows that it follows, and returns these attributes: the value that there
// is, as far as the row itself says which it is of.
func (r *reader) yieldFollowed(e *model.Entity, ref store.Ref, text string, row value.Item, yield func(Said, string)) (attrs []string) {
	all := slices.Clone(e.Follows)
	for _, rule := range e.MadeBy {
		for i := range rule.Fields {
			if f := rule.Fields[i].Expr.Follow; f != nil && rule.Into.Attribute(f.Attr) != nil {
				all = append(all, f)
			}
		}
	}
	for _, f := range all {
		if slices.Contains(attrs, f.Attr) || f.Rule == nil && r.catalog.IsPending(f.Name) {
			continue
		}
		of, ok := kinds.FollowedBy(f, row)
		if !ok {
			continue
		}
		if attrs = append(attrs, f.Attr); r.scratch {
			continue
		}
		list := owntable.Followed(r.Name, kinds.FieldName(f), of)
		name := strings.SplitN(list.Key.Partition.Text(), "|", 3)[2]
		at := followingName(text, f.Attr)
		yield(Said{"follower", name, at, owntable.Follower(list, f.Attr, ref).Key.Sort.Text()}, wanted)
		if row.Get(owntable.FollowsAttr(f.Attr)).Text() != owntable.Hash(list.Key.Partition.Text()) {
			yield(Said{e.Name + "." + f.Attr, text, "", "follows another row"}, built)
		}
		if f.Keep {
			at += keeps
		}
		yield(Said{"followed", name, at, runner.ValueText(row.Get(f.Attr))}, built)
	}
	return attrs
}

// isMade reports whether the rule that makes a row makes an attribute by itself: it follows no other row.
func isMade(e *model.Entity, attr string) bool {
	return slices.ContainsFunc(e.MadeBy, func(rule *model.RowRule) bool {
		return slices.ContainsFunc(rule.Fields, func(a model.Assign) bool { return a.Name == attr && a.Expr.Follow == nil })
	})
}

// partOfSet says which part of a set a row shows.
func partOfSet(path string, inner bool) string {
	if inner {
		return fmt.Sprintf("part %q, which is split", path)
	}
	return fmt.Sprintf("part %q", path)
}

// followingName names an attribute of a row that follows another row.
func followingName(row, attr string) string { return row + unsaid + attr }

// keepsLast reports whether an attribute follows a row and keeps its last value when that is gone.
func keepsLast(e *model.Entity, attr string) bool {
	return slices.ContainsFunc(e.MadeBy, func(rule *model.RowRule) bool {
		return slices.ContainsFunc(rule.Fields, func(a model.Assign) bool {
			return a.Expr.Follow != nil && a.Expr.Follow.Attr == attr && a.Expr.Follow.Keep
		})
	})
}

// unsaid ends the text of a Part for people.
const unsaid = "\x01"

// keeps ends the Part of an attribute that keeps its last value when the row that it follows is gone.
const keeps = unsaid + "keeps"

// elementTexts are the texts of a list's or set's elements.
func elementTexts(v value.Value) (out []string) {
	for i := range v.Len() {
		out = append(out, runner.ValueText(v.At(i)))
	}
	return out
}

// yieldOwn yields the values of a row of weir's own table.
func (r *reader) yieldOwn(row value.Item, yield func(Said, string)) {
	partition := row.Get(owntable.Partition).Text()
	parts := strings.SplitN(partition, "|", 3)
	if len(parts) < 3 {
		return
	}
	side := r.sideOf(parts[0], parts[1], parts[2])
	if side == "" {
		return
	}
	of := parts[2]
	say := func(derivation, of, part, v string) { yield(Said{derivation, of, part, v}, side) }
	switch parts[0] {
	case owntable.KindLedger:
		for _, a := range row {
			if owntable.IsSum(a.Name) && a.Value.Kind() == value.Number && a.Value.Sign() == 0 {
				continue
			}
			if owntable.IsSum(a.Name) && r.hasTally(of, a.Name) {
				say("ledger "+a.Name, of, "", runner.ValueText(a.Value))
			}
		}
		for _, what := range []owntable.Lack{owntable.LacksTallies, owntable.LacksStatuses} {
			if _, why := owntable.LedgerRow(row).LackOf(what); why != "" {
				say("dead letter", of, "", why)
			}
		}
	case owntable.KindValue:
		name, rows := owntable.ValueIn(row)
		if r.hasTally(of, name) {
			say("ledger "+name, of, row.Get(owntable.Sort).Text(), runner.ValueText(rows))
		}
	case owntable.KindFact:
		if f := owntable.MemberFrom(row); f.Says != nil {
			say("fact", of, f.Name, runner.ValueText(f.Raw))
		}
	case owntable.KindSubscribers:
		at := row.Get(owntable.Sort).Text()
		if s := owntable.SubscriberFrom(row); owntable.IsEntry(at) && s.Says != nil {
			say("subscribers", of, at, runner.ValueText(s.Raw))
		}
	case owntable.KindFollow:
		if at := row.Get(owntable.Sort).Text(); owntable.IsEntry(at) {
			f := owntable.FollowerFrom(row)
			ref, ok := projections.RowOf(r.Model, f.Row)
			if ok {
				say("follower", of, followingName(runner.RowText(r.Model, ref), f.Attr), at)
			}
		} else if f := owntable.FollowedFrom(row); !f.Gone {
			say("followed", of, "", runner.ValueText(f.Value))
		} else if !r.scratch { // the last value, which only this row tells
			yield(Said{"followed", of, keeps, runner.ValueText(f.Value)}, wanted)
		}
	case owntable.KindSet:
		n := owntable.NodeFrom(owntable.PathOf(row), row)
		if !r.scratch && (n.Inner || n.Path != "" || len(n.Counts) > 0) {
			yield(Said{"rows of a set", of, unsaid + n.Path, partOfSet(n.Path, n.Inner)}, wanted)
		}
		for m, rows := range n.Counts {
			if rows.Sign() != 0 {
				say("members of a set", of, m, runner.ValueText(rows))
			}
		}
	}
}

// sideOf is the side of a row of weir's own table, by its kind, its generation and its subject; "" if rows show nothing of it.
func (r *reader) sideOf(kind, generation, of string) string {
	list, _ := owntable.CutFactList(of)
	list, _, _ = strings.Cut(list, "<")
	switch kind {
	case owntable.KindFact, owntable.KindSubscribers, owntable.KindFollow:
		if r.lists[kind+"|"+list] == generation {
			return r.sideName()
		}
		return ""
	case owntable.KindLedger, owntable.KindValue, owntable.KindSet:
	default:
		return ""
	}
	shown, replaced := false, false
	for _, e := range r.Entities {
		has := len(e.Values) > 0 || e.IsRecomputed()
		if kind == owntable.KindSet {
			has = e.SetOf() != nil && !r.catalog.IsPending(e.SetOf().Name)
		}
		switch {
		case !has || !catalog.CanBe(e, of):
		case r.ledgersName(e.Name) == generation:
			shown = true
		default:
			replaced = true
		}
	}
	switch {
	case !shown:
		return ""
	case replaced:
		return left
	}
	return r.sideName()
}

// hasTally reports whether the model has a tally of an accumulator, of rows such as the ledger's, that is not pending.
func (r *reader) hasTally(of, accumulator string) bool {
	return slices.ContainsFunc(r.Entities, func(e *model.Entity) bool {
		name := projections.TallyOf(e, accumulator)
		return name != "" && !r.catalog.IsPending(name) && catalog.CanBe(e, of)
	})
}
