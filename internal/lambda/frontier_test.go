package lambda

import (
	"fmt"
	"os"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// A model of one ledger, the row of one shard, invocations that sleep between any two steps, and
// workers of other shards that prune the ledger. The rows, their writes and the decisions about the
// shard's row are the real ones; what package runner does in between is written here in small.

// slip is one thing done otherwise. The zero slip does all as it is meant.
type slip struct {
	noEpoch      bool // a missing position is enough to count
	noFrontier   bool // the frontier is not read
	frontierOnce bool // it is read once, not after each epoch that is met
	early        bool // it is read before the ledger
	anyPosition  bool // positions are removed whatever the frontier is
	whatever     bool // positions are removed although they have changed
	sameEpoch    bool // a removal leaves the epoch
	atTake       bool // the frontier rises when an event is begun
	whole        bool // it rises to the event's end when a part is applied
}

const mostRecords = 2

// sleeper is an invocation: what it knows, and what it does next.
type sleeper struct {
	first, last int // its records
	part        int // how many of them it applies
	step        string
	epoch       value.Value
	frontier    events.Position
	read        bool // the frontier
	at          int  // the first record that is not counted
	live        bool // the mapping waits for its answer
}

// pruner is a worker of another shard.
type pruner struct {
	step string
	row  owntable.LedgerRow
	keep bool // the position is not redundant
}

type scene struct {
	slip
	ledger   value.Item
	progress progress
	done     int // records that the mapping does not deliver again
	calls    []sleeper
	prunes   []pruner
	back     bool // the mapping went back
	most     int  // how many invocations there are
}

var ledgerAt = owntable.LedgerAt("ledger|m|t")

const shardKey = "123456789012"

func offset(n int) events.Position { return events.PositionOf(uint64(n)) }

func span(first, last int) (out []events.Position) {
	for n := first; n <= last; n++ {
		out = append(out, events.PositionOf(uint64(n)))
	}
	return out
}

func (s *scene) clone() *scene {
	out := *s
	out.calls, out.prunes = append([]sleeper{}, s.calls...), append([]pruner{}, s.prunes...)
	return &out
}

func (s *scene) key() string {
	var b []byte
	position := func(at events.Position) { b = append(b, at[len(at)-1]) }
	number := func(v value.Value) {
		n, _ := v.Int64()
		b = append(b, byte(n))
	}
	of := func(row value.Item) {
		position(owntable.LedgerRow(row).PositionIn(shardKey))
		number(owntable.LedgerRow(row).Epoch())
	}
	of(s.ledger)
	for n := 1; n <= mostRecords; n++ {
		number(s.ledger.Get(counter(n)))
	}
	position(s.progress.At)
	position(s.progress.Last)
	b = append(append(b, s.progress.Marks...), byte(s.progress.AppliedMarks), byte(s.done), said(s.back))
	for _, c := range s.calls {
		if b = append(b, c.step...); c.step != "" {
			b = append(b, byte(c.first), byte(c.last), byte(c.part), byte(c.at), said(c.read), said(c.live))
			number(c.epoch)
			position(c.frontier)
		}
		b = append(b, '|')
	}
	for _, p := range s.prunes {
		if b = append(append(b, p.step...), said(p.keep)); p.step != "" {
			of(value.Item(p.row))
		}
	}
	return string(b)
}

func said(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// write does a write of the ledger, and reports whether its condition held.
func (s *scene) write(w store.Write) bool {
	if !w.If.Holds(s.ledger) {
		return false
	}
	own := owntable.Table()
	row, err := own.Apply(&w, s.ledger)
	if err != nil {
		panic(err)
	}
	s.ledger = row
	return true
}

func counter(n int) string { return owntable.SumAccumulator(fmt.Sprint("r", n)) }

// right reports whether no record is counted twice.
func (s *scene) right() bool {
	for n := 1; n <= mostRecords; n++ {
		if value.Compare(s.ledger.Get(counter(n)), value.OfInt(1)) > 0 && s.ledger.Has(counter(n)) {
			return false
		}
	}
	return true
}

// next returns all scenes that one step can lead to. wrong says that an answer was given for a
// record that is not counted.
func (s *scene) next() (out []*scene, wrong bool) {
	add := func(f func(*scene)) {
		n := s.clone()
		f(n)
		out = append(out, n)
	}
	waiting := -1
	for i, c := range s.calls {
		if c.live {
			waiting = i
		}
	}
	if waiting < 0 && len(s.calls) < s.most {
		for last := s.done + 1; last <= mostRecords; last++ {
			for part := 1; part <= last-s.done; part++ {
				add(func(n *scene) {
					n.calls = append(n.calls, sleeper{first: s.done + 1, last: last, part: part, step: "begin", live: true, at: s.done + 1})
				})
			}
		}
		if !s.back && s.done > 0 {
			add(func(n *scene) { n.done, n.back = n.done-1, true })
		}
	}
	if waiting >= 0 {
		add(func(n *scene) { n.calls[waiting].live = false }) // it waits no longer, or the answer is lost
	}
	for i := range s.calls {
		if s.calls[i].step == "" {
			continue
		}
		n := s.clone()
		if n.step(&n.calls[i]) {
			return nil, true
		}
		out = append(out, n)
		if s.calls[i].step == "count" && s.calls[i].epoch.IsMissing() && n.calls[i].step != "look" {
			add(func(n *scene) { n.calls[i].step = "look" })
		}
	}
	for i := range s.prunes {
		if s.prunes[i].step != "" {
			add(func(n *scene) { n.prune(&n.prunes[i]) })
		}
	}
	return out, false
}

// step does the next step of an invocation.
func (s *scene) step(c *sleeper) (wrong bool) {
	records := span(c.first, c.last)
	later := time.Unix(1e9, 0)
	switch c.step {
	case "begin":
		l, err := s.progress.afterClaim(records, later, time.Unix(0, 0), sure)
		if err != nil {
			c.step, c.live = "", false
			return false
		}
		if s.atTake && l.Last.Compare(l.At) > 0 {
			l.At = l.Last
		}
		s.progress, c.step = l, "count"
		if s.early {
			c.frontier, c.read = s.progress.At, true
		}
	case "look":
		s.look(c)
	case "frontier":
		if c.frontier = s.progress.At; s.noFrontier {
			c.frontier = events.Position{}
		}
		c.read, c.step = true, "count"
		s.skip(c, c.frontier)
	case "count":
		last := c.first + c.part - 1
		if c.at > last {
			c.step = "end"
			break
		}
		var amounts []value.Attr
		for n := c.at; n <= last; n++ {
			amounts = append(amounts, value.Attr{Name: counter(n), Value: value.OfInt(1)})
		}
		w := owntable.CountLedger(ledgerAt, shardKey, offset(c.at), offset(last), amounts, value.OfInt(1), c.epoch)
		if s.noEpoch {
			w.If = append(w.If[:1:1], w.If[2:]...)
		}
		if s.write(w) {
			c.step = "end"
		} else {
			s.look(c)
		}
	case "end":
		l, err := s.progress.afterApplied(records, c.part)
		if err != nil {
			c.step, c.live = "", false
			return false
		}
		if s.whole && c.part > 0 {
			l.At = records[len(records)-1]
		}
		s.progress, c.step = l, "answer"
	case "answer":
		if c.step = ""; !c.live {
			return false
		}
		c.live = false
		for n := c.first; n < c.first+c.part; n++ {
			if !s.ledger.Has(counter(n)) {
				return true
			}
		}
		s.done = c.first + c.part - 1
	}
	return false
}

// look takes in the ledger as it is.
func (s *scene) look(c *sleeper) {
	is := owntable.LedgerRow(s.ledger)
	c.step = "count"
	if met := is.Epoch(); !value.Equal(met, c.epoch) {
		if c.epoch = met; !s.early && (!s.frontierOnce || !c.read) {
			c.step = "frontier"
		}
	}
	s.skip(c, is.PositionIn(shardKey))
	s.skip(c, c.frontier)
}

func (s *scene) skip(c *sleeper, seen events.Position) {
	for c.at <= c.last && offset(c.at).Compare(seen) <= 0 {
		c.at++
	}
}

// prune does the next step of a pruner.
func (s *scene) prune(p *pruner) {
	switch p.step {
	case "ledger":
		p.row, p.step = owntable.LedgerRow(s.ledger), "frontier"
	case "frontier":
		p.keep = p.row.PositionIn(shardKey).Compare(s.progress.At) > 0 && !s.anyPosition
		p.step = "write"
	case "write":
		p.step = ""
		if p.keep || p.row.PositionIn(shardKey).IsZero() {
			return
		}
		w := p.row.Forget(ledgerAt, []string{shardKey})
		if s.whatever {
			w.If = nil
		}
		if s.sameEpoch {
			w.Ops = w.Ops[1:]
		}
		s.write(w)
	}
}

// interleave goes through all orders of all steps of some invocations and prunings, until one is
// wrong. It returns how many scenes there are. tame leaves out that
// the mapping goes back.
func interleave(m slip, invocations, prunings int, tame bool) (scenes int, wrong bool) {
	return from(&scene{slip: m, most: invocations, back: tame}, prunings)
}

// halfway goes through what follows an invocation of two records that has met an epoch, and read the
// frontier, after the first record was counted and its position removed.
func halfway(m slip) (scenes int, wrong bool) {
	s := &scene{slip: m, most: 2, done: 1, back: true}
	later := time.Unix(1e9, 0)
	s.progress, _ = s.progress.afterClaim(span(1, 2), later, time.Unix(0, 0), sure)
	s.progress, _ = s.progress.afterApplied(span(1, 2), 1)
	s.write(owntable.CountLedger(ledgerAt, shardKey, offset(1), offset(1), []value.Attr{{Name: counter(1), Value: value.OfInt(1)}}, value.OfInt(1), value.Value{}))
	s.write(owntable.LedgerRow(s.ledger).Forget(ledgerAt, []string{shardKey}))
	s.calls = []sleeper{{first: 1, last: 2, part: 2, step: "count", epoch: owntable.LedgerRow(s.ledger).Epoch(), frontier: offset(1), read: true, at: 2}}
	return from(s, 1)
}

// from is interleave from a scene on.
func from(first *scene, prunings int) (scenes int, wrong bool) {
	for range prunings {
		first.prunes = append(first.prunes, pruner{step: "ledger"})
	}
	met := map[string]bool{first.key(): true}
	for todo := []*scene{first}; len(todo) > 0; {
		s := todo[len(todo)-1]
		next, bad := s.next()
		if bad {
			return len(met), true
		}
		todo = todo[:len(todo)-1]
		for _, n := range next {
			if !n.right() {
				return len(met), true
			}
			if key := n.key(); !met[key] {
				met[key], todo = true, append(todo, n)
			}
		}
	}
	return len(met), false
}

// TestFrontierInterleaved: whatever order invocations of a shard and prunings do their
// steps in, no record counts twice, and none is answered for without being counted.
func TestFrontierInterleaved(t *testing.T) {
	for _, of := range []struct {
		invocations, prunings int
		tame                  bool
	}{{2, 1, true}, {2, 2, false}, {3, 1, true}}[:soaktest.Count(1, 3)] {
		scenes, wrong := interleave(slip{}, of.invocations, of.prunings, of.tame)
		t.Logf("%+v: %d scenes", of, scenes)
		if wrong || scenes < 5000 {
			t.Errorf("%+v: after %d scenes: wrong %v", of, scenes, wrong)
		}
	}
}

// TestFrontierHalfway: so it is from there on.
func TestFrontierHalfway(t *testing.T) {
	if scenes, wrong := halfway(slip{}); wrong || scenes < 100 {
		t.Errorf("after %d scenes: wrong %v", scenes, wrong)
	}
}

// TestFrontierInterleavedFully is the same with more of everything; it takes minutes.
func TestFrontierInterleavedFully(t *testing.T) {
	if os.Getenv("WEIR_TEST_SCHEDULES") == "" {
		t.Skip("set WEIR_TEST_SCHEDULES")
	}
	if scenes, wrong := interleave(slip{}, 3, 2, false); wrong {
		t.Errorf("after %d scenes", scenes)
	} else {
		t.Logf("%d scenes", scenes)
	}
}

// TestFrontierSlips: each mistake ends wrong in some order.
func TestFrontierSlips(t *testing.T) {
	for name, m := range map[string]slip{
		"a missing position is enough to count":                {noEpoch: true},
		"the frontier is not read":                             {noFrontier: true},
		"the frontier is read once":                            {frontierOnce: true},
		"the frontier is read before the ledger":               {early: true},
		"positions are removed whatever the frontier is":       {anyPosition: true},
		"positions are removed although they have changed":     {whatever: true},
		"a removal leaves the epoch":                           {sameEpoch: true},
		"the frontier rises when an event is begun":            {atTake: true},
		"the frontier rises to the end when a part is applied": {whole: true},
	} {
		if m.whatever && testing.Short() {
			continue // 100,000 scenes
		}
		scenes, wrong := halfway(m)
		if !wrong {
			scenes, wrong = interleave(m, 2, 2, false)
		}
		if !wrong {
			scenes, wrong = interleave(m, 3, 1, true)
		}
		if t.Logf("%s: %d scenes", name, scenes); !wrong {
			t.Errorf("%s: all is right", name)
		}
	}
}
