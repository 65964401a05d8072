package projectorcli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"weir/internal/console"
	"weir/internal/failtest"
	"weir/internal/metrics"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/system"
)

// everyModel are the built-in models, the examples, and each whole model of the guide.
func everyModel(t *testing.T) map[string]*model.Model {
	t.Helper()
	all := map[string]*model.Model{}
	add := func(name string, m *model.Model, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = m
	}
	for _, name := range model.Builtin() {
		m, err := model.Load(name)
		add(name, m, err)
	}
	examples, err := filepath.Glob("../../examples/*/model.yaml")
	if err != nil || len(examples) < 4 {
		t.Fatal(examples, err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		failtest.On(t, err)
		m, err := model.Parse(path, text)
		add("example "+filepath.Base(filepath.Dir(path)), m, err)
	}
	block := regexp.MustCompile("(?s)```yaml ([a-z-]+\\.yaml)\n(.*?)```")
	for _, path := range []string{"../../README.md", "../../docs/guide/tutorial.md", "../../docs/guide/how-to.md", "../../docs/guide/model.md"} {
		text, err := os.ReadFile(path)
		failtest.On(t, err)
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			m, err := model.Parse(found[1], []byte(found[2]))
			add(filepath.Base(path)+" "+found[1], m, err)
		}
	}
	for _, id := range []string{"id", "a_b", "wholeNo"} {
		for _, typed := range []string{"string", "number"} {
			for _, derive := range []string{"count: Part", "sum: Part.n", "distinct: Part.word, max: 20", "latest: Part.word, by: n"} {
				name := fmt.Sprintf("generated %s %s %s", id, typed, derive)
				m, err := model.Parse("generated.yaml", []byte(fmt.Sprintf(`model: generated
tables: {rows: {key: [PK, SK]}}
entities:
  Whole:
    where: {kind: whole}
    key: {PK: "W#{%[1]s}", SK: "0"}
    attributes: {%[1]s: %[2]s!, word: string}
  Part:
    where: {kind: part}
    key: {PK: "W#{%[1]s}", SK: "P#{part}"}
    attributes: {%[1]s: %[2]s!, part: %[2]s!, n: number!, word: string}
derive:
  Whole.shown: {%[3]s, to: {%[1]s: %[1]s}}
search:
  wholes: {of: Whole, text: [word]}
queries:
  whole: {get: Whole, with: [%[1]s]}
  find: {search: wholes}
`, id, typed, derive)))
				add(name, m, err)
			}
		}
	}
	if len(all) < 45 {
		t.Fatalf("%d models", len(all))
	}
	return all
}

// TestTries: each command that dev suggests is answered, whatever the model is. The search of
// movienight needs a parameter besides the words, so it is not suggested.
func TestTries(t *testing.T) {
	soaktest.Calm(t)
	curl := regexp.MustCompile(`^curl -s (?:-X (\w+) )?'(http://dev[^']*)'`)
	for name, m := range everyModel(t) {
		t.Run(name, func(t *testing.T) {
			p := &program{ctx: t.Context(), stdout: io.Discard, stderr: io.Discard}
			s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{Writes: true})
			failtest.On(t, err)
			defer s.Close()
			failtest.On(t, s.Start(t.Context()))
			failtest.On(t, p.fill(s))
			c := &devCommand{}
			failtest.On(t, c.samples(p, s))
			h, leave, err := c.handler(s, slog.New(slog.DiscardHandler), metrics.New(), console.NewActivity(s.Models), newKillable())
			failtest.On(t, err)
			defer leave()
			suggested := tries(context.Background(), s.Store, s.Models[0], "http://dev")
			if name == "gallery" && len(suggested) != 4 {
				t.Errorf("a search, and a count before and after a write, should be suggested: %q", suggested)
			}
			for _, line := range slices.Concat(suggested, []string{"curl -s 'http://dev/openapi.json'", "curl -s 'http://dev/metrics'"}) {
				found := curl.FindStringSubmatch(line)
				if found == nil {
					t.Errorf("not a command: %s", line)
					continue
				}
				method := found[1]
				if method == "" {
					method = http.MethodGet
				}
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, httptest.NewRequest(method, found[2], nil)); w.Code/100 != 2 {
					t.Errorf("%s: %d %s", line, w.Code, w.Body)
				}
			}
		})
	}
}
