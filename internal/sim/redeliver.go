package sim

import (
	"context"

	"weir/internal/live"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// redeliver makes a process apply a part of a shard that others have applied, and perhaps
// some records right behind it, like a process that read them long ago.
func (w *world) redeliver() {
	mt := pick(w.sched, w.model.Tables)
	t := w.base.tables[mt.Name]
	s := pick(w.sched, t.shards)
	times := 1.0
	if w.way == byReader { // less can be delivered again, and most of it has a past
		if s = t.shards[len(t.shards)-1]; w.sched.chance(0.5) {
			s = pick(w.sched, t.shards)
		}
		times = 6
	}
	row := w.base.tables[owntable.TableName].get(owntable.Checkpoint(w.model.Name, runner.GroupRows, mt.Name, s.ID).Key)
	at := w.saved(row).At
	seen, done := min(s.seen, len(s.records)), 0
	for done < seen && s.records[done].Position.Compare(at) <= 0 {
		done++
	}
	first := 0
	for first < done && w.clock.Sub(s.records[first].Time) > retention { // no process reads these
		first++
	}
	if first == done || !w.might(Redelivery, times) {
		return
	}
	from := first + w.faults.dice.n(done-first)
	to := from + 1 + w.faults.dice.n(seen-from)
	page, read := store.Records{Records: s.records[from:to]}, w.clock
	n := w.start()
	n.fiber("again", func(f *fiber) error {
		f.pause()
		f.began = w.base.writes
		r := n.runner(f)
		if w.way == byReader { // its listing of shards is older than all of them
			r.Retired = live.New(r, live.Options{Disk: diskLink{}}).Retired
		}
		for _, g := range r.Groups() {
			if err := (&runner.Follower{Runner: r}).Stepper(g).Again(context.Background(), mt, s.ID, read, page); err != nil {
				return err
			}
		}
		return nil
	})
}
