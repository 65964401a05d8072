package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/events"
	"weir/internal/value"
)

func testBench(t *testing.T) *bench {
	return &bench{ctx: t.Context(), talk: io.Discard, dir: t.TempDir(), short: true, files: map[string]recording{}}
}

// The recording agrees with itself: each old image is what came last for its key,
// and sequence numbers ascend.
func TestRecording(t *testing.T) {
	rec, err := testBench(t).openRecording(20_000)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(rec.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := map[string]value.Item{}
	var at events.Position
	kinds, n := map[string]int{}, 0
	err = events.Read(f, rec.path, func(e events.Entry) error {
		r := &e.Record
		if e.Bad != nil {
			t.Fatalf("%s: %v", e.Location, e.Bad)
		}
		key := string(value.AppendPlainItem(nil, r.Keys))
		if !value.EqualItems(rows[key], r.Old) {
			t.Fatalf("%s: the old image of %s is not what came last", e.Location, key)
		}
		if r.Position.Compare(at) <= 0 || len(r.Position.String()) != 21 {
			t.Fatalf("%s: sequence number %s after %s", e.Location, r.Position, at)
		}
		rows[key], at = r.New.Clone(), r.Position
		kinds[r.Event()]++
		n++
		return nil
	})
	if err != nil || n != rec.records {
		t.Fatalf("%d records, %v", n, err)
	}
	if size := rec.bytes / int64(n); size < 1100 || size > 1500 {
		t.Errorf("%d bytes a record", size)
	}
	t.Logf("%d bytes a record, %v", rec.bytes/int64(n), kinds)
}

// Copies have rows of their own, and each is what the recording is: as many rows, each old image what came last,
// but where the recording itself has a gap.
func TestCopies(t *testing.T) {
	t.Chdir("../..")
	b := testBench(t)
	for _, name := range []string{"gallery", "viewing", "movienight", "watchlists", "wardrobe"} {
		rows, gaps, records := map[int]int{}, map[int]int{}, 0
		for _, of := range []int{1, 3} {
			c, err := b.newCopies(name, 1)
			if err != nil {
				t.Fatal(err)
			}
			c.of, records = of, len(c.records)
			rec, err := b.recordingAt(filepath.Join(b.dir, fmt.Sprint(name, of)), name, c.appendNext, of*records)
			if err != nil {
				t.Fatal(err)
			}
			rows[of], gaps[of] = follow(t, rec)
		}
		if rows[3] != 3*rows[1] || gaps[3] != 3*gaps[1] || gaps[1] > records/100 {
			t.Errorf("%s: %d rows and %d gaps in 3 copies, %d and %d in one", name, rows[3], gaps[3], rows[1], gaps[1])
		}
	}
}

// follow counts the rows of a recording, and the records whose old image is not what came last.
func follow(t *testing.T, rec recording) (rows, gaps int) {
	f, err := os.Open(rec.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	is, met := map[string]value.Item{}, map[string]bool{}
	err = events.Read(f, rec.path, func(e events.Entry) error {
		r := &e.Record
		key := r.Table + string(value.AppendPlainItem(nil, r.Keys))
		if e.Bad != nil || !value.EqualItems(is[key], r.Old) {
			gaps++
		}
		is[key], met[key] = r.New.Clone(), true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(met), gaps
}

// Arguments are stages, or how many records the goals are measured with.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		only string
		most int
	}{
		{nil, "", 1_000_000}, {[]string{"10000000"}, "goals", 10_000_000}, {[]string{"decode", "replay"}, "decode,replay", 1_000_000},
		{[]string{"goals", "100000"}, "goals", 100_000}, {[]string{"99999"}, "wrong", 0},
	} {
		b, only := testBench(t), ""
		err := b.parseArguments(c.args, &only)
		if c.only == "wrong" {
			if err == nil {
				t.Errorf("%q is taken", c.args)
			}
			continue
		}
		if err != nil || only != c.only || b.most != c.most {
			t.Errorf("%q: stages %q, %d records, %v", c.args, only, b.most, err)
		}
	}
}

// A cost that grows by more than the goal is said to miss it, where recordings are long enough for it.
func TestGrows(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		each  []float64
		goal  string
		met   bool
	}{
		{[]int{100_000, 1_000_000}, []float64{10, 13}, "≤ 1.30 ×", true},
		{[]int{100_000, 1_000_000, 10_000_000}, []float64{12, 10, 13.1}, "≤ 1.30 ×", false},
		{[]int{10_000, 100_000}, []float64{20, 10}, "", false},
	} {
		b := testBench(t)
		b.addGrowth(c.sizes, c.each)
		if l := b.table.lines[0]; l.goal != c.goal || l.met != c.met {
			t.Errorf("%v: %+v", c.each, l)
		}
	}
}
