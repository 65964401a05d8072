package sim

import (
	"context"

	"weir/internal/reader"
)

// redeliverRecords makes a process apply records that others have applied, or are applying, like a
// process that read them long ago.
func (w *world) redeliverRecords() {
	read := w.clock
	var pages []reader.Page
	for range 1 + w.sched.n(3) {
		t := w.base.tables[pick(w.sched, w.model.Tables).Name]
		s := pick(w.sched, t.shards)
		at := s.upTo(w.appliedPosition(t, s))
		if at == 0 {
			continue
		}
		from := max(0, at-1-w.sched.n(40))
		records := s.records[from:min(at+w.sched.n(2)*max(0, s.given-at), from+1+w.sched.n(20))]
		if len(records) == 0 || w.clock.Sub(records[0].Time) > retention { // no process reads these
			continue
		}
		pages = append(pages, reader.Page{Table: w.model.Table(t.Name), Shard: s.ID, Records: records})
	}
	times := 1.0
	if w.way == byReader { // less can be delivered again
		times = 6
	}
	if len(pages) == 0 || !w.strikeWeighted(Redelivery, times) {
		return
	}
	n := w.startProcess()
	n.startFiber("again", func(f *fiber) error {
		f.pause()
		f.began = w.base.writes
		r := n.newRunner(f)
		return (&reader.Follower{Runner: r}).NewStepper().ApplyAgain(context.Background(), read, pages)
	})
}
