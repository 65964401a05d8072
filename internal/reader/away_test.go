package reader_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
)

// TestFirstRecordsExpired: while no process runs, all shards close, and the first records of their children expire, of which
// nothing was read. The stream does not say so. After a day without a process, weir says that records may be missing;
// after less than that it says nothing, since none can be.
func TestFirstRecordsExpired(t *testing.T) {
	for _, away := range []time.Duration{22 * time.Hour, 25 * time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			w := newWorld(t)
			rng := rand.New(rand.NewPCG(11, 11))
			for range 100 {
				w.deed(rng)
			}
			old, err := w.db.Shards(t.Context(), "gallery")
			failtest.On(t, err)
			w.start(0)
			w.settles()
			for _, s := range old { // read to their ends
				failtest.On(t, w.db.Split(t.Context(), "gallery", s.ID))
			}
			w.procs[0].stop()
			failtest.On(t, <-w.procs[0].ended)
			var expired int
			if away > 24*time.Hour {
				for range 100 {
					w.deed(rng)
				}
				shards, err := w.db.Shards(t.Context(), "gallery")
				failtest.On(t, err)
				for _, s := range shards[len(old):] {
					failtest.On(t, w.db.Trim(t.Context(), "gallery", s.ID, events.PositionOf(1<<40)))
					expired++
				}
			}
			w.ahead = away
			w.start(1)
			w.seenAt(time.Now().Add(away - time.Hour))
			var letters []deadletter.Letter
			run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.db, Now: time.Now}
			failtest.On(t, run.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
				letters = append(letters, d)
				return nil
			}))
			w.procs[1].stop()
			failtest.On(t, <-w.procs[1].ended)
			if expired == 0 {
				if len(letters) > 0 {
					t.Errorf("no record can have expired, and weir says %+v", letters)
				}
				return
			}
			if len(letters) != 1 || letters[0].Kind != deadletter.Gap || letters[0].Target != "stream of gallery" ||
				!strings.Contains(letters[0].Reason, "projector build MODEL --again") || w.notes.Load() != 1 {
				t.Fatalf("weir says %+v, in %d notes", letters, w.notes.Load())
			}
			shards, err := w.db.Shards(t.Context(), "gallery")
			failtest.On(t, err)
			for _, s := range shards[len(old):] {
				if !strings.Contains(letters[0].Reason, s.ID) {
					t.Errorf("%s is not named: %s", s.ID, letters[0].Reason)
				}
			}
		})
	}
}

// seenAt waits until a process has noted that it listed the shards at that time or later.
func (w *world) seenAt(at time.Time) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		row, err := store.GetRow(w.Context(), w.db, owntable.Stream("gallery", "gallery"))
		failtest.On(w.T, err)
		is, err := owntable.DecodeStream(row)
		failtest.On(w.T, err)
		if !is.Seen.Before(at) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("no process has listed the shards since %v", is.Seen)
		}
	}
}
