package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// inputsOf returns everything that derivations of a model read, found by reflection in what the model is
// compiled into.
func inputsOf(m *model.Model) (out []*model.Input) {
	seen := map[any]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && !seen[v.Interface()] {
				seen[v.Interface()] = true
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			if in, ok := v.Addr().Interface().(*model.Input); ok {
				out = append(out, in)
				return
			}
			if v.Type().PkgPath() != reflect.TypeFor[model.Model]().PkgPath() {
				return
			}
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(m))
	return out
}

// readers returns the inputs that have an attribute.
func readers(m *model.Model, e *model.Entity, a *model.Attribute) (out []*model.Input) {
	is := func(f *model.Field) bool { return f.Declared == a && f.Key == nil }
	reads := func(in *model.Input) bool {
		return slices.ContainsFunc(in.Where, func(t model.Test) bool { return is(t.Field) }) || slices.ContainsFunc(in.Fields, is)
	}
	for _, in := range inputsOf(m) {
		said := slices.ContainsFunc(e.LatestOf, func(l *model.Latest) bool { return in == &l.Given && reads(&l.Input) }) ||
			slices.ContainsFunc(e.Sources, func(s *model.Source) bool { return in == &s.Given && reads(&s.Input) })
		if reads(in) && !said { // what a group reads, it says once
			out = append(out, in)
		}
	}
	for _, f := range e.Follow {
		if is(f.Field) {
			out = append(out, &model.Input{Derivation: e.Name + "." + f.Field.Name + " followed", Fields: []*model.Field{f.Field}})
		}
	}
	return out
}

// passing returns a row that passes the tests of an input, as far as one of the values that they name makes it, and
// has the declared types in its fields.
func passing(in *model.Input, row value.Item) value.Item {
	for i := range in.Where {
		t := &in.Where[i]
		for _, v := range append(t.Constants(), value.OfInt(1000), value.OfString("x"), value.OfString("2030-01-01T00:00:00Z"), value.OfBool(true), value.OfNull()) {
			if t.Field.Key == nil && !t.Is.Holds(t.Field.Get(row)) {
				row = row.With(value.Attr{Name: t.Field.Attr, Value: v})
			}
		}
	}
	for _, f := range in.Fields {
		if _, want := f.Read(row); want != "" && f.Key == nil {
			row = row.With(value.Attr{Name: f.Attr})
		}
	}
	return row
}

// wrongs returns values that no attribute of a type may have.
func wrongs(a *model.Attribute) (out []value.Value) {
	for _, v := range []value.Value{value.OfMap(nil), value.OfInt(7), value.OfString("x"), value.OfBool(true)} {
		if _, want := a.Read(v, false); want != "" {
			out = append(out, v)
		}
	}
	return out
}

// TestEveryConstructMindsTypes: wherever a derivation of any kind reads an attribute, a value of another type than
// declared is a fault of that derivation, which names the field, what was found and what was expected. Which
// derivations read which attribute is found in the compiled models, so no construct is left out.
func TestEveryConstructMindsTypes(t *testing.T) {
	texts := map[string]string{}
	for _, name := range model.Builtin() {
		texts[name] = name
	}
	files, err := filepath.Glob("../../model/testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		texts[filepath.Base(file)] = file
	}
	guide, err := os.ReadFile("../../../docs/guide/model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(guide), "```yaml shop.yaml\n")
	block, _, _ = strings.Cut(block, "```")
	shop := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(shop, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	texts["guide"] = shop

	tried, kinds := 0, map[string]bool{}
	for name, file := range texts {
		m, err := model.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range m.Derivations() {
			kinds[d.Kind] = true
		}
		for _, e := range m.Entities {
			rows := samples(e)
			for _, a := range e.Attributes {
				if e.Table.Key.Partition.Name == a.Name || e.Table.Key.Sort.Name == a.Name {
					continue // the store has no other type there
				}
				wrong := wrongs(a)
				for _, of := range readers(m, e, a) {
					for _, v := range wrong {
						if tried++; !faulty(m, e, a, rows, v, of) {
							t.Errorf("%s: %s reads %s.%s, and says nothing of %s", name, of.Derivation, e.Name, a.Name, value.AppendTyped(nil, v))
						}
					}
				}
			}
		}
	}
	if tried < 450 {
		t.Errorf("only %d values", tried)
	}
	for _, kind := range []string{"count", "sum", "mean", "distinct", "set", "group", "copy", "history", "feed", "follow", "status", "max", "min", "latest", "earliest", "search"} {
		if !kinds[kind] {
			t.Errorf("no model has a %s", kind)
		}
	}
}

// faulty reports whether some row with a value in an attribute is a fault of the derivation that an input is of.
func faulty(m *model.Model, e *model.Entity, a *model.Attribute, rows []value.Item, v value.Value, of *model.Input) bool {
	for _, row := range rows {
		row = passing(of, row).With(value.Attr{Name: a.Name, Value: v})
		key, ok := e.Table.KeyOf(row)
		if !ok || e.Table.Classify(row) != e {
			continue
		}
		inserted := projections.Change{Table: e.Table, Row: store.Ref{Table: e.Table.Name, Key: key}, Is: e, New: row}
		g, _ := runner.Fold(All(), m, []projections.Change{inserted})
		removed := projections.Change{Table: e.Table, Row: inserted.Row, Was: e, Old: row}
		h, _ := runner.Fold(All(), m, []projections.Change{removed})
		_, want := a.Read(v, false)
		reason := (&model.Unfit{Field: e.Field(a.Name), Value: v, Want: want}).String()
		for _, f := range slices.Concat(g.Faults, h.Faults) { // history of removals reads the old row
			if f.Derivation == of.Derivation && f.Reason == reason && strings.HasPrefix(reason, a.Name+" is ") && strings.HasSuffix(reason, fmt.Sprint(", not ", want)) {
				return true
			}
		}
	}
	return false
}
