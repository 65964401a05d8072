package budget_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/budget"
)

// spend writes rows of so many units as fast as the budget allows, for a while, and returns how
// many units that were.
func spend(t *testing.T, w *budget.Writes, table string, units float64, d time.Duration) (used float64) {
	t.Helper()
	for end := time.Now().Add(d); ; used += units {
		if err := w.Await(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		if !time.Now().Before(end) {
			return used
		}
		time.Sleep(time.Millisecond) // the request
		w.Spent(t.Context(), table, units)
	}
}

// TestUnitsInASecond: whatever a row costs, a program uses its share and no more, and each table
// has its own.
func TestUnitsInASecond(t *testing.T) {
	for _, units := range []float64{1, 20, 400} {
		synctest.Test(t, func(t *testing.T) {
			w := budget.New(400, "weir")
			w.Share([]string{"albums", "media"}, 4)
			if used := spend(t, w, "albums", units, time.Minute); used < 0.97*100*60 || used > 100*60+units+10 {
				t.Errorf("rows of %v units: %v units in a minute, should be 100 a second", units, used)
			}
			start := time.Now()
			if err := w.Await(t.Context(), "media"); err != nil || time.Since(start) > 0 {
				t.Errorf("another table waited for %v: %v", time.Since(start), err)
			}
		})
	}
}

// TestNoBurstAfterAPause: units that were not used do not come later.
func TestNoBurstAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := budget.New(100, "weir")
		w.Share([]string{"albums"}, 1)
		time.Sleep(time.Hour)
		if used := spend(t, w, "albums", 1, time.Second); used > 115 {
			t.Errorf("%v units in the second after a pause, should be 100", used)
		}
	})
}

// TestOwnTableNeverWaits: leases are renewed whatever the rows cost.
func TestOwnTableNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := budget.New(1, "weir")
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for range 1000 {
			w.Spent(t.Context(), "weir", 1)
			if err := w.Await(ctx, "weir"); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(start) > 0 {
			t.Errorf("the own table waited for %v", time.Since(start))
		}
	})
}

// TestShares: nothing is written before the share is known. A program that dies leaves its share to
// the others, who begin with it at once.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := budget.New(400, "weir")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := w.Await(ctx, "albums"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write without a share: %v", err)
		}
		go func() {
			time.Sleep(10 * time.Second)
			w.Share([]string{"albums"}, 4)
		}()
		start := time.Now()
		if err := w.Await(t.Context(), "albums"); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("a write waited for %v, should wait for its share: %v", time.Since(start), err)
		}
		w.Spent(t.Context(), "albums", 1000)
		go func() {
			time.Sleep(time.Second)
			w.Share([]string{"albums"}, 1)
		}()
		start = time.Now()
		// 10 are there, 100 come in the first second, and 400 in each one after it.
		if err := w.Await(t.Context(), "albums"); err != nil || time.Since(start).Round(10*time.Millisecond) != 3250*time.Millisecond {
			t.Errorf("a debt was paid after %v: %v", time.Since(start), err)
		}
	})
}

// TestUses says what is counted.
func TestUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := budget.New(100, "weir")
		w.Share([]string{"albums"}, 2)
		w.Spent(budget.For(t.Context(), budget.Rows), "albums", 50)
		w.Read(budget.For(t.Context(), budget.Build), "albums", 2)
		w.Spent(t.Context(), "weir", 3)
		w.Throttled("albums")
		if err := w.Await(t.Context(), "albums"); err != nil {
			t.Fatal(err)
		}
		got := w.Uses()
		want := []budget.Use{{Table: "albums", Units: 50, By: map[budget.Purpose]budget.Units{budget.Rows: {Write: 50}, budget.Build: {Read: 2}}, Throttled: 1, Waited: time.Second, Share: 50}, {Table: "weir", Units: 3, By: map[budget.Purpose]budget.Units{budget.Other: {Write: 3}}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, should be %+v", got, want)
		}
	})
	w := budget.New(0, "weir")
	w.Again(budget.CauseLate)
	if got := w.Retries(); got[budget.CauseLate] != 1 || len(got) != 1 {
		t.Errorf("%v", got)
	}
	if (*budget.Writes)(nil).Await(t.Context(), "albums") != nil || (*budget.Writes)(nil).Uses() != nil {
		t.Error("no Writes limit something")
	}
	(*budget.Writes)(nil).Spent(t.Context(), "albums", 1)
}
