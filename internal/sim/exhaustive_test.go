package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

var (
	exhaustive = flag.Bool("exhaustive", false, "TestEveryCut cuts everywhere, not here and there")
	doubles    = flag.Int("doubles", 0, "how many pairs of cuts it tries, when it cuts everywhere")
)

// by are the ways in which a golden scenario's records come in.
var by = []struct {
	name string
	way  way
}{{"follower", byFollower}, {"replay", byReplay}, {"reader", byReader}, {"function", byShard}}

// byReplay is that the streams that the scenario left are replayed.
const byReplay = ways

// stage is a golden scenario and one of the ways.
type stage struct {
	*golden
	name string
	way  way
	live *world // what came of it live, for a replay
}

// ran is what came of one run of a stage.
type ran struct {
	calls, died int
	end         uint64 // what all rows are in the end
	failures    []Failure
}

// moment is one of a run at which so many parts of a call have happened.
type moment struct{ call, parts int }

// run plays the scenario; at the cuts the process dies. met, when set, is told of each
// moment at which it could, and how often something changed before.
func (s *stage) run(cuts map[int]int, met func(m moment, changes int)) ran {
	w := newWorld(s.Model, 7, Options{})
	w.calm, w.faults.over, w.cuts = true, true, cuts
	if met != nil {
		w.met = func(call, parts int) { met(moment{call, parts}, w.changes) }
	}
	if s.way == byReplay {
		s.replay(w)
	} else {
		w.deliverBy(s.way)
		w.play(s.golden)
		if len(w.failures) == 0 {
			w.judgeAll()
		}
	}
	if len(w.failures) == 0 {
		if found := w.runVerify(); len(found) > 0 {
			w.addFailure(Reordered, "verify: it finds %+v", found[0])
		}
	}
	for _, n := range slices.Clone(w.nodes) {
		n.killProcess()
	}
	return ran{w.calls, w.died, w.sum(), w.failures}
}

// sum is the same for the same rows.
func (w *world) sum() uint64 {
	h := fnv.New64a()
	for _, name := range w.base.names {
		w.base.tables[name].eachRow(func(_ store.Key, row value.Item) { h.Write(value.AppendTypedItem(nil, row)) })
	}
	return h.Sum64()
}

// play does the scenario's events, and lets everything catch up after each group.
func (w *world) play(g *golden) {
	for _, events := range g.groups {
		for _, line := range events {
			if err := w.app.do(line); err != nil {
				w.addFailure(Stuck, "%v", err)
				return
			}
		}
		w.settleFor(1)
	}
}

// replay replays what the scenario left, again and again until no process dies of it.
func (s *stage) replay(w *world) {
	w.deliverBy(byFollower)
	w.clock = s.live.clock
	for died := -1; died < w.died && len(w.failures) == 0; {
		died = w.died
		w.sched = newDice(w.seed, "attempt", died) // no draw of who died is left
		w.replayStreams(s.live)
		w.settleFor(1)
	}
	live := *s.live
	live.compareWorlds(w, "replayed")
	w.failures = append(w.failures, live.failures...)
}

// moments are all at which the process can die in a run, and which of them leave the
// same world as one before, for nothing changed since but the memory of the process. None
// is left out: each call has one before it, one after each of its parts, and so at least
// one after it.
func (s *stage) moments(t *testing.T) (all []moment, like map[moment]moment, calls int) {
	like = map[moment]moment{}
	parts := map[int]int{}
	var first moment
	last := -1
	whole := s.run(nil, func(m moment, changes int) {
		if m.parts != parts[m.call] {
			t.Errorf("%s, %s: of call %d it meets part %d after %d", s.Name, s.name, m.call, m.parts, parts[m.call]-1)
		}
		parts[m.call]++
		if all = append(all, m); changes == last {
			like[m] = first
		} else {
			first, last = m, changes
		}
	})
	if len(whole.failures) > 0 {
		t.Fatalf("%s, %s: %v", s.Name, s.name, whole.failures)
	}
	for call := 1; call <= whole.calls; call++ {
		if parts[call] < 2 {
			t.Errorf("%s, %s: call %d has %d moments; it must have one before it and one after", s.Name, s.name, call, parts[call])
		}
	}
	return all, like, whole.calls
}

// stages are golden scenarios in all ways.
func stages(t *testing.T, names ...string) (out []*stage) {
	for _, name := range names {
		g, err := loadGolden(load(t, name), "testdata/golden/"+name+".txt")
		if err != nil {
			t.Fatal(err)
		}
		live := newWorld(g.Model, 7, Options{})
		live.calm = true
		live.deliverBy(byFollower)
		live.play(g)
		if len(live.failures) > 0 {
			t.Fatalf("%s: %v", name, live.failures)
		}
		t.Cleanup(func() {
			for _, n := range slices.Clone(live.nodes) {
				n.killProcess()
			}
		})
		for _, b := range by {
			out = append(out, &stage{g, b.name, b.way, live})
		}
	}
	return out
}

// TestGolden: the scenarios have 60 events, each projection of the models meets rows
// that come, change, move and go, and what it derives shows it.
func TestGolden(t *testing.T) {
	for _, s := range stages(t, model.Builtin()...) {
		if s.way != byFollower {
			continue
		}
		if s.events != 60 {
			t.Errorf("%s: %d events", s.Name, s.events)
		}
		met := s.live.app.metBy()
		for _, e := range s.Entities {
			for _, name := range allProjectionsOf(e) {
				for _, op := range []string{"insert", "edit", "move", "delete"} {
					if !met[name][op] {
						t.Errorf("%s: %s meets no %s", s.Name, name, op)
					}
				}
			}
		}
		shows := s.shows()
		for _, e := range s.Entities {
			for _, what := range derivedOn(e) {
				if n := len(shows[what]); n < 3 {
					t.Errorf("%s: %s is only ever %v", s.Name, what, slices.Sorted(maps.Keys(shows[what])))
				}
			}
			for _, st := range e.Statuses {
				for _, stage := range st.Stages {
					if what := e.Name + "." + st.Attr.Name; !shows[what][stage.Word] {
						t.Errorf("%s: %s is never %s", s.Name, what, stage.Word)
					}
				}
			}
		}
	}
}

// shows is what is derived in the scenario: of each attribute all values that it ever
// has, of rows all keys that they ever have.
func (s *stage) shows() map[string]map[string]bool {
	w := newWorld(s.Model, 7, Options{})
	w.calm = true
	w.deliverBy(byFollower)
	out := map[string]map[string]bool{}
	add := func(what, is string) {
		if out[what] == nil {
			out[what] = map[string]bool{}
		}
		out[what][is] = true
	}
	w.base.wrote = func(_ string, t *table, key store.Key, _, now value.Item) {
		mt := s.Table(t.Name)
		if mt == nil || now == nil {
			return
		}
		e := mt.Classify(now)
		if e == nil {
			return
		}
		add(e.Name, refName(store.Ref{Table: t.Name, Key: key}))
		for _, at := range now {
			is := at.Value.Text()
			if is == "" {
				is = string(value.AppendPlain(nil, at.Value))
			}
			add(e.Name+"."+at.Name, is)
		}
	}
	w.play(s.golden)
	for _, n := range slices.Clone(w.nodes) {
		n.killProcess()
	}
	return out
}

// derivedOn is what is derived on rows of an entity, and the entity where its rows are.
func derivedOn(e *model.Entity) (out []string) {
	for _, y := range e.Values {
		if !y.Hidden {
			out = append(out, e.Name+"."+y.Attr)
		}
	}
	if len(e.MadeBy) > 0 {
		out = append(out, e.Name)
	}
	return out
}

// TestEveryCut does the golden scenario of each model, in each way, as often as it
// takes to cut every call of the store and the index: before it, after each part of
// what it writes, and after all of it, when only its answer is lost. The process dies
// there, nothing else goes wrong, and what it leaves must come right. Then it is cut
// once more, somewhere in what comes after.
//
// Between some of these moments nothing changes but the memory of the process that
// dies: what the first of them leads to, the others do. A few are held to that.
//
// Each scenario and way gets the same part of the time that a clock leaves, which goes to as many of
// its moments as there is time for, drawn at random.
func TestEveryCut(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // these worlds are small, and there are thousands
	var line tally
	models := model.Builtin()
	line.stages = len(models) * len(by)
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			for _, s := range stages(t, name) {
				t.Run(s.name, func(t *testing.T) { line.every(t, s, *doubles/len(models)/len(by)) })
			}
		})
	}
	out, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("=> " + string(out))
}

// every cuts at all moments of a stage, and at so many pairs of them.
func (n *tally) every(t *testing.T, s *stage, pairs int) {
	jobs := n.jobs(t, s)
	if !*exhaustive {
		pairs = len(jobs) / 2
	}
	for i, j := range jobs {
		j.again = pairs*(i+1)/len(jobs) - pairs*i/len(jobs)
		j.dice = newDice(2, s.Name+s.name, i)
	}
	until := time.Now().Add(soaktest.Left() / time.Duration(n.stages))
	n.stages--
	rand.Shuffle(len(jobs), func(a, b int) { jobs[a], jobs[b] = jobs[b], jobs[a] })
	each(jobs, func(j *job) {
		if time.Now().Before(until) {
			j.do()
		}
	})
	for _, j := range jobs {
		if j.runs == 0 {
			n.Untried++
			continue
		}
		n.Runs += j.runs
		n.Doubles += j.again
		if n.Failed += len(j.failed); len(j.failed) > 0 && n.Failed < 20 {
			t.Error(strings.Join(j.failed, "\n"))
		}
	}
}

// jobs are the moments of a stage that are tried, one in each world that is left.
func (n *tally) jobs(t *testing.T, s *stage) (jobs []*job) {
	d := newDice(1, s.Name+s.name, 0)
	moments, like, calls := s.moments(t)
	worlds := 0
	at, alike := d.n(sampled()), d.n(oneAlike*sampled())
	for _, m := range moments {
		if first, is := like[m]; is {
			if alike++; alike%(oneAlike*sampled()) == 0 {
				jobs = append(jobs, &job{stage: s, cut: m, like: &first})
			}
			continue
		}
		worlds++
		if at++; at%sampled() == 0 {
			jobs = append(jobs, &job{stage: s, cut: m})
		}
	}
	n.Calls, n.Moments, n.Worlds = n.Calls+calls, n.Moments+len(moments), n.Worlds+worlds
	t.Logf("%d calls, %d moments to die at, %d worlds that they leave; %d of them tried", calls, len(moments), worlds, len(jobs))
	return jobs
}

// oneAlike is of how many moments that leave a world like another's one is tried.
const oneAlike = 100

// tally is what TestEveryCut did.
type tally struct {
	Calls   int `json:"calls"`
	Moments int `json:"moments"` // to die at: before a call, after each part of it
	Worlds  int `json:"worlds"`  // that are left there
	Doubles int `json:"doubles"` // pairs of moments
	Runs    int `json:"runs"`
	Failed  int `json:"failed"`
	Untried int `json:"untried"` // moments for which no time was left

	stages int // that are to come
}

// sampled is of how many worlds one is tried.
func sampled() int {
	switch {
	case *exhaustive:
		return 1
	case testing.Short():
		return 400
	}
	return 60
}

// job is a moment to die at, alone and with others after it.
type job struct {
	*stage
	cut   moment
	like  *moment // one that leaves the same world, whose end must be the same
	again int     // with how many others
	dice  *dice

	runs   int
	failed []string
}

func (j *job) do() {
	var after []moment
	one := j.try(map[int]int{j.cut.call: j.cut.parts}, func(m moment, _ int) {
		if m.call > j.cut.call {
			after = append(after, m)
		}
	})
	if j.like != nil {
		if same := j.try(map[int]int{j.like.call: j.like.parts}, nil); same.end != one.end {
			j.failed = append(j.failed, fmt.Sprintf("%s, %s: cut at %v it ends otherwise than at %v, which is to be alike", j.Name, j.name, j.cut, *j.like))
		}
	}
	for range j.again {
		if len(after) == 0 {
			j.again = 0
			return
		}
		near := after // half of them soon, pausing what mends the first
		if j.dice.chance(0.5) {
			near = after[:min(len(after), 40)]
		}
		m := pick(j.dice, near)
		j.try(map[int]int{j.cut.call: j.cut.parts, m.call: m.parts}, nil)
	}
}

// try does a run in which the process must die at each cut.
func (j *job) try(cuts map[int]int, met func(m moment, changes int)) ran {
	r := j.run(cuts, met)
	if j.runs++; len(r.failures) > 0 || r.died != len(cuts) {
		j.failed = append(j.failed, fmt.Sprintf("%s, %s, cut at %v (call: parts of it that happened), died %d times: %v", j.Name, j.name, cuts, r.died, r.failures))
	}
	return r
}

// each does something with all of these, several at a time.
func each[T any](all []T, do func(T)) {
	var wait sync.WaitGroup
	next := make(chan T)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for x := range next {
				do(x)
			}
		})
	}
	for _, x := range all {
		next <- x
	}
	close(next)
	wait.Wait()
}
