package runner_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLetterTTL: what letters have of rows is deleted when the time is over, and the letters stay. What a ledger or a stream
// lacks stays whole.
func TestLetterTTL(t *testing.T) {
	h := keptHarness(t)
	defer h.close()
	r := h.runner(nil)
	r.LetterTTL = 48 * time.Hour
	row := store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString("ALBUM#1"), Sort: value.OfString("METADATA")}}
	keys := h.model.Table("gallery").Item(row.Key)
	record := owntable.RecordItem(&events.Record{Table: "gallery", Keys: keys, New: append(keys, value.Attr{Name: "title", Value: value.OfString("private")})})
	expires := map[deadletter.Kind]bool{
		deadletter.Image: true, deadletter.Row: true, deadletter.Follow: true, deadletter.Notification: true, deadletter.Document: true, deadletter.Record: true,
		deadletter.Parked: false, deadletter.Publish: false, deadletter.Number: false, deadletter.Status: false, deadletter.Set: false, deadletter.Gap: false,
	}
	ids := map[deadletter.Kind]string{}
	for kind := range expires {
		d := deadletter.Letter{Kind: kind, Target: "x " + string(kind), Reason: "for a test", Row: row, Record: record, Position: events.PositionOf(7)}
		if kind == deadletter.Parked {
			d.Adds = []projections.Add{{Target: row, Field: "a:mediaCount", Amount: value.OfInt(1)}}
		}
		id, err := r.Letters().Keep(t.Context(), d)
		failtest.On(t, err)
		ids[kind] = id
	}
	holds := func(is func(kind deadletter.Kind, d deadletter.Letter) bool) {
		t.Helper()
		n := 0
		failtest.On(t, r.EachDeadLetter(t.Context(), func(d deadletter.Letter) error { n++; return nil }))
		if n != len(ids) {
			t.Errorf("%d letters are listed", n)
		}
		for kind, id := range ids {
			d, err := r.DeadByID(t.Context(), id)
			failtest.On(t, err)
			if !is(kind, d) || d.Target != "x "+string(kind) || d.Reason != "for a test" || kind == deadletter.Parked && len(d.Adds) != 1 {
				t.Errorf("%s: %+v", kind, d)
			}
		}
	}
	holds(func(kind deadletter.Kind, d deadletter.Letter) bool {
		return len(d.Record) > 0 && !d.Expired && d.Until.IsZero() != expires[kind]
	})
	h.clock = h.clock.Add(48*time.Hour + time.Second)
	lacks := func(kind deadletter.Kind, d deadletter.Letter) bool {
		return d.Expired == expires[kind] && (len(d.Record) == 0) == expires[kind]
	}
	holds(lacks) // DynamoDB deletes days later
	_, err := h.store.Sweep(t.Context(), h.clock, 1000, nil)
	failtest.On(t, err)
	holds(lacks)
	for _, it := range h.scan(owntable.TableName) {
		if strings.HasPrefix(it.Get(owntable.Partition).Text(), "deadpart|") {
			t.Errorf("left: %s", it.Get(owntable.Partition).Text())
		}
	}
	if err := r.RetryLetter(t.Context(), ids[deadletter.Notification]); !errors.Is(err, deadletter.ErrNoRetry) || !strings.Contains(err.Error(), "expired at 2026-01-04") {
		t.Error(err)
	}
	for _, id := range ids {
		if id != ids[deadletter.Publish] { // it names a ledger that is not there
			failtest.On(t, r.DiscardLetter(t.Context(), id))
		}
	}
}
