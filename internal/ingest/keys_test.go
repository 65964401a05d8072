package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// crowded has entities whose keys are as close to each other as lint allows.
const crowded = `
model: crowded
tables: {crowd: {key: [PK, SK]}}
entities:
  One: {where: {kind: one}, key: {PK: "U#{a}", SK: M}}
  Two: {where: {kind: two}, key: {PK: "U#{a}#{b}", SK: M}}
  Pipe: {where: {kind: pipe}, key: {PK: "U#{a}|{b}", SK: "{c}/{d}"}}
  Tail: {where: {kind: tail}, key: {PK: "T/{a}[/{b}]", SK: "{c}#end"}}
`

// hostile are names with which a user might reach another row's key: separators of
// templates and of our own keys, whole keys, their escapes, invisible characters, and
// names as long as a key may be, and longer.
var hostile = []string{
	"a", "a#b", "a|b", "a/b", "a%b", "%", "%23", "a%23b", "%25", "%2", "#", "##", "|", "||", "/", "M", "METADATA", "#end", "kind",
	"\x00", "\x1f", "\x7f", "a\x00b", "a\nb", "\r\n", "\t", "\u2028", "\u202e", "\ufeff", "é", "e\u0301", "a ", " a", "MEDIA#m", "like#", "U#a",
	"claim|", "m|", "[/b]", "{a}", "$now", "null", "0", "00", "1e2",
	strings.Repeat("k", 900), strings.Repeat("k", 2046), strings.Repeat("k", 2048), strings.Repeat("k", 2049), strings.Repeat("#", 682), strings.Repeat("#", 2048),
}

// FuzzKeys: whatever names users choose, rows with different names have different keys,
// and a key contains the names that it was made from. The same holds for claims and for
// idempotency keys. A name that makes the key too long is refused.
func FuzzKeys(f *testing.F) {
	soaktest.Calm(f)
	for _, s := range hostile {
		f.Add(s, "b", "c", "d")
		f.Add("a", s, "c#d", "e")
		f.Add("a#b", s, s, "/")
	}
	f.Add(strings.Repeat("k", 900), "#"+owntable.Hash(strings.Repeat("k", 900)), "c", "d") // what the long one is in our keys
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

// row checks a create with the given names, and compares its key with the keys made
// before.
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
		given[name] = value.Scalar(v)
		item = append(item, value.Attr{Name: name, Value: v})
	}
	for _, a := range f.Attributes {
		if a.Required && !slices.Contains(f.named, a.Name) {
			item = append(item, value.Attr{Name: a.Name, Value: fitting(a, value.OfString(names[0]))})
		}
	}
	c, r := f.checkItem(Command{Op: Create, Item: value.NewItem(item...)}, env{time.Unix(0, 0), func() string { return "new" }})
	if r != nil {
		return
	}
	if p, q := c.ref.Key.Partition, c.ref.Key.Sort; len(p.Text()) > store.MaxPartitionBytes || len(q.Text()) > store.MaxSortBytes {
		t.Errorf("%s: a key of %d and %d bytes is taken", f.Name, len(p.Text()), len(q.Text()))
	}
	ours(t, c, made)
	if _, r := c.imageOf(nil); r != nil && r.Kind != TooLarge && !strings.Contains(r.Error(), "bytes long") {
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

// ours checks the keys in our own table that a command uses.
func ours(t *testing.T, c *checked, made map[string]string) {
	take := func(ref store.Ref, who string) {
		if before, twice := made[ref.String()]; twice && before != who {
			t.Errorf("%s and %s have one key, %s", before, who, ref)
		}
		if made[ref.String()] = who; len(ref.Key.Partition.Text()) > store.MaxPartitionBytes {
			t.Errorf("%s: a key of %d bytes", who, len(ref.Key.Partition.Text()))
		}
	}
	for _, u := range c.Unique {
		if v := c.given.get(u.Field.Name); value.Scalar(v) != "" {
			take(claimOf(c.model, c.Entity, u, v), fmt.Sprintf("the claim %s %s %s %q", c.model.Name, c.Name, u.Field.Name, value.Scalar(v)))
		}
	}
	for _, given := range c.given {
		v := given.Value
		take(owntable.CommandResult(c.model.Name, value.Scalar(v)), fmt.Sprintf("the idempotency key %s %q", c.model.Name, value.Scalar(v)))
	}
}

// shapeOf names the shape of an entity's key. Entities with the same shape share keys
// on purpose.
func shapeOf(f *form) string {
	var b strings.Builder
	for _, k := range f.PrimaryKey() {
		b.WriteString(k.Template.String() + " ")
	}
	return f.Table.Name + " " + b.String()
}

// fitting is the given value if the attribute takes it, or else another one that it
// takes.
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
			checked, r := w.checkCommand(c, env{time.Unix(0, 0), func() string { return "new" }})
			if r == nil {
				checked.planCommand(&known{facts: newFacts(0), now: time.Unix(0, 0), newID: func() string { return "new" }})
			} else if len(r.Problems) == 0 {
				t.Fatalf("refused without a reason: %s", line)
			}
		}
	})
}
