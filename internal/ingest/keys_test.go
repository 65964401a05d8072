package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/model"
	"weir/internal/value"
)

// crowded has kinds of rows whose keys are as near each other as lint lets them be.
const crowded = `
model: crowded
tables: {crowd: {key: [PK, SK]}}
entities:
  One: {where: {kind: one}, key: {PK: "U#{a}", SK: M}}
  Two: {where: {kind: two}, key: {PK: "U#{a}#{b}", SK: M}}
  Pipe: {where: {kind: pipe}, key: {PK: "U#{a}|{b}", SK: "{c}/{d}"}}
  Tail: {where: {kind: tail}, key: {PK: "T/{a}[/{b}]", SK: "{c}#end"}}
`

// FuzzKeys: whatever names people choose, rows of different names have different
// keys, and a key says the names that it was made from.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"a", "a#b", "a|b", "a/b", "%", "%23", "a%23b", "#", "##", "M", "METADATA", "\x00", "\x1f", "é", "MEDIA#m", "like#", strings.Repeat("k", 900), strings.Repeat("#", 2048)} {
		f.Add(s, "b", "c", "d")
		f.Add("a", s, "c#d", "e")
		f.Add("a#b", s, s, "/")
	}
	var forms []*form
	for _, name := range model.Builtin() {
		m, err := model.Load(name)
		if err != nil {
			f.Fatal(err)
		}
		forms = append(forms, formsOf(m)...)
	}
	m, err := model.Parse("crowded.yaml", []byte(crowded))
	if err != nil {
		f.Fatal(err)
	}
	forms = append(forms, formsOf(m)...)
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, s := range []string{a, b, c, d} {
			if !utf8.ValidString(s) {
				return // no JSON holds it: the command is refused as it is read
			}
		}
		made := map[string]string{}
		for _, fm := range forms {
			for _, names := range [][]string{{a, b, c, d}, {b, a, d, c}, {a + "#" + b, c, d, a}, {a, b + "|" + c, d, b}, {a + "/" + b, c + "#" + d, a, d}} {
				row(t, fm, names, made)
			}
		}
	})
}

func formsOf(m *model.Model) (out []*form) {
	for _, e := range m.Entities {
		if !e.Derived {
			out = append(out, newForm(m, e))
		}
	}
	return out
}

// row checks a create with the names given, and its key against those made before.
func row(t *testing.T, f *form, names []string, made map[string]string) {
	given := map[string]string{}
	var item []value.Attr
	for i, name := range f.named {
		v := value.OfString(names[i%len(names)])
		if a := f.attrs[name]; a != nil {
			v = fitting(a, v)
		} else if f.Field(name).Type == model.TypeNumber {
			v = value.OfInt(7)
		}
		given[name] = model.Scalar(v)
		item = append(item, value.Attr{Name: name, Value: v})
	}
	for _, a := range f.Attributes {
		if a.Required && !slices.Contains(f.named, a.Name) {
			item = append(item, value.Attr{Name: a.Name, Value: fitting(a, value.OfString(names[0]))})
		}
	}
	c, r := f.check(Command{Op: Create, Item: value.NewItem(item...)}, env{time.Unix(0, 0), func() string { return "new" }})
	if r != nil {
		return
	}
	if _, r := c.image(nil); r != nil && r.Kind != TooLarge && !strings.Contains(r.Error(), "bytes long") {
		t.Errorf("%s %q: %v", f.Name, given, r)
	}
	for i, kt := range f.PrimaryKey() {
		v := c.ref.Key.Partition
		if i == 1 {
			v = c.ref.Key.Sort
		}
		read := make([]string, len(kt.Template.Names()))
		if kt.Template.Whole() {
			continue
		}
		if !kt.Template.Match(v.Text(), read) {
			t.Fatalf("%s: %q is no %s", f.Name, v.Text(), kt.Template)
		}
		for j, name := range kt.Template.Names() {
			if got := model.Unescape(read[j]); got != given[name] {
				t.Errorf("%s: %q says that %s is %q, not %q", f.Name, v.Text(), name, got, given[name])
			}
		}
	}
	who := fmt.Sprintf("%s.%s %q", f.model.Name, shapeOf(f), given)
	if before, twice := made[c.ref.String()]; twice && before != who && !strings.HasPrefix(before, "crowded") {
		t.Errorf("%s and %s have one key, %s", before, who, c.ref)
	} else if twice && before != who {
		t.Errorf("%s and %s have one key, %s", before, who, c.ref)
	}
	made[c.ref.String()] = who
}

// shapeOf tells entities apart whose keys are not the same by intent.
func shapeOf(f *form) string {
	var b strings.Builder
	for _, k := range f.PrimaryKey() {
		b.WriteString(k.Template.String() + " ")
	}
	return f.Table.Name + " " + b.String()
}

// fitting is a value that the attribute takes, the one given if it does.
func fitting(a *model.Attribute, v value.Value) value.Value {
	switch {
	case len(a.Enum) > 0:
		return value.OfString(a.Enum[0])
	case a.Type == model.TypeTime:
		return value.OfString("2025-01-01T00:00:00Z")
	case a.Type == model.TypeNumber:
		return value.OfInt(7)
	case a.Type == model.TypeBoolean:
		return value.OfBool(true)
	case a.Type == model.TypeFlag:
		return value.OfString("true")
	}
	return v
}

// FuzzReadCommand: any line is a command or a refusal with reasons.
func FuzzReadCommand(f *testing.F) {
	f.Add([]byte(`{"op":"create","entity":"Album","item":{"id":"a","title":"A","createdAt":"2025-01-01T00:00:00Z"},"idempotencyKey":"k"}`))
	f.Add([]byte(`{"op":"put","entity":"History","item":{"profileId":"p","attr":{"assetId":1,"x":[{}]},"ext":7}}`))
	f.Add([]byte(`{"item":` + strings.Repeat(`[`, 40) + `1e400` + strings.Repeat(`]`, 40) + `}`))
	f.Add([]byte("{\"item\":{\"a\":\"\\ud800\",\"a\":null}}"))
	var writers []*Writer
	for _, name := range model.Builtin() {
		m, err := model.Load(name)
		if err != nil {
			f.Fatal(err)
		}
		w := &Writer{Model: m}
		w.init()
		writers = append(writers, w)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := ReadCommand(line)
		if r, ok := err.(*Refusal); err != nil && (!ok || len(r.Problems) == 0) {
			t.Fatalf("%v", err)
		} else if err != nil {
			return
		}
		for _, w := range writers {
			checked, r := w.check(c, env{time.Unix(0, 0), func() string { return "new" }})
			if r == nil {
				checked.plan(&known{now: time.Unix(0, 0), newID: func() string { return "new" }})
			} else if len(r.Problems) == 0 {
				t.Fatalf("refused without a reason: %s", line)
			}
		}
	})
}
