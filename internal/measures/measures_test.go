package measures_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"weir/internal/goldentest"
	"weir/internal/measures"
)

const (
	guide      = "../../docs/guide/metrics.md"
	begin, end = "<!-- metrics: go test ./internal/measures -says -->\n", "<!-- end of metrics -->\n"
)

// TestGuide: the guide has the list, as guidePage writes it. With -says it is written into the page.
func TestGuide(t *testing.T) {
	goldentest.Part(t, guide, begin, end, "\n"+guidePage()+"\n")
}

// TestAll: the list has each metric that the package declares, once, with all that others make of it.
func TestAll(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "measures.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if c, ok := v.Values[0].(*ast.CompositeLit); ok {
				if is, ok := c.Type.(*ast.Ident); ok && is.Name == "Metric" {
					declared++
				}
			}
		}
		return true
	})
	if n := len(measures.All()); n != declared || n == 0 {
		t.Errorf("the list has %d metrics, and %d are declared", n, declared)
	}
	seen := map[string]bool{}
	for _, m := range measures.All() {
		names := []string{}
		if m.Name != "" {
			names = append(names, m.Name)
		}
		for _, l := range m.Log {
			names = append(names, "log "+l.Name)
			if l.Unit == "" || l.Statistic == "" || l.Help == "" {
				t.Errorf("%s lacks its unit, statistic or help", l.Name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%q has no name", m.Asks)
		}
		for _, name := range names {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if m.Type == "" || m.Unit == "" || m.Asks == "" || m.Name != "" && m.Help == "" {
			t.Errorf("%v lacks its type, unit, question or help", names)
		}
		if (m.Type == measures.Histogram) != (len(m.Buckets) > 0) {
			t.Errorf("%v: buckets are for histograms", names)
		}
		if strings.HasSuffix(m.Name, "_total") != (m.Type == measures.Counter && m.Name != "") {
			t.Errorf("%v: counters, and they alone, end in _total", names)
		}
	}
}

// TestSeries: a table with ten times the shards has no more series.
func TestSeries(t *testing.T) {
	s := measures.Sizes{Models: 1, Tables: 3, Shards: 1000, Derivations: 20, Builds: 2}
	all, shards := measures.Series(s)
	s.Shards = 10_000
	if more, _ := measures.Series(s); more != all || shards == 0 || shards >= all {
		t.Errorf("%d series at 1,000 shards, %d of them by shard; %d at 10,000", all, shards, more)
	}
}
