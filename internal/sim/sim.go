// Package sim runs the real code of weir in a hostile world: its store, streams, index and
// clocks fail as real ones do, and its application misbehaves. A seed decides everything,
// one thing happens at a time, and the same seed gives the same run.
//
//	words ─▶ app ─▶ memory (rows, streams) ─▶ link (faults) ─▶ reader, lambda
//	          │                                                   └─▶ link ─▶ memory, index
//	          └─▶ truth ◀── compared with ── all rows and documents, once all has caught up
//
// The projections, the runner, the reader of streams, the Lambda
// handler, replay and verify are the real ones. What they must come to is computed
// by truth, the oracle, from the acts of the application. It shares no code with them except
// the compiled model.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/model"
)

// Class is a class of failures.
type Class string

// The classes of failures.
const (
	Lost        Class = "lost"        // something that must exist does not
	Doubled     Class = "doubled"     // something exists that nothing made, or exists twice
	Reordered   Class = "reordered"   // something older has replaced something newer
	Unaccounted Class = "unaccounted" // a record was not counted exactly once
	Stuck       Class = "stuck"       // the run does not catch up, or panics
)

// Failure is one thing that is wrong.
type Failure struct {
	Class Class  `json:"class"`
	What  string `json:"what"`
}

// Report is the result of many runs.
type Report struct {
	Model       string         `json:"model"`
	Schedules   int            `json:"schedules"` // how many runs
	Records     int            `json:"records"`
	Faults      int            `json:"faults"` // how many struck
	Lost        int            `json:"lost"`
	Doubled     int            `json:"doubled"`
	Reordered   int            `json:"reordered"`
	Unaccounted int            `json:"unaccounted"`
	Stuck       int            `json:"stuck"`
	Kinds       map[Kind]int   `json:"kinds"`    // how often each kind struck
	PairsMet    int            `json:"pairsMet"` // how many pairs of kinds struck in the same run
	Pairs       int            `json:"pairs"`    // how many pairs of kinds exist
	Counted     map[string]int `json:"counted"`  // how often runs met a state or a change
	Failed      []Failed       `json:"failed,omitempty"`
	Seconds     float64        `json:"seconds"`

	met map[string]int // in how many runs each pair of kinds struck
}

// Failed is a run that failed, minimised as far as possible.
type Failed struct {
	Seed     uint64    `json:"seed"`
	Failures []Failure `json:"failures"`
	Again    string    `json:"again"` // the command that repeats it
}

// Many does n runs with consecutive seeds, several at a time, and minimises the first few
// that fail. After ctx ends it begins no more runs.
func Many(ctx context.Context, m *model.Model, seed uint64, n int, o Options) *Report {
	r := &Report{Model: m.Name, Kinds: map[Kind]int{}, Counted: map[string]int{}, met: map[string]int{}}
	began := time.Now()
	var mu sync.Mutex
	var next atomic.Int64
	var wait sync.WaitGroup
	var failed []Outcome
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				out := o.runKind(m, seed+uint64(i))
				mu.Lock()
				if r.addOutcome(&out); len(out.Failures) > 0 {
					failed = append(failed, out)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	slices.SortFunc(failed, func(a, b Outcome) int { return cmp.Compare(a.Seed, b.Seed) })
	for i := range failed {
		small := failed[i]
		again := o
		if i < minimised {
			small, again = minimiseRun(ctx, m, small, o)
		}
		r.Failed = append(r.Failed, Failed{small.Seed, small.Failures, repeatCommand(m, small.Seed, again)})
	}
	r.Seconds = time.Since(began).Seconds()
	return r
}

// minimised is how many failures are minimised; the others seldom show more.
const minimised = 3

// addOutcome adds the outcome of one run.
func (r *Report) addOutcome(o *Outcome) {
	r.Schedules++
	r.Records += o.Records
	for k, n := range o.Faults {
		r.Kinds[k] += n
		r.Faults += n
	}
	for _, p := range o.Pairs {
		r.met[p]++
	}
	for k, n := range o.Counted {
		r.Counted[k] += n
	}
	r.PairsMet, r.Pairs = len(r.met), len(Kinds)*(len(Kinds)-1)/2
	for _, f := range o.Failures {
		switch f.Class {
		case Lost:
			r.Lost++
		case Doubled:
			r.Doubled++
		case Reordered:
			r.Reordered++
		case Unaccounted:
			r.Unaccounted++
		default:
			r.Stuck++
		}
	}
}

// Sum adds the report of another model.
func (r *Report) Sum(o *Report) {
	if r.met == nil {
		r.Kinds, r.Counted, r.met = map[Kind]int{}, map[string]int{}, map[string]int{}
	}
	r.Model = strings.TrimPrefix(r.Model+" "+o.Model, " ")
	r.Schedules, r.Records, r.Faults, r.Seconds = r.Schedules+o.Schedules, r.Records+o.Records, r.Faults+o.Faults, r.Seconds+o.Seconds
	r.Lost, r.Doubled, r.Reordered = r.Lost+o.Lost, r.Doubled+o.Doubled, r.Reordered+o.Reordered
	r.Unaccounted, r.Stuck = r.Unaccounted+o.Unaccounted, r.Stuck+o.Stuck
	for k, n := range o.Kinds {
		r.Kinds[k] += n
	}
	for k, n := range o.Counted {
		r.Counted[k] += n
	}
	for k, n := range o.met {
		r.met[k] += n
	}
	r.PairsMet, r.Pairs = len(r.met), len(Kinds)*(len(Kinds)-1)/2
	r.Failed = append(r.Failed, o.Failed...)
}

// Unmet are the pairs of kinds that never struck in the same run.
func (r *Report) Unmet() (out []string) {
	for i, a := range Kinds {
		for _, b := range Kinds[i+1:] {
			if p := pairOf(a, b); r.met[p] == 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

// minimiseRun leaves out acts and faults without which the run still fails.
func minimiseRun(ctx context.Context, m *model.Model, out Outcome, o Options) (Outcome, Options) {
	o.Trace = nil
	fails := func(skip, without map[int]bool) bool {
		try := o
		try.Skip, try.Without = skip, without
		got := try.runKind(m, out.Seed)
		if len(got.Failures) > 0 {
			out = got
		}
		return len(got.Failures) > 0
	}
	acts := map[int]bool{}
	for i := range out.Acts {
		if !o.Skip[i] {
			acts[i] = true
		}
	}
	skip := largestOmission(ctx, acts, func(skip map[int]bool) bool { return fails(union(o.Skip, skip), o.Without) })
	o.Skip = union(o.Skip, skip)
	for range 2 { // other faults may strike without them
		strikes := map[int]bool{}
		for _, s := range out.strikes {
			strikes[s.number] = true
		}
		o.Without = union(o.Without, largestOmission(ctx, strikes, func(without map[int]bool) bool { return fails(o.Skip, union(o.Without, without)) }))
	}
	fails(o.Skip, o.Without)
	return out, o
}

// union is the union of two sets, as a new set.
func union(a, b map[int]bool) map[int]bool {
	out := maps.Clone(a)
	if out == nil {
		out = map[int]bool{}
	}
	maps.Copy(out, b)
	return out
}

// largestOmission is a set of things, as large as possible, without which the run still fails. It
// leaves out halves first, then smaller and smaller parts.
func largestOmission(ctx context.Context, all map[int]bool, fails func(without map[int]bool) bool) map[int]bool {
	left, out := slices.Sorted(maps.Keys(all)), map[int]bool{}
	for size := (len(left) + 1) / 2; size > 0 && ctx.Err() == nil; {
		shrunk := false
		for at := 0; at < len(left); {
			part := left[at:min(at+size, len(left))]
			try := maps.Clone(out)
			for _, i := range part {
				try[i] = true
			}
			if fails(try) {
				out, shrunk = try, true
				left = slices.Delete(left, at, at+len(part))
			} else {
				at += size
			}
		}
		if size == 1 && !shrunk {
			break
		}
		size = max(1, size/2)
		if size == 1 && !shrunk && len(left) > 200 {
			break
		}
	}
	return out
}

// repeatCommand is the command line that repeats a run.
func repeatCommand(m *model.Model, seed uint64, o Options) string {
	name := m.Name
	if m.File != "" && !slices.Contains(model.Builtin(), m.Name) {
		name = m.File
	}
	line := fmt.Sprintf("simulator %s --seed %d --schedules 1", name, seed)
	switch {
	case o.Builds:
		line += " --builds"
	case o.Bulk:
		line += " --bulk"
	}
	if len(o.Faults) < len(Kinds) {
		line += " --faults " + strings.ReplaceAll(cmp.Or(joinKinds(o.Faults), "none"), ", ", ",")
	}
	for _, list := range []struct {
		flag string
		of   map[int]bool
	}{{"skip", o.Skip}, {"without", o.Without}} {
		if len(list.of) > 0 {
			line += " --" + list.flag + " " + Numbers(list.of)
		}
	}
	return line
}

// Numbers writes a set of numbers; consecutive ones become FROM-TO.
func Numbers(set map[int]bool) string {
	var out []string
	all := slices.Sorted(maps.Keys(set))
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if text := strconv.Itoa(all[i]); j == i {
			out = append(out, text)
		} else {
			out = append(out, text+"-"+strconv.Itoa(all[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// ParseNumbers parses a text that Numbers wrote.
func ParseNumbers(text string) (map[int]bool, error) {
	set := map[int]bool{}
	if text == "" {
		return set, nil
	}
	for _, part := range strings.Split(text, ",") {
		a, b, isRange := strings.Cut(part, "-")
		if !isRange {
			b = a
		}
		from, err := strconv.Atoi(a)
		to, err2 := strconv.Atoi(b)
		if err != nil || err2 != nil || from < 0 || to < from || to-from > 1e6 {
			return nil, fmt.Errorf("%q is neither a number nor a range of them, such as 3-5", part)
		}
		for ; from <= to; from++ {
			set[from] = true
		}
	}
	return set, nil
}
