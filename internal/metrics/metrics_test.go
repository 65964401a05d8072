package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"weir/internal/budget"
	"weir/internal/live"
	"weir/internal/metrics"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// TestMetrics says how what is counted reads, and holds names, units and help to the conventions of Prometheus.
func TestMetrics(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	db, err := embedded.Open("store", []store.Table{owntable.Table(), m.Tables[0].Table}, embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	if _, err := run.KeepDead(t.Context(), runner.Dead{Kind: runner.DeadGap, Target: "shard s", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	all := metrics.New()
	of := all.Of(run)
	of.Applied(runner.GroupRows, runner.Counts{Applied: 7, Skipped: 2, Dead: 1})
	of.Applied(runner.GroupRows, runner.Counts{Applied: 3})
	for _, n := range []live.Note{live.Gap, live.Old, live.Reads, live.Reads} {
		of.Noted(n)
	}
	of.Stopped(func() []live.Stopped { return []live.Stopped{{Table: "gallery", Why: "it has no stream"}} })
	of.Shards(func() []live.Status {
		return []live.Status{{Table: "gallery", Shard: "s\"1", ReadAge: 2 * time.Second, Unapplied: time.Minute, Bytes: 512}}
	})
	all.Writes(func() []budget.Use {
		return []budget.Use{{Table: "gallery", Units: 12.5, Throttled: 3, Waited: 1500 * time.Millisecond, Share: 200}, {Table: "weir", Units: 7}}
	})
	scrape := func() string {
		w := httptest.NewRecorder()
		all.Handler().ServeHTTP(w, httptest.NewRequest("GET", metrics.Path, nil))
		return w.Body.String()
	}
	got := scrape()
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		`weir_records_total{group="rows",model="gallery",result="applied"} 10`,
		`weir_records_total{group="rows",model="gallery",result="skipped"} 2`,
		`weir_records_total{group="rows",model="gallery",result="dead"} 1`,
		`weir_batches_total{group="rows",model="gallery"} 2`,
		`weir_dead_letters{kind="gap",model="gallery"} 1`,
		`weir_dead_letters{kind="parked",model="gallery"} 0`,
		`weir_gaps_total{model="gallery"} 1`,
		`weir_old_pages_total{model="gallery"} 1`,
		`weir_errors_total{kind="read",model="gallery"} 2`,
		`weir_shard_read_age_seconds{model="gallery",shard="s\"1",table="gallery"} 2`,
		`weir_shard_unapplied_seconds{model="gallery",shard="s\"1",table="gallery"} 60`,
		`weir_spool_bytes{model="gallery",shard="s\"1",table="gallery"} 512`,
		`weir_write_units_total{table="gallery"} 12.5`,
		`weir_write_units_total{table="weir"} 7`,
		`weir_throttled_writes_total{table="gallery"} 3`,
		`weir_write_wait_seconds_total{table="gallery"} 1.5`,
		`weir_write_budget{table="gallery"} 200`,
		`weir_stopped{model="gallery",shard="",table="gallery"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	// A store that is down takes only what is read from it.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	fresh := metrics.New()
	fresh.Of(run).Applied(runner.GroupRows, runner.Counts{Applied: 1})
	w := httptest.NewRecorder()
	fresh.Handler().ServeHTTP(w, httptest.NewRequest("GET", metrics.Path, nil))
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "weir_records_total") || strings.Contains(body, "weir_dead_letters{") {
		t.Errorf("%d %s", w.Code, body)
	}
}
