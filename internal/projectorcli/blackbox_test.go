package projectorcli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/system/systemtest"
)

// TestBlackBox does what a person would, with every recording: replay it, replay it
// again, serve it, and ask over HTTP everything that the recording's own
// bookkeeping knows the answer to, each named query at least once. Each answer is as the server's OpenAPI description
// says, and with select it has these attributes of the same rows.
func TestBlackBox(t *testing.T) {
	soaktest.Calm(t)
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && name != "watchlists" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(systemtest.Model(dir))
			failtest.On(t, err)
			data := t.TempDir()
			for range 2 {
				command(t, append([]string{"replay", systemtest.Model(dir), "--data", data}, systemtest.Files(t, dir)...)...)
			}
			base := serve(t, errTerminated, exitGood, "run", systemtest.Model(dir), "--data", data, "--addr", "127.0.0.1:0", "--rate", "0")
			answer, answered := described(t, base), map[string]bool{}
			systemtest.All(t, systemtest.Read(t, dir).Checks, func(query string, params map[string]string) ([]systemtest.Row, error) {
				if err := answer(name, query, params); err != nil {
					return nil, err
				}
				rows, err := ask(base+"/"+name+"/"+query, params, 97)
				if err == nil && len(rows) > 0 && !answered[query] {
					answered[query] = true
					err = selected(base+"/"+name+"/"+query, params, rows)
				}
				return rows, err
			})
			for _, q := range m.Queries {
				if !answered[q.Name] {
					t.Errorf("no check of the recording has rows of the query %s", q.Name)
				}
			}
		})
	}
}

// selected compares what a query answers on small pages, of some attributes only, with its rows.
func selected(at string, params map[string]string, rows []systemtest.Row) error {
	names := slices.Sorted(maps.Keys(rows[0]))
	names = names[len(names)/2:]
	with := maps.Clone(params)
	with["select"] = strings.Join(names, ",")
	got, err := ask(at, with, 3)
	if err != nil {
		return err
	}
	var want []systemtest.Row
	for _, row := range rows {
		row = maps.Clone(row)
		maps.DeleteFunc(row, func(name string, _ any) bool { return !slices.Contains(names, name) })
		want = append(want, row)
	}
	if d := cmp.Diff(want, got); d != "" {
		return fmt.Errorf("select=%s: %s", with["select"], d)
	}
	return nil
}

// described returns what compares the answer to a query with the description of the server.
func described(t *testing.T, base string) func(model, query string, params map[string]string) error {
	t.Helper()
	get := func(at string) (any, error) {
		res, err := http.Get(at)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		return jsonschema.UnmarshalJSON(res.Body)
	}
	doc, err := get(strings.TrimSuffix(base, "/v1") + "/openapi.json")
	failtest.On(t, err)
	delete(doc.(map[string]any), "jsonSchemaDialect")
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	failtest.On(t, c.AddResource("openapi.json", doc))
	return func(model, query string, params map[string]string) error {
		s, err := c.Compile("openapi.json#/paths/~1v1~1" + model + "~1" + query + "/get/responses/200/content/application~1json/schema")
		if err != nil {
			return err
		}
		q := url.Values{}
		for k, v := range params {
			q.Set(k, v)
		}
		page, err := get(base + "/" + model + "/" + query + "?" + q.Encode())
		if err != nil {
			return err
		}
		if err := s.Validate(page); err != nil {
			return fmt.Errorf("%s: the answer is not as described: %w", query, err)
		}
		return nil
	}
}

// TestInterrupt: an interrupt has its own exit code.
func TestInterrupt(t *testing.T) {
	serve(t, nil, exitInterrupted, "run", "gallery", "wardrobe", "--data", t.TempDir(), "--addr", "127.0.0.1:0")
}

func command(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &out, &out); code != exitGood {
		t.Fatalf("projector %s: exit %d\n%s", strings.Join(args, " "), code, &out)
	}
}

// serve runs a command that serves, until the test ends; it is stopped for the
// cause given, and must end with the code. The answer is where it serves.
func serve(t *testing.T, cause error, code int, args ...string) (base string) {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	var stderr buffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, strings.NewReader(""), &stderr, &stderr) }()
	t.Cleanup(func() {
		stop(cause)
		if got := <-ended; got != code {
			t.Errorf("exit %d, not %d\n%s", got, code, stderr.text())
		}
	})
	address := regexp.MustCompile(`http://\S+/v1`)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if base = address.FindString(stderr.text()); base != "" {
			return base
		}
	}
	t.Fatalf("it does not serve: %s", stderr.text())
	return ""
}

// ask follows the cursors of a query to the end, on pages of at most so many rows.
func ask(at string, params map[string]string, limit int) (rows []systemtest.Row, err error) {
	q := url.Values{"limit": {fmt.Sprint(limit)}}
	for k, v := range params {
		q.Set(k, v)
	}
	for {
		page, err := getPage(at + "?" + q.Encode())
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.Items...)
		if page.Cursor == "" {
			return rows, nil
		}
		q.Set("cursor", page.Cursor)
	}
}

type page struct {
	Items  []systemtest.Row `json:"items"`
	Cursor string           `json:"cursor"`
	Detail string           `json:"detail"`
}

func getPage(at string) (p page, err error) {
	res, err := http.Get(at)
	if err != nil {
		return p, err
	}
	defer res.Body.Close()
	dec := json.NewDecoder(res.Body)
	dec.UseNumber()
	if err := dec.Decode(&p); err != nil {
		return p, err
	}
	if res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, p.Detail)
	}
	return p, err
}

// buffer may be written and read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
