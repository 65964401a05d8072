package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// golden is a scenario in which each projection of a model meets every kind of
// change: groups of events, after each of which everything catches up.
//
//	insert ENTITY VALUES        a new row
//	edit ENTITY NAMES VALUES    of the row with these names; null takes a value away
//	move ENTITY NAMES VALUES    to another key
//	delete ENTITY NAMES
//	expire ENTITY NAMES         TTL removes it
//	split TABLE                 its first open shard; no event
type golden struct {
	*model.Model
	groups [][]string
	events int
}

func loadGolden(m *model.Model, file string) (*golden, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g := &golden{Model: m, groups: make([][]string, 1)}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		last := len(g.groups) - 1
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			g.groups[last] = append(g.groups[last], line)
			if !strings.HasPrefix(line, "split ") {
				g.events++
			}
		case len(g.groups[last]) > 0:
			g.groups = append(g.groups, nil)
		}
	}
	return g, lines.Err()
}

// do does one event.
func (a *app) do(line string) error {
	what, rest, _ := strings.Cut(line, " ")
	name, rest, _ := strings.Cut(rest, " ")
	if what == "split" {
		t := a.base.tables[name]
		i := slices.IndexFunc(t.shards, func(s *shard) bool { return !s.Closed })
		a.changes++
		t.splitShard(t.shards[i], newDice(a.seed, "golden", len(t.shards)))
		return nil
	}
	i := slices.IndexFunc(a.model.Entities, func(e *model.Entity) bool { return e.Name == name })
	if i < 0 {
		return fmt.Errorf("%s: no entity %q", line, name)
	}
	e := a.model.Entities[i]
	objects, err := decode(e, rest)
	if err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	if what == "insert" {
		return a.puts(line, e, nil, objects[0])
	}
	o, err := a.one(e, objects[0])
	if err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	switch what {
	case "delete":
		a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
		return nil
	case "expire":
		t := a.base.tables[o.table.Name]
		a.base.who = "ttl"
		a.recordDeed(o, nil, func() { a.base.expire(t, o.key) })
		return nil
	}
	return a.puts(line, e, o, objects[1])
}

// puts writes a new row, or an old one with other values: at its key, or at another.
func (a *app) puts(line string, e *model.Entity, o *ownRow, change map[string]value.Value) error {
	vals := map[string]value.Value{}
	if o != nil {
		for _, at := range e.Attributes {
			vals[at.Name] = o.image.Get(at.Name)
		}
		for _, kt := range e.PrimaryKey() {
			for _, name := range kt.Template.Names() {
				if vals[name].IsMissing() {
					vals[name] = namedValue(e, name, o.image)
				}
			}
		}
	}
	for name, v := range change {
		vals[name] = v
	}
	row, ok := a.words.assembleRow(e, vals)
	if !ok {
		return fmt.Errorf("%s: that is no row of %s", line, e.Name)
	}
	key, _ := e.Table.KeyOf(row)
	moved := o != nil && refName(store.Ref{Table: e.Table.Name, Key: key}) != refName(store.Ref{Table: e.Table.Name, Key: o.key})
	if moves := strings.HasPrefix(line, "move "); moves != moved {
		return fmt.Errorf("%s: moved: %v", line, moved)
	}
	if o != nil && !moved {
		a.changeRow(o, changes(o.image, row), false)
		return nil
	}
	if a.rowAt(e.Table, key).image != nil {
		return fmt.Errorf("%s: there is one already", line)
	}
	var was value.Item
	if moved {
		was = o.image
	}
	a.putRow(e, row, true)
	if moved {
		a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
		for _, name := range projectionsOf(e, was) {
			a.counted["moved: "+name]++
		}
	}
	return nil
}

// changes are the steps from one image of a row to another.
func changes(from, to value.Item) (ops []store.Op) {
	for _, at := range to {
		if !value.Equal(at.Value, from.Get(at.Name)) {
			ops = append(ops, store.Op{Kind: store.Set, Attr: at.Name, Value: at.Value})
		}
	}
	for _, at := range from {
		if !to.Has(at.Name) {
			ops = append(ops, store.Op{Kind: store.Remove, Attr: at.Name})
		}
	}
	return ops
}

// one is the row that has these values.
func (a *app) one(e *model.Entity, names map[string]value.Value) (*ownRow, error) {
	var found []*ownRow
	for _, o := range a.standingRows(e) {
		has := true
		for name, v := range names {
			is := o.image.Get(name)
			if is.IsMissing() {
				is = e.Field(name).Get(o.image)
			}
			has = has && value.Equal(is, v)
		}
		if has {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d rows are so", len(found))
	}
	return found[0], nil
}

// decode reads the objects of a line.
func decode(e *model.Entity, text string) (out []map[string]value.Value, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for dec.More() {
		var raw map[string]any
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		vals := map[string]value.Value{}
		for name, x := range raw {
			vals[name] = typed(e.Attribute(name), x)
		}
		out = append(out, vals)
	}
	return out, nil
}

// typed is a JSON value as the application stores it.
func typed(at *model.Attribute, x any) value.Value {
	switch x := x.(type) {
	case string:
		return value.OfString(x)
	case json.Number:
		return value.MustNumber(x.String())
	case bool:
		if at != nil && at.Type == model.TypeFlag {
			return value.OfString(fmt.Sprint(x))
		}
		return value.OfBool(x)
	case []any:
		var vs []value.Value
		for _, el := range x {
			vs = append(vs, typed(nil, el))
		}
		return value.OfList(vs...)
	case map[string]any:
		var attrs []value.Attr
		for name, el := range x {
			attrs = append(attrs, value.Attr{Name: name, Value: typed(nil, el)})
		}
		return value.OfMap(value.NewItem(attrs...))
	}
	return value.Value{}
}

// metBy are the kinds of changes that each projection's sources have met.
func (a *app) metBy() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	add := func(name, op string) {
		if out[name] == nil {
			out[name] = map[string]bool{}
		}
		out[name][op] = true
	}
	for _, d := range a.deeds {
		op := "edit"
		switch {
		case d.was == nil:
			op = "insert"
		case d.is == nil:
			op = "delete"
		}
		for _, image := range []value.Item{d.was, d.is} {
			for _, name := range projectionsOf(d.table.Classify(image), image) {
				add(name, op)
			}
		}
	}
	for what := range a.counted {
		if name, is := strings.CutPrefix(what, "moved: "); is {
			add(name, "move")
		}
	}
	return out
}

// projectionsOf names what a row is a source of.
func projectionsOf(e *model.Entity, row value.Item) []string {
	return namesOf(e, func(where []model.Test) bool { return passesTests(where, row) })
}

// allProjectionsOf names what rows of an entity can be a source of.
func allProjectionsOf(e *model.Entity) []string {
	return namesOf(e, func([]model.Test) bool { return true })
}

func namesOf(e *model.Entity, holds func([]model.Test) bool) (out []string) {
	if e == nil {
		return nil
	}
	for _, s := range e.Sources {
		if holds(s.Where) {
			out = append(out, fmt.Sprintf("%s.%s of %s", s.Tally.Target.Name, s.Tally.Attr, e.Name))
		}
	}
	for _, r := range e.Rules {
		if holds(r.Where) {
			out = append(out, fmt.Sprintf("%s of %s", r.Name, e.Name))
		}
	}
	for _, f := range e.Follow {
		out = append(out, fmt.Sprintf("what follows %s.%s", e.Name, f.Field.Name))
	}
	for _, s := range e.Stages {
		if holds(s.Where) {
			out = append(out, fmt.Sprintf("%s.%s by %s", s.Status.Target.Name, s.Word, e.Name))
		}
	}
	for _, l := range e.LatestOf {
		if holds(l.Where) {
			out = append(out, fmt.Sprintf("%s by %s", l.Name, e.Name))
		}
	}
	for _, s := range e.Search {
		if holds(s.Where) {
			out = append(out, "search "+s.Name)
		}
	}
	for _, r := range e.Subscribes {
		out = append(out, fmt.Sprintf("%s for each %s", r.Name, e.Name))
	}
	return out
}
