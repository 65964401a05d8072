package build_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// layouts are how source rows of a target lie in a table: next to each other, or anywhere.
var layouts = map[string]func(nr, targets int) (partition string){
	"by target":     func(nr, targets int) string { return fmt.Sprint("USER#", nr%targets) },
	"in scan order": func(nr, _ int) string { return fmt.Sprint("USER#", nr) },
}

// TestUnits: what a build writes of each source row and each target, where 50 rows count for one
// target, is at most what docs/performance.md says, and a dry run says it within a tenth.
// TestUnitsOfKinds has distinct values.
// WEIR_TEST_ROWS says how many rows.
func TestUnits(t *testing.T) {
	soaktest.Calm(t)
	for name, most := range map[string]float64{"by target": 2.15, "in scan order": 4.1} {
		t.Run(name, func(t *testing.T) {
			f := open(t, load(t, strings.Replace(films, moods, "", 1)))
			rows := unitRows(10_000)
			f.fillWith(rows, name)
			f.units(rows, most)
		})
	}
}

// TestUnitsOnDynamoDB is the same on DynamoDB Local.
func TestUnitsOnDynamoDB(t *testing.T) {
	for name, most := range map[string]float64{"by target": 2.15, "in scan order": 4.1} {
		t.Run(name, func(t *testing.T) {
			f := openOnDynamoDB(t, load(t, strings.Replace(films, moods, "", 1)))
			rows := unitRows(1_000)
			f.fillWith(rows, name)
			f.units(rows, most)
		})
	}
}

func unitRows(n int) int {
	if rows, err := strconv.Atoi(os.Getenv("WEIR_TEST_ROWS")); err == nil {
		return rows
	}
	return n
}

// fillWith writes rows and their targets, which weir does not read.
func (f *fixture) fillWith(rows int, layout string) {
	f.Helper()
	targets := rows / 50
	put := func(of string, n int, row func(nr int) []value.Attr) {
		for from := 0; from < n; from += 500 {
			var ws []store.Write
			for nr := from; nr < min(n, from+500); nr++ {
				it := value.NewItem(append(row(nr), runner.Attr("type", value.OfString(of)))...)
				key, _ := f.model.Tables[0].KeyOf(it)
				ws = append(ws, store.Write{Ref: store.Ref{Table: f.table, Key: key}, Put: it})
			}
			out, err := f.Store.Write(f.Context(), ws)
			f.ok(err)
			for i := range out {
				f.ok(out[i].Err)
			}
		}
	}
	text := func(name, v string) value.Attr { return runner.Attr(name, value.OfString(v)) }
	put("Rating", rows, func(nr int) []value.Attr {
		return []value.Attr{text("PK", layouts[layout](nr, targets)), text("SK", fmt.Sprint("RATING#", nr)), text("mood", "m"),
			text("movie", fmt.Sprint(nr%targets)), runner.Attr("stars", value.OfInt(int64(nr%6)))}
	})
	put("Movie", targets, func(nr int) []value.Attr {
		return []value.Attr{text("PK", fmt.Sprint("MOVIE#", nr)), text("SK", "METADATA")}
	})
	f.unread()
	f.unbuilt()
}

// units estimates and builds, and counts the units of the builder's calls.
func (f *fixture) units(rows int, most float64) {
	f.Helper()
	b := f.builder("Movie")
	b.Segments = 0
	said, err := b.Estimate(f.Context())
	f.ok(err)
	b = f.builder("Movie")
	b.Segments = 0
	var units atomic.Int64
	r := *b.Runner
	r.Store = metered{f.Store, &units}
	b.Runner = &r
	start := time.Now()
	is, err := b.Run(f.Context())
	f.ok(err)
	took := b.Done()
	if is[0].State != owntable.BuildLive || took.Puts != int64(rows) || took.Targets != int64(rows/50) {
		f.Fatalf("%+v, %+v", is, took)
	}
	duration := time.Since(start)
	perRow := float64(took.Units-took.Targets) / float64(rows)
	f.Logf("%d rows, %d targets: %d write units and %d read units, $%.4f: %.2f write units a source row, and 1 a target; the dry run said %d and %d; %d write units by its calls; %.0f rows/s",
		rows, took.Targets, took.Units, took.ReadUnits(), took.Price(), perRow, said.Units, said.ReadUnits(), units.Load(), float64(rows)/duration.Seconds())
	if perRow > most {
		f.Errorf("%.2f write units a source row, at most %.2f", perRow, most)
	}
	for name, of := range map[string][2]int64{"write": {said.Units, took.Units}, "called": {units.Load(), took.Units}, "read": {said.ReadUnits(), took.ReadUnits()}} {
		if off := float64(of[0])/float64(of[1]) - 1; off > 0.1 || off < -0.1 {
			f.Errorf("%s units: %d, and %d by the builder", name, of[0], of[1])
		}
	}
}
