package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// sweepTime is so far in the future that no service deletes these rows by itself.
var sweepTime = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

var sweepCases = []testCase{
	{"deletes what has expired and nothing else, or nothing", func(f *fixture) {
		at := func(d time.Duration) value.Value { return value.OfInt(sweepTime.Add(d).Unix()) }
		expired := []string{"expired long ago", "expired lately", "expires now"}
		f.do(
			put("a", expired[0], ttl, at(-1000*time.Hour)), put("a", expired[1], ttl, at(-time.Second)), put("a", expired[2], ttl, at(0)),
			put("a", "held", ttl, at(-time.Hour), "held", true), put("a", "later", ttl, at(time.Second)), put("a", "never"),
			put("a", "text", ttl, at(-time.Hour).Text()), put("a", "part of a second", ttl, value.MustNumber("4102444799.5")),
			put("a", "a mistake", ttl, at(-6*365*24*time.Hour)),
		)
		have := names(f.pages(store.Query{Table: rows, Partition: val("a")}))
		only := func(_ context.Context, ws []store.Write) error {
			for i := range ws {
				ws[i].If = append(ws[i].If, all(absent("held"))...)
			}
			return nil
		}
		removed := 0
		for range len(have) {
			n, err := f.Sweep(f.ctx(), sweepTime, 1, only)
			if err != nil || n < 0 || n > 1 {
				f.Fatalf("%d deleted with a limit of 1, %v", n, err)
			}
			removed += n
		}
		if n, err := f.Sweep(f.ctx(), sweepTime, 100, only); err != nil || n != 0 {
			f.Errorf("%d deleted when nothing was left, %v", n, err)
		}
		want := have
		if removed > 0 { // otherwise the store deletes by itself, and not before the year 2100
			want = slices.DeleteFunc(slices.Clone(have), func(name string) bool { return slices.Contains(expired, name) })
		}
		f.finds(store.Query{Table: rows, Partition: val("a")}, want...)
		if removed != len(have)-len(want) {
			f.Errorf("it says that %d are deleted", removed)
		}
		gone := slices.DeleteFunc(f.records(len(have)+removed), func(r events.Record) bool { return r.New != nil })
		for _, r := range gone {
			if !r.Expired {
				f.Errorf("the record of %s does not say Expired", text(r.Keys))
			}
		}
		if len(gone) != removed {
			f.Errorf("%d records of removals, want %d", len(gone), removed)
		}
	}},
	{"stops at its limit", func(f *fixture) {
		for i := range 12 {
			f.do(put(fmt.Sprint(i), "x", ttl, value.OfInt(sweepTime.Unix()-int64(i))))
		}
		left, n := 12, 1
		for n > 0 {
			var err error
			if n, err = f.Sweep(f.ctx(), sweepTime, 5, nil); err != nil || n > 5 {
				f.Fatalf("%d deleted with a limit of 5, %v", n, err)
			}
			left -= n
			if have := len(f.pages(store.Query{Table: rows})); have != left {
				f.Fatalf("%d rows are left, want %d", have, left)
			}
		}
		if left != 0 && left != 12 {
			f.Errorf("%d rows are left", left)
		}
	}},
}
