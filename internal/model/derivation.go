package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/value"
)

// Derivation is one derived thing that a model declares: a tally, a copy, history, a feed,
// a followed attribute, a status, or a search index.
// Derivations are values: the catalog stores their hashes, and compares them as texts.
type Derivation struct {
	// Name is the name in the model file: "Album.mediaCount", "UserItem",
	// "Activity(created)". A followed attribute has the name of its rule and its own:
	// "UserItem.title". A search index is "search/albums". Names are unique in a model.
	Name string
	Kind string // a tally's keyword, or group, copy, history, feed, follow, status, search, or max, min, latest, earliest
	// Hash is a hash of everything that decides the derivation's values. It stays the same
	// for the life of a definition, in every version of weir.
	Hash string
	// Shares names the part that the derivation has in common with others. Derivations that share
	// something cannot be built one without the other:
	//
	//	ledger ENTITY    one ledger row beside each target row, with one position for each
	//	                 shard: all tallies of the entity
	//	rows ENTITY      rows do not say which rule made them: all rules that make the
	//	                 entity's rows, and the attributes that follow on them
	//	followed E.F     one row with the value, and one list of followers, for each source
	//	                 row: all attributes that follow the field
	//	others E.A       one list of rows: all statuses that ask for each row of it
	Shares []string
	From   []string // the entities whose rows count, are copied, followed or indexed, sorted
	Into   string   // the entity whose rows show it, "" for a search index
	Reads  []string // the tables whose rows decide the values, sorted
	// Tally reports that values are counted in ledgers or in the nodes of a set.
	Tally bool
	// History reports that the values come from past records, so that the rows that are
	// there do not tell them: history and feeds.
	History bool
	// After names the derivations that make the rows that this one reads, or the values in them, sorted. While one of
	// these is not complete, the values of this one are of both definitions.
	After []string

	definition defined
	lists      defined  // of a feed: the definition of its lists of subscribers
	makes      bool     // it makes rows
	attrs      []string // otherwise, the attributes of rows that it sets
	free       bool     // its name says nothing of whose rows it is, so it may be renamed to any other
}

// hashLength is the number of characters of a definition hash. They have 72 bits, which
// only have to tell apart the definitions that one derivation has had. Of a feed, the first half is of the lists of
// subscribers, and the second half of the rows that are sent to them.
const hashLength = 12

// SameLists reports whether a feed with another hash has the same lists of subscribers, so that only the rows that are sent to them
// differ. It is false of any other derivation.
func (d *Derivation) SameLists(hash string) bool {
	return len(d.lists) > 0 && len(hash) == hashLength && hash[:hashLength/2] == d.Hash[:hashLength/2]
}

// Sets reports whether the derivation decides an attribute of an entity's rows, or makes the rows.
func (d *Derivation) Sets(e *Entity, attr string) bool {
	return d.Into == e.Name && (d.Name == e.Name+"."+attr || d.Name == attr || d.makes && !d.Tally || slices.Contains(d.attrs, attr))
}

// Derivations returns the model's derivations, sorted by name.
// Each call computes them again, hashes included; a caller that needs them often keeps them.
func (m *Model) Derivations() []Derivation {
	out := slices.Concat(
		seq.Map(m.Tallies, (*Tally).derivation), m.ruleDerivations(), seq.Map(m.Statuses, (*Status).derivation),
		seq.Map(m.Latest, (*Latest).derivation), seq.Map(m.Searches, (*Search).derivation),
	)
	for i := range out {
		d := &out[i]
		if d.Hash = owntable.Hash(d.definition.String())[:hashLength]; len(d.lists) > 0 {
			d.Hash = owntable.Hash(d.lists.String())[:hashLength/2] + d.Hash[hashLength/2:]
		}
		d.Reads, d.From, d.Shares = sortedOnce(d.Reads), sortedOnce(d.From), sortedOnce(d.Shares)
	}
	slices.SortFunc(out, func(a, b Derivation) int { return cmp.Compare(a.Name, b.Name) })
	for i := range out {
		for j := range out {
			if i != j && out[i].reads(&out[j]) {
				out[i].After = append(out[i].After, out[j].Name)
			}
		}
	}
	return out
}

// reads reports whether a derivation reads rows that another makes, or values that it sets: an attribute that the
// definition names.
func (d *Derivation) reads(of *Derivation) bool {
	if !slices.Contains(d.From, of.Into) || of.makes {
		return slices.Contains(d.From, of.Into)
	}
	for _, line := range slices.Concat(d.definition, d.lists) {
		own := d.Into != "" && !strings.Contains(line, " / ") // of the derivation itself, and not of the rows that it reads
		if !own && slices.ContainsFunc(of.attrs, func(attr string) bool { return strings.Contains(line, fmt.Sprintf("%q", attr)) }) {
			return true
		}
	}
	return false
}

// sortedOnce sorts in place, and returns each name once.
func sortedOnce(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// ruleDerivations returns the derivations of row rules. Rules of one name, which make the
// same rows from several entities, are one derivation; so are their attributes of one name
// that follow.
func (m *Model) ruleDerivations() (out []Derivation) {
	rules, follows := map[string][]*RowRule{}, map[string][]*Follow{}
	for _, r := range m.Rows {
		rules[r.Name] = append(rules[r.Name], r)
	}
	for _, f := range m.Follows {
		follows[f.Name] = append(follows[f.Name], f)
	}
	out = append(out, seq.Map(slices.Sorted(maps.Keys(rules)), func(name string) Derivation { return rulesDerivation(name, rules[name]) })...)
	for _, name := range slices.Sorted(maps.Keys(follows)) {
		out = append(out, followsDerivation(name, follows[name]))
	}
	return out
}

// defined is a definition: lines whose parts are quoted, so that different definitions
// have different texts. A list that has no order in the model is sorted.
// The text is hashed and never shown. A change of any line here, in order or wording, changes the
// hash, and every program then asks for a build. TestNoFieldIsForgotten lists the fields that are
// in it.
type defined []string

// quoteLine is a word and its parts, quoted, so that no part can look like two.
func quoteLine(word string, parts ...string) string {
	return word + " " + strings.Join(seq.Map(parts, strconv.Quote), " ")
}

// addLine appends a line.
func (t *defined) addLine(word string, parts ...string) { *t = append(*t, quoteLine(word, parts...)) }

// addWithin adds lines that belong together, with a prefix.
func (t *defined) addWithin(word string, in defined) {
	for _, line := range in {
		*t = append(*t, word+" / "+line)
	}
}

// anyOrder adds groups of lines that have no order among each other.
func (t *defined) anyOrder(word string, groups []defined) {
	slices.SortFunc(groups, func(a, b defined) int { return slices.Compare(a, b) })
	for i, g := range groups {
		t.addWithin(fmt.Sprintf("%s %d", word, i), g)
	}
}

// anyOrderOnce is anyOrder for groups of which equal ones count once.
func (t *defined) anyOrderOnce(word string, groups []defined) {
	slices.SortFunc(groups, func(a, b defined) int { return slices.Compare(a, b) })
	t.anyOrder(word, slices.CompactFunc(groups, func(a, b defined) bool { return slices.Equal(a, b) }))
}

func (t defined) String() string { return strings.Join(t, "\n") }

// derivation is the catalog's view of a tally. Its hash covers all that decides the value: the
// aggregate and its options, the target's identity, and of each source the entity, the
// conditions and where the target's key comes from. The order of sources does not matter.
func (t *Tally) derivation() Derivation {
	d := Derivation{Name: t.Name, Tally: true, Into: t.Target.Name, Kind: t.Kind.Keyword, Shares: []string{"ledger " + t.Target.Name}}
	x := &d.definition
	x.addLine("tally", t.Kind.Keyword, t.Attr, fmt.Sprint(t.Round), fmt.Sprint(t.Max), fmt.Sprint(t.Hidden))
	if t.Kind == aggregate.Distinct {
		x.addLine("values", "rows") // a ledger that has the values themselves is of another definition
	}
	if t.IsSet() && owntable.EscapesValues(t.Attr) {
		x.addLine("values", "escaped") // without that, values of another attribute were among those counted
	}
	x.addWithin("target", t.Target.identity())
	if d.makes = t.IsSet() || t.Group != nil; !d.makes && !t.Hidden {
		d.attrs = []string{t.Attr}
	}
	if t.Group != nil && t == t.Group.Rows {
		d.Kind = "group"
		x.addWithin("row", t.Group.made())
	}
	if t.IsSet() {
		d.Shares = nil // rows of a set carry no other value
	}
	var sources []defined
	for _, s := range t.Sources {
		d.From, d.Reads = append(d.From, s.Entity.Name), append(d.Reads, s.Entity.Table.Name)
		of := s.Entity.identity()
		if s.Amount != nil {
			of.addWithin("field", s.Amount.definition())
		}
		if t.IsSet() {
			of.addLine("numbers", fmt.Sprint(s.hasNumbers()))
		}
		of.addTests("where", s.Where)
		of.addAssigns("to", s.To)
		sources = append(sources, of)
	}
	x.anyOrder("source", sources)
	return d
}

// rulesDerivation is the catalog's view of all rules that make the rows of one entity: copies,
// or a history if they keep.
func rulesDerivation(name string, rules []*RowRule) Derivation {
	d := Derivation{Name: name, Into: rules[0].Into.Name, Kind: "copy", makes: true, free: true, Shares: []string{"rows " + rules[0].Into.Name}}
	x := &d.definition
	x.addWithin("into", rules[0].Into.made())
	x.addWithin("into", rules[0].Into.besideKeys())
	var all, lists []defined
	for _, r := range rules {
		d.From, d.Reads = append(d.From, r.Source.Name), append(d.Reads, r.Source.Table.Name)
		of := r.Source.identity()
		of.addTests("where", r.Where)
		of.addAssigns("set", r.Fields)
		for _, event := range slices.Sorted(slices.Values(r.Keep)) {
			of.addLine("keep", event)
		}
		if len(r.Keep) > 0 {
			d.Kind, d.History, d.free = "history", true, false
			if hidden := r.Source.hiddenAttributes(); len(hidden) > 0 && slices.ContainsFunc(r.Fields, func(a Assign) bool { return readsImages(a.Expr) }) {
				of.addLine("hidden", hidden...)
			}
		}
		if r.Subscribers != nil {
			d.Kind, d.free = "feed", false
			d.From, d.Reads = append(d.From, r.Subscribers.Of.Name), append(d.Reads, r.Subscribers.Of.Table.Name)
			for i := range r.Subscribers.By {
				of.addWithin("by", r.Subscribers.By[i].Expr.definition())
			}
			lists = append(lists, r.describeSubscribers())
		}
		all = append(all, of)
	}
	x.anyOrder("rule", all)
	d.lists.anyOrder("list", lists)
	return d
}

// describeSubscribers is the definition of the lists of a feed's subscribers: their names, and the values that they have of a row that
// subscribes.
func (r *RowRule) describeSubscribers() defined {
	x := r.Subscribers.Of.identity()
	x.addLine("source", r.Source.Name) // the name of a list has it
	for _, m := range r.Subscribers.By {
		x.addWithin("by", m.Field.definition())
	}
	x.addAssigns("has", slices.DeleteFunc(slices.Clone(r.Fields), func(a Assign) bool { return a.Expr.Subscriber == nil }))
	return x
}

// followsDerivation is the catalog's view of an attribute that follows, over all the rules that
// set it.
func followsDerivation(name string, follows []*Follow) Derivation {
	d := Derivation{Name: name, Into: follows[0].Into.Name, Kind: "follow", attrs: []string{follows[0].Attr}, Shares: []string{"rows " + follows[0].Into.Name}}
	x := &d.definition
	x.addLine("follow", follows[0].Attr)
	x.addWithin("into", follows[0].Into.identity())
	var all []defined
	for _, f := range follows {
		d.From, d.Reads = append(d.From, f.Source.Name), append(d.Reads, f.Source.Table.Name, f.From.Table.Name)
		d.Shares = append(d.Shares, "followed "+f.Source.Name+"."+f.Field.Name)
		of := f.From.identity()
		of.addLine("of", f.Source.Name, f.Field.Name, fmt.Sprint(f.Keep))
		of.addWithin("source", f.Source.identity())
		of.addWithin("field", f.Field.definition())
		of.addAssigns("by", f.Key)
		if f.Rule != nil && f.Source.Derived {
			of.addLine("escaped") // without that, rows were on the list of a row with another key
		}
		all = append(all, of)
	}
	x.anyOrder("rule", all)
	return d
}

// derivation is the catalog's view of a status. Its enum is part of the definition: the order
// of the words decides which stage is further.
func (s *Status) derivation() Derivation {
	d := Derivation{Name: s.Name, Into: s.Target.Name, Kind: "status", attrs: s.Attributes(), Reads: []string{s.Target.Table.Name}}
	x := &d.definition
	x.addWithin("target", s.Target.identity())
	x.addLine("status", s.Attr.Name)
	x.addLine("enum", s.Attr.Enum...)
	if s.Attr.Reading != nil {
		for _, old := range slices.Sorted(maps.Keys(s.Attr.Reading.Legacy)) {
			x.addLine("legacy", old, s.Attr.Reading.Legacy[old])
		}
	}
	for _, st := range s.Stages {
		d.From, d.Reads = append(d.From, st.Source.Name), append(d.Reads, st.Source.Table.Name)
		of := defined{}
		of.addLine("stage", st.Word, fmt.Sprint(st.Rank), fmt.Sprint(st.Max))
		of.addWithin("source", st.Source.identity())
		of.addTests("where", st.Where)
		of.addAssigns("to", st.To)
		of.addAssigns("set", st.Set)
		if len(st.Set) > 1 { // their order says which row is the latest
			of.addLine("latest by", seq.Map(st.Set, func(a Assign) string { return a.Name })...)
		}
		if st.List != nil {
			of.addLine("each", st.List.Name, string(st.List.Type))
			of.addWithin("who", st.Who.definition())
			if o := st.List.Others; o != nil {
				d.Reads = append(d.Reads, o.Of.Table.Name)
				d.Shares = append(d.Shares, "others "+o.Name)
				of.addWithin("others", o.definition())
			}
		}
		x.addWithin("stage", of)
	}
	return d
}

// definition is which rows stand for an absent list, and which of their fields is the element.
func (o *Others) definition() defined {
	x := o.Of.identity()
	x.addLine("others", o.Name)
	x.addWithin("field", o.Field.definition())
	x.addAssigns("by", o.Key)
	return x
}

// derivation is the catalog's view of a search. The order of the text fields is part of it,
// since a document has them in that order; the order of filters and sorts is not.
func (s *Search) derivation() Derivation {
	x := s.Of.identity()
	x.addTests("where", s.Where)
	for _, f := range s.Text { // in the order in which a document has them
		x.addWithin("text", f.definition())
	}
	x.anyOrder("filter", seq.Map(s.Filters, func(f *Field) defined {
		of := f.definition()
		if f.Type == TypeCommas {
			of.addLine("elements") // without that, documents have the whole text
		}
		return of
	}))
	x.anyOrder("sort", seq.Map(s.Sorts, (*Field).definition))
	return Derivation{Name: s.Derivation(), Kind: "search", free: true, From: []string{s.Of.Name}, Reads: []string{s.Of.Table.Name}, definition: x}
}

// identity is the part that decides which rows are of the entity, and their keys. The
// entity's name decides nothing.
func (e *Entity) identity() (x defined) {
	x.addLine("table", e.Table.Name)
	x = append(x, seq.Map(e.PrimaryKey(), func(k *KeyTemplate) string { return k.definition("key") })...)
	x.addTests("row", e.Where)
	return x
}

// definition returns the part of a definition that decides which values the key attribute has.
func (k *KeyTemplate) definition(word string) string {
	return quoteLine(word, k.Attr.Name, k.Attr.Type.Descriptor(), k.Template.definition())
}

// made is the definition of a row that a rule makes, besides the values that the rule sets.
func (e *Entity) made() defined {
	x := e.identity()
	x.anyOrder("index key", seq.Map(e.Keys[len(e.PrimaryKey()):], func(k *KeyTemplate) defined { return defined{k.definition("index key")} }))
	var all []defined
	for i := range e.Table.Indexes {
		key := e.Table.Indexes[i].Key // its attributes are set together, or none is
		if e.KeyTemplate(key.Partition.Name) != nil || e.KeyTemplate(key.Sort.Name) != nil {
			all = append(all, defined{quoteLine("index", key.Partition.Name, key.Sort.Name)})
		}
	}
	x.anyOrderOnce("index", all)
	var computed []defined
	for _, a := range e.Attributes {
		if a.Computed != nil {
			one := defined{quoteLine("computed", a.Name, string(a.As))}
			one.addWithin("as", a.Computed.definition())
			computed = append(computed, one)
		}
	}
	x.anyOrder("computed", computed)
	return x
}

// besideKeys is which names in its keys a row that a rule makes has as attributes too: those that are
// declared. Without its declaration, such a name is an attribute only where the key spells it
// differently, and a key attribute of an index is made by its template. All other names that a rule
// sets are declared. A name that is itself an attribute of the primary key is there in any case.
func (e *Entity) besideKeys() (x defined) {
	var all []defined
	for _, a := range e.Attributes {
		inKey := slices.ContainsFunc(e.Keys, func(k *KeyTemplate) bool { return k.Template.Slot(a.Name) >= 0 })
		if inKey && !slices.Contains(e.PrimaryKey(), e.KeyTemplate(a.Name)) {
			all = append(all, defined{quoteLine("attribute", a.Name)})
		}
	}
	x.anyOrder("beside key", all)
	return x
}

// DerivedAttributes returns the attributes of the entity's rows that weir computes, sorted.
// Applications may write them only where a status has its own value; commands may not. The result
// belongs to the caller.
func (e *Entity) DerivedAttributes() (out []string) {
	for _, t := range e.Values {
		if !t.Hidden {
			out = append(out, t.Attr)
		}
	}
	out = append(out, seq.Flat(e.Statuses, func(s *Status) []string { return s.Attributes() })...)
	out = append(out, seq.Flat(e.Latest, func(l *Latest) []string { return l.Attributes() })...)
	out = append(out, seq.Map(e.Follows, func(f *Follow) string { return f.Attr })...)
	return sortedOnce(out)
}

// definition is where the field's value comes from, and which values can be used.
func (f *Field) definition() (x defined) {
	if f.Key != nil {
		x.addLine("field", f.Name, f.Attr, f.Key.definition())
	} else {
		x.addLine("field", f.Attr)
	}
	if f.Formula != nil {
		x.addWithin("computed", f.Formula.definition())
	}
	if f.Number {
		x.addLine("number")
	}
	f.addUsable(&x)
	return x
}

// addTests adds tests, all of which must hold.
func (t *defined) addTests(word string, tests []Test) {
	t.anyOrderOnce(word, seq.Map(tests, func(c Test) defined {
		one := c.Field.definition()
		one.addCondition(c.Is)
		return one
	}))
}

// addCondition adds terms, all of which must hold. A condition that the first models could have has the form
// of then, because a changed definition is built again.
func (t *defined) addCondition(is value.Condition) {
	if len(is) == 1 && is[0].As == value.AsIs && is[0].Op <= value.Absent {
		op := is[0].Op
		t.addLine("is", fmt.Sprint(op == value.NotIn), fmt.Sprint(op == value.Exists))
		t.addLine("of", constantTexts(is[0].Values)...)
		return
	}
	t.anyOrder("term", seq.Map(is, func(term value.Term) defined {
		return defined{quoteLine(term.Op.String(), append([]string{fmt.Sprint(term.As)}, constantTexts(term.Values)...)...)}
	}))
}

// constantTexts returns values as texts, sorted, each once.
func constantTexts(vs []value.Value) []string {
	return sortedOnce(seq.Map(vs, constantText))
}

// addAssigns adds names with their values.
func (t *defined) addAssigns(word string, assigns []Assign) {
	t.anyOrder(word, seq.Map(assigns, func(a Assign) defined {
		one := defined{quoteLine("name", a.Name)}
		one.addWithin("value", a.Expr.definition())
		return one
	}))
}

// definition is where a value comes from. A followed attribute is a derivation of its own,
// and its rule only has it.
// A time bucket has its unit, zone and rules in it.
func (x *Expr) definition() (out defined) {
	switch {
	case x.Field != nil:
		return x.Field.definition()
	case x.Record != "":
		out.addLine("record", x.Record)
	case x.Map != nil:
		out.addLine("map")
		out.addAssigns("member", x.Map)
	case x.Follow != nil:
		out.addLine("follow", x.Follow.Attr)
	case x.Subscriber != nil:
		out.addWithin("each", x.Subscriber.definition())
	case x.Bucket != nil:
		return x.Bucket.definition()
	default:
		out.addLine("constant", constantText(x.Const))
	}
	return out
}

// constantText is a constant as text; different constants have different texts.
func constantText(v value.Value) string { return string(value.AppendTyped(nil, v)) }
