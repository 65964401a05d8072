// Package systemtest compares what a system answers with what a recording's own
// bookkeeping says, for tests that ask it in different ways.
package systemtest

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"weir/internal/failtest"
)

// Row is a row as JSON has it, numbers as json.Number.
type Row = map[string]any

// Expected is what must come of a recording, by the bookkeeping of the script that
// made it.
type Expected struct {
	Records int     `json:"records"`
	Checks  []Check `json:"checks"`
}

// Check is a query and the rows it must answer. Ordered says that their order is
// fixed; Subset that only the attributes named count; Except leaves rows out whose
// attribute has one of the values.
type Check struct {
	Query   string              `json:"query"`
	Params  map[string]string   `json:"params"`
	Ordered bool                `json:"ordered"`
	Subset  bool                `json:"subset"`
	Except  map[string][]string `json:"except"`
	Items   []Row               `json:"items"`
}

// Read reads what is expected of the recording in a directory.
func Read(t testing.TB, dir string) Expected {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected.json.gz"))
	failtest.On(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	failtest.On(t, err)
	dec := json.NewDecoder(z)
	dec.UseNumber()
	var e Expected
	failtest.On(t, dec.Decode(&e))
	return e
}

// Recordings are the directories of the recorded streams, each with the name of its
// model, as the tests of a package two levels down find them, and those of the examples.
func Recordings(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("../../testdata/streams/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recorded streams: %v", err)
	}
	examples, err := filepath.Glob("../../examples/*/recording")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	return append(dirs, examples...)
}

// Model is how the model of a recording is called: its name, or the path of an example's file.
func Model(dir string) string {
	if of, example := strings.CutSuffix(dir, "/recording"); example {
		return of + "/model.yaml"
	}
	return filepath.Base(dir)
}

// Name is the name of a recording.
func Name(dir string) string { return filepath.Base(strings.TrimSuffix(dir, "/recording")) }

// Files are the recorded files in a directory.
func Files(t testing.TB, dir string) []string {
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	failtest.On(t, err)
	var out []string
	for _, f := range all {
		if !strings.HasPrefix(filepath.Base(f), "expected.") {
			out = append(out, f)
		}
	}
	return out
}

// All makes all checks, by asking for whole answers.
func All(t testing.TB, checks []Check, ask func(query string, params map[string]string) ([]Row, error)) {
	t.Helper()
	if len(checks) == 0 {
		t.Error("nothing is expected")
	}
	bad := 0
	for _, c := range checks {
		rows, err := ask(c.Query, c.Params)
		if err == nil {
			err = c.compare(rows)
		}
		if err == nil {
			continue
		}
		if bad++; bad <= 10 {
			t.Errorf("%s %v: %v", c.Query, c.Params, err)
		}
	}
	if bad > 10 {
		t.Errorf("… and %d more of %d checks", bad-10, len(checks))
	}
}

func (c *Check) compare(rows []Row) error {
	var have []Row
	for _, row := range rows {
		if !c.excepted(row) {
			have = append(have, row)
		}
	}
	if len(have) != len(c.Items) {
		return fmt.Errorf("%d rows, want %d%s", len(have), len(c.Items), c.firstMissing(have))
	}
	want := c.Items
	if !c.Ordered {
		want, have = c.sorted(want), c.sorted(have)
	}
	for i := range want {
		if !c.same(have[i], want[i]) {
			return fmt.Errorf("row %d\nhave %s\nwant %s", i, text(have[i]), text(want[i]))
		}
	}
	return nil
}

func (c *Check) excepted(row Row) bool {
	for name, values := range c.Except {
		if v, ok := row[name].(string); ok && slices.Contains(values, v) {
			return true
		}
	}
	return false
}

func (c *Check) firstMissing(have []Row) string {
	there := map[string]bool{}
	for _, h := range have {
		there[c.key(h)] = true
	}
	for _, w := range c.Items {
		if !there[c.key(w)] {
			return "; missing first: " + text(w)
		}
		delete(there, c.key(w))
	}
	for k := range there {
		return "; too many, such as " + k
	}
	return ""
}

func (c *Check) same(have, want Row) bool {
	have, want = c.relevant(have, want), c.relevant(want, want)
	return reflect.DeepEqual(have, want)
}

func (c *Check) relevant(row, want Row) Row {
	out := Row{}
	for k, v := range row {
		if _, named := want[k]; named || !c.Subset && !ofKey(row, k) {
			out[k] = v
		}
	}
	return out
}

// ofKey reports whether an attribute is one that answers have besides those of the row: a
// part of its key under a name, or the name of its entity. The bookkeeping knows rows only
// as they are stored.
func ofKey(row Row, name string) bool {
	if name == "weir.entity" {
		return true
	}
	part := fmt.Sprint(row[name])
	for _, key := range []string{"PK", "SK", "profileId", "sk"} {
		text, _ := row[key].(string)
		if key != name && slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("#|/", r) }), part) {
			return true
		}
	}
	return false
}

func (c *Check) key(row Row) string {
	for _, pk := range [][2]string{{"PK", "SK"}, {"profileId", "sk"}} {
		if row[pk[0]] != nil {
			return fmt.Sprint(row[pk[0]], "|", row[pk[1]])
		}
	}
	return text(row)
}

func (c *Check) sorted(rows []Row) []Row {
	rows = append([]Row(nil), rows...)
	sort.SliceStable(rows, func(i, j int) bool { return c.key(rows[i]) < c.key(rows[j]) })
	return rows
}

func text(x any) string {
	b, _ := json.Marshal(x)
	return string(b)
}
