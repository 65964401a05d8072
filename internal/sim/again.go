package sim

import (
	"context"
	"fmt"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// replayTwice replays the streams of the run into an empty world, and then once more into the
// same one. Both times the result must equal that of the live run.
func (w *world) replayTwice() {
	if len(w.operatorLetters()) > 0 || newDice(w.seed, "again", 0).n(4) > 0 {
		return
	}
	w.counted["replays"]++
	o := newWorld(w.model, w.seed, Options{})
	o.mapping, o.way, o.base.keep, o.calm = nil, byFollower, false, true
	o.clock = w.clock
	for times := range 2 {
		o.replayStreams(w)
		o.settle()
		if len(o.operatorLetters()) > 0 { // a row has no room for a replay's mark
			break
		}
		for _, f := range o.failures {
			w.addFailure(f.Class, "replay: %s", f.What)
		}
		w.compareWorlds(o, fmt.Sprintf("replayed %d times", times+1))
		if len(w.failures) > 0 {
			break
		}
	}
	for _, n := range slices.Clone(o.nodes) {
		n.killProcess()
	}
}

// replayStreams replays the streams of another world. As a whole recording, they have no gaps.
func (w *world) replayStreams(from *world) {
	err := w.runAlone("replay", func(run *runner.Runner) error {
		r := replay.Replay{Model: w.model, Store: run.Store, Runner: run}
		r.Gap = func(g replay.Gap) {
			w.addFailure(Unaccounted, "a gap in a whole recording: %s: %s", refName(g.Row), g.Reason)
		}
		for _, mt := range w.model.Tables {
			for _, s := range from.base.tables[mt.Name].shards {
				batch := entriesOf(s.records)
				for len(batch) > 0 {
					n := min(len(batch), 1+w.sched.n(30))
					if err := r.Batch(context.Background(), batch[:n], ""); err != nil {
						return err
					}
					batch = batch[n:]
				}
			}
		}
		return nil
	})
	if err != nil {
		w.addFailure(Stuck, "%v", err)
	}
}

func entriesOf(records []events.Record) []events.Entry {
	return seq.Map(records, func(r events.Record) events.Entry { return events.Entry{Record: r} })
}

// compareWorlds checks that another world has the same rows and documents as this one. It leaves
// out rows made for followers, because which followers get one depends on when the event
// was handled. It also leaves out sets, rows that the application wrote over, and rows whose
// last values weir no longer had.
func (w *world) compareWorlds(o *world, what string) {
	for _, mt := range w.model.Tables {
		a, b := w.base.tables[mt.Name], o.base.tables[mt.Name]
		mine := func(t *table, yield func(store.Key, value.Item)) {
			t.eachRow(func(k store.Key, row value.Item) {
				e := mt.Classify(row)
				toldOf := e != nil && slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool { return r.Subscribers != nil })
				name := refName(store.Ref{Table: t.Name, Key: k})
				if !toldOf && !(e != nil && e.SetOf() != nil) && !w.app.touched[name] && !w.app.forgot[name] {
					yield(k, ownAttributes(row))
				}
			})
		}
		mine(a, func(k store.Key, row value.Item) {
			have := ownAttributes(b.get(k))
			if !value.EqualItems(have, row) {
				w.addFailure(Reordered, "%s: %s is %s, was %s", what, refName(store.Ref{Table: a.Name, Key: k}), difference(have, row), difference(row, have))
			}
		})
		mine(b, func(k store.Key, row value.Item) {
			if a.get(k) == nil {
				w.addFailure(Doubled, "%s: %s exists: %s", what, refName(store.Ref{Table: a.Name, Key: k}), plainText(row))
			}
		})
	}
	for name, d := range w.index.docs {
		if e := o.index.docs[name]; !d.Deleted && (e.ID == "" || e.Deleted || !slices.Equal(d.Text, e.Text)) {
			w.addFailure(Reordered, "%s: document %q is %q, was %q", what, name, e.Text, d.Text)
		}
	}
}
