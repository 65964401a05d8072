package weir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir"
	"weir/internal/events"
	"weir/internal/goldentest"
	"weir/internal/ingest"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/system"
)

// inDirectory has functions keep their rows in a directory instead of DynamoDB.
func inDirectory() string {
	dir, err := os.MkdirTemp("", "weir-example-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"WEIR_OPENSEARCH", "WEIR_QUERIES", "WEIR_GROUP", "WEIR_DRAINED"} {
		os.Unsetenv(name)
	}
	os.Setenv("WEIR_DATA", dir)
	return dir
}

// orderEvent writes orders as an application does, and returns the event that the stream then has for a function.
func orderEvent(ctx context.Context, data string, orders ...string) []byte {
	m, err := model.Parse("sales.yaml", []byte(sales))
	if err != nil {
		panic(err)
	}
	s, err := system.Open(ctx, data, []*model.Model{m}, system.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	w := &ingest.Writer{Model: m, Store: s.Store}
	for _, order := range orders {
		c, err := ingest.ReadCommand(fmt.Appendf(nil, `{"op":"put","entity":"Order","item":%s}`, order))
		if err != nil {
			panic(err)
		}
		if err := w.Do(ctx, []ingest.Command{c})[0].Err; err != nil {
			panic(err)
		}
	}
	shards, err := s.Store.Shards(ctx, "orders")
	if err != nil {
		panic(err)
	}
	for _, shard := range shards {
		page, err := s.Store.Read(ctx, "orders", shard.ID, events.Position{}, 100)
		if err != nil {
			panic(err)
		}
		if len(page.Records) == 0 {
			continue
		}
		var records []json.RawMessage
		for i := range page.Records {
			records = append(records, lambdatest.Record("orders", &page.Records[i]))
		}
		event, err := json.Marshal(map[string]any{
			"Records": records, "shardId": shard.ID, "state": map[string]string{}, "window": map[string]string{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:15Z"},
			"eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026", "isFinalInvokeForWindow": false, "isWindowTerminatedEarly": false,
		})
		if err != nil {
			panic(err)
		}
		return event
	}
	panic("the stream has no records")
}

// TestQuery: an error is the last that a query yields, and a search finds rows that nothing has filled an index with before.
func TestQuery(t *testing.T) {
	m, err := weir.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	db, err := weir.Open(t.Context(), m, weir.Place{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for row, err := range db.Query(t.Context(), "no-query", nil) {
		if err == nil || row != nil {
			t.Error(row, err)
		}
	}
	for row, err := range db.Query(t.Context(), "search-albums", map[string]string{"q": "sea"}) {
		t.Error(row, err)
	}
}

// TestNoModel: a file that is not there, and rows that cannot be opened, are errors.
func TestNoModel(t *testing.T) {
	if _, err := weir.Load("no-such-model"); err == nil || !strings.Contains(err.Error(), "no-such-model") {
		t.Error(err)
	}
	m, err := weir.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_STAGE", "No Stage")
	if _, err := weir.Open(t.Context(), m, weir.Place{Data: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "WEIR_STAGE") {
		t.Error(err)
	}
	if _, err := weir.NewHandler(t.Context(), m, t.Output()); err == nil || !strings.Contains(err.Error(), "WEIR_STAGE") {
		t.Error(err)
	}
}

// maxAPI is how many names users of the packages have to know.
const maxAPI = 20

// TestAPI holds what the packages export to testdata/api.txt: a name that goes, or a signature that changes, breaks programs of
// users. With -says it writes the file.
func TestAPI(t *testing.T) {
	var out bytes.Buffer
	names := 0
	for _, dir := range []string{".", "weirtest"} {
		set := token.NewFileSet()
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(set, files, "weir/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		show := func(d ast.Node) {
			if f, is := d.(*ast.FuncDecl); is {
				f.Body, f.Doc = nil, nil
			}
			if g, is := d.(*ast.GenDecl); is {
				g.Doc = nil
			}
			names++
			fmt.Fprintf(&out, "%s: ", p.Name)
			if err := printer.Fprint(&out, set, d); err != nil {
				t.Fatal(err)
			}
			out.WriteString("\n")
		}
		for _, v := range append(p.Consts, p.Vars...) {
			show(v.Decl)
		}
		for _, f := range p.Funcs {
			show(f.Decl)
		}
		for _, k := range p.Types {
			show(k.Decl)
			for _, f := range append(k.Funcs, k.Methods...) {
				show(f.Decl)
			}
		}
	}
	if names > maxAPI || names < 10 {
		t.Errorf("%d exported names, want at most %d", names, maxAPI)
	}
	goldentest.Part(t, "testdata/api.txt", "---\n", "---\n", out.String())
}
