package contribution_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/value"
)

// The world of TestSchedules: an application that writes rows, a stream whose shards split,
// three consumers that take shards from each other without waiting for what the other has
// begun, builders that crash and go on as zombies, and auditors. Each step of each of them
// is one read or one atomic write. What they write is decided by the functions of this
// package; a mistake replaces one of them by something that looks as good.

const (
	rowCount    = 3
	targetCount = 3
)

// image is a row: what it adds, and to which target. 0 adds nothing.
type image struct{ target, amount int }

func (i image) at(target int) []value.Attr {
	if i.amount == 0 || i.target != target {
		return nil
	}
	return []value.Attr{{Name: "a:n", Value: value.OfInt(int64(i.amount))}}
}

type record struct {
	row      int
	at       events.Position
	old, new image
	written  time.Time
}

type shard struct {
	records []record
	parent  *shard
	closed  bool
	done    int // the checkpoint: how many records are applied
	fence   contribution.Fence
	begun   bool // a batch has
	holder  *consumer
}

// position is that of the checkpoint.
func (s *shard) position() events.Position {
	if s.done == 0 {
		return events.Position{}
	}
	return s.records[s.done-1].at
}

type markID struct{ target, row int }

type world struct {
	*rand.Rand
	mistake  mistake
	rows     []image
	sequence uint64
	of       []*shard // the open shard of each row
	shards   []*shard

	view      int64 // version; 0 before the announcement
	build     int64 // the version that announced the build
	over      contribution.HandOver
	now       int // each step is a second
	life      int // how old a batch may become
	scanned   bool
	audits    int  // the auditor that holds the fence of the audit; -1 once the audit is over
	jitter    int  // by how much the times of records may be wrong
	numbered  bool // the store numbers all changes, and its clock may be set
	blind     bool // functions do not know from which shards one descends
	dropped   bool
	dropAfter int
	owner     int // the builder that holds the fence
	cursor    int // the saved one
	marks     map[markID]contribution.Mark
	ledger    [targetCount]int64
	passed    map[counter]events.Position // the positions in ledgers
}

// counter is a ledger's position in a shard.
type counter struct {
	target int
	shard  *shard
}

// margin is by how much later than its announcement a hand-over is: an hour.
const margin = 30

// second is what a step takes.
const second = time.Hour / margin

func (w *world) time() time.Time { return time.Unix(0, 0).Add(time.Duration(w.now) * second) }

// roughly is the time as a record has it.
func (w *world) roughly() time.Time {
	return w.time().Add(time.Duration(w.IntN(2*w.jitter+1)-w.jitter) * second)
}

func newWorld(seed uint64, m mistake) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 11)), mistake: m, rows: make([]image, rowCount),
		marks: map[markID]contribution.Mark{}, passed: map[counter]events.Position{}}
	w.life, w.jitter = 40+w.IntN(300), w.IntN(2)*w.IntN(margin+1)
	if w.numbered = w.IntN(4) == 0; w.numbered {
		w.jitter = 300
	}
	if w.blind = seed%3 == 0 && !w.numbered; w.blind {
		w.jitter /= 4
	}
	for range w.IntN(6) {
		w.rows[w.IntN(rowCount)] = image{w.IntN(targetCount), w.IntN(4)} // before the stream
	}
	a, b := &shard{}, &shard{}
	w.shards, w.of = []*shard{a, b}, []*shard{a, b, a}
	return w
}

// cross has a function meet new shards while it hands over: they split, and rows change.
func (w *world) cross() {
	if !w.blind || !w.over.Announced() || w.time().Sub(w.over.At).Abs() > 10*second {
		return
	}
	if w.IntN(4) == 0 {
		w.split()
	}
	w.write()
}

// write changes a row, as an application does.
func (w *world) write() {
	row := w.IntN(rowCount)
	was, is := w.rows[row], image{}
	if w.IntN(3) > 0 {
		is = image{w.IntN(targetCount), 1 + w.IntN(3)}
	}
	if was == is {
		return
	}
	w.sequence++
	w.rows[row] = is
	s := w.of[row]
	s.records = append(s.records, record{row, events.PositionOf(w.sequence), was, is, w.roughly()})
}

// split closes a shard and gives its rows to a new one.
func (w *world) split() {
	s := w.of[w.IntN(rowCount)]
	child := &shard{parent: s}
	s.closed = true
	w.shards = append(w.shards, child)
	for row, of := range w.of {
		if of == s {
			w.of[row] = child
		}
	}
}

// readable reports whether a consumer may read a shard: those before it are applied to the
// end.
func (s *shard) readable() bool {
	p := s.parent
	return p == nil || p.closed && p.done == len(p.records) && p.readable()
}

// put writes a mark and its ledger, on condition of the mark as it was read.
func (w *world) put(id markID, was contribution.Mark, step contribution.Step) bool {
	if w.marks[id].Version != was.Version && !w.mistake.anyMark {
		return false
	}
	if !w.mistake.forgetNothing || !step.Mark.Nothing() {
		step.Mark.Version = w.marks[id].Version + 1
		w.marks[id] = step.Mark
	} else {
		delete(w.marks, id)
	}
	for _, a := range step.Delta {
		n, _ := a.Value.Int64()
		w.ledger[id.target] += n
	}
	return true
}

// consumer applies batches. Its fields are what it has in memory.
type consumer struct {
	*world
	phase    int
	shard    *shard
	from, to int
	view     int64
	build    int64
	fence    contribution.Fence   // as it was read
	above    []contribution.Fence // those of shards that it descends from
	place    events.Position      // of the checkpoint then
	over     contribution.HandOver
	began    int
	offers   []offer
	mark     contribution.Mark
	steps    []step
}

// step is what the records of a batch add to a target by position.
type step struct {
	target int
	at     events.Position
	amount int64
}

// offer is an Offer with its target, and the record for mistakes that look at old images.
type offer struct {
	contribution.Offer
	id   markID
	last record
}

// The phases of a consumer.
const (
	taking = iota
	viewing
	fencing
	holding
	reading
	writing
	adding
	moving
)

func (c *consumer) step() {
	switch c.phase {
	case taking:
		c.take()
	case viewing:
		if !c.mistake.cached || c.view == 0 && c.IntN(4) == 0 {
			c.view, c.build, c.over = c.world.view, c.world.build, c.world.over
		}
		c.phase = fencing
	case fencing:
		c.fence, c.place, c.above = c.shard.fence, c.shard.position(), nil
		for p := c.shard.parent; p != nil && (c.above == nil || !c.mistake.parentOnly); p = p.parent {
			c.above = append(c.above, p.fence)
		}
		c.phase = holding
	case holding:
		c.hold()
	case reading:
		if c.now-c.began > c.life && !c.mistake.oldBatches {
			c.phase = taking // too old: it is read again
			return
		}
		if len(c.offers) == 0 {
			c.phase = adding
			return
		}
		c.mark = c.marks[c.offers[0].id]
		c.phase = writing
	case writing:
		c.apply()
	case adding:
		c.add()
	case moving:
		c.move()
	}
}

// take takes a shard, from its checkpoint on or, as a late reader of an earlier stretch,
// from before it.
func (c *consumer) take() {
	s := c.shards[c.IntN(len(c.shards))]
	if !s.readable() {
		return
	}
	s.holder, c.shard, c.from = c, s, s.done
	if c.IntN(4) == 0 {
		c.from = c.IntN(s.done + 1)
	}
	c.to = min(len(s.records), c.from+1+c.IntN(3))
	if c.from < s.done && c.IntN(2) == 0 {
		c.to = max(c.to, s.done)
	}
	if c.to > c.from {
		c.phase, c.began = viewing, c.now
	}
}

// hold fences the shard, unless that was done, and begins to apply.
func (c *consumer) hold() {
	if !c.fence.Admits(c.view) && !c.mistake.unfenced {
		c.phase = viewing
		return
	}
	if next := c.next(); !next.Same(c.fence) {
		if !c.shard.fence.Same(c.fence) || c.shard.position() != c.place {
			c.phase = fencing
			return
		}
		c.shard.fence, c.fence = next, next
	}
	c.shard.begun = true
	c.offers, c.steps = nil, nil
	if c.view > 0 {
		c.gather()
	}
	c.phase = reading
}

// next is the fence that the batch needs.
func (c *consumer) next() contribution.Fence {
	if c.view == 0 {
		return c.fence
	}
	next, changed := c.fence.Take(c.view, []int64{c.build}, c.place)
	if !c.over.Announced() {
		return next
	}
	for _, above := range c.above {
		if changed && !c.mistake.orphans && !c.blind {
			next = next.Inherit(above, c.place)
		}
	}
	for i, r := range c.shard.records[c.from:c.to] {
		first := c.blind && i == 0 && !c.shard.begun && c.over.Begins(r.written, r.at) && !c.mistake.lateAlone
		if c.over.Late(r.written, r.at) || first || c.mistake.anyRecord {
			before := events.Position{}
			if i > 0 {
				before = c.shard.records[c.from+i-1].at
			}
			return next.Cut(c.build, c.place, before)
		}
	}
	return next
}

// gather folds the batch, by target.
func (c *consumer) gather() {
	for target := range targetCount {
		var offers []contribution.Offer
		last, first := map[int]record{}, map[int]image{}
		for _, r := range c.shard.records[c.from:c.to] {
			if contribution.Same(r.old.at(target), r.new.at(target)) {
				continue
			}
			if way := c.mistake.way(c, r); way != contribution.ByMark {
				if way == contribution.ByPosition {
					c.steps = append(c.steps, step{target, r.at, amount(contribution.Minus(r.new.at(target), r.old.at(target)))})
				}
				continue
			}
			if _, met := first[r.row]; !met {
				first[r.row] = r.old
			}
			last[r.row] = r
			offers = append(offers, contribution.Offer{Source: string(rune('a' + r.row)), Position: r.at, Amounts: r.new.at(target)})
		}
		for _, o := range contribution.Last(offers) {
			row := int(o.Source[0] - 'a')
			if c.mistake.net && contribution.Same(first[row].at(target), last[row].new.at(target)) {
				continue
			}
			r := last[row]
			r.old = first[row]
			c.offers = append(c.offers, offer{o, markID{target, row}, r})
		}
	}
}

// apply counts one offer.
func (c *consumer) apply() {
	o := c.offers[0]
	c.phase = reading
	step, ok := c.mistake.record(c.world, c.mark, o)
	if ok && !c.put(o.id, c.mark, step) {
		return // another worker was faster: read the mark again
	}
	c.offers = c.offers[1:]
}

// add adds what is counted by position to the next target, in one write with the position.
func (c *consumer) add() {
	if c.now-c.began > c.life && !c.mistake.oldBatches {
		c.phase = taking
		return
	}
	if len(c.steps) == 0 {
		c.phase = moving
		return
	}
	at := counter{c.steps[0].target, c.shard}
	passed := c.passed[at]
	for len(c.steps) > 0 && c.steps[0].target == at.target {
		if s := c.steps[0]; s.at.Compare(passed) > 0 {
			c.ledger[at.target] += s.amount
			c.passed[at] = s.at
		}
		c.steps = c.steps[1:]
	}
}

func amount(attrs []value.Attr) (n int64) {
	for _, a := range attrs {
		n, _ = a.Value.Int64()
	}
	return n
}

// move moves the checkpoint, unless another consumer has the shard or the view is old.
func (c *consumer) move() {
	s := c.shard
	if !s.fence.Admits(c.view) && !c.mistake.unfenced {
		c.phase = viewing
		return
	}
	c.phase = taking
	if s.holder == c && c.to > s.done && c.from <= s.done {
		s.done = c.to
	}
}

// builder announces the build, and scans.
type builder struct {
	*world
	number  int
	cursor  int
	row     image
	has     bool // the row was read
	stopped bool
}

func (b *builder) step() {
	switch {
	case b.stopped:
	case b.world.view == 0:
		b.world.view, b.world.build = 1, 1
	case b.cursor >= rowCount:
		if b.owner == b.number { // no builder puts anything from now on
			b.scanned = true
			b.owner++
		}
		b.stopped = true
	case !b.has:
		b.row, b.has = b.rows[b.cursor], true
	default:
		b.puts()
	}
}

// puts puts what the row contributes, and sometimes saves the cursor. Both are on condition
// of the fence.
func (b *builder) puts() {
	b.has = false
	if b.owner != b.number && !b.mistake.zombies {
		b.stopped = true
		return
	}
	if b.row.amount > 0 {
		id := markID{b.row.target, b.cursor}
		mark := b.marks[id]
		if b.mistake.overwrite {
			mark = contribution.Mark{}
		}
		if step, ok := contribution.Row(mark, b.row.at(id.target)); ok {
			step.Mark.Version = b.marks[id].Version + 1
			b.put(id, b.marks[id], step)
		}
	}
	b.cursor++
	if b.IntN(2) == 0 && b.owner == b.number {
		b.world.cursor = b.cursor
	}
}

// auditor compares marks with rows, one after the other, and announces the hand-over.
type auditor struct {
	*world
	number int
	next   int
	id     markID
	mark   contribution.Mark
	row    image
	read   int
	begin  int // when the first auditor began
}

func (a *auditor) step() {
	first, second := a.readMark, a.readRow
	if a.mistake.rowFirst {
		first, second = second, first
	}
	if !a.scanned { // what was read before the announcement is no use
		return
	}
	if a.begin == 0 {
		a.begin = a.now
	}
	switch a.read++; {
	case a.next == targetCount*rowCount && a.read == 1:
		a.read = 0
		if a.IntN(2) == 0 {
			a.next = 0
			return
		}
		a.announce()
	case a.read == 1:
		a.id = markID{a.next % targetCount, a.next / targetCount}
		first()
	case a.read == 2:
		second()
	default:
		a.read = 0
		if a.audits != a.number && !a.mistake.zombieAudits {
			return
		}
		if step, ok := contribution.Audit(a.mark, a.row.at(a.id.target)); ok {
			a.put(a.id, a.mark, step)
		}
		a.next++
	}
}

// announce announces the hand-over once all is compared. After that, no auditor puts
// anything.
func (a *auditor) announce() {
	if a.audits != a.number {
		return
	}
	a.audits = -1
	a.world.view++
	a.world.over.At = a.time().Add(margin * second)
	if a.numbered && !a.mistake.clockOnly {
		a.world.over.After = events.PositionOf(a.sequence)
	}
	switch {
	case a.mistake.early:
		a.world.over.At = time.Unix(0, 0).Add(time.Duration(a.begin+margin) * second)
	case a.mistake.noMargin:
		a.world.over.At = a.time()
	}
}

func (a *auditor) readMark() { a.mark = a.marks[a.id] }
func (a *auditor) readRow()  { a.row = a.rows[a.id.row] }

// pass announces that all records up to the cuts are counted, and drops the marks once no
// batch is left that was begun before.
func (w *world) pass() {
	switch {
	case !w.over.Announced() || w.dropped:
	case !w.over.Passed.IsZero():
		if w.now-w.dropAfter > w.life || w.mistake.dropAtOnce {
			w.dropped = true
			clear(w.marks)
		}
	case w.now%8 > 0:
	case contribution.Waits(w.build, w.states()) == 0 || w.mistake.unpassed:
		w.view++
		w.over.Passed, w.dropAfter = w.time(), w.now
	}
}

// states are the shards. Those that are done may be listed no longer.
func (w *world) states() map[string]contribution.Shard {
	name := func(s *shard) string { return string(rune('A' + slices.Index(w.shards, s))) }
	out := map[string]contribution.Shard{}
	for _, s := range w.shards {
		is := contribution.Shard{Done: s.closed && s.done == len(s.records), At: s.position(), Fence: s.fence, Listed: true}
		if s.parent != nil {
			is.Parent = name(s.parent)
		}
		is.Listed = !is.Done || w.IntN(3) > 0
		out[name(s)] = is
	}
	return out
}
