package owntable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// errKept keeps a sweep from deleting what it found.
var errKept = errors.New("kept")

func TestStageRow(t *testing.T) {
	o, at, now := ownTable(t), owntable.StageOf("gallery-prod"), time.Unix(1700000000, 0)
	is := func(want string, fresh bool, now time.Time) {
		t.Helper()
		if got, isFresh, err := owntable.DecodeStage(o.row(at), now); err != nil || got != want || isFresh != fresh {
			t.Errorf("%q, fresh %v, %v", got, isFresh, err)
		}
	}
	is("", false, now)
	if !o.writes(owntable.SetStage(at, "prod", now)) || o.writes(owntable.SetStage(at, "dev", now)) {
		t.Error("a table belongs to one stage")
	}
	is("prod", true, now)
	later := now.Add(31 * 24 * time.Hour)
	is("prod", false, later)
	if !o.writes(owntable.SetStage(at, "prod", later)) {
		t.Error("it is not renewed")
	}
	is("prod", true, later)
	is("prod", false, later.Add(10*365*24*time.Hour)) // expired, and not yet deleted
	for after, want := range map[time.Duration]int{364 * 24 * time.Hour: 0, 366 * 24 * time.Hour: 1} {
		n := 0
		_, err := o.Sweep(t.Context(), later.Add(after), 10, func(_ context.Context, gone []store.Write) error { n += len(gone); return errKept })
		if n != want || (n > 0) != errors.Is(err, errKept) {
			t.Errorf("%s after the last start: %d rows expire, %v", after, n, err)
		}
	}
	for attr, v := range map[string]value.Value{"n": value.OfInt(1), "x": value.OfString("soon")} {
		_, _, err := owntable.DecodeStage(o.row(at).With(value.Attr{Name: attr, Value: v}), now)
		o.unread(err, attr)
	}
	_, _, err := owntable.DecodeStage(o.row(at).With(value.Attr{Name: "n", Value: value.OfString("")}), now)
	o.unread(err, "n")
}
