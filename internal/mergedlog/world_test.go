package mergedlog_test

import (
	"math/rand/v2"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/mergedlog"
	"weir/internal/value"
)

// The world of TestSchedules: an application that writes rows; shards that split, and whose
// streams forget old records; a build that is announced and scans the table; and processes
// that read logs. No process respects a lease: each takes any log at any time, and goes on
// with what it has in memory, which may be a batch of long ago. Each step is one read or one
// atomic write. Positions of different shards are often equal.

const (
	rowCount     = 4
	targetCount  = 3
	logCount     = 3
	processCount = 4
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
	id, row  int
	at       events.Position
	old, new image
}

// touches reports whether the record changes what the row adds to a target.
func (r record) touches(target int) bool {
	return !contribution.Same(r.old.at(target), r.new.at(target))
}

type shard struct {
	name    string
	records []record
	parent  *shard
	last    uint64 // position of its last record, or of its parent's
	closed  bool
	trimmed int // how many records the stream has forgotten
}

// after returns records that the stream still has, from one position to another; zero for
// no end.
func (s *shard) after(from, to events.Position, limit int) (out []record) {
	for _, r := range s.records[s.trimmed:] {
		if r.at.Compare(from) > 0 && (to.IsZero() || r.at.Compare(to) <= 0) && len(out) < limit {
			out = append(out, r)
		}
	}
	return out
}

// ledger is what is counted for one target: positions, and how often each record counts.
type ledger struct {
	seen    map[int64]mergedlog.Offset // by number of the log
	counted map[int]int
	last    [rowCount]int // the last record of each row that was counted
}

// checkpoint says how far a shard is applied, to which log it belongs, and what a build counts
// of it.
type checkpoint struct {
	at    events.Position
	log   int64
	ended bool
	fence contribution.Fence
}

type markID struct{ target, row int }

type world struct {
	*rand.Rand
	mistake mistake

	rows   []image
	ids    int
	of     []*shard // the open shard of each row
	shards []*shard
	trims  bool // streams forget, so what a build counts may be wrong

	settled  int // how seldom shards leave
	faithful int // how seldom a process takes another log than its own

	logs        [logCount + 1]mergedlog.Log // by number
	checkpoints map[string]checkpoint
	ledgers     [targetCount]ledger
	unorder     bool // changes of a row were counted in another order

	view    int64 // version of the view; 0 before the announcement
	scanned int   // how many rows the builder has read
	marks   map[markID]contribution.Mark
	built   [targetCount]int64
}

func newWorld(seed uint64, m mistake) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 18)), mistake: m, rows: make([]image, rowCount), checkpoints: map[string]checkpoint{}, marks: map[markID]contribution.Mark{}}
	w.trims, w.settled, w.faithful = w.IntN(3) == 0, 1+w.IntN(5), 2+w.IntN(30)
	for range w.IntN(4) {
		w.rows[w.IntN(rowCount)] = image{w.IntN(targetCount), 1 + w.IntN(3)} // before the stream
	}
	for i := range w.ledgers {
		w.ledgers[i] = ledger{map[int64]mergedlog.Offset{}, map[int]int{}, [rowCount]int{}}
	}
	for range 2 {
		w.newShard(nil)
	}
	for i := range rowCount {
		w.of = append(w.of, w.shards[i%2])
	}
	return w
}

func (w *world) newShard(parent *shard) *shard {
	s := &shard{name: string(rune('a' + len(w.shards))), parent: parent}
	if parent != nil {
		s.last = parent.last
	}
	w.shards = append(w.shards, s)
	return s
}

func (w *world) named(name string) *shard { return w.shards[name[0]-'a'] }

// write changes a row, as an application does.
func (w *world) write() {
	row := w.IntN(rowCount)
	was, is := w.rows[row], image{}
	if w.IntN(4) > 0 {
		is = image{w.IntN(targetCount), 1 + w.IntN(3)}
	}
	if was == is {
		return
	}
	w.ids++
	w.rows[row] = is
	s := w.of[row]
	s.last++
	s.records = append(s.records, record{w.ids, row, events.PositionOf(s.last), was, is})
}

// split closes a shard and gives its rows to one or two new ones.
func (w *world) split() {
	s := w.of[w.IntN(rowCount)]
	if len(w.shards) > 12 {
		return
	}
	s.closed = true
	children := []*shard{w.newShard(s)}
	if w.IntN(2) == 0 {
		children = append(children, w.newShard(s))
	}
	for row, of := range w.of {
		if of == s {
			w.of[row] = children[w.IntN(len(children))]
		}
	}
}

// trim makes a stream forget its oldest records, applied or not.
func (w *world) trim() {
	if s := w.shards[w.IntN(len(w.shards))]; w.trims && len(s.records) > s.trimmed {
		s.trimmed += 1 + w.IntN(len(s.records)-s.trimmed)
	}
}

// build does a step of a build: it is announced, and reads the rows.
func (w *world) build() {
	switch {
	case w.view == 0:
		w.view = 1
	case w.scanned < rowCount:
		row := w.rows[w.scanned]
		if row.amount > 0 {
			id := markID{row.target, w.scanned}
			if step, ok := contribution.Row(w.marks[id], row.at(id.target)); ok {
				w.put(id, w.marks[id], step)
			}
		}
		w.scanned++
	}
}

// put writes a mark and its ledger of the build, on condition of the mark as it was read.
func (w *world) put(id markID, was contribution.Mark, step contribution.Step) bool {
	if w.marks[id].Version != was.Version {
		return false
	}
	w.marks[id] = step.Mark
	for _, a := range step.Delta {
		n, _ := a.Value.Int64()
		w.built[id.target] += n
	}
	return true
}

// count counts records in a ledger, on condition that its position in the log is before
// them. It returns that position if not.
func (w *world) count(target int, log int64, records []entry, upTo mergedlog.Offset) (seen mergedlog.Offset, ok bool) {
	l := &w.ledgers[target]
	if seen = l.seen[log]; records[0].Compare(seen) <= 0 && !w.mistake.noCondition {
		return seen, false
	}
	l.seen[log] = upTo
	for _, r := range records {
		l.counted[r.Record.id]++
		w.unorder = w.unorder || r.Record.id < l.last[r.Record.row]
		l.last[r.Record.row] = max(l.last[r.Record.row], r.Record.id)
	}
	return upTo, true
}

// save writes a log on condition of its version.
func (w *world) save(number int64, was, next mergedlog.Log) bool {
	is := w.logs[number]
	switch m := w.mistake; {
	case m.blind:
	case m.byBatch: // the condition is the batch, so shards that leave do not show
		if is.Batch != was.Batch {
			return false
		}
	case is.Version != was.Version:
		return false
	}
	w.logs[number] = next
	return true
}

// join gives a shard to a log, in one transaction with the one that it leaves.
func (w *world) join(from int64, row mergedlog.Log, name string, read checkpoint, to int64) bool {
	is := w.checkpoints[name]
	if (is.log != read.log || is.at != read.at) && !w.mistake.joinUnseen {
		return false
	}
	if from != 0 && !w.mistake.joinUntouched && !w.save(from, row, row.Touch()) {
		return false
	}
	is.log = to
	w.checkpoints[name] = is
	return true
}

// move moves a checkpoint behind a range.
func (w *world) move(name string, from, to events.Position, view int64) bool {
	is := w.checkpoints[name]
	if is.at != from || !is.fence.Admits(view) && !w.mistake.unfenced {
		return false
	}
	is.at = to
	w.checkpoints[name] = is
	return true
}

// readable reports whether a shard may join a log: its parent is applied to the end.
func (w *world) readable(s *shard) bool {
	return s.parent == nil || w.checkpoints[s.parent.name].ended || w.mistake.orphans
}

// applied reports whether all that the streams have is applied, by what checkpoints say.
func (w *world) applied() bool {
	for _, s := range w.shards {
		is := w.checkpoints[s.name]
		if is.ended {
			continue
		}
		if is.log == 0 || s.closed || len(s.after(is.at, events.Position{}, 1)) > 0 || len(w.logs[is.log].Pending(w.at)) > 0 {
			return false
		}
	}
	return true
}

func (w *world) at(name string) events.Position { return w.checkpoints[name].at }

// right compares ledgers with records, and what was built with the rows.
func (w *world) right() bool {
	if w.unorder {
		return false
	}
	var want [targetCount]int64
	for _, r := range w.rows {
		if r.amount > 0 {
			want[r.target] += int64(r.amount)
		}
	}
	if !w.trims && w.built != want {
		return false
	}
	for _, s := range w.shards {
		for i, r := range s.records {
			for target := range targetCount {
				n := w.ledgers[target].counted[r.id]
				if r.touches(target) && n != 1 && (n != 0 || i >= s.trimmed) {
					return false
				}
			}
		}
	}
	return true
}
