package catalog

import (
	"testing"
	"time"

	"weir/internal/owntable"
)

// switched gives a table another stream.
func (w *world) switched(table, label string) {
	is := w.tables[table]
	is.Stream, is.Whole, is.Together = label, false, false
	w.tables[table] = is
}

// TestBuiltAndNotRead: until a stream is read, what was built from the rows of its table lacks
// what the stream may lose, and belongs to these rows alone.
func TestBuiltAndNotRead(t *testing.T) {
	const lost = "a stream was switched off and on before it was read; projector build albums"
	begun := func(t *testing.T) (*world, *Program) {
		w, p := newWorld(t, false), programOf(t, albums)
		w.refused(w.start(p), ErrUnbuilt)
		return w, p
	}
	t.Run("live, another table", func(t *testing.T) {
		w, p := begun(t)
		w.built(p, false)
		w.tables["rows"] = table("other", true)
		w.refused(w.start(p), ErrTable, "another one", "--stage")
		w.refused(w.start(programOf(t, without(albums, counts+votes))), ErrTable) // nor does another model forget which it was
		w.tables["rows"] = table("r", false)
		w.must(w.start(p))
	})
	t.Run("live, another stream", func(t *testing.T) {
		w, p := begun(t)
		w.built(p, false)
		w.switched("more", "2")
		w.refused(w.start(p), ErrUnbuilt, lost)
		if got := w.states(); got != "Album.count live, Album.votes unbuilt" {
			t.Error(got)
		}
		w.assume = true // says nothing of what was built
		w.refused(w.start(p), ErrUnbuilt, lost)
		w.refused(w.batch(p, Process, "rows"), ErrUnbuilt, lost)
		w.built(p, false)
		w.must(w.start(p))
		w.must(w.batch(p, Process, "rows", "more"))
	})
	t.Run("building, another stream", func(t *testing.T) {
		w, p := begun(t)
		bs, err := w.announce(p, false)
		w.must(err)
		w.switched("more", "2")
		w.refused(w.start(programOf(t, without(albums, votes))), ErrUnbuilt, "Album.count is new") // another model, which does not know what reads the table
		if next, is, ok := p.Advance(w.row, bs[0], owntable.BuildShowing, Moment{Time: w.now}); ok || is.State != owntable.BuildDropped {
			t.Errorf("the builder goes on: %+v", next.Builds)
		}
		w.built(p, false)
		w.must(w.start(p))
	})
	t.Run("built again, another stream", func(t *testing.T) {
		w, p := newWorld(t, true), programOf(t, albums)
		w.must(w.start(p))
		bs, err := w.announce(p, true)
		w.must(err)
		w.switched("more", "2")
		w.refused(w.start(p), ErrUnbuilt)
		if _, is, ok := p.Advance(w.row, bs[0], owntable.BuildShowing, Moment{Time: w.now}); ok {
			t.Errorf("the builder goes on: %+v", is)
		}
	})
	t.Run("read meanwhile", func(t *testing.T) {
		w, p := begun(t)
		w.built(p, false)
		w.must(w.batch(p, Process, "rows", "more"))
		w.switched("more", "2")
		w.must(w.start(p)) // a gap, which is said
	})
}

// TestBegunAndNotRead: what began on a stream that had everything goes on only if it still has
// everything when it is read.
func TestBegunAndNotRead(t *testing.T) {
	w, p := newWorld(t, true), programOf(t, albums)
	w.must(w.start(p))
	w.switched("more", "2")
	w.refused(w.start(p), ErrUnbuilt, "Album.votes cannot begin on table more", "--assume-complete")

	w = newWorld(t, false)
	for name, is := range w.tables {
		is.Together, is.Made = true, w.now
		w.tables[name] = is
	}
	w.must(w.start(p))
	w.now = w.now.Add(22 * time.Hour)
	w.must(w.start(p))
	w.now = w.now.Add(2 * time.Hour)
	w.refused(w.start(p), ErrUnbuilt, "a stream keeps its records for 24 hours")
	w.assume = true
	w.must(w.start(p))
}

// TestOwnTableRestored: a catalog that stands in another table than it was written in is that of
// a backup, and so are the ledgers beside it.
func TestOwnTableRestored(t *testing.T) {
	const lost = "because that table was restored"
	for name, built := range map[string]bool{"counted": false, "built": true} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(t, true), programOf(t, albums)
			w.must(w.start(p)) // on a store that gives its tables no ids
			w.must(w.batch(p, Process, "rows", "more"))
			if built {
				w.built(p, true)
			}
			w.own = "own"
			w.must(w.start(p))
			w.own = ""
			w.must(w.start(p))
			w.own = "other"
			w.refused(w.start(p), ErrUnbuilt, lost, "projector build albums")
			w.refused(w.start(p), ErrUnbuilt, lost) // also the next time
			w.refused(w.batch(p, Process, "rows"), ErrUnbuilt, lost)
			w.built(p, false)
			w.must(w.start(p))
			w.must(w.batch(p, Process, "rows", "more"))
		})
	}
}

// TestThereAgain: rows show what a build made after all of it was retired. What is derived
// there again must be built, since ledgers that begin now have lower versions. A program that is refused leaves it
// retired, so that what it has shown can be removed.
func TestThereAgain(t *testing.T) {
	for name, start := range map[string]bool{"at once": false, "after the model without it ran": true} {
		t.Run(name, func(t *testing.T) {
			w, p, none := newWorld(t, true), programOf(t, albums), programOf(t, without(albums, counts+votes))
			w.must(w.start(p))
			w.built(p, true)
			next, _ := none.Retire(w.row, false, w.now)
			w.row = ForgetBuilds(next, next.Builds)
			if start {
				w.must(w.start(none))
			}
			w.refused(w.start(p), ErrDefinition, "is retired since", "projector build albums")
			if is := w.row.Derivations["Album.count"]; is.State != owntable.Retired {
				t.Errorf("Album.count is %s", is.State)
			}
			w.built(p, false)
			w.must(w.start(p))
		})
	}
}

// TestLaterStream: a batch of a later stream than the one that is pinned has the tables identified
// again, once.
func TestLaterStream(t *testing.T) {
	row := owntable.CatalogRow{Tables: map[string]owntable.Pin{"rows": {ID: "r", Stream: "2026-11-24T10:00:00.000"}}}
	for label, later := range map[string]bool{
		"": false, "2026-11-24T10:00:00.000": false, "2026-11-24T09:59:59.999": false, "2026-11-24T10:00:00.001": true,
	} {
		b := Batch{Tables: []string{"rows"}, Labels: map[string]string{"rows": label}}
		if b.isLaterStream(row) != later {
			t.Errorf("of stream %q: %v", label, !later)
		}
	}
	if b := (Batch{Labels: map[string]string{"more": "2"}}); b.isLaterStream(row) {
		t.Error("a table that is not pinned has a later stream")
	}
}
