package embedded

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// expiring is a row whose time is over the given while after now.
func expiring(sk string, in time.Duration) store.Write {
	return put("ttl", sk, "ttl", int(now.Add(in).Unix()), "kind", "k", "at", sk)
}

func sweep(t *testing.T, s *Store, limit int) int {
	t.Helper()
	n, err := s.Sweep(context.Background(), now, limit, nil)
	failtest.On(t, err)
	return n
}

func TestSweep(t *testing.T) {
	s := open(t, "data", []store.Table{things()}, Options{FS: vfs.NewMem(), Now: func() time.Time { return now.Add(time.Hour) }})
	do(t, s,
		expiring("past", -time.Second), expiring("now", 0), expiring("soon", time.Second), expiring("long past", -4*365*24*time.Hour),
		expiring("too long past", -6*365*24*time.Hour), put("ttl", "none"), put("ttl", "text", "ttl", "1"),
		put("ttl", "milliseconds", "ttl", int(now.UnixMilli())), put("ttl", "fraction", "ttl", value.MustNumber("1.5")), put("ttl", "negative", "ttl", -5))
	before := len(allRecords(t, s, "things"))
	if n := sweep(t, s, 100); n != 3 {
		t.Errorf("%d rows are removed", n)
	}
	for sk, want := range map[string]bool{
		"past": false, "now": false, "long past": false, "soon": true, "too long past": true,
		"none": true, "text": true, "milliseconds": true, "fraction": true, "negative": true,
	} {
		if got := get(t, s, "ttl", sk) != nil; got != want {
			t.Errorf("row %q is there: %v", sk, got)
		}
	}
	rs := allRecords(t, s, "things")[before:]
	if len(rs) != 3 {
		t.Fatalf("%d records", len(rs))
	}
	for _, r := range rs {
		if r.Event() != "REMOVE" || !r.Expired || !r.Time.Equal(now.Add(time.Hour)) || !r.Origin.IsZero() || r.Old.Get("kind").Text() != "k" {
			t.Errorf("record %+v", r)
		}
	}
	if n := sweep(t, s, 100); n != 0 {
		t.Errorf("%d more rows are removed", n)
	}
	verify(t, s)
}

func TestSweepOldestFirstAndAtMost(t *testing.T) {
	other := things()
	other.Name = "others"
	s := openMem(t, things(), other)
	for i := range 10 {
		do(t, s, expiring(fmt.Sprint(i), -time.Duration(i+1)*time.Minute))
	}
	if n := sweep(t, s, 4); n != 4 {
		t.Errorf("%d rows are removed", n)
	}
	for i := range 10 {
		if got := get(t, s, "ttl", fmt.Sprint(i)) != nil; got != (i < 6) {
			t.Errorf("row %d is there: %v", i, got)
		}
	}
	if n := sweep(t, s, 0); n != 0 {
		t.Errorf("%d rows are removed", n)
	}
	if n := sweep(t, s, 100); n != 6 {
		t.Errorf("%d rows are removed", n)
	}
}

// TestSweepTakesTurns: a table with more expired rows than a sweep may delete keeps no other waiting.
func TestSweepTakesTurns(t *testing.T) {
	first, last := things(), things()
	first.Name, last.Name = "a", "z"
	s := openMem(t, first, last)
	for i := range 10 {
		for _, table := range []string{"a", "z"} {
			w := expiring(fmt.Sprint(i), -time.Minute)
			w.Ref.Table = table
			do(t, s, w)
		}
	}
	for range 4 {
		sweep(t, s, 1)
	}
	for _, table := range []string{"a", "z"} {
		page, err := s.Query(t.Context(), store.Query{Table: table})
		if err != nil || len(page.Rows) != 8 {
			t.Errorf("4 sweeps leave %d rows of table %s (%v), want 8", len(page.Rows), table, err)
		}
	}
}

// TestSweepSparesRowsThatLiveAnew: the time counts that a row has when it is
// removed, not the one that it was found by.
func TestSweepSparesRowsThatLiveAnew(t *testing.T) {
	s := openMem(t, things())
	do(t, s, expiring("a", -time.Minute), expiring("b", -time.Minute), expiring("c", -time.Minute), expiring("d", -time.Minute))
	ws, _, err := s.expiredRemovals(context.Background(), "things", now, nil, 10)
	if err != nil || len(ws) != 4 {
		t.Fatalf("%d rows, %v", len(ws), err)
	}
	do(t, s, expiring("a", time.Hour), put("ttl", "b"), del("ttl", "c"))
	out, err := s.Write(context.Background(), ws)
	failtest.On(t, err)
	for i, want := range []error{store.ErrCondition, store.ErrCondition, store.ErrCondition, nil} {
		if !errors.Is(out[i].Err, want) {
			t.Errorf("row %d: %v", i, out[i].Err)
		}
	}
	verify(t, s)
}

// TestReplayedExpiry: the removal that a replay writes tells what the recorded one
// told.
func TestReplayedExpiry(t *testing.T) {
	s := openMem(t, things())
	w := del("a", "b")
	w.Origin = &store.Origin{Time: now, Position: events.PositionOf(99), Expired: true}
	do(t, s, put("a", "b"), w)
	r := allRecords(t, s, "things")[1]
	if !r.Expired || !r.Time.Equal(now) || r.Origin != w.Origin.Position {
		t.Errorf("record %+v", r)
	}
}

// Rows that fail the condition stay, and do not keep the sweep from those behind them.
func TestSweepSpares(t *testing.T) {
	s := openMem(t, things())
	for i := range 2 * sweepRows {
		do(t, s, put("ttl", fmt.Sprintf("kept %d", i), "ttl", int(now.Add(-2*time.Hour).Unix()), "kept", "yes"))
	}
	do(t, s, expiring("gone", -time.Minute), expiring("gone too", -time.Second))
	only := func(_ context.Context, ws []store.Write) error {
		for i := range ws {
			ws[i].If = append(ws[i].If, []store.Test{{Attr: "kept", Is: store.Absent}})
		}
		return nil
	}
	if n, err := s.Sweep(context.Background(), now, 1, only); n != 1 || err != nil {
		t.Fatalf("%d rows are removed: %v", n, err)
	}
	if n, err := s.Sweep(context.Background(), now, 10, only); n != 1 || err != nil {
		t.Fatalf("%d rows are removed: %v", n, err)
	}
	if get(t, s, "ttl", "kept 0") == nil || get(t, s, "ttl", "gone") != nil || get(t, s, "ttl", "gone too") != nil {
		t.Error("the wrong rows are removed")
	}
}
