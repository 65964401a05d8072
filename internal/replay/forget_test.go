package replay_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/replay"
	"weir/internal/store"
	"weir/internal/value"
)

// of is a record of another album than album's.
func of(id string, e events.Entry) events.Entry {
	key := item(`{"PK":"ALBUM#` + id + `","SK":"METADATA"}`)
	e.Record.Keys = key
	for _, image := range []*value.Item{&e.Record.Old, &e.Record.New} {
		if *image != nil {
			*image = image.With(key...)
		}
	}
	return e
}

// marks is how many rows of the own table say what was removed, without those of tables.
func (w *world) marks() (n int) {
	page, err := w.store.Query(w.t.Context(), store.Query{Table: owntable.TableName})
	failtest.On(w.t, err)
	for _, row := range page.Rows {
		if text := row.Get(owntable.Partition).Text(); owntable.Kind(text) == "seen" && text != "seen|shop" {
			n++
		}
	}
	return n
}

// TestForget: what was removed up to a time is forgotten, and only that. A change from before is then refused if its
// row does not exist, and nothing else is.
func TestForget(t *testing.T) {
	w, long := newWorld(t), strings.Repeat("l", 800) // of a mark that tells only the ends of its key
	early := []events.Entry{album(1, ``, `{"title":"one"}`), album(2, `{"title":"one"}`, ``),
		of(long, album(1, ``, `{"title":"one"}`)), of(long, album(2, `{"title":"one"}`, ``)), of("stays", album(3, ``, `{"title":"here"}`))}
	late := []events.Entry{of("late", album(11, ``, `{"title":"x"}`)), of("late", album(12, `{"title":"x"}`, ``))}
	w.replay(early, 0)
	w.replay(late, 0)
	if n := w.marks(); n != 3 {
		t.Fatalf("%d marks", n)
	}
	at := func(n int) time.Time { return album(n, ``, ``).Record.Time }
	forgets := func(upTo time.Time, want, left int) {
		t.Helper()
		n, err := w.over(w.store).Forget(t.Context(), upTo)
		failtest.On(t, err)
		if marks := w.marks(); n != want || marks != left {
			t.Errorf("up to %s: it forgot %d, and %d are left", upTo, n, marks)
		}
	}
	forgets(at(1), 0, 3)
	forgets(at(2), 2, 1)
	forgets(at(1), 0, 1) // the later time stands
	refused := func(what string, want bool, entries ...events.Entry) {
		t.Helper()
		for _, size := range []int{0, 1} {
			if err := batches(w.over(w.store), entries, size); errors.Is(err, replay.ErrForgotten) != want || !want && err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	refused("an insertion that was forgotten", true, early[0])
	refused("a removal that was forgotten", true, early[1])
	refused("one of a long key", true, early[2])
	refused("a row that exists", false, early[4])
	refused("a removal that is remembered", false, late...)
	refused("a change of later", false, of("new", album(3, ``, `{"title":"n"}`)))
	if row := w.row("ALBUM#a", "METADATA"); row != "nothing" {
		t.Errorf("it came back: %s", row)
	}
}

// TestForgetKilled: a crash at any write leaves no mark forgotten without the table saying so.
func TestForgetKilled(t *testing.T) {
	entries := []events.Entry{album(1, ``, `{"title":"one"}`), album(2, `{"title":"one"}`, ``)}
	for at := 1; at <= 2; at++ {
		for how := range hows {
			w := newWorld(t)
			w.replay(entries, 0)
			r := w.over(&breaking{Store: w.store, at: at, how: how})
			if _, err := r.Forget(t.Context(), entries[1].Record.Time); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			if err := batches(w.over(w.store), entries, 0); err != nil && !errors.Is(err, replay.ErrForgotten) {
				t.Fatal(err)
			}
			if row := w.row("ALBUM#a", "METADATA"); row != "nothing" {
				t.Errorf("broken at write %d, way %d, it came back: %s", at, how, row)
			}
		}
	}
}
