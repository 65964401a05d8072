package mergedlog_test

import (
	"slices"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/mergedlog"
)

type entry = mergedlog.Entry[record]

// process applies logs. Its fields are what it has in memory.
type process struct {
	*world
	own    int64 // the log that it takes most of the time
	phase  int
	number int64
	row    mergedlog.Log // as it was read or written last
	batch  int64         // what it applies; its records, and what is left of them
	ranges [][]record
	read   int // how many ranges were read again
	left   []job
	view   int64

	next        mergedlog.Log // to be written
	shard       string        // with this claim, if it is not ""
	held, claim mergedlog.Claim
	kept        []memory // batches of which it knows
}

// memory is a batch as it was applied once.
type memory struct {
	number int64
	row    mergedlog.Log
	ranges [][]record
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
	deciding
	saving
	reading
	viewing
	fencing
	applying
	finishing
)

func (p *process) step() {
	switch p.phase {
	case choosing:
		p.choose()
	case deciding:
		p.decide(p.row)
	case saving:
		p.save()
	case reading:
		p.readAgain()
	case viewing:
		if !p.mistake.viewFirst {
			p.view = p.world.view
		}
		p.phase = fencing
	case fencing:
		p.fence()
	case applying:
		p.apply()
	case finishing:
		p.finish()
	}
}

// choose reads the row of a log or, at times, begins with a batch that it has in memory.
func (p *process) choose() {
	if len(p.kept) > 0 && p.IntN(12) == 0 {
		k := p.kept[p.IntN(len(p.kept))]
		p.number, p.row, p.batch, p.ranges, p.phase = k.number, k.row, k.row.Batch, k.ranges, viewing
		return
	}
	p.number = p.own
	if p.IntN(p.faithful) == 0 {
		p.number = 1 + p.IntN64(logCount)
	}
	if p.mistake.viewFirst {
		p.view = p.world.view
	}
	p.row, p.phase = p.logs[p.number], deciding
	if p.mistake.reused && len(p.row.Shards) == 0 {
		p.logs[p.number], p.row = mergedlog.Log{}, mergedlog.Log{}
	}
	if p.mistake.forgotten && len(p.row.Shards) == 0 {
		for _, l := range p.ledgers {
			delete(l.seen, p.number)
		}
	}
	if len(p.row.Pending()) > 0 {
		p.pending()
	}
}

// IntN64 is IntN for numbers of logs.
func (p *process) IntN64(n int) int64 { return int64(p.IntN(n)) }

// pending begins with the pending batch of the row.
func (p *process) pending() {
	p.batch, p.ranges, p.read, p.phase = p.row.Batch, make([][]record, len(p.row.Pending())), 0, reading
	if p.mistake.skipped {
		p.left, p.phase = nil, finishing
	}
	if (p.mistake.leavePending || p.mistake.leaveAhead) && p.IntN(3) == 0 {
		p.leavePending()
	}
}

// decide decides what is done next with a log of which no batch is pending.
func (p *process) decide(row mergedlog.Log) {
	p.phase, p.shard = choosing, ""
	switch n := p.IntN(8); {
	case n < 5:
		p.begin(row)
	case n == 5 && len(row.Shards) > 0 && p.IntN(p.settled) == 0:
		p.leave(row)
	case n == 6:
		p.end(row)
	default:
		p.join(row)
	}
	if p.phase == choosing && row.Version != p.row.Version { // at least what is finished
		p.next, p.phase = row, saving
	}
}

// begin reads pages of some shards, and names them the next batch.
func (p *process) begin(row mergedlog.Log) {
	to := map[string]events.Position{}
	p.ranges = nil
	for _, s := range row.Shards {
		if p.IntN(4) == 0 {
			continue
		}
		if page := p.named(s.Shard).after(s.At, events.Position{}, 1+p.IntN(3)); len(page) > 0 {
			to[s.Shard] = page[len(page)-1].at
			p.ranges = append(p.ranges, page)
		}
	}
	if len(to) == 0 {
		return
	}
	if next, err := row.Begin(to); err == nil {
		p.next, p.phase = next, saving
		if p.mistake.applyFirst {
			p.batch, p.left = next.Batch, p.jobs(next.Batch)
			for p.phase = applying; p.phase == applying && p.IntN(6) > 0; {
				p.apply()
			}
			p.phase = saving
		}
	}
}

// leave takes a shard out of the log. A mistake is to do so while a batch is pending.
func (p *process) leave(row mergedlog.Log) {
	name := row.Shards[p.IntN(len(row.Shards))].Shard
	held := p.claims[name]
	if next, claim, err := mergedlog.Leave(row, p.number, name, held, false); err == nil {
		p.next, p.shard, p.held, p.claim, p.phase = next, name, held, claim, saving
	}
}

// leavePending is the mistake of leave.
func (p *process) leavePending() {
	i := p.IntN(len(p.row.Shards))
	s := p.row.Shards[i]
	if held := p.claims[s.Shard]; held.Log == p.number {
		p.next, p.shard, p.held, p.claim = p.row, s.Shard, held, mergedlog.Claim{At: s.At}
		if p.mistake.leaveAhead {
			p.claim.At = s.To
		}
		p.next.Version++
		p.next.Shards = slices.Delete(slices.Clone(p.row.Shards), i, i+1)
		p.phase = saving
	}
}

// end takes a shard out of the log that is applied to its end.
func (p *process) end(row mergedlog.Log) {
	for _, s := range row.Shards {
		of, held := p.named(s.Shard), p.claims[s.Shard]
		if !of.closed || len(of.after(s.At, events.Position{}, 1)) > 0 {
			continue
		}
		if next, claim, err := mergedlog.Leave(row, p.number, s.Shard, held, true); err == nil {
			p.next, p.shard, p.held, p.claim, p.phase = next, s.Shard, held, claim, saving
			return
		}
	}
}

// join gives a free shard to the log.
func (p *process) join(row mergedlog.Log) {
	s := p.shards[p.IntN(len(p.shards))]
	held := p.claims[s.name]
	if !p.readable(s) {
		return
	}
	if next, claim, err := mergedlog.Join(row, p.number, s.name, held); err == nil {
		p.next, p.shard, p.held, p.claim, p.phase = next, s.name, held, claim, saving
	}
}

// save writes what was decided. It may not hear whether that was done.
func (p *process) save() {
	done := false
	switch {
	case p.shard == "":
		done = p.world.save(p.number, p.row, p.next)
	case p.mistake.apart: // claim and log in two writes
		if done = p.claims[p.shard] == p.held; done {
			p.claims[p.shard] = p.claim
			done = p.IntN(8) > 0 && p.world.save(p.number, p.row, p.next)
		}
	default:
		done = p.saveBoth(p.number, p.row, p.next, p.shard, p.held, p.claim)
	}
	p.phase = choosing
	if !done || p.IntN(8) == 0 {
		return
	}
	p.row = p.next
	if len(p.row.Pending()) == 0 {
		p.phase = deciding
		return
	}
	if p.mistake.finishFirst {
		if next, err := p.row.Finish(p.view); err == nil && p.world.save(p.number, p.row, next) {
			p.batch, p.row, p.phase = p.row.Batch, next, viewing
		}
		return
	}
	if p.batch, p.phase = p.row.Batch, viewing; p.IntN(2) == 0 || p.shard != "" {
		p.pending()
		return
	}
	p.keep()
}

func (p *process) keep() { p.kept = append(p.kept, memory{p.number, p.row, p.ranges}) }

// readAgain reads the next range of the pending batch, as far as the stream has it.
func (p *process) readAgain() {
	r := p.row.Pending()[p.read]
	p.ranges[p.read] = p.named(r.Shard).after(r.From, r.To, 1000)
	if p.mistake.recut {
		p.ranges[p.read] = p.named(r.Shard).after(r.From, events.Position{}, 1+p.IntN(3))
	}
	if s := p.named(r.Shard); p.mistake.gapWhole && s.trimmed > 0 && r.From.Compare(s.records[s.trimmed-1].at) < 0 {
		p.left, p.phase = nil, finishing
		return
	}
	if p.read++; p.read == len(p.ranges) {
		p.keep()
		p.phase = viewing
	}
}

// fence fences the log for the view, and begins to apply.
func (p *process) fence() {
	if p.view > 0 && !p.mistake.noFence {
		next, changed := p.row.Under(p.view)
		if changed && !p.world.save(p.number, p.row, next) {
			p.phase = choosing
			return
		}
		p.row = next
	}
	p.left, p.phase = p.jobs(p.batch), applying
}

// jobs folds the batch, by target.
func (p *process) jobs(batch int64) (out []job) {
	position := func(r record) events.Position { return r.at }
	all := mergedlog.Merge(batch, p.ranges, position)
	if p.mistake.ranks {
		for i := range all {
			all[i].Position, all[i].Nth = events.PositionOf(uint64(i+1)), 0
		}
	}
	for target := range targetCount {
		var mine []entry
		var offers []contribution.Offer
		for _, e := range all {
			if r := e.Record; r.touches(target) {
				if p.mistake.ties {
					e.Nth = 0
				}
				mine = append(mine, e)
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
		p.phase = finishing
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
		} else if j.entries = mergedlog.Unseen(j.entries, seen); p.mistake.wholeSeen {
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
	for _, s := range p.shards {
		for _, r := range s.records[:s.trimmed] {
			for _, page := range p.ranges {
				for _, q := range page {
					if q.id == r.id {
						return true
					}
				}
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

// finish says that the batch is applied, by itself or with what is done next.
func (p *process) finish() {
	p.phase = choosing
	if len(p.row.Pending()) == 0 {
		return
	}
	if p.mistake.recut {
		p.row = p.recut()
	}
	next, err := p.row.Finish(p.view)
	if err != nil {
		return
	}
	if p.IntN(2) == 0 {
		p.next, p.shard, p.phase = next, "", saving
		return
	}
	p.decide(next)
}

// recut is the row with the ranges that were read.
func (p *process) recut() mergedlog.Log {
	out, n := p.row, 0
	out.Shards = slices.Clone(out.Shards)
	for i, s := range out.Shards {
		if s.To == s.At {
			continue
		}
		if n < len(p.ranges) && len(p.ranges[n]) > 0 {
			out.Shards[i].To = p.ranges[n][len(p.ranges[n])-1].at
		}
		n++
	}
	return out
}
