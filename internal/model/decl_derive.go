package model

import (
	"slices"
	"strings"

	"weir/internal/aggregate"
)

// deriveDecl is one derivation: "Entity.attribute" with a tally or steps, or
// "Entity", "Entity(label)" with a row rule.
type deriveDecl struct {
	name   word
	entity word
	attr   word // of "Entity.attribute"
	tally  *tallyDecl
	row    *rowDecl
	steps  *stepsDecl
}

type tallyDecl struct {
	kind   *aggregate.Aggregate
	of     []word // Entity or Entity.field
	where  []testDecl
	to     []pair
	round  int // -1 for none
	max    int // -1 for none
	hidden bool
	at     map[string]pos
}

type rowDecl struct {
	source []word
	keep   []word
	state  bool // no keep
	each   *eachDecl
	where  []testDecl
	set    []setDecl
}

// eachDecl says who gets a row: rows of an entity, found by fields of the source.
type eachDecl struct {
	pos
	of word
	by []pair
}

// setDecl gives a name its value: a word, a nested map, or what it follows.
type setDecl struct {
	name   word
	value  word
	nested []setDecl
	isMap  bool
	follow word
	by     []pair
	last   bool // of follow: the last value is kept
}

func readDerive(e entry) *deriveDecl {
	d := &deriveDecl{name: e.name}
	var names []string
	for _, in := range e.value.entries("a derivation") {
		names = append(names, in.name.text)
	}
	for _, k := range kinds {
		if slices.ContainsFunc(k.keys, func(key string) bool { return slices.Contains(names, key) }) {
			if d.split(e.value.r, k.shape) {
				k.read(d, e.value.fields(k.shape))
				return d
			}
			return nil
		}
	}
	if e.value.isMap() {
		var known []string
		for _, k := range kinds {
			known = append(known, k.keys...)
		}
		e.value.r.report(e.name.pos, "one of "+strings.Join(known, ", "), "%q does not say what it derives", e.name.text)
	}
	return nil
}

// split takes the name apart; it reports a name that does not fit the kind.
func (d *deriveDecl) split(r *reader, shape string) bool {
	d.entity = d.name
	if shape != "row rule" {
		entity, attr, ok := strings.Cut(d.name.text, ".")
		d.entity.text = entity
		d.attr = word{attr, pos{d.name.line, d.name.column + len(entity) + 1}}
		if !ok || entity == "" || attr == "" {
			r.report(d.name.pos, "Album.mediaCount", "%s is named by the entity and the attribute it is kept in, not %q", article(shape), d.name.text)
			return false
		}
		return true
	}
	entity, label, labelled := strings.Cut(d.name.text, "(")
	d.entity.text = entity
	if name, ok := strings.CutSuffix(label, ")"); entity == "" || strings.Contains(entity, ".") || labelled && (!ok || !identifier.MatchString(name)) {
		r.report(d.name.pos, "Activity, or Activity(created)", "a row rule is named by the entity it makes, not %q", d.name.text)
		return false
	}
	return true
}

func readTally(d *deriveDecl, f fields) {
	t := &tallyDecl{
		where: readTests(f), to: f.pairs("to"), round: f.number("round", 0, 20), max: f.number("max", 1, maxDistinct),
		hidden: f.flag("hidden"), at: f.places(),
	}
	for _, kind := range aggregate.All {
		if _, ok := f.has[kind.Keyword]; !ok {
			continue
		}
		if t.kind != nil {
			f.r.report(f.at(kind.Keyword), "", "a tally is either %q or %q", t.kind.Keyword, kind.Keyword)
			continue
		}
		t.kind, t.of = kind, f.words(kind.Keyword)
	}
	d.tally = t
}

// maxDistinct bounds a distinct: all its values stand in one row of 400 KB.
const maxDistinct = 5000

func readRow(d *deriveDecl, f fields) {
	r := &rowDecl{source: f.words("row"), keep: f.words("keep"), where: readTests(f)}
	if n, ok := f.has["row"]; ok && len(r.source) == 0 && len(n.elements()) == 0 {
		n.wrong(f.what("row"), "an entity, or a list of them")
	}
	if n, ok := f.has["each"]; ok {
		each := n.fields("each")
		r.each = &eachDecl{pos: n.pos(), of: each.need("of", "of: ENTITY"), by: each.namesOrPairs("by")}
		if _, ok := each.has["by"]; !ok {
			each.missing("by", "by: {field of the follower: field of the source row}")
		}
	}
	if n, ok := f.has["keep"]; ok && len(n.elements()) == 0 {
		n.wrong(f.what("keep"), "some of insert, modify, remove")
	} else {
		r.state = !ok
	}
	if n, ok := f.has["set"]; !ok || n.isMap() && len(n.y.Content) == 0 {
		f.missing("set", "set: {name: field of the source row}")
	}
	r.set = readSets(f.entries("set"))
	d.row = r
}

func readSets(entries []entry) []setDecl {
	var out []setDecl
	for _, e := range entries {
		s := setDecl{name: e.name}
		switch {
		case e.value.isMap() && e.value.isFollow():
			f := e.value.fields("follow")
			s.follow, s.by, s.last = f.need("follow", "follow: Entity.field"), f.pairs("by"), f.flag("keep")
		case e.value.isMap():
			s.isMap, s.nested = true, readSets(e.value.entries("a nested map"))
		default:
			s.value = e.value.constant("the value of " + e.name.text)
		}
		out = append(out, s)
	}
	return out
}

func (n node) isFollow() bool {
	for i := 0; i < len(n.y.Content); i += 2 {
		if n.y.Content[i].Value == "follow" {
			return true
		}
	}
	return false
}

// constant is word, and refuses a number or boolean, which could be meant as a
// field or as a value.
func (n node) constant(what string) word {
	w := n.word(what)
	if tag := n.y.ShortTag(); w.given() && tag != "!!str" {
		n.r.report(w.pos, "a constant is written ="+w.text, "%s must be the name of a field, not %s", what, w.text)
		return word{}
	}
	return w
}
