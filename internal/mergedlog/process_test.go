package mergedlog_test

import (
	"slices"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/mergedlog"
)

// entry is a record with its offset.
type entry struct {
	mergedlog.Offset
	Record record
}

// unseen leaves out the entries that a row has seen whose position in the log is seen.
func unseen(entries []entry, seen mergedlog.Offset) []entry {
	for len(entries) > 0 && entries[0].Compare(seen) <= 0 {
		entries = entries[1:]
	}
	return entries
}

// process applies logs. Its fields are what it has in memory.
type process struct {
	*world
	own    int64 // the log that it takes most of the time
	phase  int
	number int64
	row    mergedlog.Log // as it was read or written last
	// What it has read of the shards of the log, and of what is pending.
	read   map[string]checkpoint
	ranges []part
	nth    int // how many ranges, or what the phase is about, are done
	left   []job
	view   int64
	fresh  bool // the ranges are to be begun
	kept   []memory
	apart  func() // the second of two writes, of a mistake
}

// part is a range of a batch that a process applies.
type part struct {
	mergedlog.Range
	nth     int
	from    events.Position
	records []record
	fence   contribution.Fence
}

// memory is a batch as it was read once.
type memory struct {
	number int64
	row    mergedlog.Log
	ranges []part
}

// job is what a batch has for one target: by position, or for the build by marks.
type job struct {
	target  int
	entries []entry
	offers  []contribution.Offer
	mark    contribution.Mark
	marked  bool // the mark was read
}

// The phases of a process.
const (
	choosing = iota
	checking
	reading
	deciding
	viewing
	fencing
	holding
	applying
	moving
)

func (p *process) step() {
	switch p.phase {
	case choosing:
		p.choose()
	case checking:
		p.check()
	case reading:
		p.readAgain()
	case deciding:
		p.decide()
	case viewing:
		if !p.mistake.viewFirst {
			p.view = p.world.view
		}
		p.phase, p.nth = fencing, 0
	case fencing:
		p.readFence()
	case holding:
		p.takeFence()
	case applying:
		p.apply()
	case moving:
		p.moves()
	}
}

// choose reads the row of a log or, at times, begins with a batch that it has in memory.
func (p *process) choose() {
	if p.apart != nil && p.IntN(3) == 0 {
		p.apart()
		p.apart = nil
	}
	if len(p.kept) > 0 && p.IntN(12) == 0 {
		p.recall(p.kept[p.IntN(len(p.kept))])
		return
	}
	p.number = p.own
	if p.IntN(p.faithful) == 0 {
		p.number = 1 + int64(p.IntN(logCount))
	}
	if p.mistake.viewFirst {
		p.view = p.world.view
	}
	if idle := !slices.ContainsFunc(p.shards, func(s *shard) bool { return p.checkpoints[s.name].log == p.number }); idle {
		if p.mistake.reused {
			p.logs[p.number] = mergedlog.Log{}
		}
		if p.mistake.forgotten {
			for _, l := range p.ledgers {
				delete(l.seen, p.number)
			}
		}
	}
	p.row, p.read, p.ranges, p.nth, p.phase = p.logs[p.number], map[string]checkpoint{}, nil, 0, checking
}

// recall begins to apply a batch that it has in memory.
func (p *process) recall(k memory) {
	p.number, p.row, p.ranges, p.fresh, p.phase = k.number, k.row, slices.Clone(k.ranges), false, viewing
}

// check reads the checkpoint of the next range of the batch.
func (p *process) check() {
	if p.nth == len(p.row.Ranges) || p.mistake.skipped || p.mistake.beginEarly && p.nth > 0 {
		p.nth, p.phase = 0, reading
		if len(p.ranges) == 0 || p.mistake.skipped {
			p.row, p.phase = p.row.Finish(), deciding
		}
		return
	}
	r := p.row.Ranges[p.nth]
	if is := p.checkpoints[r.Shard]; is.at.Compare(r.To) < 0 {
		p.ranges = append(p.ranges, part{Range: r, nth: p.nth, from: is.at})
	}
	p.nth++
}

// readAgain reads the next range of the pending batch, as far as the stream has it.
func (p *process) readAgain() {
	r := &p.ranges[p.nth]
	s := p.named(r.Shard)
	r.records = s.after(r.from, r.To, 1000)
	if p.mistake.recut {
		if r.records = s.after(r.from, events.Position{}, 1+p.IntN(3)); len(r.records) > 0 {
			r.To = r.records[len(r.records)-1].at
		}
	}
	if p.mistake.gapWhole && s.trimmed > 0 && r.from.Compare(s.records[s.trimmed-1].at) < 0 {
		p.left, p.nth, p.phase = nil, 0, moving
		return
	}
	if p.nth++; p.nth < len(p.ranges) {
		return
	}
	if p.mistake.alone {
		p.ranges = p.ranges[:1]
	}
	p.keep()
	p.fresh, p.phase = false, viewing
}

func (p *process) keep() {
	p.kept = append(p.kept, memory{p.number, p.row, slices.Clone(p.ranges)})
}

// decide decides what is done next with a log of which no batch is pending.
func (p *process) decide() {
	p.phase = choosing
	switch n := p.IntN(8); {
	case p.number != p.own && n < 4:
		p.takeAway()
	case n < 6:
		p.begin()
	case n == 6:
		p.end()
	default:
		p.joins()
	}
}

// begin reads checkpoints and pages of some shards, which are to be the next batch.
func (p *process) begin() {
	p.ranges = nil
	for _, s := range p.shards {
		is, known := p.read[s.name]
		if !known {
			is = p.checkpoints[s.name]
			p.read[s.name] = is
		}
		if is.log != p.number || is.ended || p.IntN(4) == 0 {
			continue
		}
		if page := s.after(is.at, events.Position{}, 1+p.IntN(3)); len(page) > 0 {
			p.ranges = append(p.ranges, part{Range: mergedlog.Range{Shard: s.name, To: page[len(page)-1].at, Records: len(page)}, from: is.at, records: page})
		}
	}
	if len(p.ranges) == 0 {
		p.phase = deciding
		if p.IntN(3) == 0 {
			p.phase = choosing
		}
		return
	}
	p.fresh, p.phase = true, viewing
}

// save names the batch. The process may not hear whether that was done.
func (p *process) save() {
	var all []mergedlog.Range
	for _, r := range p.ranges {
		all = append(all, r.Range)
	}
	next, err := p.row.Begin(all)
	if err != nil {
		return
	}
	if p.mistake.applyFirst {
		for p.left = p.jobs(next.Batch); p.IntN(6) > 0 && len(p.left) > 0; {
			p.apply()
		}
	}
	done := p.world.save(p.number, p.row, next)
	if p.phase = choosing; !done || p.IntN(8) == 0 {
		return
	}
	p.row, p.fresh = next, false
	for i := range p.ranges {
		p.ranges[i].nth, _ = next.Find(p.ranges[i].Shard)
	}
	p.keep()
	if p.left, p.nth, p.phase = p.jobs(next.Batch), 0, applying; p.mistake.moveFirst {
		for _, r := range p.ranges {
			p.move(r.Shard, r.from, r.To, p.view)
		}
	}
}

// joins gives a shard of no log to the process's own.
func (p *process) joins() {
	s := p.shards[p.IntN(len(p.shards))]
	is, known := p.read[s.name]
	if !known {
		p.read[s.name] = p.checkpoints[s.name]
		p.phase = deciding
		return
	}
	if is.log == 0 && !is.ended && p.readable(s) {
		p.join(0, mergedlog.Log{}, s.name, is, p.own)
	}
}

// takeAway takes a shard of a log of which nothing is pending to the process's own.
func (p *process) takeAway() {
	for _, s := range p.shards {
		is := p.checkpoints[s.name]
		if is.log != p.number || is.ended || p.IntN(p.settled) > 0 {
			continue
		}
		if p.mistake.apart { // the other order is joinUntouched
			if p.world.save(p.number, p.row, p.row.Touch()) {
				p.apart = func() { p.world.join(0, mergedlog.Log{}, s.name, is, p.own) }
			}
			return
		}
		p.join(p.number, p.row, s.name, is, p.own)
		return
	}
}

// end says that a shard is applied to its end.
func (p *process) end() {
	for _, s := range p.shards {
		is := p.checkpoints[s.name]
		if is.log == p.number && s.closed && !is.ended && len(s.after(is.at, events.Position{}, 1)) == 0 {
			is.ended = true
			p.checkpoints[s.name] = is
			return
		}
	}
}

// readFence reads the fence of the next range's shard.
func (p *process) readFence() {
	if p.nth == len(p.ranges) {
		p.left, p.nth, p.phase = nil, 0, applying
		if p.fresh {
			p.save()
			return
		}
		p.left = p.jobs(p.row.Batch)
		return
	}
	r := &p.ranges[p.nth]
	is := p.checkpoints[r.Shard]
	r.fence = is.fence
	if p.read == nil {
		p.read = map[string]checkpoint{}
	}
	p.read[r.Shard] = is
	p.phase = holding
}

// takeFence takes the fence for the view.
func (p *process) takeFence() {
	p.phase = fencing
	r := &p.ranges[p.nth]
	if p.nth++; p.view == 0 || p.mistake.unfenced {
		return
	}
	was := p.read[r.Shard]
	if !was.fence.Admits(p.view) {
		p.phase = choosing
		return
	}
	next, changed := was.fence.Take(p.view, []int64{1}, was.at)
	if !changed {
		return
	}
	is := p.checkpoints[r.Shard]
	if is.at != was.at || !is.fence.Same(was.fence) {
		p.phase = choosing
		return
	}
	is.fence, r.fence = next, next
	p.checkpoints[r.Shard] = is
}

// jobs folds the batch, by target.
func (p *process) jobs(batch int64) (out []job) {
	var all []entry
	var marked []record
	for _, r := range p.ranges {
		for _, rec := range r.records {
			all = append(all, entry{Offset: mergedlog.Offset{Batch: batch, Position: rec.at, Nth: r.nth}, Record: rec})
			if r.fence.Counts(1, rec.at) {
				marked = append(marked, rec)
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return a.Compare(b.Offset) })
	if p.mistake.ranks {
		for i := range all {
			all[i].Position, all[i].Nth = events.PositionOf(uint64(i+1)), 0
		}
	}
	for target := range targetCount {
		var mine []entry
		var offers []contribution.Offer
		for _, e := range all {
			if e.Record.touches(target) {
				if p.mistake.ties {
					e.Nth = 0
				}
				mine = append(mine, e)
			}
		}
		for _, r := range marked {
			if r.touches(target) {
				offers = append(offers, contribution.Offer{Source: string(rune('a' + r.row)), Position: r.at, Amounts: r.new.at(target)})
			}
		}
		if len(mine) > 0 {
			out = append(out, job{target: target, entries: mine})
		}
		if p.view > 0 {
			for _, o := range contribution.Last(offers) {
				out = append(out, job{target: target, offers: []contribution.Offer{o}})
			}
		}
	}
	p.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// apply does one write of the batch.
func (p *process) apply() {
	if len(p.left) == 0 {
		p.nth, p.phase = 0, moving
		return
	}
	if p.stale() && !p.mistake.late {
		p.phase = choosing
		return
	}
	j := &p.left[0]
	switch {
	case len(j.offers) > 0:
		p.applyMark(j)
	default:
		n := 1 + p.IntN(min(3, len(j.entries)))
		upTo := j.entries[n-1].Offset
		if p.mistake.ahead {
			upTo = j.entries[len(j.entries)-1].Offset
		}
		if seen, ok := p.count(j.target, p.number, j.entries[:n], upTo); ok {
			j.entries = j.entries[n:]
		} else if j.entries = unseen(j.entries, seen); p.mistake.wholeSeen {
			j.entries = nil
		}
		if len(j.entries) == 0 {
			p.left = p.left[1:]
		}
	}
}

// stale reports whether a stream has forgotten a record since it was read. Then the batch is
// much older than a process may apply one (runner.Work.Fresh): another process may have
// applied what was left of it, and later records in another log.
func (p *process) stale() bool {
	for _, r := range p.ranges {
		for _, q := range p.named(r.Shard).records[:p.named(r.Shard).trimmed] {
			if slices.ContainsFunc(r.records, func(rec record) bool { return rec.id == q.id }) {
				return true
			}
		}
	}
	return false
}

// applyMark counts what a row contributes to the build, which takes a read and a write.
func (p *process) applyMark(j *job) {
	o := j.offers[0]
	id := markID{j.target, int(o.Source[0] - 'a')}
	if !j.marked {
		j.mark, j.marked = p.marks[id], true
		return
	}
	j.marked = false
	if step, ok := contribution.Record(j.mark, o.Position, o.Amounts); !ok || p.put(id, j.mark, step) {
		p.left = p.left[1:]
	}
}

// moves moves the checkpoint of the next range.
func (p *process) moves() {
	if p.nth == len(p.ranges) {
		if p.phase = deciding; p.mistake.alone { // it takes the others for applied
			p.read = nil
		}
		p.row, p.read = p.row.Finish(), map[string]checkpoint{}
		return
	}
	r := p.ranges[p.nth]
	if p.nth++; !p.move(r.Shard, r.from, r.To, p.view) {
		p.phase = choosing
	}
}
