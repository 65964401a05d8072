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
	"strings"
	"testing"
	"time"

	"weir/internal/console"
	"weir/internal/failtest"
	"weir/internal/metrics"
	"weir/internal/model"
	"weir/internal/seq"
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
			failtest.On(t, c.loadSamples(p, s))
			h, leave, err := c.newHandler(s, slog.New(slog.DiscardHandler), metrics.New(), console.NewActivity(s.Models), newKillable())
			failtest.On(t, err)
			defer leave()
			suggested := seq.Map(tries(t.Context(), s.Store, s.Models[0], h), func(t try) string { return t.curl("http://dev") })
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
				} else if strings.Contains(line, "/v1/") && method == http.MethodGet && !strings.Contains(w.Body.String(), `"items":[{`) {
					t.Errorf("%s has no rows: %s", line, w.Body)
				}
			}
		})
	}
}

// TestDevTakesEdits: dev takes a derivation that is added, changed and removed in the file, says a mistake and goes on, keeps the rows,
// and pages of the console see that it has begun again. --reset begins with new rows.
func TestDevTakesEdits(t *testing.T) {
	soaktest.Calm(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.yaml")
	save := func(derive string) {
		t.Helper()
		failtest.On(t, os.WriteFile(file, []byte(`model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  User: {where: {kind: user}, key: {PK: "USER#{user}", SK: USER}, attributes: {user: string!}}
  Order: {where: {kind: order}, key: {PK: "USER#{user}", SK: "ORDER#{order}"}, attributes: {user: string!, order: string!, total: number!}}
derive:
`+derive+`
queries:
  user: {get: User, with: [user]}
  orders: {list: Order, with: [user]}
`), 0o666))
	}
	rows := filepath.Join(dir, "rows.jsonl")
	failtest.On(t, os.WriteFile(rows, []byte(`{"op":"put","entity":"User","item":{"user":"u1"}}
{"op":"put","entity":"Order","item":{"user":"u1","order":"o1","total":7}}
{"op":"put","entity":"Order","item":{"user":"u1","order":"o2","total":5}}
`), 0o666))
	find := func(said *buffer, pattern string) string {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if found := regexp.MustCompile(pattern).FindStringSubmatch(said.text()); found != nil {
				return found[1]
			}
		}
		t.Fatalf("%s is not said:\n%s", pattern, said.text())
		return ""
	}
	start := func(args ...string) (base string, said *buffer, end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		said, ended := &buffer{}, make(chan int, 1)
		go func() {
			ended <- run(ctx, append([]string{"dev", file, "--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, said)
		}()
		base = find(said, `on (http://[^/]*)/v1`)
		return base, said, func() {
			cancel()
			if code := <-ended; code != exitInterrupted {
				t.Errorf("%d: %s", code, said.text())
			}
		}
	}
	get := func(url string) string {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if res, err := http.Get(url); err == nil {
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if failtest.On(t, err); res.StatusCode == http.StatusOK {
					return string(body)
				}
			}
		}
		t.Fatalf("%s does not answer", url)
		return ""
	}
	save("  User.orders: {count: Order}")
	base, said, end := start("--sample", rows)
	until := func(want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if got = get(base + "/v1/shop/user?user=u1"); strings.Contains(got, want) {
				return
			}
		}
		t.Fatalf("%s\nnot %s\n%s", got, want, said.text())
	}
	until(`"orders":2`)
	before := get(base + "/console/run.txt")
	if page := get(base + "/"); !strings.Contains(page, `data-run="`+before+`"`) {
		t.Errorf("the page does not say its run: %.400s", page)
	}
	save("  User.orders: {count: Order}\n  User.spent: {sum: Order.total}") // added
	until(`"spent":12`)
	if after := get(base + "/console/run.txt"); after == before {
		t.Error("pages do not see that the process has begun again")
	}
	save("  User.orders: {count: Order}\n  User.spent: {sum: Order.total, where: {total: {atLeast: 6}}}") // changed
	until(`"spent":7`)
	save("  User.orders: {count: Order, of: nothing}") // a mistake
	find(said, `(shop.yaml:7:.*)\nThe model before this edit goes on`)
	until(`"spent":7`)
	save("  User.spent: {sum: Order.total}") // removed, and changed
	until(`"spent":12`)
	find(said, `(retired, since the model no longer has it: User.orders)`)
	end()
	base, said, end = start() // rows are kept
	until(`"spent":12`)
	end()
	base, said, end = start("--reset")
	if got := get(base + "/v1/shop/orders?user=u1"); strings.Contains(got, "o1") {
		t.Errorf("--reset keeps rows: %s", got)
	}
	end()
}
