package model

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.yaml.in/yaml/v3"

	"weir/internal/aggregate"
	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
	"weir/models"
)

// modelFiles returns the text of every built-in model, of the models in testdata/good, and
// of one more that has what they lack.
func modelFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range Builtin() {
		b, err := models.Files.ReadFile(name + ".yaml")
		failtest.On(t, err)
		out[name] = string(b)
	}
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models in testdata/good: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		failtest.On(t, err)
		out[strings.TrimSuffix(filepath.Base(f), ".yaml")] = string(b)
	}
	return out
}

func hashesOf(m *Model) map[string]string {
	out := map[string]string{}
	for _, d := range m.Derivations() {
		out[d.Name] = d.Hash
	}
	return out
}

// TestDerivationsStay holds the hashes of the definitions to those on record. Who runs weir
// has them in its table: a hash that changes without its definition refuses every upgrade.
func TestDerivationsStay(t *testing.T) {
	datadriven.RunTest(t, "testdata/derivations.txt", func(t *testing.T, d *datadriven.TestData) string {
		m, err := Load(strings.TrimSpace(d.Input))
		if err != nil {
			return err.Error() + "\n"
		}
		var b strings.Builder
		for _, d := range m.Derivations() {
			fmt.Fprintf(&b, "%s %s %s reads %s", d.Name, d.Hash, d.Kind, strings.Join(d.Reads, ", "))
			if len(d.Shares) > 0 {
				fmt.Fprintf(&b, " shares %s", strings.Join(d.Shares, ", "))
			}
			if d.History {
				b.WriteString(" history")
			}
			if len(d.After) > 0 {
				fmt.Fprintf(&b, " after %s", strings.Join(d.After, ", "))
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}

// TestDerivationsAreWhole: every tally, rule, followed attribute, status and index of a
// model belongs to exactly one derivation, and each name is there once.
func TestDerivationsAreWhole(t *testing.T) {
	for name, text := range modelFiles(t) {
		m := mustParse(t, name, text)
		want := map[string]bool{}
		for _, x := range m.Tallies {
			want[x.Name] = true
		}
		for _, x := range m.Rows {
			want[x.Name] = true
		}
		for _, x := range m.Follows {
			want[x.Name] = true
		}
		for _, x := range m.Statuses {
			want[x.Name] = true
		}
		for _, x := range m.Latest {
			want[x.Name] = true
		}
		for _, x := range m.Searches {
			want["search/"+x.Name] = true
		}
		got := m.Derivations()
		if len(got) != len(want) {
			t.Errorf("%s has %d derivations, want %d", name, len(got), len(want))
		}
		for _, d := range got {
			if !want[d.Name] || len(d.Hash) != hashLength || len(d.Reads) == 0 || len(d.From) == 0 || d.Kind == "" {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

func mustParse(t *testing.T, name, text string) *Model {
	t.Helper()
	m, err := Parse(name+".yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// place is a node of a model file with the keys that lead to it.
type place struct {
	path []string
	node *yaml.Node
	in   *yaml.Node // the map or list that has it
	at   int        // its index there
	key  bool
}

func places(n *yaml.Node, path []string, in *yaml.Node, at int, yield func(place)) {
	yield(place{path: path, node: n, in: in, at: at})
	switch n.Kind {
	case yaml.DocumentNode:
		places(n.Content[0], path, n, 0, yield)
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			sub := append(slices.Clone(path), n.Content[i].Value)
			yield(place{path: sub, node: n.Content[i], in: n, at: i, key: true})
			places(n.Content[i+1], sub, n, i+1, yield)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			places(c, append(slices.Clone(path), fmt.Sprint(i)), n, i, yield)
		}
	}
}

// edits calls try with every model that one edit of the file makes and that loads: each
// scalar gets other texts, and each entry of a map or list is left out.
func edits(t *testing.T, name, text string, words func(path []string) []string, try func(path []string, edit string, m *Model)) {
	t.Helper()
	var doc yaml.Node
	failtest.On(t, yaml.Unmarshal([]byte(text), &doc))
	load := func(path []string, edit string) {
		b, err := yaml.Marshal(&doc)
		failtest.On(t, err)
		if m, err := Parse(name+".yaml", b); err == nil {
			try(path, edit, m)
		}
	}
	var all []place
	places(&doc, nil, nil, 0, func(p place) { all = append(all, p) })
	for at, p := range all {
		if p.node.Kind == yaml.ScalarNode && !p.key {
			was := *p.node
			each := soaktest.Count(7, 1)
			for i, w := range append([]string{p.node.Value + "x", "true", "7"}, words(p.path)...) {
				if w != was.Value && (at+i)%each == 0 {
					*p.node = yaml.Node{Kind: yaml.ScalarNode, Value: w}
					if was.Style != 0 {
						p.node.Style, p.node.Tag = was.Style, was.Tag
					}
					load(p.path, fmt.Sprintf("%q becomes %q", was.Value, w))
				}
			}
			*p.node = was
		}
		if p.in == nil || p.in.Kind == yaml.DocumentNode {
			continue
		}
		was := slices.Clone(p.in.Content)
		switch {
		case p.key:
			p.in.Content = slices.Delete(slices.Clone(was), p.at, p.at+2)
		case p.in.Kind == yaml.SequenceNode:
			p.in.Content = slices.Delete(slices.Clone(was), p.at, p.at+1)
		default:
			continue
		}
		load(p.path, "is left out")
		p.in.Content = was
	}
}

// TestEditsOfDefinitions edits every built-in model and those of testdata in every place,
// and holds each derivation's hash to what the edit means: an edit of its declaration
// changes it, and so does one of the where or the key of an entity that it names; an edit
// of anything else does not. In short, each place takes one text in seven.
func TestEditsOfDefinitions(t *testing.T) {
	tried, changed := 0, map[string]int{}
	for name, text := range modelFiles(t) {
		was := hashesOf(mustParse(t, name, text))
		declared := declarations(t, text)
		words := func(path []string) []string {
			if len(path) == 0 || path[0] != "derive" && path[0] != "search" {
				return nil
			}
			return declared.words
		}
		edits(t, name, text, words, func(path []string, edit string, m *Model) {
			is := hashesOf(m)
			tried++
			for d, hash := range was {
				now, there := is[d]
				if !there {
					continue // removed, or another name
				}
				say := fmt.Sprintf("%s: %s %s: %s", name, strings.Join(path, "."), edit, d)
				want, why := declared.effect(path, edit, d)
				switch {
				case want == must && now == hash:
					t.Errorf("%s keeps its hash, but %s", say, why)
				case want == never && now != hash:
					t.Errorf("%s gets another hash, but %s", say, why)
				case now != hash:
					changed[path[0]]++
				}
			}
		})
	}
	t.Logf("%d edits loaded; hashes changed by section: %v", tried, changed)
	if tried < 500 || changed["derive"] < 100 || changed["entities"] < 50 || changed["search"] < 20 {
		t.Errorf("only %d edits, which changed %v", tried, changed)
	}
}

type effect int

const (
	may effect = iota
	must
	never
)

// declared is a model file read naively: which texts stand in each declaration.
type declared struct {
	words    []string // attributes and key names that the file declares
	entities []string
	mentions map[string][]string // by derivation, all texts in its declaration and its name
	kinds    map[string]string
	beside   map[string][]string // by entity, the attributes that its keys name, but for those that are a key
}

func declarations(t *testing.T, file string) *declared {
	t.Helper()
	var doc struct {
		Tables   map[string]struct{ Key, Indexes yaml.Node }
		Entities map[string]struct {
			Key        map[string]string
			Attributes map[string]any `yaml:"attributes"`
		} `yaml:"entities"`
		Derive map[string]yaml.Node `yaml:"derive"`
		Search map[string]yaml.Node `yaml:"search"`
	}
	failtest.On(t, yaml.Unmarshal([]byte(file), &doc))
	d := &declared{mentions: map[string][]string{}, kinds: map[string]string{}, beside: map[string][]string{}}
	var key, index []string // names of key attributes
	for _, table := range doc.Tables {
		places(&table.Key, nil, nil, 0, func(p place) { key = append(key, p.node.Value) })
		places(&table.Indexes, nil, nil, 0, func(p place) { index = append(index, p.node.Value) })
	}
	for name, e := range doc.Entities {
		d.entities = append(d.entities, name)
		templates := fmt.Sprint(e.Key)
		for a := range e.Attributes {
			d.words = append(d.words, a)
			if !slices.Contains(key, a) && (slices.Contains(index, a) || strings.Contains(templates, "{"+a+"}")) {
				d.beside[name] = append(d.beside[name], a)
			}
		}
	}
	slices.Sort(d.words)
	d.words = slices.Compact(d.words)
	most := 8
	if testing.Short() {
		most = 3
	}
	for i := range d.words { // every nth, so that the test stays short
		if n := len(d.words)/most + 1; i%n != 0 {
			d.words[i] = ""
		}
	}
	d.words = slices.DeleteFunc(d.words, func(w string) bool { return w == "" })
	gather := func(name string, n *yaml.Node) {
		d.mentions[name] = append(d.mentions[name], name)
		for i := 0; i < len(n.Content); i += 2 {
			d.kinds[name] += n.Content[i].Value + " "
		}
		grouped := d.grouped(name)
		places(n, nil, nil, 0, func(p place) {
			of := name
			if len(p.path) == 3 && p.path[0] == "set" && p.path[2] == "follow" { // a derivation of its own
				of = name + "." + p.path[1]
				d.mentions[of] = append(d.mentions[of], d.mentions[name]...)
			}
			if grouped && len(p.path) > 1 && p.path[0] == "set" { // so is each value of a group
				of = name + "." + p.path[1]
				d.mentions[of] = append(d.mentions[of], name)
			}
			d.mentions[of] = append(d.mentions[of], p.node.Value)
		})
	}
	for name, n := range doc.Derive {
		gather(name, &n)
	}
	for name, n := range doc.Search {
		gather("search/"+name, &n)
	}
	return d
}

// of returns the declaration that a derivation belongs to: a followed attribute belongs to
// its rule's.
func (d *declared) of(derivation string) string {
	if d.kinds[derivation] != "" {
		return derivation
	}
	rule, _, _ := strings.Cut(derivation, ".")
	return rule
}

// grouped reports whether a declaration is of a group.
func (d *declared) grouped(name string) bool { return strings.HasPrefix(d.kinds[name]+" ", "group ") }

// names reports whether a declaration names an entity, alone or before a dot or a label.
func (d *declared) names(derivation, entity string) bool {
	names := func(derivation, entity string) bool {
		return slices.ContainsFunc(d.mentions[derivation], func(w string) bool {
			return w == entity || strings.HasPrefix(w, entity+".") || strings.HasPrefix(w, entity+"(")
		})
	}
	if group := d.of(derivation); d.grouped(group) && group != derivation && !names(derivation, entity) { // a value of all entities of the group?
		return !slices.ContainsFunc(d.entities, func(e string) bool { return e != group && names(derivation, e) }) && names(group, entity)
	}
	return names(derivation, entity)
}

// effect says what an edit at a path must do to a derivation's hash.
func (d *declared) effect(path []string, edit, derivation string) (effect, string) {
	own := d.of(derivation)
	section := path[0]
	switch section {
	case "derive", "search":
		if len(path) == 1 {
			return may, "" // all of them are left out
		}
		edited := path[1]
		if section == "search" {
			edited = "search/" + edited
		}
		switch value := ""; {
		case edited == own && d.grouped(own) && len(path) > 3 && path[2] == "set":
			if value = own + "." + path[3]; derivation == value {
				return must, "the edit is in its value"
			}
			return never, "the edit is in another value of the group"
		case edited == own && d.grouped(own) && len(path) > 3 && (path[2] == "where" || path[2] == "by"):
			return must, "the edit says which rows are in which group"
		case edited == own && derivation != own:
			return may, "" // of a followed attribute: its own part, or its rule's
		case edited != own:
			return never, "the edit is in another declaration"
		case strings.Contains(d.kinds[own], "row") && slices.Contains(path, "set") && len(path) > 4:
			return may, "" // inside a followed attribute, which is a derivation of its own
		case path[len(path)-1] == "hidden":
			return may, "" // hidden: false is the same as none
		}
		return must, "the edit is in its declaration"
	case "entities":
		if len(path) < 3 {
			return may, ""
		}
		names := d.names(derivation, path[1])
		switch part := path[2]; {
		case part == "where" && names:
			return must, "it reads or makes rows of " + path[1]
		case part == "where", part == "key" && !names:
			return never, "it has nothing to do with " + path[1]
		case part == "attributes" && !names:
			return never, "it has nothing to do with " + path[1]
		case part == "key", part == "table":
			return may, ""
		case part == "attributes" && strings.Contains(d.kinds[own], "row"):
			made, _, _ := strings.Cut(own, "(")
			beside := d.beside[path[1]]
			out := len(beside) > 0 && len(path) == 3 || len(path) == 4 && slices.Contains(beside, path[3])
			if out && edit == "is left out" && made == path[1] && own == derivation {
				return must, "the rows that it makes have a name of their key as an attribute no more"
			}
			if made == path[1] && own == derivation && len(path) > 4 && (path[4] == "from" || path[4] == "plus") {
				return must, "the rows that it makes have what is computed from it"
			}
			return typed(path)
		case part == "attributes" && (strings.Contains(d.kinds[own], "steps") || strings.Contains(d.kinds[own], "set ")):
			return may, "" // the words of a status, the kind of a set, how a group shows a name of its key
		case part == "attributes":
			return typed(path)
		}
		return never, "this is a rule for commands and queries"
	case "tables":
		return may, ""
	}
	return never, "queries, migrations and the model's name decide nothing"
}

// typed is the effect of an edit of an attribute of an entity that a derivation reads: its type may decide which
// values it can use (TestInputsAreWhole says where it does), and nothing else does.
func typed(path []string) (effect, string) {
	if len(path) < 5 || slices.Contains([]string{"type", "as", "zone"}, path[4]) {
		return may, ""
	}
	return never, "lengths, enums and bounds are no types"
}

// TestKeysOfDefinitions: the primary key of an entity is part of every definition that
// names it, and the key of an index only of those that make its rows.
func TestKeysOfDefinitions(t *testing.T) {
	base := `
model: keys
tables: {rows: {key: [PK, SK], indexes: {GSI1: {key: [G1, G2]}}}}
entities:
  A: {where: {t: a}, key: {PK: "A#{id}", SK: A, G1: "{x}", G2: "{y}"}, attributes: {x: string, y: string}}
  B: {where: {t: b}, key: {PK: "A#{id}", SK: "B#{b}"}, attributes: {n: number}}
  C: {where: {t: c}, key: {PK: "C#{id}", SK: "C#{b}", G1: "C#{id}", G2: "{b}"}, attributes: {n: number}}
derive:
  A.count: {count: B, to: {id: id}}
  C: {row: B, set: {id: id, b: b, n: n}}
search:
  bs: {of: B, text: [b]}
`
	was := hashesOf(mustParse(t, "keys", base))
	for _, c := range []struct {
		what, old, new string
		changed        []string
	}{
		{"the source's key", `PK: "A#{id}", SK: "B#{b}"`, `PK: "A#{id}", SK: "BB#{b}"`, []string{"A.count", "C", "search/bs"}},
		{"the target's key", `SK: A, G1`, `SK: AA, G1`, []string{"A.count"}},
		{"an index key of the source", `G1: "{x}"`, `G1: "x{x}"`, nil},
		{"an index key of the copy", `G1: "C#{id}"`, `G1: "D#{id}"`, []string{"C"}},
		{"the table", "tables: {rows: ", "tables: {rowz: ", []string{"A.count", "C", "search/bs"}},
		{"the index's name", "GSI1", "GSI9", nil},
		{"a comment", "derive:", "# nothing\nderive:", nil},
		{"the model's name", "model: keys", "model: other", nil},
		{"a query", "derive:", "queries:\n  b: {get: B, with: [id, b]}\nderive:", nil},
		{"the order of tests", "where: {t: b}", "where: {t: [b]}", nil},
		{"another entity", "derive:", "  D: {where: {t: d}, key: {PK: \"D#{id}\", SK: D}}\nderive:", nil},
	} {
		text := strings.ReplaceAll(base, c.old, c.new)
		if text == base {
			t.Errorf("%s: nothing was replaced", c.what)
		}
		var changed []string
		for _, d := range mustParse(t, "keys", text).Derivations() {
			if d.Hash != was[d.Name] {
				changed = append(changed, d.Name)
			}
		}
		if !slices.Equal(changed, c.changed) {
			t.Errorf("%s changes %v, want %v", c.what, changed, c.changed)
		}
	}
}

// TestOrderDecidesNothing reverses every map of a model file, and every list but those in
// which the order means something.
func TestOrderDecidesNothing(t *testing.T) {
	ordered := []string{"key", "text", "enum", "steps"}
	for name, text := range modelFiles(t) {
		var doc yaml.Node
		failtest.On(t, yaml.Unmarshal([]byte(text), &doc))
		places(&doc, nil, nil, 0, func(p place) {
			n := p.node
			n.HeadComment, n.LineComment, n.FootComment = "", "", ""
			if slices.ContainsFunc(p.path, func(key string) bool { return slices.Contains(ordered, key) }) || p.key {
				return
			}
			switch n.Kind {
			case yaml.MappingNode:
				for i, j := 0, len(n.Content)-2; i < j; i, j = i+2, j-2 {
					n.Content[i], n.Content[j] = n.Content[j], n.Content[i]
					n.Content[i+1], n.Content[j+1] = n.Content[j+1], n.Content[i+1]
				}
			case yaml.SequenceNode:
				if len(p.path) > 0 && (p.path[0] == "derive" || p.path[0] == "search" || p.path[0] == "entities") {
					slices.Reverse(n.Content)
				}
			}
		})
		b, err := yaml.Marshal(&doc)
		failtest.On(t, err)
		was, is := mustParse(t, name, text).Derivations(), mustParse(t, name, string(b)).Derivations()
		for i := range was {
			if was[i].Hash != is[i].Hash {
				t.Errorf("%s: the order changes %s:\n%s\n---\n%s", name, was[i].Name, was[i].definition, is[i].definition)
			}
		}
	}
}

// TestNoFieldIsForgotten lists the fields of everything that a derivation is compiled into.
// A new field must be entered here: into what its definition has, or with the reason why it
// decides no value.
func TestNoFieldIsForgotten(t *testing.T) {
	const in = "in the definition"
	for _, c := range []struct {
		of     any
		fields map[string]string
	}{
		{Tally{}, map[string]string{"Name": "its target and attribute are in", "Kind": in, "Target": in, "Attr": in, "Hidden": in, "Round": in, "Max": in, "Group": "in for the tally of its rows", "Sources": in}},
		{Source{}, map[string]string{"own": "only says of which derivation a fault is", "Tally": "leads back", "Entity": in, "Amount": in, "Where": in, "To": in, "Input": "its fields are in", "Given": "its fields are in"}},
		{Amount{}, map[string]string{"Text": "its terms are in", "Fields": in, "terms": in, "whole": "follows from the fields and terms", "Function": in}},
		{Function{}, map[string]string{"Name": in, "Version": in, "call": "the version stands for it"}},
		{term{}, map[string]string{"minus": in, "factors": in}},
		{factor{}, map[string]string{"field": in, "number": in}},
		{RowRule{}, map[string]string{"Name": "names the derivation", "Source": in, "Into": in, "Keep": in, "Where": in, "Fields": in, "Subscribers": in, "Input": "its fields are in"}},
		{Subscribers{}, map[string]string{"Of": in, "By": in, "Input": "its fields are in"}},
		{Match{}, map[string]string{"Field": in, "Expr": in}},
		{Follow{}, map[string]string{"Name": "its row and attribute are in", "Into": in, "From": in, "Input": "its fields are in", "Rule": "Into and From are in", "Attr": in, "Source": in, "Field": in, "Key": in, "Keep": in}},
		{Status{}, map[string]string{"Name": "its target and attribute are in", "Target": in, "Attr": in, "Stages": in, "Input": "its fields are in"}},
		{Stage{}, map[string]string{"Status": "leads back", "Word": in, "Rank": in, "Source": in, "Where": in, "To": in, "List": in, "Who": in, "Max": in, "Set": in, "Input": "its fields are in"}},
		{Latest{}, map[string]string{"own": "only says of which derivation a fault is", "Name": "its target and attributes are in", "Kind": in, "Target": in, "Source": in, "By": in, "Where": in, "To": in, "Set": in, "Group": "its where and by are in", "Input": "its fields are in", "Given": "its fields are in"}},
		{Others{}, map[string]string{"Name": in, "On": "its name is in Name", "Of": in, "Field": in, "Key": in, "Links": "the same names as Key", "Used": "follows from the stages", "Input": "its fields are in"}},
		{Search{}, map[string]string{"Name": "names the derivation", "Of": in, "Where": in, "Text": in, "Filters": in, "Sorts": in, "Input": "its fields are in"}},
		{Test{}, map[string]string{"Field": in, "Is": in}},
		{Input{}, map[string]string{"Derivation": "names the derivation", "Where": in, "Fields": in}},
		{value.Term{}, map[string]string{"Op": in, "As": in, "Values": in}},
		{Assign{}, map[string]string{"Name": in, "Expr": in}},
		{Expr{}, map[string]string{"Field": in, "Const": in, "Record": in, "Map": in, "Follow": in, "Subscriber": in, "Bucket": in}},
		{Bucket{}, map[string]string{"Of": in, "Unit": in, "Zone": "its rules are in", "Epoch": in, "rules": in}},
		{Group{}, map[string]string{"Into": "its rows' keys, words and names are in", "Rows": "is a derivation", "Values": "each is a derivation"}},
		{Field{}, map[string]string{"Name": in, "Type": "of a set alone, there it is in", "Attr": in, "Key": in, "Slot": "follows from Name and Key", "Sparse": "follows from Attr", "Number": in, "Summed": "follows from the kind", "Declared": in, "Formula": in}},
		{Formula{}, map[string]string{"of": in, "fold": in, "path": in, "amount": in, "unit": in, "own": "the field's declaration"}},
		{KeyTemplate{}, map[string]string{"Attr": in, "Template": in}},
		{Reading{}, map[string]string{"Legacy": in, "After": "for queries", "Late": "for queries"}},
		{Entity{}, map[string]string{
			"Name": "in where keys of our own table have it", "Table": in, "Where": in, "Keys": in,
			"Attributes": "those of a status are in, and for rows that weir makes those that its keys name; all others that a rule sets are declared", "Formulas": "in where a field is one", "Expires": "for queries", "Derived": "follows from the rules", "Group": "its tallies are derivations",
			"Unique": "for commands", "New": "for commands", "Nested": "for commands", "Once": "for commands", "Supersede": "for commands",
			"Values": "each is a derivation", "Sources": "each is in its tally", "Rules": "each is a derivation", "MadeBy": "each is a derivation",
			"Follow": "each is a derivation", "Follows": "each is a derivation", "Search": "each is a derivation", "Statuses": "each is a derivation", "Stages": "each is in its status",
			"Latest": "each is a derivation", "LatestOf": "each is a derivation",
			"Others": "each is in its status", "Subscribes": "each is a derivation", "Migrations": "a migration derives nothing", "Replaces": "a migration derives nothing",
			"kind": "follows from Where", "open": "for commands and queries", "Left": "what other definitions have left",
		}},
		{Attribute{}, map[string]string{
			"Name": in, "Type": in, "As": in, "Zone": "its rules are in", "zoneRules": in, "Required": "for commands", "Default": "for commands and migrations", "Defaults": "for commands and migrations",
			"Enum": in, "Max": "for commands", "Least": "for commands", "Most": "for commands", "Hidden": "for queries; in, for what history leaves out of images", "Whole": in, "Reading": in, "Others": in,
			"Forward": "for commands", "Computed": "for commands, and in for rows that weir makes", "Is": "the field's formula is in", "In": "the field's formula is in",
		}},
		{Computed{}, map[string]string{"From": in, "Bucket": in, "Plus": in, "By": in, "Each": in}},
		{Table{}, map[string]string{"Table": "see below", "Entities": "at most one takes a row", "Images": "pinned with the table", "kind": "follows from the entities"}},
		{store.Table{}, map[string]string{"Name": in, "Key": "the entities' keys have it", "Indexes": "in, for rows that weir makes", "TTL": "deletes are changes", "Stream": "always on"}},
		{Template{}, map[string]string{"text": in, "parts": "follows from text", "tail": "follows from text", "names": "follows from text", "set": "follows from the kind", "separators": "follows from text", "lower": in}},
		{Model{}, map[string]string{
			"Name": "another model", "File": "for messages", "Arg": "for messages", "Flags": "for messages", "Tables": in, "Entities": in, "Tallies": in, "Groups": "each is in its tallies", "Rows": in, "Follows": in, "Statuses": in, "Latest": in, "Searches": in,
			"Queries": "derive nothing", "Migrations": "derive nothing", "Old": "derive nothing", "text": "for differences", "Warnings": "for people",
		}},
		{aggregate.Aggregate{}, map[string]string{
			"Keyword": in, "Of": "follows from Keyword", "OfRows": "follows from Keyword",
			"Empty": "follows from Keyword", "Type": "follows from Keyword", "Number": "follows from Keyword", "Sums": "follows from Keyword", "Totals": "follows from Keyword", "Adds": "follows from Keyword", "Shown": "follows from Keyword",
		}},
	} {
		typ := reflect.TypeOf(c.of)
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; c.fields[name] == "" && name != "decl" { // where it stands in the file
				t.Errorf("%v has the field %s: is it in the definition?", typ, name)
			}
			delete(c.fields, typ.Field(i).Name)
		}
		for name := range c.fields {
			t.Errorf("%v has no field %s", typ, name)
		}
	}
}

// TestInBuildOrder: a build comes behind those on whose rows it reads something, whatever their names;
// here z reads B too, which closes a circle.
func TestInBuildOrder(t *testing.T) {
	m := mustParse(t, "order", `
model: order
tables: {rows: {key: [PK, SK]}}
entities:
  A: {where: {t: a}, key: {PK: "A#{a}", SK: A}}
  B: {where: {t: b}, key: {PK: "B#{b}", SK: B}, attributes: {a: string, c: string}}
  C: {where: {t: c}, key: {PK: "C#{b}", SK: "{c}"}, attributes: {n: number}}
  z: {where: {t: z}, key: {PK: "Z#{c}", SK: Z}, attributes: {b: string}}
derive:
  A.most: {max: B.n, to: {a: a}}
  B.n: {sum: C.n, to: {b: b}}
  C: {row: z, set: {b: b, c: c, n: n}}
  z.n: {count: B}
`)
	all := m.InBuildOrder(func(string) bool { return true })
	if want := []string{"z", BuildInPlace, "B", "A"}; !slices.Equal(all, want) {
		t.Errorf("builds are in the order %v, want %v", all, want)
	}
	if got := m.InBuildOrder(func(name string) bool { return name == "A" || name == BuildInPlace }); !slices.Equal(got, []string{BuildInPlace, "A"}) {
		t.Errorf("two of them are %v", got)
	}
}

// TestEscapedValuesAreAnotherDefinition: a distinct or a set whose values were counted under a name that another attribute's
// could be is built again; nothing else is.
func TestEscapedValuesAreAnotherDefinition(t *testing.T) {
	m := mustParse(t, "films.yaml", `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {tag: string}}
  Tags: {where: {type: Tags}, key: {PK: "TAGS#{movie}", SK: "ALL[#{leaf}]"}}
  Others: {where: {type: Others}, key: {PK: "OTHERS#{movie}", SK: "ALL[#{leaf}]"}}
derive:
  Movie.tags: {distinct: Rating.tag, to: {id: movie}, max: 10}
  "Movie.tags:y": {distinct: Rating.tag, to: {id: movie}, max: 10}
  "Movie.tags%": {distinct: Rating.tag, to: {id: movie}, max: 10}
  "Movie.any:y": {distinct: Rating.tag, to: {id: movie}}
  "Movie.n:y": {count: Rating, to: {id: movie}}
  Tags.tags: {set: Rating.tag}
  "Others.tags:y": {set: Rating.tag}
`)
	again := map[string]bool{"Others.tags:y": true}
	for _, d := range m.Derivations() {
		if strings.Contains(d.definition.String(), "escaped") != again[d.Name] {
			t.Errorf("%s is defined by %s", d.Name, d.definition)
		}
	}
}

// TestInitialValueIsInTheDefinition: a declared attribute under a latest shows the application's value where there is no source
// row, and so a build follows its declaration.
func TestInitialValueIsInTheDefinition(t *testing.T) {
	hash := func(attributes string) string {
		m, err := Parse("m.yaml", []byte(`model: m
tables: {tab: {key: [PK, SK]}}
entities:
  A: {key: {PK: "A#{a}", SK: A}, attributes: {`+attributes+`}}
  B: {key: {PK: "A#{a}", SK: "B#{b}"}, attributes: {n: number, x: string, y: string}}
derive:
  A.x: {latest: B.x, by: n, also: {y: y}}
`))
		failtest.On(t, err)
		return m.Derivations()[0].Hash
	}
	met := map[string]string{}
	for _, attributes := range []string{"z: string", "x: string", "y: string", "x: string, y: string"} {
		h := hash(attributes)
		if other := met[h]; other != "" {
			t.Errorf("{%s} and {%s} have one definition", attributes, other)
		}
		met[h] = attributes
	}
	if hash("z: string") != hash("z: number") {
		t.Error("another attribute is in the definition")
	}
}
