package model

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/failtest"
)

// guideSections are the sections of docs/guide/model.md, by the part of the schema whose
// keys they list.
var guideSections = map[string]string{
	"model": "The file", "table": "Tables", "index": "Indexes", "entity": "Entities", "key-template": "Keys", "attribute": "Attributes",
	"once": "Once", "supersede": "Supersede", "test": "Conditions", "parameter": "Parameters in conditions", "tally": "Tallies", "latest": "Latest of rows", "steps": "Status",
	"stage": "Steps of a status", "row-rule": "Rows made from rows", "each": "Subscribers of a feed",
	"group": "Groups", "time-bucket": "Time buckets", "group-value": "Values of a group",
	"latest-of-a-group": "The latest of a group", "follow": "Followed values", "followed-value": "Followed values", "migration": "Migrate", "search": "Search", "query": "Queries", "step": "Queries",
	"returned-value": "Returned values",
}

// TestGuide: the reference of the model language has each key of the schema, each with its meaning, in the section of its
// part. TestGuideUsesAll has an example of each.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/model.md")
	failtest.On(t, err)
	rows, section := map[string]map[string]bool{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "### ") {
			section = strings.TrimLeft(line, "# ")
			rows[section] = map[string]bool{}
		}
		if cells := strings.Split(line, " | "); section != "" && len(cells) == 2 && strings.HasPrefix(line, "| `") {
			rows[section][strings.Trim(cells[0], "| `")] = true
		}
	}
	defs := schemaDefs(t)
	for name, def := range defs {
		section, known := guideSections[name]
		if !known && len(def.Properties) > 0 {
			t.Errorf("no section of the guide is about the schema's %s", name)
		}
		for key := range def.Properties {
			if !rows[section][key] {
				t.Errorf("the guide's section %q does not have the key %s", section, key)
			}
		}
	}
	for name, section := range guideSections {
		if defs[name] == nil {
			t.Errorf("the schema has no %s, which the guide has as %q", name, section)
		}
		for key := range rows[section] { // "step" is part of "query"
			if name == "step" {
				break
			}
			if _, known := defs[name].Properties[key]; !known {
				t.Errorf("the guide's section %q has the key %s, which the schema does not know", section, key)
			}
		}
	}
}

// TestGuideUsesAll: the model of the reference, which a test runs through lint, has every construct, and the schema takes it.
func TestGuideUsesAll(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/model.md")
	failtest.On(t, err)
	_, block, _ := strings.Cut(string(text), "```yaml shop.yaml\n")
	block, _, found := strings.Cut(block, "```")
	var example any
	if err := yaml.Unmarshal([]byte(block), &example); err != nil || !found {
		t.Fatal(err, found)
	}
	if _, err := Parse("shop.yaml", []byte(block)); err != nil {
		t.Fatal(err)
	}
	if err := compiledSchema(t).Validate(instance(t, []byte(block))); err != nil {
		t.Error(err)
	}
	used := map[string]bool{}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case map[string]any:
			for key, v := range x {
				used[key] = true
				walk(v)
			}
		case []any:
			for _, v := range x {
				walk(v)
			}
		}
	}
	walk(example)
	for name, def := range schemaDefs(t) {
		for key := range def.Properties {
			if !used[key] {
				t.Errorf("the model of the guide does not use %s of %s", key, name)
			}
		}
	}
}
