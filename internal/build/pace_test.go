package build_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/build"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestPace: a killed builder has read at most some 20,000 rows of a segment in vain, also of
// rows that add nothing. How long a build takes yet follows from what builders did while they
// worked, and not from the time in which none did.
func TestPace(t *testing.T) {
	const rows = 30000
	f := open(t, load(t, films))
	for nr := 0; nr < rows; nr += 500 {
		var ws []store.Write
		for i := range 500 {
			key := store.Key{Partition: value.OfString(fmt.Sprint("OTHER#", nr+i)), Sort: value.OfString("OTHER")}
			row := f.model.Tables[0].Item(key).With(value.Attr{Name: "long", Value: value.OfString(strings.Repeat("x", 300))}) // some 3,000 a page
			ws = append(ws, store.Write{Ref: store.Ref{Table: f.table, Key: key}, Put: row})
		}
		_, err := f.Store.Write(t.Context(), ws)
		f.ok(err)
	}
	f.unread()
	f.unbuilt()
	f.announced("Movie")
	state := func() build.State {
		t.Helper()
		all, err := f.builder("Movie").States(t.Context())
		f.ok(err)
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		all[0].Of = 2 * rows // the store does not know
		return all[0]
	}
	kill := func(at int64) {
		t.Helper()
		ctx, end := context.WithCancel(t.Context())
		b := f.builder("Movie")
		b.Segments = 1
		b.Report = func(p build.Progress) {
			f.minutes.Add(1) // a page takes a minute
			if p.Rows >= at {
				end()
			}
		}
		if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if is := state(); is.Pace != 0 || is.TimeLeft() != 0 {
		t.Errorf("before a builder began: %+v", is)
	}
	kill(25000)
	first := state()
	if first.Rows < 20000 || first.Rows >= rows || first.Pace == 0 {
		t.Fatalf("after a kill: %+v", first)
	}
	f.clock.Add(5)
	if rest := state(); rest.Pace != first.Pace || rest.TimeLeft() != first.TimeLeft() {
		t.Errorf("after a rest: %v and %v, were %v and %v", rest.Pace, rest.TimeLeft(), first.Pace, first.TimeLeft())
	}
	kill(1) // takes the segment, and saves nothing
	if is := state(); is.Rows != first.Rows || is.Pace != 0 {
		t.Errorf("with the next builder: %+v", is)
	}
	f.build(owntable.BuildLive, "Movie")
	if left := first.TimeLeft(); left <= 0 || left > 24*time.Hour {
		t.Error(left)
	}
}
