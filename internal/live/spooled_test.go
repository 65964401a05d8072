package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/internal/events"
)

// TestSpooledByTime: what every group has applied and a file still has is handed over by time, over all
// shards that this process holds; what is not applied, or is removed, is not.
func TestSpooledByTime(t *testing.T) {
	odd, even := opened(t, t.TempDir(), 0), opened(t, t.TempDir(), 0)
	even.segment = 1 // each batch has a file of its own
	for from := 0; from < 3000; from += 300 {
		var a, b []events.Record
		for _, r := range records(from+1, from+300) {
			if r.Time.Unix()%2 == 0 {
				b = append(b, r)
			} else {
				a = append(a, r)
			}
		}
		must(t, odd.append(a))
		must(t, even.append(b))
	}
	must(t, odd.trim(at(2901)))
	must(t, even.trim(at(2700))) // the last file stays, and what is in it is applied to its end
	f := &Following{reader: &Reader{held: map[place]*holding{}}}
	empty := opened(t, t.TempDir(), 7)
	for i, s := range []*spool{odd, even, empty} {
		p := place{"t", string(rune('a' + i))}
		f.reader.held[p] = &holding{place: p, spool: s}
	}
	read := func(ctx context.Context, stop int) (got []events.Record, err error) {
		err = f.Spooled(ctx, func(table string, r *events.Record) error {
			if got = append(got, *r); table != "t" || len(got) == stop {
				return errors.New(table)
			}
			return nil
		})
		return got, err
	}
	got, err := read(t.Context(), 0)
	must(t, err)
	// The files of even that end at 2,700 or before are gone, but one is left behind that; of odd
	// everything is there.
	var want []events.Record
	for _, r := range records(1, 2901) {
		if r.Time.Unix()%2 == 1 {
			want = append(want, r)
		}
	}
	same(t, got, want)
	must(t, even.append(records(3001, 3001)))
	must(t, even.trim(at(2800)))
	if got, err = read(t.Context(), 0); err != nil || len(got) != len(want)+50 {
		t.Errorf("%d records, %v", len(got), err)
	}
	last := time.Time{}
	for _, r := range got {
		if r.Time.Before(last) {
			t.Fatalf("%v comes after %v", r.Time, last)
		}
		last = r.Time
	}
	if got, err = read(t.Context(), 3); len(got) != 3 || err == nil {
		t.Errorf("%d records, %v", len(got), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err = read(ended, 0); len(got) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d records, %v", len(got), err)
	}
	n := 0
	err = f.Spooled(t.Context(), func(string, *events.Record) error {
		if n++; n == 1 {
			odd.close()
		}
		return nil
	})
	if err != nil || n != spooledAtOnce+50 {
		t.Errorf("of a shard that is lost meanwhile: %d records, %v", n, err)
	}
}
