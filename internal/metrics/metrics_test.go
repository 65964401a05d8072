package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"weir/internal/budget"
	"weir/internal/deadletter"
	"weir/internal/measures"
	"weir/internal/metrics"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/status"
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
	if _, err := run.Letters().Keep(t.Context(), deadletter.Letter{Kind: deadletter.Gap, Target: "shard s", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	all := metrics.New()
	of := all.Of(run)
	at := run.Now().Add(-time.Hour)
	of.Applied(reader.Applied{
		Table: "gallery", Records: 10, Oldest: at, Newest: at.Add(90 * time.Second),
		Result: runner.Result{Counts: runner.Counts{Applied: 7, Skipped: 2, Dead: 1}, By: map[string]runner.Counts{"Album.mediaCount": {Applied: 4, Dead: 1}, "nothing": {Applied: 9}}},
	})
	of.Applied(reader.Applied{Table: "gallery", Records: 3, Result: runner.Result{Counts: runner.Counts{Applied: 3}}})
	of.Applied(reader.Applied{Table: "gallery", Records: 1, Oldest: at, Newest: at.Add(30 * time.Second), Result: runner.Result{Counts: runner.Counts{Applied: 1}}})
	for _, n := range []reader.Note{reader.Taken, reader.Taken, reader.Lost, reader.Released, reader.Gap, reader.Old, reader.Reads, reader.Reads} {
		of.Noted(n)
	}
	of.Stopped = func() []reader.Stopped { return []reader.Stopped{{Table: "gallery", Why: "it has no stream"}} }
	of.Shards = func() []reader.Status {
		return []reader.Status{{Table: "gallery", Shard: "s\"1", Unapplied: time.Minute}}
	}
	all.Writes = func() ([]budget.Use, map[budget.Cause]int64) {
		return []budget.Use{
			{Table: "gallery", By: map[budget.Purpose]budget.Units{budget.Rows: {Write: 12.5, Read: 4}}, Throttled: 3, Waited: 1500 * time.Millisecond, Share: 200},
			{Table: "weir", By: map[budget.Purpose]budget.Units{budget.Lease: {Write: 7}}},
		}, map[budget.Cause]int64{budget.CauseThrottled: 6}
	}
	all.Builds = func(_ context.Context, model string) ([]status.Build, error) {
		return []status.Build{{Entity: model + "-Album", State: owntable.BuildBuilding, Rows: 20, Of: 50, Left: 8}}, nil
	}
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
	isTheList(t, got)
	for _, want := range []string{
		`weir_shards{model="gallery",table="gallery"} 1`,
		`weir_unapplied_seconds{model="gallery",table="gallery"} 60`,
		`weir_records_total{model="gallery",result="applied"} 11`,
		`weir_records_total{model="gallery",result="skipped"} 2`,
		`weir_records_total{model="gallery",result="dead"} 1`,
		`weir_batch_records_count{model="gallery"} 3`,
		`weir_batch_records_bucket{model="gallery",le="1"} 1`,
		`weir_batch_records_bucket{model="gallery",le="10"} 3`,
		`weir_batch_records_sum{model="gallery"} 14`,
		`weir_apply_delay_seconds_bucket{model="gallery",le="1800"} 0`,
		`weir_apply_delay_seconds_bucket{model="gallery",le="7200"} 2`,
		`weir_derivation_records_total{derivation="Album.mediaCount",model="gallery",result="applied"} 4`,
		`weir_derivation_records_total{derivation="Album.mediaCount",model="gallery",result="dead"} 1`,
		`weir_derivation_records_total{derivation="Album.mediaCount",model="gallery",result="skipped"} 9`,
		`weir_derivation_records_total{derivation="search/albums",model="gallery",result="skipped"} 14`,
		`weir_documents_pending{model="gallery"} 0`,
		`weir_lease_changes_total{change="taken",model="gallery"} 2`,
		`weir_lease_changes_total{change="lost",model="gallery"} 1`,
		`weir_lease_changes_total{change="released",model="gallery"} 1`,
		`weir_retries_total{cause="throttled"} 6`,
		`weir_build_rows{entity="gallery-Album",model="gallery",state="building"} 20`,
		`weir_build_expected_rows{entity="gallery-Album",model="gallery",state="building"} 50`,
		`weir_build_left_seconds{entity="gallery-Album",model="gallery",state="building"} 8`,
		`weir_read_units_total{purpose="rows",table="gallery"} 4`,
		`weir_dead_letters{kind="gap",model="gallery"} 1`,
		`weir_dead_letters{kind="parked",model="gallery"} 0`,
		`weir_gaps_total{model="gallery"} 1`,
		`weir_old_pages_total{model="gallery"} 1`,
		`weir_errors_total{kind="read",model="gallery"} 2`,
		`weir_shard_unapplied_seconds{model="gallery",shard="s\"1",table="gallery"} 60`,
		`weir_write_units_total{purpose="rows",table="gallery"} 12.5`,
		`weir_write_units_total{purpose="lease",table="weir"} 7`,
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
	fresh.Of(run).Applied(reader.Applied{Table: "gallery", Records: 1, Result: runner.Result{Counts: runner.Counts{Applied: 1}}})
	w := httptest.NewRecorder()
	fresh.Handler().ServeHTTP(w, httptest.NewRequest("GET", metrics.Path, nil))
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "weir_records_total") || strings.Contains(body, "weir_dead_letters{") {
		t.Errorf("%d %s", w.Code, body)
	}
}

// isTheList holds what is served to the list of package measures: each metric is in it with its type, labels and help,
// and each of the list is served.
func isTheList(t *testing.T, text string) {
	t.Helper()
	served := map[string]string{} // what is said of a metric, by name
	labels := map[string]map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			served[name] = help
		} else if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, is, _ := strings.Cut(rest, " ")
			served[name] += "|" + is
			labels[name] = map[string]bool{}
		} else if m := series.FindStringSubmatch(line); m != nil {
			name := m[1]
			if labels[name] == nil {
				name = name[:strings.LastIndex(name, "_")] // of a histogram
			}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				if l[1] != "le" {
					labels[name][l[1]] = true
				}
			}
		}
	}
	for _, m := range measures.All() {
		if m.Name == "" {
			continue
		}
		if want := m.Help + "|" + string(m.Type); served[m.Name] != want {
			t.Errorf("%s is served as %q, and the list has %q", m.Name, served[m.Name], want)
		}
		for _, l := range m.Names() {
			if !labels[m.Name][l] {
				t.Errorf("%s has no label %s", m.Name, l)
			}
		}
		if len(labels[m.Name]) != len(m.Labels) {
			t.Errorf("%s has the labels %v, and the list %v", m.Name, labels[m.Name], m.Names())
		}
		delete(served, m.Name)
	}
	for name := range served {
		t.Errorf("%s is served, and is not in the list", name)
	}
}

var (
	series = regexp.MustCompile(`^(weir_\w+)\{(.*)\} \S+$`)
	label  = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

// TestThousandShards: of 1,000 shards, those that are furthest behind have series of their own, the others are in the
// totals, and no more series are served than the list says.
func TestThousandShards(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	db, err := embedded.Open("store", []store.Table{owntable.Table(), m.Tables[0].Table}, embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := metrics.New()
	of := all.Of(&runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now})
	var shards []reader.Status
	for i := range 1000 {
		shards = append(shards, reader.Status{Table: m.Tables[0].Name, Shard: fmt.Sprint("shard-", i), Unapplied: time.Duration(i*7%1000) * time.Second})
	}
	of.Shards = func() []reader.Status { return slices.Clone(shards) }
	w := httptest.NewRecorder()
	all.Handler().ServeHTTP(w, httptest.NewRequest("GET", metrics.Path, nil))
	got := w.Body.String()
	if n := strings.Count(got, "\nweir_shard_unapplied_seconds{"); n != measures.MaxShards {
		t.Errorf("%d shards have series of their own, should be %d", n, measures.MaxShards)
	}
	for _, s := range shards {
		if has := strings.Contains(got, `shard="`+s.Shard+`"`); has != (s.Unapplied >= 900*time.Second) {
			t.Errorf("%s is behind by %v and has series: %v", s.Shard, s.Unapplied, has)
		}
	}
	for _, want := range []string{`weir_shards{model="gallery",table="gallery"} 1000`, `weir_unapplied_seconds{model="gallery",table="gallery"} 999`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if n := strings.Count(got, "\nweir_"); n > 160 {
		t.Errorf("%d series are served", n)
	}
}

// TestExemplars: in OpenMetrics, a batch with a trace leaves its id beside the histograms; without a trace, and in the
// older format, there is none.
func TestExemplars(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	all := metrics.New()
	of := all.Of(&runner.Runner{Model: m, Now: time.Now, Store: rowless{}})
	scrape := func(accept string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", metrics.Path, nil)
		r.Header.Set("Accept", accept)
		all.Handler().ServeHTTP(w, r)
		return w.Body.String()
	}
	const open = "application/openmetrics-text; version=1.0.0"
	is := reader.Applied{Table: "gallery", Records: 3, Oldest: time.Now()}
	of.Applied(is)
	if out := scrape(open); strings.Contains(out, "trace_id") || !strings.HasSuffix(out, "# EOF\n") {
		t.Errorf("without a trace: %s", out)
	}
	is.Trace = "0af7651916cd43dd8448eb211c80319c"
	of.Applied(is)
	if n := strings.Count(scrape(open), `# {trace_id="`+is.Trace+`"}`); n != 2 {
		t.Errorf("%d exemplars, should be of batch sizes and delays", n)
	}
	if strings.Contains(scrape("text/plain"), "trace_id") {
		t.Error("the older format has exemplars")
	}
}

// rowless is a store without rows.
type rowless struct{ store.Store }

func (rowless) Query(context.Context, store.Query) (store.Page, error) { return store.Page{}, nil }
