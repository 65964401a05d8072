package deploy

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/failtest"
	"weir/internal/model"
)

var update = flag.Bool("update", false, "write the templates of testdata")

func plan(t *testing.T, names ...string) *Plan {
	t.Helper()
	var models []*model.Model
	for _, n := range names {
		m, err := model.Load(n)
		failtest.On(t, err)
		models = append(models, m)
	}
	p, err := Of(models)
	failtest.On(t, err)
	return p
}

func builtIn(t *testing.T) (out []string) {
	t.Helper()
	files, err := filepath.Glob("../../models/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	return out
}

// TestTemplates: the template of a model is that of testdata, whenever it is made.
func TestTemplates(t *testing.T) {
	const path = "testdata/cloudformation.yaml"
	for range 2 {
		got, err := plan(t, "testdata/orders.yaml").CloudFormation()
		failtest.On(t, err)
		if *update {
			failtest.On(t, os.WriteFile(path, got, 0o666))
		}
		want, err := os.ReadFile(path)
		failtest.On(t, err)
		if string(got) != string(want) {
			t.Errorf("%s has changed: go test ./internal/deploy -update, and read the difference", path)
		}
	}
}

// TestNamesOfTemplates: whatever a template names is in it or is AWS's, and
// what a deployment may choose changes something.
func TestNamesOfTemplates(t *testing.T) {
	all := builtIn(t)
	plans := []*Plan{plan(t, "testdata/orders.yaml"), plan(t, all...)}
	for _, one := range all { // of which some have no searches
		plans = append(plans, plan(t, one))
	}
	for _, p := range plans {
		text, err := p.CloudFormation()
		failtest.On(t, err)
		checkNames(t, strings.Join(p.names(), " "), text)
	}
}

var inSub = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

func checkNames(t *testing.T, name string, text []byte) {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	has, conditions, used := map[string]bool{}, map[string]bool{}, map[string]bool{}
	sections := root.Content[0].Content
	var parameters []string
	for i := 0; i < len(sections); i += 2 {
		for j := 0; j < len(sections[i+1].Content); j += 2 {
			switch n := sections[i+1].Content[j].Value; sections[i].Value {
			case "Parameters":
				parameters = append(parameters, n)
				has[n] = true
			case "Resources":
				if has[n] {
					t.Errorf("%s: two things have the name %s", name, n)
				}
				has[n] = true
				if !regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`).MatchString(n) {
					t.Errorf("%s: no resource can have the name %q", name, n)
				}
			case "Conditions":
				conditions[n] = true
			}
		}
	}
	names := func(n string, line int) {
		of, _, _ := strings.Cut(n, ".")
		used[of] = true
		if !has[of] && !strings.HasPrefix(of, "AWS::") {
			t.Errorf("%s:%d: there is no %s", name, line, of)
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		switch n.Tag {
		case "!Ref", "!GetAtt":
			names(n.Value, n.Line)
		case "!Sub":
			text, own := n.Value, map[string]bool{}
			if n.Kind == yaml.SequenceNode {
				text = n.Content[0].Value
				for i := 0; i < len(n.Content[1].Content); i += 2 {
					own[n.Content[1].Content[i].Value] = true
				}
			}
			for _, m := range inSub.FindAllStringSubmatch(text, -1) {
				if !own[m[1]] {
					names(m[1], n.Line)
				}
			}
		case "!If", "!Condition":
			c := n.Value
			if n.Tag == "!If" {
				c = n.Content[0].Value
			}
			if used[c] = true; !conditions[c] {
				t.Errorf("%s:%d: there is no condition %s", name, n.Line, c)
			}
		}
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == "Condition" && n.Content[i+1].Kind == yaml.ScalarNode {
				used[n.Content[i+1].Value] = true
			}
			walk(c)
		}
	}
	walk(&root)
	for c := range conditions {
		if !used[c] {
			t.Errorf("%s: nothing depends on the condition %s", name, c)
		}
	}
	for _, p := range parameters {
		if !used[p] {
			t.Errorf("%s: the parameter %s does nothing", name, p)
		}
	}
}

// TestNamesThatMeet: names that a template cannot keep apart are refused.
func TestNamesThatMeet(t *testing.T) {
	table := func(name, table string) *model.Model {
		text := fmt.Sprintf("model: %s\ntables: {%s: {key: [id]}}\nentities: {Row: {key: {id: \"{id}\"}, attributes: {id: string!}}}\nqueries: {row: {get: Row, with: [id]}}\n", name, table)
		m, err := model.Parse(name, []byte(text))
		failtest.On(t, err)
		return m
	}
	for _, c := range [][]*model.Model{
		{table("a1", "my-rows"), table("a2", "my_rows")}, {table("a1", "Weir")}, {table("a1", "reg-ist"), table("a2", "regIst")}, {table("a1", "Registry")},
	} {
		if _, err := Of(c); !errors.Is(err, ErrName) {
			t.Errorf("%s, %s: %v", c[0].Tables[0].Name, c[len(c)-1].Tables[0].Name, err)
		}
	}
	p, err := Of([]*model.Model{table("a1", "1st.rows"), table("a2", "other")})
	if err != nil || p.Tables[0].ID != "T1stRows" || p.Models[1].ID != "A2" {
		t.Error(p, err)
	}
}

// TestGrants: each grant says why it is there, and names each action once, in order.
func TestGrants(t *testing.T) {
	for _, p := range []Process{Rows, Ingest, Query} {
		all := Grants(p)
		if len(all) == 0 {
			t.Errorf("%s may do nothing", p)
		}
		for i, g := range all {
			if g.Reason == "" || len(g.Actions) == 0 || !slices.IsSorted(g.Actions) || len(slices.Compact(slices.Clone(g.Actions))) != len(g.Actions) {
				t.Errorf("%s: %+v", p, g)
			}
			for _, other := range all[:i] {
				if other.On == g.On || other.ID == g.ID {
					t.Errorf("%s has two grants %s", p, g.ID)
				}
			}
			for a, why := range g.Seldom {
				if !slices.Contains(g.Actions, a) || why == "" || g.Service != "" {
					t.Errorf("%s: %s %s is seldom: %s", p, g.ID, a, why)
				}
			}
			for _, a := range g.Actions {
				if strings.HasSuffix(a, ":*") || strings.HasPrefix(a, "*") {
					t.Errorf("%s: %s", p, a)
				}
			}
		}
	}
}

// TestLarge: what CloudFormation would refuse is refused.
func TestLarge(t *testing.T) {
	var models []*model.Model
	for i := range 12 {
		m, err := model.Parse("m.yaml", []byte(strings.ReplaceAll(many, "NAME", fmt.Sprint("m", i))))
		failtest.On(t, err)
		models = append(models, m)
	}
	all, err := Of(models)
	failtest.On(t, err)
	few, err := Of(models[:2])
	failtest.On(t, err)
	if _, err := all.CloudFormation(); !errors.Is(err, ErrLarge) || !strings.Contains(err.Error(), "make a template for each model") {
		t.Errorf("many: %v", err)
	}
	if _, err := few.CloudFormation(); err != nil {
		t.Errorf("two: %v", err)
	}
	for _, c := range []struct {
		bytes, resources int
		ok               bool
	}{{mostBytes, mostResources, true}, {mostBytes + 1, 1, false}, {1, mostResources + 1, false}} {
		if err := fits(c.bytes, c.resources); (err == nil) != c.ok {
			t.Errorf("%d bytes and %d resources: %v", c.bytes, c.resources, err)
		}
	}
}

// many is a model with tables enough for a dozen of them to be too large.
const many = `model: NAME
tables: {NAME-a: {key: [id]}, NAME-b: {key: [id]}, NAME-c: {key: [id]}, NAME-d: {key: [id]}}
entities:
  A: {table: NAME-a, key: {id: "{id}"}, attributes: {id: string!}}
  B: {table: NAME-b, key: {id: "{id}"}, attributes: {id: string!, a: string!}}
  C: {table: NAME-c, key: {id: "{id}"}, attributes: {id: string!, a: string!}}
  D: {table: NAME-d, key: {id: "{id}"}, attributes: {id: string!, a: string!}}
derive:
  A.b: {count: B, to: {id: a}}
  A.c: {count: C, to: {id: a}}
  A.d: {count: D, to: {id: a}}
search: {a: {of: A, text: [id]}}
`
