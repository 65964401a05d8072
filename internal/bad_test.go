package internal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/api"
	"weir/internal/events"
	"weir/internal/goldentest"
	"weir/internal/ingest"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/query"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store/embedded"
	"weir/internal/system"
)

// What is said of bad input: testdata/bad, an archive for each kind. Arguments are
// looked at by internal/projectorcli.
const bad = "../testdata/bad/"

// leastBad is how many bad inputs there are at the least.
const leastBad = 400

func TestBadIsMuch(t *testing.T) {
	files, _ := filepath.Glob(bad + "*.txtar")
	n := 0
	for _, file := range files {
		for _, c := range goldentest.Read(t, file).Cases {
			if n++; c.Says == "" {
				t.Errorf("%s: nothing is said of %s", file, c.Name)
			}
		}
	}
	t.Logf("%d bad inputs", n)
	if n < leastBad {
		t.Errorf("%d bad inputs", n)
	}
}

// goodRecord is the record that <good n> stands for.
func goodRecord(n string) string {
	return `{"eventID":"e1","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":1700000000,"Keys":{"PK":{"S":"ALBUM#1"},"SK":{"S":"METADATA"}},"NewImage":{"PK":{"S":"ALBUM#1"},"SK":{"S":"METADATA"},"title":{"S":"The sea"},"n":{"N":"5"}},"SequenceNumber":"` +
		n + `00000000000000000000` + `1","SizeBytes":99,"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/2025"}`
}

var goodMark = regexp.MustCompile(`<good (\d)>`)

// located is a message with its place.
var located = regexp.MustCompile(`^[a-z-]+/[a-z0-9-]+\.jsonl?:\d+ \(byte \d+\): .`)

func TestBadRecords(t *testing.T) {
	goldentest.Check(t, bad+"records.txtar", func(t *testing.T, c goldentest.Case) string {
		content := goodMark.ReplaceAllStringFunc(c.Input, func(m string) string { return goodRecord(goodMark.FindStringSubmatch(m)[1]) })
		var out strings.Builder
		good := 0
		err := events.Read(strings.NewReader(content), c.Name, func(e events.Entry) error {
			if e.Bad == nil {
				good++
				return nil
			}
			line := fmt.Sprintf("%s: %v", e.Location, e.Bad)
			if !located.MatchString(line) || strings.Contains(line, "\n") {
				t.Errorf("no place: %s", line)
			}
			fmt.Fprintln(&out, line)
			return nil
		})
		switch {
		case err != nil && (!errors.Is(err, events.ErrNoRecords) || !strings.HasPrefix(err.Error(), c.Name+": ")):
			t.Error(err)
		case err != nil:
			return err.Error()
		case out.Len() == 0:
			t.Error("nothing is wrong with it")
		}
		return out.String() + fmt.Sprintf("%d good", good)
	})
}

func TestBadModels(t *testing.T) {
	base, err := os.ReadFile("model/testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, bad+"models.txtar", func(t *testing.T, c goldentest.Case) string {
		text, alone := strings.CutPrefix(c.Input, "alone\n")
		if !alone && text != "" {
			text += missingSections(string(base), text)
		}
		_, err := model.Parse(c.Name, []byte(text))
		var problems *model.Problems
		if !errors.As(err, &problems) {
			t.Fatalf("nothing is wrong with it: %v", err)
		}
		return err.Error()
	})
}

// missingSections are the sections of a model that a text does not have.
func missingSections(base, text string) (out string) {
	for _, s := range regexp.MustCompile(`(?m)^[a-z]+:(?:.*\n)(?:[ #].*\n|\n)*`).FindAllString(base, -1) {
		if name, _, _ := strings.Cut(s, ":"); !strings.HasPrefix(text, name+":") && !strings.Contains(text, "\n"+name+":") {
			out += s
		}
	}
	return out
}

// rig is some of the built-in models over an embedded store in memory.
type rig struct {
	store  *embedded.Store
	models map[string]*model.Model
}

func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	r := &rig{models: map[string]*model.Model{}}
	var models []*model.Model
	for _, name := range names {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r.models[name] = m
		models = append(models, m)
	}
	tables, err := system.Tables(models)
	if err != nil {
		t.Fatal(err)
	}
	r.store, err = embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.store.Close() })
	return r
}

// do does a command behind the name of its model.
func (r *rig) do(t *testing.T, name, line string) ingest.Result {
	t.Helper()
	m := r.models[name]
	if m == nil {
		t.Fatalf("there is no model %q", name)
	}
	c, err := ingest.ReadCommand([]byte(line))
	if err != nil {
		return ingest.Result{Err: err}
	}
	w := ingest.Writer{Model: m, Secret: make([]byte, 32), Store: r.store, Now: func() time.Time { return time.Date(2025, 11, 13, 12, 0, 0, 0, time.UTC) }}
	return w.Do(context.Background(), []ingest.Command{c})[0]
}

// give does the commands of an archive's given, a model and a line in turn.
func (r *rig) give(t *testing.T, given string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(given), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if res := r.do(t, lines[i], lines[i+1]); res.Err != nil {
			t.Fatalf("%s: %v", lines[i+1], res.Err)
		}
	}
}

func TestBadCommands(t *testing.T) {
	r := newRig(t, "gallery", "wardrobe", "movienight")
	r.give(t, goldentest.Read(t, bad+"commands.txtar").Given["given"])
	goldentest.Check(t, bad+"commands.txtar", func(t *testing.T, c goldentest.Case) string {
		name, line, _ := strings.Cut(strings.TrimSuffix(c.Input, "\n"), "\n")
		var refusal *ingest.Refusal
		if err := r.do(t, name, line).Err; !errors.As(err, &refusal) {
			t.Fatalf("it is not refused: %v", err)
		}
		out := refusal.Kind.String() + "\n"
		for _, p := range refusal.Problems {
			out += p.String() + "\n"
		}
		return out
	})
}

var (
	cursorMark = regexp.MustCompile(`<cursor of ([^ ,>]*)(, [a-z]+)?>`)
	manyMark   = regexp.MustCompile(`<(\d+) (values|letters)>`)
)

func TestBadRequests(t *testing.T) {
	r := newRig(t, "gallery", "wardrobe", "viewing")
	for _, id := range []string{"a1", "a2", "a3"} {
		r.give(t, "gallery\n"+`{"op":"create","entity":"Album","item":{"id":"`+id+`","title":"The sea","createdAt":"2025-01-01T00:00:00Z"}}`)
	}
	var engines []*query.Engine
	for _, name := range []string{"gallery", "wardrobe", "viewing"} {
		e, err := query.New(query.Config{Model: r.models[name], Store: r.store, Secret: []byte("a secret of enough bytes"), Search: nothingFound{}})
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	handler, err := api.New(engines, api.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, target string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("GET", "/", nil)
		path, raw, _ := strings.Cut(target, "?")
		req.Method, req.URL = method, &url.URL{Path: path, RawQuery: raw}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w
	}
	fill := func(target string) string {
		target = manyMark.ReplaceAllStringFunc(target, func(m string) string {
			var n int
			var of string
			fmt.Sscanf(m, "<%d %s", &n, &of)
			if of == "values>" {
				return strings.Repeat("a,", n)
			}
			return strings.Repeat("a", n)
		})
		return cursorMark.ReplaceAllStringFunc(target, func(m string) string {
			parts := cursorMark.FindStringSubmatch(m)
			var page struct{ Cursor string }
			if w := ask("GET", parts[1]); json.Unmarshal(w.Body.Bytes(), &page) != nil || page.Cursor == "" {
				t.Fatalf("%s gives no cursor: %s", parts[1], w.Body)
			}
			switch c := page.Cursor; parts[2] {
			case ", cut":
				return c[:len(c)-4]
			case ", changed":
				return c[:3] + string(rune(c[3]^1)) + c[4:]
			}
			return page.Cursor
		})
	}
	goldentest.Check(t, bad+"requests.txtar", func(t *testing.T, c goldentest.Case) string {
		method, target, _ := strings.Cut(strings.TrimSpace(c.Input), " ")
		w := ask(method, fill(target))
		var p struct {
			Type, Detail    string
			Errors          []query.Problem
			Models, Queries []string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code < 400 || w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		out := fmt.Sprintf("%d %s: %s\n", w.Code, strings.TrimPrefix(p.Type, "urn:weir:problem:"), p.Detail)
		for _, e := range p.Errors {
			out += e.Parameter + " " + e.Message + "\n"
		}
		if p.Models != nil {
			out += "models: " + strings.Join(p.Models, ", ") + "\n"
		}
		if p.Queries != nil {
			out += fmt.Sprintf("and the names of %d queries\n", len(p.Queries))
		}
		return out
	})
}

func TestBadPayloads(t *testing.T) {
	r := newRig(t, "gallery")
	goldentest.Check(t, bad+"payloads.txtar", func(t *testing.T, c goldentest.Case) string {
		payload := strings.TrimSuffix(c.Input, "\n")
		h := lambda.New(newRunner(r), func(context.Context) error { return nil })
		answer, err := h.Invoke(context.Background(), []byte(payload))
		if err == nil {
			t.Fatalf("it is answered: %s", answer)
		}
		if !errors.Is(err, lambda.ErrEvent) && !errors.Is(err, lambda.ErrOrder) {
			t.Errorf("an error of no kind: %v", err)
		}
		return err.Error()
	})
}

func newRunner(r *rig) *runner.Runner {
	return &runner.Runner{Kinds: kinds.All(), Model: r.models["gallery"], Store: r.store, Now: time.Now, Mover: &ingest.Mover{Model: r.models["gallery"], Store: r.store}}
}

// nothingFound is an index without documents.
type nothingFound struct{ search.Index }

func (nothingFound) Search(context.Context, search.Query) ([]search.Hit, error) { return nil, nil }
