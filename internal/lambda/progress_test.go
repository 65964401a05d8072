package lambda

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/soaktest"
)

// sure asks the stream nothing, and lets go of what was given up.
var sure = ask{sure: true, room: rowMarks, gaveUp: func(events.Position, int) error { return nil }}

func positions(ns ...uint64) (out []events.Position) {
	for _, n := range ns {
		out = append(out, events.PositionOf(n))
	}
	return out
}

// run is the positions of a run of records.
func run(from, to uint64) (out []events.Position) {
	for n := from; n <= to; n++ {
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
	soaktest.Calm(t)
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
		for _, room := range []int{rowMarks, 2} {
			l := shard{tails: map[events.Position]owntable.TailRow{}}
			now := time.Unix(1000, 0)
			for i, s := range tries {
				c := &call{records: s.records}
				known := l.known(c)
				got, err := known.afterClaim(c.records, now, now.Add(time.Minute), ask{sure: true, room: room, gaveUp: sure.gaveUp})
				want := map[int]error{passed: errPassed, busy: errBusy}[s.applied]
				if !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("%s: event %d with room for %d: %v, want %v", name, i, room, err, want)
				}
				if err != nil {
					continue
				}
				if l.progress = got; got.tail != nil {
					l.tails[got.tail.From] = *got.tail
					l.tail = nil
				}
				if s.applied >= 0 {
					known = l.known(c)
					if l.progress, err = known.afterApplied(c.records, min(s.applied, len(c.records))); err != nil {
						t.Errorf("%s: event %d with room for %d at its end: %v", name, i, room, err)
					}
				}
			}
		}
	}
}

// TestProgressGivesUp: records that the event source mapping gave up block nothing once no
// invocation can be applying them, and are refused if they come after all.
func TestProgressGivesUp(t *testing.T) {
	soaktest.Calm(t)
	var l progress
	now := time.Unix(1000, 0)
	l, _ = l.afterClaim(positions(1, 2), now, now.Add(time.Minute), sure)
	if _, err := l.afterClaim(positions(3), now.Add(59*time.Second), now, sure); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	slow, gone := l, 0
	unkept := ask{sure: true, room: rowMarks, gaveUp: func(_ events.Position, n int) error {
		gone = n
		return errBusy
	}}
	if _, err := l.afterClaim(positions(3), now.Add(61*time.Second), now, unkept); !errors.Is(err, errBusy) || gone != 2 {
		t.Errorf("%d are given up, and not kept as a gap: %v", gone, err)
	}
	l, err := l.afterClaim(positions(3), now.Add(61*time.Second), now, sure)
	failtest.On(t, err)
	if _, err := l.afterClaim(positions(1, 2), now.Add(time.Hour), now, sure); !errors.Is(err, errPassed) {
		t.Error(err)
	}
	if _, err := l.afterApplied(positions(1, 2), 2); !errors.Is(err, errPassed) || slow.AppliedMarks != 0 {
		t.Error(err)
	}
	if l, err = l.afterApplied(positions(3), 1); err != nil || l.AppliedMarks != l.countMarks() {
		t.Error(l, err)
	}
}

// TestProgressBesideAProcess: what a process has read is done, and behind it an event goes on; one that begins later does so only
// if the stream has nothing in between.
func TestProgressBesideAProcess(t *testing.T) {
	soaktest.Calm(t)
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
			l.AppliedMarks, l.Last = l.countMarks(), at(s.last)
			l.From, l.To, l.At = at(s.from), at(s.to), at(max(s.to, s.last))
			next, err := l.afterClaim(s.records, now, now.Add(time.Minute), ask{sure: true, room: rowMarks, next: func(behind, p events.Position) (bool, error) {
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
				t.Errorf("%d of %d are applied", next.AppliedMarks, next.countMarks())
			}
			over, err := next.afterApplied(s.records, len(s.records))
			if err != nil || over.At != at(max(s.to, s.last, s.records[len(s.records)-1].Uint64())) || over.AppliedMarks != over.countMarks() {
				t.Errorf("%+v, %v", over, err)
			}
		})
	}
}

// TestProgressIsBounded: a row has marks of so many records at the most, and a row of the tail has many of those that leave it.
func TestProgressIsBounded(t *testing.T) {
	soaktest.Calm(t)
	for size, rows := range map[int]int{3: 15, 200: 14, 1000: 3} {
		var l progress
		tail := 0
		for n := range 3000 / size {
			event := run(uint64(n*size+1), uint64(n*size+size))
			l, _ = l.afterClaim(event, time.Unix(0, 0), time.Unix(0, 0), sure)
			if l.tail != nil {
				tail++
			}
			l.tail = nil
			l, _ = l.afterApplied(event, size)
			if l.countMarks() > rowMarks || l.AppliedMarks != l.countMarks() || l.Last != event[size-1] {
				t.Fatal(l.countMarks(), l.AppliedMarks, l.Last)
			}
		}
		if tail > rows {
			t.Errorf("events of %d records: %d rows of the tail, want %d", size, tail, rows)
		}
	}
}

// TestRecall: an event is known by the tail if all of the tail between it and the row's marks is there, or all that it spans.
func TestRecall(t *testing.T) {
	for name, s := range map[string]struct {
		event   []events.Position
		gone    uint64 // a row of the tail that has expired
		applied uint64
		done    bool
		earlier int // marks that are read
	}{
		"over two rows":            {run(90, 110), 0, 305, true, 0},
		"over one that is gone":    {run(90, 110), 100, 305, false, 0},
		"over a hole":              {append(run(99, 100), run(201, 202)...), 100, 305, false, 0},
		"not applied":              {run(190, 210), 0, 205, false, 200},
		"not applied, and a hole":  {run(190, 210), 200, 205, false, 0},
		"up to the row":            {run(250, 303), 0, 305, false, 100},
		"never came":               {append(run(90, 95), run(97, 110)...), 0, 305, false, 0},
		"before all that is known": {run(90, 110), 1, 305, false, 0},
	} {
		l := progress{FunctionShardRow: owntable.FunctionShardRow{Behind: events.PositionOf(300), Marks: marksOf(run(301, 305)), AppliedMarks: 5}}
		l.Last, l.At = events.PositionOf(305), events.PositionOf(s.applied)
		known := shard{tails: map[events.Position]owntable.TailRow{}}
		for _, from := range []uint64{1, 100, 200} {
			if from != s.gone {
				known.tails[events.PositionOf(from)] = owntable.TailRow{From: events.PositionOf(from), To: events.PositionOf(from/100*100 + 100), Marks: marksOf(run(from+1, from/100*100+100))}
			}
		}
		if done, err := l.recallMarks(s.event, known.rows); done != s.done || err != nil || len(l.earlier) != s.earlier*markBytes {
			t.Errorf("%s: done %v, %d marks, %v", name, done, len(l.earlier)/markBytes, err)
		}
	}
}

// TestFirstMarks: marks that an invocation stored for a new row, and died, are replaced by those of whoever makes the row, also behind a
// process: they say nothing once others have expired.
func TestFirstMarks(t *testing.T) {
	s, now := shard{tails: map[events.Position]owntable.TailRow{}}, time.Unix(1000, 0)
	of := ask{sure: true, room: 2, gaveUp: sure.gaveUp, next: func(events.Position, events.Position) (bool, error) { return true, nil }}
	take := func(l progress, event []events.Position) progress {
		next, err := l.afterClaim(event, now, now, of)
		failtest.On(t, err)
		s.tails[next.tail.From] = *next.tail
		return next
	}
	take(progress{}, positions(5, 7, 9))
	var l progress
	l.To, l.At = events.PositionOf(3), events.PositionOf(3)
	l = take(l, positions(4, 6, 8, 10, 12))
	delete(s.tails, l.tail.From)
	l.At = l.Last
	if done, err := l.recallMarks(positions(5), s.rows); done || err != nil {
		t.Errorf("a record that was not applied is done: %v", err)
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
	from     int
	all      []events.Position // of the event
	records  []events.Position // of which the row may know nothing more
	applied  int
	next     *progress // what it is about to write
	at       int       // the version of the row that it has read
	together bool      // the row and the tail are written together
	begun    bool
	again    bool // it was answered already
	old      bool // no invocation waits for its answer
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
	tails   map[events.Position]owntable.TailRow
	version int // of the row

	recalled int // events of which only the tail knew
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
		s.version++
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

// rows reads the tail, as Handler.readTail does.
func (s *shard) rows(from, below events.Position) (rows []owntable.TailRow, err error) {
	for _, at := range slices.SortedFunc(maps.Keys(s.tails), events.Position.Compare) {
		if at.Compare(from) < 0 {
			rows = rows[:0]
		}
		if at.Compare(below) < 0 {
			rows = append(rows, s.tails[at])
		}
	}
	return rows, nil
}

// known is the row as a call knows it.
func (s *shard) known(c *call) (l progress) {
	l = s.progress
	if l.earlier = ""; c.next != nil && c.next.Behind == l.Behind {
		l.earlier = c.next.earlier
	}
	if len(c.records) > 0 {
		if done, _ := l.recallMarks(c.records, s.rows); done {
			c.records = nil
			s.recalled++
		}
	}
	return l
}

// begin reads the row, and stores the marks that leave it, as Handler.moveRow does. A later step writes the row.
func (s *shard) begin(t *testing.T, c *call) error {
	known := s.known(c)
	l, err := known.afterClaim(c.records, s.now, s.now.Add(time.Minute), ask{next: s.next, sure: len(c.records)%2 == 0, room: 5, gaveUp: sure.gaveUp})
	if err != nil {
		return err
	}
	if s.To == s.At && s.To.Compare(s.Last) > 0 && len(c.records) > 0 { // a process was last
		for _, p := range s.all {
			if p.Compare(s.To) > 0 && p.Compare(c.records[0]) < 0 {
				t.Fatalf("record %s was passed over behind a process", p)
			}
		}
	}
	if c.next, c.at, c.together = &l, s.version, false; l.tail != nil {
		switch is, there := s.tails[l.tail.From]; {
		case !there:
			s.tails[l.tail.From] = *l.tail
		case is != *l.tail:
			c.together = true
		}
	}
	return nil
}

// step does the next thing of a call: it begins, applies a record, or ends. over says
// that the call has ended, ok that it has answered.
func (s *shard) step(t *testing.T, c *call) (over, ok bool) {
	var err error
	switch {
	case !c.begun && (c.next == nil || c.at != s.version):
		err = s.begin(t, c)
	case !c.begun:
		if c.together {
			s.tails[c.next.tail.From] = *c.next.tail
		}
		s.progress, c.begun = *c.next, true
		s.tail = nil
		s.version++
	case c.applied < len(c.records):
		s.apply(c.records[c.applied])
		c.applied++
	default:
		var l progress
		known := s.known(c)
		if l, err = known.afterApplied(c.records, len(c.records)); err == nil {
			s.progress = l
			s.version++
			return true, true
		}
	}
	if err != nil && !c.old {
		s.refused++
	}
	return err != nil, false
}

func (p *poller) live() *call {
	for _, c := range p.calls {
		if !c.old {
			return c
		}
	}
	return nil
}

// storing reports whether a call has stored marks and not yet the row: it ends long before the marks expire.
func (p *poller) storing() bool {
	return slices.ContainsFunc(p.calls, func(c *call) bool { return !c.begun && c.next != nil && c.next.tail != nil })
}

// TestProgressAlone: with one poller, nothing is ever refused and all is counted, whatever
// the poller does and whatever late invocations do. TestProgressSideBySide: with several,
// no lost record is ever answered for.
func TestProgressAlone(t *testing.T) {
	soaktest.Calm(t)
	recalled := 0
	for seed := range uint64(600) {
		s := pollers(t, seed, 1, false)
		recalled += s.recalled
		if s.refused > 0 {
			t.Fatalf("seed %d: %d refused", seed, s.refused)
		}
		if len(s.counted) != 60 {
			t.Fatalf("seed %d: %d counted", seed, len(s.counted))
		}
	}
	if recalled < 6000 {
		t.Errorf("only %d events came that only the tail knew", recalled)
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
	soaktest.Calm(t)
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
	s := &shard{tails: map[events.Position]owntable.TailRow{}, counted: map[events.Position]bool{}, lost: map[events.Position]bool{}, jumped: map[events.Position]bool{}, now: time.Unix(1, 0)}
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
		if width > 1 && r.IntN(40) == 0 { // some of the tail has expired
			if all := slices.SortedFunc(maps.Keys(s.tails), events.Position.Compare); len(all) > 0 && !slices.ContainsFunc(ps, (*poller).storing) {
				delete(s.tails, all[r.IntN(len(all))])
			}
		}
		if width > 1 { // of one run, an invocation that should be over may take for ever
			s.now = s.now.Add(time.Duration(r.IntN(20)) * time.Second)
		}
		c := p.live()
		switch {
		case c == nil && p.done < len(p.records) && r.IntN(4) > 0:
			n := min(1+r.IntN(8), len(p.records)-p.done)
			p.calls = append(p.calls, &call{from: p.done, all: p.records[p.done : p.done+n], records: p.records[p.done : p.done+n]})
			continue
		case c == nil && p.done > 0 && r.IntN(4) == 0: // something that was answered comes again
			from := r.IntN(p.done)
			event := p.records[from : from+1+r.IntN(min(12, p.done-from))]
			if !slices.ContainsFunc(event, func(p events.Position) bool { return s.jumped[p] }) {
				p.calls = append(p.calls, &call{from: from, again: true, all: event, records: event})
			}
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
			for _, rec := range c.all {
				if s.lost[rec] && !s.counted[rec] {
					t.Fatalf("seed %d: record %s was lost, and answered for", seed, rec)
				}
			}
			if !c.again {
				p.done = c.from + len(c.all)
			}
		}
	}
	for _, rec := range s.all {
		if rec.Compare(s.At) <= 0 && !s.counted[rec] && !s.jumped[rec] && width == 1 {
			t.Fatalf("seed %d: record %s was passed over", seed, rec)
		}
	}
	return s
}
