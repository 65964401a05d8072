package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/models"
)

// TestRunbook: each alarm of every built-in model has a section in the runbook of operations.md, which its text names;
// a section says when it is over; and each test that the runbook names is there.
func TestRunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, runbook, ok := strings.Cut(string(page), "\n## Runbook\n")
	runbook, _, _ = strings.Cut(runbook, "\n## ")
	if !ok {
		t.Fatal("operations.md has no runbook")
	}
	alarms := 0
	names, err := fs.Glob(models.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		m, err := model.Load(strings.TrimSuffix(name, ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := Of([]*model.Model{m})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range plan.Models[0].alarms() {
			alarms++
			_, section, ok := strings.Cut(runbook, "\n### "+a.Runbook+"\n")
			section, _, _ = strings.Cut(section, "\n### ")
			if a.Runbook == "" || !ok {
				t.Errorf("%s has no section %q in the runbook", a.ID, a.Runbook)
			} else if !strings.Contains(section, "**Over when**") {
				t.Errorf("the section %s does not say when it is over", a.Runbook)
			}
			if !strings.Contains(a.Help, "ee "+a.Runbook+" in operations.md") {
				t.Errorf("%s does not name its section: %s", a.ID, a.Help)
			}
		}
	}
	if alarms == 0 {
		t.Error("no model has an alarm")
	}
	tested(t, runbook)
	there := tests(t)
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(runbook, -1) {
		if !there[name[1]] {
			t.Errorf("the runbook names %s, and there is no such test", name[1])
		}
	}
}

// recipes are the recipes of the runbook that a test does as they say: on DynamoDB Local, but for a hot partition, which
// that does not have.
var recipes = []string{
	"behind the stream", "a gap", "a poison record", "a hot partition", "the cluster is down", "an index is gone, or the cluster was replaced by an empty one", "a build stands still",
	"a wrong model was deployed", "a table was restored", "another region derives",
}

// tested holds the table of recipes to that list: each has a line, and its test.
func tested(t *testing.T, runbook string) {
	t.Helper()
	_, table, _ := strings.Cut(runbook, "\n| what | what to do | over when | tested by |\n|---|---|---|---|\n")
	var have []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") {
			break
		}
		what := strings.TrimPrefix(cells[0], "| ")
		have = append(have, what)
		if len(cells) != 4 || !regexp.MustCompile("`Test[A-Za-z]+`").MatchString(cells[3]) {
			t.Errorf("the recipe %q has no test", what)
		}
	}
	if !slices.Equal(have, recipes) {
		t.Errorf("the runbook has the recipes %q, should have %q", have, recipes)
	}
}

// tests are the names of all tests.
func tests(t *testing.T) map[string]bool {
	out := map[string]bool{}
	is := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	for _, root := range []string{"../../cmd", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range is.FindAllStringSubmatch(string(text), -1) {
				out[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
