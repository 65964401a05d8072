package sim

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/value"
)

var full = flag.Int("schedules", 0, "how many schedules TestFull does")

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // what services do wrong here is nobody's news
	testscript.Main(m, map[string]func(){"simulator": func() { Main(os.Args[1:]) }})
}

// models are the built-in ones, five that have every kind of derivation, one with every condition, one with distincts over their max, and the examples.
var models = append(model.Builtin(), "../model/testdata/good/kinds.yaml", "../model/testdata/good/steps.yaml", "../model/testdata/good/follows.yaml", "../model/testdata/good/devices.yaml", "testdata/said.yaml", "testdata/press.yaml", "testdata/bounds.yaml", "testdata/shops.yaml", "testdata/rooms.yaml", "testdata/crowds.yaml", "testdata/moves.yaml", "testdata/parts.yaml", "../../examples/shop/model.yaml", "../../examples/github/model.yaml", "../../examples/chat/model.yaml")

func load(t *testing.T, name string) *model.Model {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func many(t *testing.T, seed uint64, n int, o Options) *Report {
	t.Helper()
	var total Report
	o.Faults = Kinds
	for _, name := range models {
		r := Many(context.Background(), load(t, name), seed, n, o)
		for _, f := range r.Failed {
			t.Errorf("%s\n%v", f.Again, f.Failures)
		}
		total.Sum(r)
	}
	return &total
}

// TestSchedules is the short form: nothing lost, nothing twice, whatever goes wrong.
func TestSchedules(t *testing.T) {
	many(t, 0, soaktest.Count(4, 12), Options{}) // of each model
}

// TestBuilds is the short form with builds: existing rows, gaps and changed derivations.
func TestBuilds(t *testing.T) {
	n := soaktest.Count(2, 10) // of each model
	r := many(t, 0, n, Options{Builds: true})
	for _, how := range []began{beganWithRows, beganLive, beganWithGap, beganWithChanged} {
		if r.Counted[string(how)] == 0 && n > 2 {
			t.Errorf("no %s", how)
		}
	}
}

// TestSettledValues: a worker that slept has a followed value of a record that was settled when a build corrected the value under a lower
// position, and what followed in the stream is lost.
func TestSettledValues(t *testing.T) {
	r := Many(context.Background(), load(t, "../model/testdata/good/follows.yaml"), 1025, 1, Options{Builds: true, Faults: Kinds})
	for _, f := range r.Failed {
		t.Error(f.Failures)
	}
}

// TestWithout: a derivation is left out of a model together with what only it needs, and nothing else is derived otherwise.
func TestWithout(t *testing.T) {
	for _, name := range models {
		m := load(t, name)
		some := 0
		for seed := range soaktest.Count(2, uint64(5)) {
			later, gone, ok := laterOf(newDice(seed, "retire", 0), m)
			if !ok {
				continue
			}
			some++
			for _, d := range model.DiffOf(m, later).Derivations {
				if d.What != model.Removed || !slices.Contains(gone, d.Name) {
					t.Errorf("%s without %v: %s is %s", name, gone, d.Name, d.What)
				}
			}
		}
		if some == 0 && name != "viewing" && !strings.HasSuffix(name, "steps.yaml") { // where all depends on all
			t.Errorf("nothing can be left out of %s", name)
		}
	}
}

// TestStandbyRests: a process that loses its lease while documents are pending comes to rest; the one that reads writes them.
func TestStandbyRests(t *testing.T) {
	for _, f := range Many(t.Context(), load(t, "testdata/parts.yaml"), 1015, 1, Options{Faults: Kinds}).Failed {
		t.Errorf("%s\n%v", f.Again, f.Failures)
	}
}

// TestBulk is the short form with replays in bulk, by processes that die of their disk.
func TestBulk(t *testing.T) {
	r := many(t, 0, soaktest.Count(2, 5), Options{Bulk: true}) // of each model
	for _, what := range loaded {
		if r.Counted[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
}

// loaded is what runs in bulk must come to.
var loaded = []string{
	"replays in bulk", "replays in bulk that reduce changes", "replays in bulk that go on live", "windows", "died in bulk", "died while a window landed",
}

// TestFull does as many schedules as the flag says, or as the clock leaves time for, prints what
// came of them as one line, and fails when something that there is did not meet the code.
func TestFull(t *testing.T) {
	if *full == 0 {
		t.Skip("no -schedules")
	}
	most := *full
	r, builds, loads := &Report{}, &Report{}, &Report{}
	add := func(to, more *Report) {
		to.Sum(more)
		to.Model = more.Model
	}
	for round := uint64(0); r.Schedules < most && (round == 0 || soaktest.Left() > 0); round++ {
		add(r, many(t, 1000+5*round, 5, Options{}))
		add(builds, many(t, 1000+round, 1, Options{Builds: true}))
		add(loads, many(t, 1000+round, 1, Options{Bulk: true}))
	}
	*full = min(most, r.Schedules)
	for _, r := range []*Report{r, builds, loads} {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line))
	}
	fmt.Printf("=> %d schedules, %d with builds, %d in bulk, %d faults\n", r.Schedules, builds.Schedules, loads.Schedules, r.Faults+builds.Faults+loads.Faults)
	if *full < 500 {
		return // too few to meet everything
	}
	for _, what := range []string{string(beganWithRows), string(beganLive), string(beganWithGap), string(beganWithChanged), "builders killed", "builders paused", "builds that end while faults strike"} {
		if builds.Counted[what] < *full/200 { // a fifth as many schedules have builds
			t.Errorf("%s: %d times, fewer than %d", what, builds.Counted[what], *full/200)
		}
	}
	for _, what := range removals {
		if builds.Counted[what] < *full/300 {
			t.Errorf("%s: %d times, fewer than %d", what, builds.Counted[what], *full/300)
		}
	}
	for _, what := range loaded {
		if loads.Counted[what] < *full/300 { // a fifth as many schedules are in bulk
			t.Errorf("%s: %d times, fewer than %d", what, loads.Counted[what], *full/300)
		}
	}
	least := min(250, *full/20)
	for _, k := range Kinds {
		if r.Kinds[k] < least {
			t.Errorf("%s struck %d times, fewer than %d", k, r.Kinds[k], least)
		}
	}
	if most := min(250_000, *full*50); r.Faults < most {
		t.Errorf("%d faults, fewer than %d", r.Faults, most)
	}
	if *full >= 5000 {
		covered = append(covered, long...)
	}
	if *full >= 1000 { // fewer need not meet all
		for _, p := range r.Unmet() {
			t.Errorf("%s never met", p)
		}
		for _, what := range covered {
			if r.Counted[what] == 0 {
				t.Errorf("no %s", what)
			}
		}
	}
	for _, state := range states {
		if n := *full / 1000; r.Counted[state] < n {
			t.Errorf("%s: %d times, fewer than %d", state, r.Counted[state], n)
		}
	}
	if r.Counted["spoilt"] < least {
		t.Errorf("%d values spoilt, fewer than %d", r.Counted["spoilt"], least)
	}
}

var covered = func() (out []string) {
	for _, kind := range []string{"count", "sum", "mean", "distinct", "set", "copy", "history", "each", "follow", "steps", "search", "max", "min", "latest", "earliest", "group"} {
		for _, op := range []string{"insert", "edit", "delete", "move", "expire"} {
			out = append(out, kind+" "+op)
		}
	}
	for _, kind := range []string{"count", "sum", "mean", "distinct", "part of a set", "member of a set", "status", "latest", "copy", "copy gone", "sum", "followed", "followed by history", "document gone", "document of nothing"} {
		out = append(out, "spoilt "+kind)
	}
	return append(out, "negative deltas", "amounts", "amounts that no sum takes", "empty values", "unicode values", "largest keys", "rows of 400 KB", "letters with rows of their own", "hot keys", "replays", "replays on a disk", "runs of days", "outlived", "shards that are over", "positions of open shards that leave a row", "gathers documents")
}()

// states are what processes that share streams must get to, while faults strike: what
// their promises are about.
var states = []string{
	"a place is saved", "a shard is taken over, with a place",
	"a gap is named", "a gap that was named grows",
	"a stream forgets what is not applied", "a shard is gone that is not applied", "a shard is gone that is not read",
	"a stream forgets what a sleeper reads next", "a sleeper wakes where another has written",
	"a process reads beside a function",
}

// long are lists that are longer than what is done at once; few schedules have some.
var long = []string{"long list: feed", "long list: fact", "long list: follow"}

// TestSameSeedSameTrace does runs with and without builds twice. Seed 2 of gallery has a remover that ends.
func TestSameSeedSameTrace(t *testing.T) {
	for _, name := range models[:soaktest.Count(2, len(models))] {
		m := load(t, name)
		for seed := range soaktest.Count(3, uint64(4)) {
			for _, o := range []Options{{Faults: Kinds}, {Faults: Kinds, Builds: true}} {
				a, b := o.runKind(m, seed), o.runKind(m, seed)
				if a.Trace != b.Trace || a.Trace == 0 {
					t.Errorf("%s, seed %d, builds %v: %x and %x", name, seed, o.Builds, a.Trace, b.Trace)
				}
			}
		}
	}
}

// TestMinimise: of a run that fails only what it fails by is left, and the command
// that it prints is read back.
func TestMinimise(t *testing.T) {
	all := map[int]bool{}
	for i := range 40 {
		all[i] = true
	}
	fails := func(without map[int]bool) bool { return !without[7] && !without[31] }
	got := largestOmission(context.Background(), all, fails)
	if len(got) != 38 || got[7] || got[31] {
		t.Errorf("left out: %v", got)
	}
	back, err := ParseNumbers(Numbers(got))
	if err != nil || Numbers(back) != "0-6,8-30,32-39" {
		t.Errorf("%q: %v", Numbers(got), err)
	}
	for _, bad := range []string{"x", "3-1", "-1", "1,,2"} {
		if _, err := ParseNumbers(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	if _, err := ParseKinds("crash-before,storm"); err == nil || !strings.Contains(err.Error(), `"storm"`) {
		t.Error(err)
	}
}

// TestItSees: the truth notices a row, a value and a document that are wrong.
func TestItSees(t *testing.T) {
	m := load(t, models[0])
	for name, spoil := range map[string]func(w *world){
		"a row less": func(w *world) {
			o := w.app.standingRows(nil)[0]
			w.base.tables[o.table.Name].put(o.key, nil)
		},
		"a row more": func(w *world) {
			o := w.app.standingRows(nil)[0]
			k := o.key
			k.Partition = value.OfString("no row's")
			w.base.tables[o.table.Name].put(k, o.image)
		},
		"another value": func(w *world) {
			o := w.app.standingRows(nil)[0]
			w.base.tables[o.table.Name].put(o.key, o.image.With(value.Attr{Name: "other", Value: value.OfInt(1)}))
		},
	} {
		w := newWorld(m, 3, Options{})
		w.runRough(Options{})
		w.settle()
		w.retryLetters()
		if w.judgeAll(); len(w.failures) > 0 {
			t.Fatalf("%s: %v", name, w.failures)
		}
		spoil(w)
		if w.judgeAll(); len(w.failures) == 0 {
			t.Errorf("%s is not seen", name)
		}
		for _, n := range slices.Clone(w.nodes) {
			n.killProcess()
		}
	}
}
