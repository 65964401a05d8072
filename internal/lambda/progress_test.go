package lambda

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/soaktest"
)

// sure asks the stream nothing, and lets go of what was given up.
var sure = ask{sure: true, gaveUp: func(events.Position, int) error { return nil }}

func positions(ns ...uint64) (out []events.Position) {
	for _, n := range ns {
		out = append(out, events.PositionOf(n))
	}
	return out
}

// try is an event, and how many of its records are applied before its invocation ends:
// -1 means that it never ends; passed and busy mean that it is refused.
type try struct {
	records []events.Position
	applied int
}

const (
	passed = -2
	busy   = -3
)

// TestProgressTakes: which events continue the row, and which do not.
func TestProgressTakes(t *testing.T) {
	for name, tries := range map[string][]try{
		"one after the other":                {{positions(1, 2), 2}, {positions(3, 4), 4 - 2}, {positions(5), 1}},
		"the same again":                     {{positions(1, 2), 2}, {positions(1, 2), 2}, {positions(3), 1}},
		"more, from the same on":             {{positions(1, 2), 1}, {positions(2, 3, 4), 3}},
		"bisected":                           {{positions(1, 2, 3, 4), -1}, {positions(1, 2), 2}, {positions(3, 4), 2}, {positions(5), 1}},
		"abandoned, then again and on":       {{positions(1, 2), -1}, {positions(1, 2), 2}, {positions(3, 4), 2}, {positions(1, 2), 2}, {positions(5), 1}},
		"abandoned at a window's start":      {{positions(1), 1}, {positions(2, 3), 2}, {positions(2), 1}, {positions(2, 3), 2}, {positions(4), 1}, {positions(2, 3), 2}, {positions(5), 1}},
		"two side by side":                   {{positions(1, 3), 2}, {positions(2, 4), passed}, {positions(5), 1}, {positions(2, 4), passed}},
		"one further than the other":         {{positions(1, 3), 2}, {positions(5, 7), 2}, {positions(2, 4, 6), passed}},
		"while the first is at work":         {{positions(1, 3), -1}, {positions(4, 6), busy}, {positions(1, 3), 2}, {positions(4, 6), 2}},
		"a factor that changes amid":         {{positions(1, 2, 3, 4), -1}, {positions(1, 3), passed}, {positions(2, 4), passed}, {positions(1, 2, 3, 4), 4}},
		"in part, then another":              {{positions(1, 3, 5), 1}, {positions(3, 5), 2}, {positions(4), passed}},
		"a second half whose first was lost": {{positions(1, 2, 3, 4), -1}, {positions(3, 4), busy}},
	} {
		var l progress
		now := time.Unix(1000, 0)
		for i, s := range tries {
			got, err := l.take(s.records, now, now.Add(time.Minute), sure)
			want := map[int]error{passed: errPassed, busy: errBusy}[s.applied]
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s: event %d: %v, want %v", name, i, err, want)
			}
			if err != nil {
				continue
			}
			if l = got; s.applied >= 0 {
				if l, err = l.applied(s.records, s.applied); err != nil {
					t.Errorf("%s: event %d at its end: %v", name, i, err)
				}
			}
		}
	}
}

// TestProgressGivesUp: records that the event source mapping gave up block nothing once no
// invocation can be applying them, and are refused if they come after all.
func TestProgressGivesUp(t *testing.T) {
	var l progress
	now := time.Unix(1000, 0)
	l, _ = l.take(positions(1, 2), now, now.Add(time.Minute), sure)
	if _, err := l.take(positions(3), now.Add(59*time.Second), now, sure); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	slow, gone := l, 0
	unkept := ask{sure: true, gaveUp: func(_ events.Position, n int) error {
		gone = n
		return errBusy
	}}
	if _, err := l.take(positions(3), now.Add(61*time.Second), now, unkept); !errors.Is(err, errBusy) || gone != 2 {
		t.Errorf("%d are given up, and not kept as a gap: %v", gone, err)
	}
	l, err := l.take(positions(3), now.Add(61*time.Second), now, sure)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.take(positions(1, 2), now.Add(time.Hour), now, sure); !errors.Is(err, errPassed) {
		t.Error(err)
	}
	if _, err := l.applied(positions(1, 2), 2); !errors.Is(err, errPassed) || slow.AppliedMarks != 0 {
		t.Error(err)
	}
	if l, err = l.applied(positions(3), 1); err != nil || l.AppliedMarks != l.len() {
		t.Error(l, err)
	}
}

// TestProgressBesideAProcess: what a process has read is done, and behind it an event goes on; one that begins later does so only
// if the stream has nothing in between.
func TestProgressBesideAProcess(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(n uint64) events.Position { return events.PositionOf(n) }
	for name, s := range map[string]struct {
		from, to, last uint64 // a process read behind from up to to; the function came to last before, and applied it
		records        []events.Position
		follows        bool
		err            error
		applied        int // of all that the row has marks of
	}{
		"nothing new":                       {0, 4, 0, positions(2, 3), false, nil, 2},
		"part of it":                        {0, 4, 0, positions(3, 4, 5, 6), false, nil, 2},
		"behind it, and the stream says so": {0, 4, 0, positions(5, 6), true, nil, 0},
		"behind it, and nothing says so":    {0, 4, 0, positions(6, 7), false, errBehind, 0},
		"its last record is passed over":    {0, 4, 0, positions(3, 5), true, errPassed, 0},
		"before it":                         {3, 5, 0, positions(2, 3), true, errPassed, 0},
		"the rest of an event":              {3, 5, 3, positions(2, 3, 4, 5, 6), false, nil, 5},
		"the function was last":             {0, 2, 3, positions(4), false, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := progress{}
			for n := uint64(1); n <= s.last; n++ {
				l.Marks += marksOf(positions(n))
			}
			l.AppliedMarks, l.Last = l.len(), at(s.last)
			l.From, l.To, l.At = at(s.from), at(s.to), at(max(s.to, s.last))
			next, err := l.take(s.records, now, now.Add(time.Minute), ask{sure: true, next: func(behind, p events.Position) (bool, error) {
				if behind != at(s.to) || p != s.records[0] {
					t.Errorf("%v behind %v is asked for", p, behind)
				}
				return s.follows, nil
			}})
			if !errors.Is(err, s.err) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if next.AppliedMarks != s.applied {
				t.Errorf("%d of %d are applied", next.AppliedMarks, next.len())
			}
			over, err := next.applied(s.records, len(s.records))
			if err != nil || over.At != at(max(s.to, s.last, s.records[len(s.records)-1].Uint64())) || over.AppliedMarks != over.len() {
				t.Errorf("%+v, %v", over, err)
			}
		})
	}
}

// TestProgressIsBounded: a row keeps marks of what may be delivered again, and no more.
func TestProgressIsBounded(t *testing.T) {
	var l progress
	for n := uint64(0); n < 3000; n += 3 {
		event := positions(n+1, n+2, n+3)
		l, _ = l.take(event, time.Unix(0, 0), time.Unix(0, 0), sure)
		l, _ = l.applied(event, 3)
	}
	if l.len() != leastMarks || l.AppliedMarks != leastMarks || l.Last != events.PositionOf(3000) {
		t.Error(l.len(), l.AppliedMarks, l.Last)
	}
}

// poller hands one run of a shard's records to invocations, as an event source mapping
// does: one event at a time, again until it is answered, and sometimes in parts.
type poller struct {
	records []events.Position
	done    int
	calls   []*call
}

type call struct {
	from    int
	records []events.Position
	applied int
	begun   bool
	old     bool // no invocation waits for its answer
}

// shard is one target of a shard, with its position, beside the pollers.
type shard struct {
	progress
	at      events.Position
	counted map[events.Position]bool
	lost    map[events.Position]bool // dropped, and never counted
	now     time.Time
	refused int
	all     []events.Position        // what the stream has
	pages   []page                   // that a process has read, and not applied to the end
	moves   int                      // by processes
	jumped  map[events.Position]bool // passed over by a new mapping
}

// page is what a process has read behind a checkpoint.
type page struct {
	behind  progress
	records []events.Position
	applied int
}

// process reads a page, or goes on with one that was read before; it may be overtaken.
func (s *shard) process(r *rand.Rand) {
	from := slices.IndexFunc(s.all, func(p events.Position) bool { return p.Compare(s.At) > 0 })
	if from >= 0 && (len(s.pages) == 0 || r.IntN(20) == 0) {
		s.pages = append(s.pages, page{behind: s.progress, records: s.all[from:min(len(s.all), from+1+r.IntN(8))]})
	}
	if len(s.pages) == 0 {
		return
	}
	i := r.IntN(len(s.pages))
	p := &s.pages[i]
	if p.applied < len(p.records) {
		s.apply(p.records[p.applied])
		p.applied++
		return
	}
	if s.At == p.behind.At && s.Last == p.behind.Last { // as CheckpointRow.Move does
		if s.To != s.At || s.To.Compare(s.Last) < 0 {
			s.From = s.At
			if s.Last.Compare(s.From) > 0 {
				s.From = s.Last
			}
		}
		s.At, s.To = p.records[len(p.records)-1], p.records[len(p.records)-1]
		s.moves++
	}
	s.pages = slices.Delete(s.pages, i, i+1)
}

// next is what the stream has.
func (s *shard) next(behind, p events.Position) (bool, error) {
	i := slices.IndexFunc(s.all, func(q events.Position) bool { return q.Compare(behind) > 0 })
	return i >= 0 && s.all[i] == p, nil
}

func (s *shard) apply(p events.Position) {
	switch {
	case p.Compare(s.at) > 0:
		s.at, s.counted[p] = p, true
	case !s.counted[p] && !s.jumped[p]:
		s.lost[p] = true
	}
}

// step does the next thing of a call: it begins, applies a record, or ends. over says
// that the call has ended, ok that it has answered.
func (s *shard) step(t *testing.T, c *call) (over, ok bool) {
	switch {
	case !c.begun:
		l, err := s.take(c.records, s.now, s.now.Add(time.Minute), ask{next: s.next, sure: len(c.records)%2 == 0, gaveUp: sure.gaveUp})
		if err != nil {
			if !c.old {
				s.refused++
			}
			return true, false
		}
		if s.To == s.At && s.To.Compare(s.Last) > 0 { // a process was last
			for _, p := range s.all {
				if p.Compare(s.To) > 0 && p.Compare(c.records[0]) < 0 {
					t.Fatalf("record %s was passed over behind a process", p)
				}
			}
		}
		s.progress, c.begun = l, true
	case c.applied < len(c.records):
		s.apply(c.records[c.applied])
		c.applied++
	default:
		l, err := s.applied(c.records, len(c.records))
		if err != nil {
			if !c.old {
				s.refused++
			}
			return true, false
		}
		s.progress = l
		return true, true
	}
	return false, false
}

func (p *poller) live() *call {
	for _, c := range p.calls {
		if !c.old {
			return c
		}
	}
	return nil
}

// TestProgressAlone: with one poller, nothing is ever refused and all is counted, whatever
// the poller does and whatever late invocations do. TestProgressSideBySide: with several,
// no lost record is ever answered for.
func TestProgressAlone(t *testing.T) {
	for seed := range uint64(600) {
		s := pollers(t, seed, 1, false)
		if s.refused > 0 {
			t.Fatalf("seed %d: %d refused", seed, s.refused)
		}
		if len(s.counted) != 60 {
			t.Fatalf("seed %d: %d counted", seed, len(s.counted))
		}
	}
}

func TestProgressSideBySide(t *testing.T) {
	refused := 0
	for seed := range uint64(1000) {
		if pollers(t, seed, 2+int(seed%2), false).refused > 0 {
			refused++
		}
	}
	if refused < 800 {
		t.Errorf("only %d were refused", refused)
	}
}

// TestProgressAndProcesses is both, with processes that read the same shard. A mapping may be deleted and created again: the new one
// begins at the end of the stream.
func TestProgressAndProcesses(t *testing.T) {
	refused, moves := 0, 0
	n := soaktest.Count(1000, 3000)
	for seed := range uint64(n) {
		width := 1 + int(seed%3)
		s := pollers(t, seed, width, true)
		moves += s.moves
		if s.refused > 0 {
			refused++
		}
		if width == 1 && len(s.lost) > 0 {
			t.Fatalf("seed %d: %d lost", seed, len(s.lost))
		}
	}
	if refused < n/3 || moves < n {
		t.Errorf("only %d were refused, and processes moved only %d times", refused, moves)
	}
}

func pollers(t *testing.T, seed uint64, width int, beside bool) *shard {
	r := rand.New(rand.NewPCG(seed, 5))
	s := &shard{counted: map[events.Position]bool{}, lost: map[events.Position]bool{}, jumped: map[events.Position]bool{}, now: time.Unix(1, 0)}
	ps := make([]*poller, width)
	for i := range ps {
		ps[i] = &poller{}
	}
	for n := range uint64(60) {
		p := ps[r.IntN(width)]
		p.records = append(p.records, events.PositionOf(n+1))
		s.all = append(s.all, events.PositionOf(n+1))
	}
	for range 3000 {
		if beside && r.IntN(3) == 0 {
			s.process(r)
			continue
		}
		p := ps[r.IntN(width)]
		if beside && r.IntN(200) == 0 && p.live() == nil { // a new mapping with the starting position LATEST
			for n := r.IntN(5); n > 0 && p.done < len(p.records); n-- {
				s.jumped[p.records[p.done]] = true
				p.done++
			}
		}
		if width > 1 { // of one run, an invocation that should be over may take for ever
			s.now = s.now.Add(time.Duration(r.IntN(20)) * time.Second)
		}
		c := p.live()
		switch {
		case c == nil && p.done < len(p.records):
			n := min(1+r.IntN(8), len(p.records)-p.done)
			p.calls = append(p.calls, &call{from: p.done, records: p.records[p.done : p.done+n]})
			continue
		case c != nil && r.IntN(30) == 0: // it is given up, and may go on
			c.old = true
			continue
		case len(p.calls) == 0:
			continue
		}
		c = p.calls[r.IntN(len(p.calls))]
		over, ok := r.IntN(40) == 0, false // a crash
		if !over {
			over, ok = s.step(t, c)
		}
		if !over {
			continue
		}
		p.calls = slices.DeleteFunc(p.calls, func(o *call) bool { return o == c })
		if ok && !c.old && r.IntN(10) > 0 { // or the answer is lost
			for _, rec := range c.records {
				if s.lost[rec] && !s.counted[rec] {
					t.Fatalf("seed %d: record %s was lost, and answered for", seed, rec)
				}
			}
			p.done = c.from + len(c.records)
		}
	}
	for _, rec := range s.all {
		if rec.Compare(s.At) <= 0 && !s.counted[rec] && !s.jumped[rec] && width == 1 {
			t.Fatalf("seed %d: record %s was passed over", seed, rec)
		}
	}
	return s
}
