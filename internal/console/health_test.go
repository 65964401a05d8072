package console

import (
	"context"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/budget"
	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/status"
)

// wants fails unless each pattern is found in a page.
func (w *world) wants(path string, patterns ...string) string {
	w.t.Helper()
	body := html.UnescapeString(w.page(path))
	for _, want := range patterns {
		if !regexp.MustCompile("(?s)" + want).MatchString(body) {
			w.t.Errorf("%s: not %s in\n%s", path, want, body)
		}
	}
	return body
}

// TestGraphFlows: each derivation of the drawing has its rate and its lag, leads on, and looks as
// bad as it is; what stands still says so.
func TestGraphFlows(t *testing.T) {
	lag, still, elsewhere := 70*time.Second, false, false
	w := opened(t, Options{
		Shards: func(string) []reader.Status {
			if elsewhere {
				return []reader.Status{{Table: "another", Shard: "s1"}}
			}
			return []reader.Status{{Table: "shop-rows", Shard: "s1", Unapplied: lag}, {Table: "shop-rows", Shard: "s2"}}
		},
		Stopped: func(string) []reader.Stopped {
			if still {
				return []reader.Stopped{{Table: "shop-rows", Shard: "s2", Why: "the disk is full"}}
			}
			return nil
		},
	})
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	w.wants("/console/shop",
		`<a href="/console/shop/rows\?entity=Product"><g class="node bad"><title>count Product\.reviews: live, [0-9.]+/s of its source rows, lag 1m10s</title>`,
		`<a href="/console/shop/health"><g class="node bad"><title>stream of shop-rows: live, 2 shards here, [1-9][0-9.]*/s, lag 1m10s</title>`,
		`<th scope="row"><a href="/console/shop/health">shop-rows</a></th><td><span class="state bad">live</span></td><td>2 shards here</td><td class="num">[1-9][0-9.]*/s</td><td class="num">1m10s</td><td class="does">Review, Product</td>`,
		`<a href="/console/shop/query/find"><g class="node bad"><title>search search/products: live, [1-9][0-9.]*/s of its source rows, lag 1m10s</title>`,
		`<td class="num">[1-9][0-9.]*/s</td><td class="num">1m10s</td>`)
	lag = 0
	w.wants("/console/shop", `<g class="node good"><title>count Product\.reviews: live, [0-9.]+/s of its source rows, lag none`)
	elsewhere = true
	w.wants("/console/shop", `<g class="node idle"><title>count Product\.reviews: live, [0-9.]+/s of its source rows, lag not here`, `<title>stream of shop-rows: live, 0 shards here, [0-9.]+/s, lag not here`)
	elsewhere, still = false, true
	w.wants("/console/shop", `<g class="node bad"><title>count Product\.reviews: paused shop-rows stands still: the disk is full, `, `<title>stream of shop-rows: paused, the disk is full`,
		`<span class="state bad">paused</span> <span class="muted">the disk is full</span>`)
}

// TestGraphBuilds: a derivation that is built says how far it is, and all say how far they are behind.
func TestGraphBuilds(t *testing.T) {
	w := open(t)
	m := w.part.Model
	st, err := w.c.options.Status(t.Context(), "shop")
	failtest.On(t, err)
	st.Builds = []status.Build{{Entity: "Product", State: owntable.BuildBuilding, Rows: 43, Of: 100, Left: 12}}
	st.Tables[0].Reader = "process"
	f := &flow{shards: []shardLag{
		{series{"shop-rows", "s"}, "1", 2 * time.Minute},
	}, rates: map[string]float64{"Review": 12.4, "Product": 1}}
	says := func(want map[string]string) {
		t.Helper()
		ds := describePlan(m, &st, f)
		g, said := draw(ds, streams(m, &st, ds, f)), map[string]string{}
		for _, n := range g.Nodes {
			said[n.Text] = strings.TrimSpace(n.Small + " " + n.Class)
		}
		for name, want := range want {
			if said[name] != want {
				t.Errorf("%s: %q, want %q", name, said[name], want)
			}
		}
	}
	says(map[string]string{
		"Product.reviews": "building 43 %, 12/s, lag 2m0s busy", "search/products": "live, 1.0/s, lag 2m0s bad", "stream shop-rows": "live, 13/s, lag 2m0s bad",
		"Product": "entity", "search index": "end",
	})
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	st.Builds[0].Paused = &at
	st.Search[0].State, st.Search[0].Rows = "left", 17
	f.shards[0].lag = -1
	says(map[string]string{"Product.reviews": "paused at 43 %, 12/s, lag not known bad", "search/products": "paused at 17 rows, 1.0/s, lag not known bad", "stream shop-rows": "live, 13/s, lag not known bad"})
	if l := buildOf(&st.Builds[0]); l.State != paused || l.Since != "2026-01-31 12:00:00 UTC" {
		t.Errorf("health says %+v", l)
	}
	st.Tables[0].Reader = "shard"
	says(map[string]string{"stream shop-rows": "by functions idle"})
	st.Tables = nil
	says(map[string]string{"stream shop-rows": "not read idle"})
}

// TestGraphHasPlaces: no box of a drawing lies on another one, every edge leads from one box to the
// next column, and every box has one.
func TestGraphHasPlaces(t *testing.T) {
	var ds []derived
	ss, fed := []stream{{Table: "a"}, {Table: "b"}, {Table: "c"}}, map[string]bool{}
	entity := func(i int) link { return link{Text: "E" + strconv.Itoa(i), Href: "/"} }
	for i := range 40 {
		d := derived{Name: "D" + strconv.Itoa(i), Into: entity(i % 7)}
		for j := range 1 + i%3 {
			n := (i*i + 5*j) % 11
			d.From = append(d.From, entity(n))
			if e := entity(n).Text; !fed[e] {
				fed[e] = true
				ss[n%3].Entities = append(ss[n%3].Entities, e)
			}
		}
		ds = append(ds, d)
	}
	g := draw(ds, ss)
	met := map[string]int{}
	for i, a := range g.Nodes {
		if a.X < 0 || a.Y < 0 || a.X+a.W > g.Width || a.Y+a.H > g.Height {
			t.Errorf("%s is outside: %+v", a.Full, a)
		}
		for _, b := range g.Nodes[:i] {
			if a.X == b.X && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%s lies on %s", a.Full, b.Full)
			}
		}
		met[fmt.Sprintf("%d %d", a.X, a.middle())]++
		met[fmt.Sprintf("%d %d", a.X+a.W, a.middle())]++
	}
	ends := map[string]bool{}
	for _, e := range g.Edges {
		var x1, y1, x2, y2, mid int
		if n, err := fmt.Sscanf(e.Path, "M%d %dC%d %d %d %d %d %d", &x1, &y1, &mid, &y1, &mid, &y2, &x2, &y2); n != 8 || err != nil || x2-x1 != columnGap {
			t.Fatalf("%s: %v", e.Path, err)
		}
		for _, end := range []string{fmt.Sprintf("%d %d", x1, y1), fmt.Sprintf("%d %d", x2, y2)} {
			if ends[end] = true; met[end] != 1 {
				t.Errorf("%s meets %d boxes at %s", e.Path, met[end], end)
			}
		}
	}
	if len(g.Nodes) != 40+len(fed)+7+3 || len(ends) != 40*2+len(fed)*2+7+3 {
		t.Errorf("%d boxes, %d ends", len(g.Nodes), len(ends))
	}
}

// TestRates: a rate is that of the last minute, however long the process runs, and what is kept of
// an hour is bounded.
func TestRates(t *testing.T) {
	k, began := &course{}, time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration, n uint64) moment {
		return moment{at: began.Add(after), read: map[string]uint64{"Review": n}, lag: map[series]time.Duration{{"t", "s"}: after}}
	}
	rate := func(now moment) float64 { return k.rates(&now, began)["Review"] }
	if got := rate(at(10*time.Second, 50)); got != 5 {
		t.Errorf("%v a second without a sample", got)
	}
	for i := range 3 * maxSamples { // 100 a second
		k.addMoment(at(time.Duration(i)*sampleEvery, uint64(i)*1000))
	}
	end := 3 * maxSamples * sampleEvery
	last := uint64(3*maxSamples-1) * 1000
	if got := rate(at(end, last+1000)); got != 100 {
		t.Errorf("%v a second, want 100", got)
	}
	if got := rate(at(end+2*rateOver, last+1000)); got < 7 || got > 8 { // no sample was had for two minutes
		t.Errorf("%v a second after a hole", got)
	}
	lags, since := k.lags(series{"t", "s"})
	if len(lags) != maxSamples || since != began.Add(end-maxSamples*sampleEvery) {
		t.Errorf("%d samples since %v", len(lags), since)
	}
	if lags, _ = k.lags(series{"t", "another"}); lags[0] != -1 {
		t.Errorf("%v of a shard that was not there", lags[0])
	}
}

// TestSamples: the console takes samples of the lag and of what came, of a bounded number of shards.
func TestSamples(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.derive()
	w.put("Review", review("pot", "ida")) // not applied
	shards, err := w.c.describeShards(t.Context(), w.part)
	failtest.On(t, err)
	s := w.c.takeSample(w.part, shards)
	behind := 0
	for _, lag := range s.lag {
		if lag > 0 {
			behind++
		}
	}
	if behind != 1 || s.read["Product"] == 0 || s.read["Review"] != 0 {
		t.Errorf("%d shards are behind in %+v", behind, s)
	}
	many := make([]shardLag, 10*maxSeries)
	for i := range many {
		many[i].shard = strconv.Itoa(i)
	}
	if s = w.c.takeSample(w.part, many); len(s.lag) != maxSeries {
		t.Errorf("%d series", len(s.lag))
	}
	w = opened(t, Options{every: time.Millisecond})
	for t.Context().Err() == nil {
		if lags, since := w.c.courses["shop"].lags(series{}); len(lags) > 2 && !since.IsZero() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestHealth: the page has the lag as a picture, the gaps, and the units.
func TestHealth(t *testing.T) {
	w := opened(t, Options{
		Shards: func(string) []reader.Status {
			return []reader.Status{{Table: "shop-rows", Shard: "s1", Unapplied: 7 * time.Second}}
		},
		Units: func() []budget.Use {
			return []budget.Use{{Table: "shop-rows", Units: 1234, Throttled: 56, Waited: 3 * time.Second, Share: 400}, {Table: "weir", Units: 99}}
		},
	})
	for i, lag := range []time.Duration{0, 0, 40 * time.Second, -1, 5 * time.Second} {
		w.c.courses["shop"].addMoment(moment{at: time.Date(2026, 1, 31, 12, 0, 10*i, 0, time.UTC), lag: map[series]time.Duration{{"shop-rows", "s1"}: lag}})
	}
	w.wants("/console/shop/health", `No gap waits`)
	if _, err := w.part.Runner.Letters().Keep(t.Context(), deadletter.Letter{Kind: deadletter.Gap, Target: "shard s9 of shop-rows", Reason: "records are missing", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	body := w.wants("/console/shop/health",
		`<span class="state busy">7s</span>`, `go from 2026-01-31 12:00:00 UTC until now, one sample every 10s, and up to 40s`,
		`<svg class="picture"[^>]*aria-label="at most 40s"`, `<path d="M[0-9.]+ 30\.0H[0-9.]+H[0-9.]+V2\.0H[0-9.]+M[0-9.]+ 26\.5H239">`,
		`shard s9 of shop-rows</bdi></a></th><td class="wide"><bdi>records are missing`,
		`shop-rows</th><td class="num">1234</td><td class="num">56</td><td class="num">3s</td><td>400 a second`, `weir</th><td class="num">99</td>`)
	if strings.Contains(body, "No gap waits") {
		t.Error("a gap is not a gap")
	}
}

// TestBuildProgress: a build has its progress and the time that is left.
func TestBuildProgress(t *testing.T) {
	w := open(t)
	of := w.c.options.Status
	w.c.options.Status = func(ctx context.Context, name string) (status.Status, error) {
		st, err := of(ctx, name)
		st.Builds = []status.Build{{Entity: "Product", State: owntable.BuildBuilding, Rows: 430, Of: 1000, PerSecond: 10, Left: 57}}
		return st, err
	}
	w.wants("/console/shop/health", `<progress max="100" value="43" aria-label="Progress of Product"></progress> 43 %, about 57s left</td><td>10 rows/s`)
}

// TestTailSaysWhoWrote: a change that weir wrote is marked in the tail, one of an application is not.
func TestTailSaysWhoWrote(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	own := regexp.MustCompile(`<td>([A-Z]+)( <span class="muted">by weir</span>)?</td><td>([A-Za-z]*)</td>`)
	by := map[string]int{}
	for _, found := range own.FindAllStringSubmatch(w.page("/console/shop/tail"), -1) {
		by[found[3]+" "+found[1]+found[2]]++
	}
	mark := ` <span class="muted">by weir</span>`
	if by["Product INSERT"] != 1 || by["Review INSERT"] != 1 || by["Product MODIFY"+mark] == 0 || by["Product MODIFY"]+by["Product INSERT"+mark]+by["Review INSERT"+mark] > 0 {
		t.Errorf("who wrote what: %v", by)
	}
}

// TestHealthSaysWhatIsCut: more shards, leases and gaps than a page shows are said.
func TestHealthSaysWhatIsCut(t *testing.T) {
	var shards []reader.Status
	for i := range maxSeries + 1 {
		shards = append(shards, reader.Status{Table: "shop-rows", Shard: fmt.Sprintf("s%03d", i)})
	}
	w := opened(t, Options{Shards: func(string) []reader.Status { return shards }})
	body := w.page("/console/shop/health")
	for _, cut := range []string{"shards have one", "There may be more"} {
		if strings.Contains(body, cut) {
			t.Errorf("%q, and nothing is cut", cut)
		}
	}
	now, err := w.c.describeShards(t.Context(), w.part)
	failtest.On(t, err)
	w.c.courses["shop"].addMoment(w.c.takeSample(w.part, now))
	for i := range mostGaps + 1 {
		if _, err := w.part.Runner.Letters().Keep(t.Context(), deadletter.Letter{Kind: deadletter.Gap, Target: fmt.Sprint("shard ", i), Reason: "missing"}); err != nil {
			t.Fatal(err)
		}
	}
	body = w.wants("/console/shop/health", fmt.Sprintf(`The first %d shards have one\.`, maxSeries), `There may be more: <code>projector dead list`)
	if n := strings.Count(body, `class="picture"`); n != maxSeries {
		t.Errorf("%d pictures", n)
	}
}
