// Package weirtest tests models in Go tests, as weir test does: each case is derived from little by little, with all records
// delivered again, by a build, and in another order of rows. All must agree, and verify must find nothing.
package weirtest

import (
	"testing"

	"weir/internal/cases"
	"weir/internal/model"
	"weir/internal/projectorcli"
)

// Page runs the cases of a page, such as shop.test.md beside shop.yaml, each as a test of its own.
func Page(t *testing.T, path string) {
	t.Helper()
	page, err := cases.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page.Cases {
		t.Run(c.Title, func(t *testing.T) { run(t, c) })
	}
}

// Case writes rows of a model file, as the lines that weir ingest put reads, and asks a query as on a command line: "orders
// userId=u1 --only total". The answer must be the JSON lines want.
func Case(t testing.TB, path, rows, query, want string) {
	t.Helper()
	m, err := model.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, cases.New(m, rows, path+" "+query, want))
}

func run(t testing.TB, c *cases.Case) {
	t.Helper()
	found, err := projectorcli.CaseRunner(t.Context()).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: %s:\n%s", f.Way, f.What, f.Diff())
	}
}
