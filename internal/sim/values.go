package sim

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/value"
)

// words are the few values of a run. All names draw from the same values, so that rows of
// different entities meet.
type words struct {
	ids     []string
	times   []string
	numbers []string
	texts   []string
	consts  map[*model.Entity]map[string][]value.Value // the values that rules compare a field with
}

var (
	idPool = []string{
		"a", "b", "c", "d1", "d2", "7", "x y", "Ünï-ß", "日本語", "a#b", "50%", "p|q", "%23", "é", "e:f/g", strings.Repeat("long", 100),
		strings.Repeat("L", 900), "A", "-", "_", "0",
	}
	timePool = []string{
		"2026-01-01T00:00:00Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678Z", "2026-01-02T04:04:05+01:00", "2026-02-03T00:00:00Z", "2025-12-31T23:59:59.999999Z",
	}
	numberPool = []string{
		"0", "1", "-1", "2.5", "-3", "10", "0.1", "0.005", "-0.005", "7", "123456789012.12345678901234567", "-123456789012.12345678901234567", "9.99", "3", "4", "5",
	}
	// No sum takes these.
	wildNumbers = []string{"100000000000000000000", "0.00000000000000000001", "1" + strings.Repeat("0", 125), "-1" + strings.Repeat("0", 125)}
	textPool    = []string{"one", "two words", "", "Straße", "naïve café", "日本", "ONE", "x", "one two three", "ꙮ"}
)

// newWords chooses the values of a run from the pools, and collects the constants that the
// model's conditions ask for.
func newWords(m *model.Model, d *dice) *words {
	w := &words{consts: map[*model.Entity]map[string][]value.Value{}}
	some := func(pool []string, least, most int) []string {
		pool = slices.Clone(pool)
		d.shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
		return pool[:least+d.n(most-least+1)]
	}
	w.ids, w.times, w.numbers, w.texts = some(idPool, 2, 5), some(timePool, 3, 5), some(numberPool, 3, 8), some(textPool, 4, 8)
	if d.chance(0.5) {
		w.ids = append(some(idPool[:6], 2, 4), w.ids[0])
	}
	if d.chance(0.35) {
		w.numbers = append(w.numbers, wildNumbers...)
	}
	note := func(tests []model.Test, e *model.Entity) {
		for _, t := range tests {
			if w.consts[e] == nil {
				w.consts[e] = map[string][]value.Value{}
			}
			w.consts[e][t.Field.Name] = append(w.consts[e][t.Field.Name], t.Constants()...)
		}
	}
	for _, e := range m.Entities {
		for _, s := range e.Sources {
			note(s.Where, e)
		}
		for _, r := range e.Rules {
			note(r.Where, e)
		}
		for _, s := range e.Search {
			note(s.Where, e)
		}
		for _, s := range e.Stages {
			note(s.Where, e)
		}
		for _, l := range e.LatestOf {
			note(l.Where, e)
		}
	}
	return w
}

// valueFor is a value for an attribute or name of an entity's rows.
func (w *words) valueFor(e *model.Entity, name string, d *dice) value.Value {
	a := e.Attribute(name)
	if consts := w.consts[e][name]; len(consts) > 0 && d.chance(0.8) {
		v := pick(d, consts)
		if a != nil && a.Type == model.TypeFlag && v.Kind() == value.Bool {
			v = value.OfString(value.Scalar(v))
		}
		return v
	}
	if a == nil {
		return value.OfString(pick(d, w.ids))
	}
	if len(a.Enum) > 0 {
		return value.OfString(pick(d, a.Enum))
	}
	return w.ofType(a, d)
}

// nthValue is the nth of many values, missing if the attribute takes only a few.
func nthValue(a *model.Attribute, n int) value.Value {
	if a == nil || a.Type == model.TypeString && len(a.Enum) == 0 {
		return value.OfString(fmt.Sprint("n", n))
	}
	if a.Type == model.TypeNumber {
		return value.OfInt(int64(1000 + n))
	}
	if a.Type == model.TypeTime {
		return value.OfString(fmt.Sprintf("2026-03-01T%02d:%02d:%02dZ", n/3600, n/60%60, n%60))
	}
	return value.Value{}
}

// ofType is a random value of an attribute's type; it is missing for an empty set.
func (w *words) ofType(a *model.Attribute, d *dice) value.Value {
	switch a.Type {
	case model.TypeNumber:
		return value.MustNumber(pick(d, w.numbers))
	case model.TypeBoolean:
		return value.OfBool(d.chance(0.5))
	case model.TypeFlag:
		return value.OfString(fmt.Sprint(d.chance(0.5)))
	case model.TypeTime:
		return value.OfString(pick(d, w.times))
	case model.TypeBinary:
		return value.OfBinary(pick(d, w.ids))
	case model.TypeList:
		return value.OfList(w.someValues(d, value.OfString)...)
	case model.TypeMap:
		return value.OfMap(value.NewItem(value.Attr{Name: "k", Value: value.OfString(pick(d, w.texts))}, value.Attr{Name: "n", Value: value.MustNumber(pick(d, w.numbers))}))
	case model.TypeStrings:
		vs := w.someValues(d, value.OfString)
		if len(vs) == 0 {
			return value.Value{}
		}
		return setOf(value.StringSet, vs)
	case model.TypeNumbers:
		return setOf(value.NumberSet, []value.Value{value.MustNumber(pick(d, w.numbers))})
	case model.TypeCommas:
		return value.OfString(strings.Join([]string{pick(d, w.ids), pick(d, w.ids)}, ","))
	case model.TypeAny:
		if d.chance(0.3) {
			return value.MustNumber(pick(d, w.numbers))
		}
	}
	if d.chance(0.3) {
		return value.OfString(pick(d, w.texts))
	}
	return value.OfString(pick(d, w.ids))
}

func (w *words) someValues(d *dice, of func(string) value.Value) (out []value.Value) {
	for _, id := range w.ids {
		if d.chance(0.5) {
			out = append(out, of(id))
		}
	}
	return out
}

func setOf(k value.Kind, vs []value.Value) value.Value {
	attrs := make([]value.Attr, len(vs))
	for i, v := range vs {
		attrs[i].Value = v
	}
	v, _ := value.OfElements(k, attrs)
	return v
}

// newRow is a new row of an entity as the application would write it: values in keys are
// escaped, and it has the keys of those indexes for which all names have values.
func (w *words) newRow(e *model.Entity, d *dice) (value.Item, bool) {
	vals := map[string]value.Value{}
	for _, a := range e.Attributes {
		if a.Required || inKey(e, a.Name) || d.chance(0.6) {
			vals[a.Name] = w.valueFor(e, a.Name, d)
		}
	}
	for _, kt := range e.PrimaryKey() {
		for _, name := range kt.Template.Names() {
			if _, ok := vals[name]; !ok || vals[name].Text() == "" {
				vals[name] = w.keyValue(e, kt, name, d)
			}
		}
	}
	for _, name := range e.IndexNames() {
		if !e.Derived && d.chance(0.8) {
			vals[name] = w.valueFor(e, name, d)
		}
	}
	return w.assembleRow(e, vals)
}

// keyValue is a value of the key attribute's type, never empty.
func (w *words) keyValue(e *model.Entity, kt *model.KeyTemplate, name string, d *dice) value.Value {
	if kt.Template.Whole() && kt.Attr.Type == value.Number {
		return value.MustNumber(pick(d, w.numbers))
	}
	v := w.valueFor(e, name, d)
	if v.Text() == "" || v.Kind() != value.String && v.Kind() != value.Number {
		v = value.OfString(pick(d, w.ids))
	}
	if kt.Template.Whole() && kt.Attr.Type == value.Binary {
		return value.OfBinary(v.Text())
	}
	return v
}

// inKey reports whether a name is part of an entity's primary key.
func inKey(e *model.Entity, name string) bool {
	return slices.ContainsFunc(e.PrimaryKey(), func(k *model.KeyTemplate) bool { return k.Template.Slot(name) >= 0 })
}

// assembleRow makes a row of the values of its names. ok is false if the result is no row of
// the entity, or one that the table would refuse.
func (w *words) assembleRow(e *model.Entity, vals map[string]value.Value) (value.Item, bool) {
	row := value.NewItem(seq.Map(e.Attributes, func(a *model.Attribute) value.Attr { return value.Attr{Name: a.Name, Value: vals[a.Name]} })...)
	for i := range e.Where {
		t := &e.Where[i]
		switch {
		case t.Field.Key != nil:
		case len(t.Listed()) > 0:
			row = row.With(value.Attr{Name: t.Field.Attr, Value: t.Listed()[0]})
		case len(t.Is) == 1 && t.Is[0].Op == value.Exists && !row.Has(t.Field.Attr):
			row = row.With(value.Attr{Name: t.Field.Attr, Value: value.OfString("x")})
		}
	}
	for i, kt := range e.Keys {
		primary := i < len(e.PrimaryKey())
		if !primary && e.Attribute(kt.Attr.Name) != nil {
			continue
		}
		v, ok := kt.Build(func(name string) value.Value {
			if v := vals[name]; v.Kind() == value.String {
				return value.OfString(kt.Template.Escape(v.Text()))
			}
			return vals[name]
		})
		if !ok && primary {
			return nil, false
		}
		if ok {
			row = row.With(value.Attr{Name: kt.Attr.Name, Value: v})
		}
	}
	row = row.With(e.Spelled(func(name string) value.Value { return vals[name] }, func(k *model.KeyTemplate, name string) string {
		return k.Template.Escape(vals[name].Text())
	})...)
	return row, e.Table.Classify(row) == e
}
