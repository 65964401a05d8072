package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/measures"
	"weir/internal/model"
	"weir/models"
)

// TestRunbook: each alarm of every built-in model has a section in the runbook of operations.md, which its text names;
// a section says when it is over; and a test does each recipe.
func TestRunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/operations.md")
	failtest.On(t, err)
	_, runbook, ok := strings.Cut(string(page), "\n## Runbook\n")
	runbook, _, _ = strings.Cut(runbook, "\n## ")
	if !ok {
		t.Fatal("operations.md has no runbook")
	}
	alarms := 0
	names, err := fs.Glob(models.Files, "*.yaml")
	failtest.On(t, err)
	for _, name := range names {
		m, err := model.Load(strings.TrimSuffix(name, ".yaml"))
		failtest.On(t, err)
		plan, err := Of([]*model.Model{m})
		failtest.On(t, err)
		for _, a := range plan.alarms() {
			alarms++
			_, section, ok := strings.Cut(runbook, "\n### "+a.Runbook+"\n")
			section, _, _ = strings.Cut(section, "\n### ")
			if a.Runbook == "" || !ok {
				t.Errorf("%s has no section %q in the runbook", a.ID, a.Runbook)
			}
			for _, says := range []string{"**Look at**", "**Type**", "**Over when**"} {
				if !strings.Contains(section, says) {
					t.Errorf("the section %s lacks %s", a.Runbook, says)
				}
			}
			if begins, _, _ := strings.Cut(section, "**"); len(begins) < 20 {
				t.Errorf("the section %s does not say what the alarm means", a.Runbook)
			}
			if w := a.When; w.Bad < 1 || w.Bad > w.Of || w.Seconds*w.Of > 24*3600 || w.Missing == "" {
				t.Errorf("%s looks at %+v", a.ID, w)
			}
			// What comes every five minutes has no data in most minutes: by the minute, the alarm would end at once.
			if gauge := a.Metric.Namespace == namespace && slices.ContainsFunc(measures.All(), func(m *measures.Metric) bool {
				return slices.ContainsFunc(m.Log, func(l measures.Logged) bool {
					return l.Name == a.Metric.Name && strings.Contains(l.Help, "every five minutes")
				})
			}); gauge != (a.When.Seconds == 300) || gauge && a.When.Missing == "notBreaching" {
				t.Errorf("%s is of a gauge: %v, and looks at %+v", a.ID, gauge, a.When)
			}
		}
	}
	if alarms == 0 {
		t.Error("no model has an alarm")
	}
	there := tests(t)
	for what, names := range recipes {
		if !strings.Contains(string(page), "\n"+what+"\n") && !strings.Contains(string(page), "\n| "+what+" | ") {
			t.Errorf("the page has no section and no line %q", what)
		}
		if slices.ContainsFunc(names, func(name string) bool { return !there[name] }) {
			t.Errorf("%q should be done by %q, and there is no such test", what, names)
		}
	}
	_, table, _ := strings.Cut(runbook, "\n| what | what to do | over when |\n|---|---|---|\n")
	for _, line := range regexp.MustCompile(`(?m)^\| (.*?) \| `).FindAllStringSubmatch(table, -1) {
		if recipes[line[1]] == nil {
			t.Errorf("no test does the recipe %q", line[1])
		}
	}
}

// recipes are the sections and lines of the page whose steps a test does, with these tests: on DynamoDB Local, but for a hot
// partition, which that does not have.
var recipes = map[string][]string{
	"### Behind the stream":                                         {"TestBehindOnDynamoDB"},
	"### Records cannot be applied":                                 {"TestScriptsOnAWS"},
	"## After a gap":                                                {"TestLifecycleTableOnDynamoDB"},
	"## A restored table":                                           {"TestRestoredOnDynamoDB"},
	"## A table that already has rows":                              {"TestExportedOnDynamoDB"},
	"## Global tables":                                              {"TestRegionMovedOnDynamoDB", "TestRegionLostOnDynamoDB"},
	"### The own table is lost":                                     {"TestRestoreOnServices"},
	"### The cluster is replaced by an empty one":                   {"TestRestoreOnServices"},
	"### A password or a key is rotated":                            {"TestKeyRotated"},
	"## A stream that was switched off":                             {"TestLifecycleTableOnDynamoDB"},
	"a hot partition":                                               {"TestHotRow"},
	"the cluster is down":                                           {"TestEmbeddedRowsDoNotWaitForSearch", "TestCatchUpBroken"},
	"an index is gone, or the cluster was replaced by an empty one": {"TestIndexGoneOnServices"},
	"a build stands still":                                          {"TestManyWrittenOnDynamoDB", "TestFillGoesOnOnServices"},
	"a wrong model was deployed":                                    {"TestRollBackOnDynamoDB", "TestRollingDeployOnServices"},
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
		failtest.On(t, err)
	}
	return out
}
