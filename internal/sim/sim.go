// Package sim runs the real code of weir in a world that hates it: a store, a
// stream, an index and clocks that are as unkind as the real ones, and an
// application that is rude. Everything is decided by a seed, one thing happens at
// a time, and the same seed gives the same run.
//
//	words ─▶ app ─▶ memory (rows, streams) ─▶ link (faults) ─▶ runner, lambda, live ─▶ link ─▶ memory, index
//	          └──────▶ truth ◀── held against ── all rows and documents, once everything has caught up
//
// The fold, the gathering, the runner, the follower, the reader of live streams,
// the Lambda handler, the replay and the recount are the real ones. What they must
// come to is told from what the application did by truth, which shares no code with
// them but the compiled model.
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

// Class says what is wrong in the end.
type Class string

// The classes of failures.
const (
	Lost        Class = "lost"        // something that must be there is not
	Doubled     Class = "doubled"     // something is there that nothing made, or twice
	Reordered   Class = "reordered"   // something older stands over something newer
	Unaccounted Class = "unaccounted" // a record was not counted once
	Stuck       Class = "stuck"       // it does not catch up, or panics
)

// Failure is one thing that is wrong.
type Failure struct {
	Class Class  `json:"class"`
	What  string `json:"what"`
}

// Report is what came of many runs.
type Report struct {
	Model       string         `json:"model"`
	Schedules   int            `json:"schedules"`
	Records     int            `json:"records"`
	Faults      int            `json:"faults"`
	Lost        int            `json:"lost"`
	Doubled     int            `json:"doubled"`
	Reordered   int            `json:"reordered"`
	Unaccounted int            `json:"unaccounted"`
	Stuck       int            `json:"stuck"`
	Kinds       map[Kind]int   `json:"kinds"`
	PairsMet    int            `json:"pairsMet"`
	Pairs       int            `json:"pairs"`
	Counted     map[string]int `json:"counted"`
	Failed      []Failed       `json:"failed,omitempty"`
	Seconds     float64        `json:"seconds"`

	met map[string]int
}

// Failed is a run that failed, made as small as it could be.
type Failed struct {
	Seed     uint64    `json:"seed"`
	Failures []Failure `json:"failures"`
	Again    string    `json:"again"` // the command that does the same
}

// Many does runs with seeds from one on, several at a time, and minimises the first
// few that fail.
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
				out := Run(m, seed+uint64(i), o)
				mu.Lock()
				if r.add(&out); len(out.Failures) > 0 {
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
			small, again = minimise(ctx, m, small, o)
		}
		r.Failed = append(r.Failed, Failed{small.Seed, small.Failures, command(m, small.Seed, again)})
	}
	r.Seconds = time.Since(began).Seconds()
	return r
}

// minimised is how many failures are made small; the others seldom say more.
const minimised = 3

func (r *Report) add(o *Outcome) {
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

// Unmet are the pairs of kinds that no run had both of.
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

// minimise leaves out acts and faults without which a run still fails.
func minimise(ctx context.Context, m *model.Model, out Outcome, o Options) (Outcome, Options) {
	o.Trace = nil
	fails := func(skip, without map[int]bool) bool {
		try := o
		try.Skip, try.Without = skip, without
		got := Run(m, out.Seed, try)
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
	skip := less(ctx, acts, func(skip map[int]bool) bool { return fails(with(o.Skip, skip), o.Without) })
	o.Skip = with(o.Skip, skip)
	for range 2 { // of what is left, other faults may strike
		strikes := map[int]bool{}
		for _, s := range out.strikes {
			strikes[s.number] = true
		}
		o.Without = with(o.Without, less(ctx, strikes, func(without map[int]bool) bool { return fails(o.Skip, with(o.Without, without)) }))
	}
	fails(o.Skip, o.Without)
	return out, o
}

func with(a, b map[int]bool) map[int]bool {
	out := maps.Clone(a)
	if out == nil {
		out = map[int]bool{}
	}
	maps.Copy(out, b)
	return out
}

// less is a set of things, as large as it gets, without which it still fails: it
// leaves out halves first, then smaller and smaller parts.
func less(ctx context.Context, all map[int]bool, fails func(without map[int]bool) bool) map[int]bool {
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

// command is the line that does a run again.
func command(m *model.Model, seed uint64, o Options) string {
	name := m.Name
	if m.File != "" && !slices.Contains(model.Builtin(), m.Name) {
		name = m.File
	}
	line := fmt.Sprintf("simulator %s --seed %d --schedules 1", name, seed)
	if len(o.Faults) < len(Kinds) {
		line += " --faults " + strings.ReplaceAll(cmp.Or(join(o.Faults), "none"), ", ", ",")
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

// Numbers writes a set of numbers, runs of them as FROM-TO.
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

// ParseNumbers reads what Numbers writes.
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
