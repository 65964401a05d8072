package owntable_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// own is weir's own table in an empty store.
type own struct {
	*testing.T
	*embedded.Store
}

func ownTable(t *testing.T) own {
	t.Helper()
	s, err := embedded.Open("store", []store.Table{owntable.Table()}, embedded.Options{FS: vfs.NewMem(), Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return own{t, s}
}

// writes does a write, and reports whether its condition held.
func (o own) writes(w store.Write) bool {
	o.Helper()
	out, err := o.Write(o.Context(), []store.Write{w})
	if err == nil {
		err = out[0].Err
	}
	if err != nil && !errors.Is(err, store.ErrCondition) {
		o.Fatal(err)
	}
	return err == nil
}

func (o own) row(at store.Ref) value.Item {
	o.Helper()
	rows, err := o.Get(o.Context(), []store.Ref{at})
	if err != nil {
		o.Fatal(err)
	}
	return rows[0]
}

// spoilt are the rows that come of one with an attribute gone, or of another type.
func spoilt(row value.Item, attr string) []value.Item {
	gone := row.Filter(func(name string) bool { return name != attr })
	return []value.Item{gone, row.With(value.Attr{Name: attr, Value: value.OfBool(true)})}
}

// unread fails unless the error names what cannot be read, and says what to do.
func (o own) unread(err error, attr string) {
	o.Helper()
	if !errors.Is(err, owntable.ErrRow) || !strings.Contains(err.Error(), "attribute "+attr+" is ") || !strings.Contains(err.Error(), "delete the row") && !strings.Contains(err.Error(), "set the attribute") {
		o.Errorf("%s: %v", attr, err)
	}
}

func TestLeaseRow(t *testing.T) {
	o, at := ownTable(t), owntable.Lease("gallery")
	decode := func() owntable.LeaseRow {
		t.Helper()
		l, err := owntable.DecodeLease(o.row(at))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	free := decode()
	is := func(want owntable.LeaseRow) {
		t.Helper()
		if l := decode(); l != want {
			t.Errorf("%+v, not %+v", l, want)
		}
	}
	if is(owntable.LeaseRow{}); !o.writes(free.Take(at, "a")) || o.writes(free.Take(at, "b")) {
		t.Error("two processes took what one read as free")
	}
	is(owntable.LeaseRow{Owner: "a", Fence: 1})
	seen := decode()
	if !o.writes(owntable.BeatLease(at, 1)) || o.writes(owntable.BeatLease(at, 2)) || o.writes(seen.Take(at, "b")) {
		t.Error("a beat counts for its fence alone, and keeps others from taking it")
	}
	if is(owntable.LeaseRow{Owner: "a", Fence: 1, Beat: 1}); !o.writes(decode().Take(at, "b")) {
		t.Error("a lease that is still cannot be taken")
	}
	if is(owntable.LeaseRow{Owner: "b", Fence: 2}); o.writes(owntable.FreeLease(at, 1)) || !o.writes(owntable.FreeLease(at, 2)) {
		t.Error("a fence is ended by its own process alone")
	}
	is(owntable.LeaseRow{Fence: 2})
	for _, attr := range []string{"n", "b"} {
		for _, row := range spoilt(o.row(at), attr) {
			_, err := owntable.DecodeLease(row)
			o.unread(err, attr)
		}
	}
	_, err := owntable.DecodeLease(o.row(at).With(value.Attr{Name: "o", Value: value.OfInt(1)}))
	o.unread(err, "o")
}

func TestStreamRow(t *testing.T) {
	o, at := ownTable(t), owntable.Stream("gallery", "Pictures")
	for _, labels := range [][]string{{"2026-01-01"}, {"2026-01-01", "2026-02-02"}} {
		was, err := owntable.DecodeStream(o.row(at))
		if err != nil || !o.writes(was.Becomes(at, labels)) || o.writes(was.Becomes(at, []string{"others"})) {
			t.Error("labels are kept once for what was read", err)
		}
		if is, err := owntable.DecodeStream(o.row(at)); err != nil || !reflect.DeepEqual(is.Labels, labels) {
			t.Errorf("%v, not %v: %v", is.Labels, labels, err)
		}
	}
	for _, seen := range []time.Time{time.Unix(1_800_000_000, 0).UTC(), time.Unix(1_800_003_600, 0).UTC()} {
		was, err := owntable.DecodeStream(o.row(at))
		if err != nil || !o.writes(was.NoteCompleteUntil(at, seen, 3)) || o.writes(was.NoteCompleteUntil(at, seen.Add(time.Hour), 3)) {
			t.Error("a time is noted once for what was read", err)
		}
		if is, err := owntable.DecodeStream(o.row(at)); err != nil || !is.Seen.Equal(seen) || len(is.Labels) != 2 {
			t.Errorf("%+v, not %v: %v", is, seen, err)
		}
	}
	_, err := owntable.DecodeStream(o.row(at).With(value.Attr{Name: "l", Value: value.OfInt(1)}))
	o.unread(err, "l")
	_, err = owntable.DecodeStream(o.row(at).With(value.Attr{Name: "t", Value: value.OfString("x")}))
	o.unread(err, "t")
}
