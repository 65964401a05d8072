package sim

import (
	"context"

	"weir/internal/live"
	"weir/internal/mergedlog"
	"weir/internal/owntable"
	"weir/internal/runner"
)

// redeliver makes a process apply a batch that others have applied, or are applying, like a
// process that read it long ago.
func (w *world) redeliver() {
	if len(w.batches) == 0 {
		return
	}
	of := w.batches[max(0, len(w.batches)-1-w.sched.n(40)):]
	b, read := of[0], w.clock
	row := mergedlog.Log{Batch: b.number}
	var pages []runner.Page
	for _, r := range b.ranges {
		table, id := owntable.ShardOf(r.shard)
		s := w.base.tables[table].shard(id)
		records := s.records[s.upTo(r.from):s.upTo(r.to)]
		if len(records) > 0 && w.clock.Sub(records[0].Time) > retention { // no process reads these
			return
		}
		row.Ranges = append(row.Ranges, mergedlog.Range{Shard: r.shard, To: r.to, Records: len(records)})
		pages = append(pages, runner.Page{Table: w.model.Table(table), Shard: id, Records: records})
	}
	times := 1.0
	if w.way == byReader { // less can be delivered again
		times = 6
	}
	if !w.might(Redelivery, times) {
		return
	}
	n := w.start()
	n.fiber("again", func(f *fiber) error {
		f.pause()
		f.began = w.base.writes
		r := n.runner(f)
		if w.way == byReader { // its listing of shards is older than all of them
			r.Retired = live.New(r, live.Options{Disk: diskLink{}}).Retired
		}
		for _, g := range r.Groups() {
			if err := (&runner.Follower{Runner: r}).Stepper(g).Again(context.Background(), b.log, row, read, pages); err != nil {
				return err
			}
		}
		return nil
	})
}
