package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
)

// followCases test what a follower needs besides Read: when to read again, when it has
// read everything, where to begin, and which streams there are.
var followCases = []testCase{
	{"says that a stream has grown", func(f *fixture) {
		for i := range 20 {
			c, err := f.Changed(rows)
			failtest.On(f, err)
			had := len(f.stream(rows, 1000))
			f.do(put("a", fmt.Sprint(i)))
			if c == nil { // the store cannot notify
				f.records(i + 1)
				continue
			}
			select {
			case <-c:
			case <-time.After(patience):
				f.Fatal("it does not say so")
			}
			if n := len(f.stream(rows, 1000)); n <= had {
				f.Fatalf("it says so, and there are %d records, as before", n)
			}
		}
	}},
	{"a notice of its end", func(f *fixture) {
		c, err := f.Changed(rows)
		failtest.On(f, err)
		failtest.On(f, f.Close())
		if c == nil {
			return
		}
		select {
		case <-c:
		case <-time.After(patience):
			f.Error("a follower waits for ever for a store that is closed")
		}
	}},
	{"knows when all that was acknowledged can be read", func(f *fixture) {
		const workers, rounds = 8, 5
		parallel(f, workers, func(w int) error {
			for i := range rounds {
				id := fmt.Sprint(w)
				ws := []store.Write{update(ref(id, "x"), set("round", i)), update(ref("p"+id, "x"), set("round", i))}
				if err := f.transact(ws...); err != nil {
					return err
				}
				f.arrived()
				for _, k := range []string{id, "p" + id} {
					if n := f.recordsOf(k); n != i+1 {
						return fmt.Errorf("row %s has %d records, %d were acknowledged", k, n, i+1)
					}
				}
			}
			return nil
		})
	}},
	{"puts what comes above what can be read", func(f *fixture) {
		for i := range 20 {
			f.do(put("a", fmt.Sprint(i)))
			tip := f.Tip()
			for _, r := range f.stream(rows, 1000) {
				if !tip.Seen.IsZero() && i == 0 && r.Position.Compare(tip.Given) > 0 {
					f.Errorf("position %v was acknowledged, above %v", r.Position, tip.Given)
				}
			}
			f.do(put("b", fmt.Sprint(i)))
			rs := f.records(2*i + 2)
			at := slices.IndexFunc(rs, func(r events.Record) bool {
				return r.Keys.Get("PK").Text() == "b" && r.Keys.Get("SK").Text() == fmt.Sprint(i)
			})
			if rs[at].Position.Compare(tip.Seen) <= 0 {
				f.Errorf("position %v comes after all up to %v could be read", rs[at].Position, tip.Seen)
			}
		}
	}},
	{"knows where a shard begins", func(f *fixture) {
		for i := range 30 {
			f.do(put(fmt.Sprint("p", i%6), fmt.Sprint(i)))
		}
		f.records(30)
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		for _, sh := range shards {
			all := f.shard(rows, sh, f.horizon(sh), 1000)
			if n := len(f.shard(rows, sh, events.Position{}, 1000)); n != len(all) {
				f.Errorf("shard %s has %d records after its horizon, %d in all", sh.ID, len(all), n)
			}
			if len(all) < 2 {
				continue
			}
			middle := all[len(all)/2].Position
			failtest.On(f, f.Trim(f.ctx(), rows, sh.ID, middle))
			from := f.horizon(sh)
			rest := f.shard(rows, sh, from, 1000)
			if want := f.shard(rows, sh, middle, 1000); len(rest) < len(want) {
				f.Errorf("shard %s has %d records after its horizon %v, %d after %v", sh.ID, len(rest), from, len(want), middle)
			}
			if from.IsZero() {
				continue
			}
			for _, before := range []events.Position{{}, all[0].Position} {
				if before.Compare(from) < 0 {
					if _, err := f.Read(f.ctx(), rows, sh.ID, before, 10); !errors.Is(err, store.ErrTrimmed) {
						f.Errorf("Read after %v, before the horizon %v: %v", before, from, err)
					}
				}
			}
		}
	}},
	{"names the same streams again", func(f *fixture) {
		f.do(put("a", "b"))
		first, err := f.Streams(f.ctx(), rows)
		failtest.On(f, err)
		if !slices.IsSorted(first) || len(slices.Compact(slices.Clone(first))) != len(first) {
			f.Errorf("the labels are not in order: %q", first)
		}
		for _, met := range [][]string{nil, first} {
			if again, err := f.Streams(f.ctx(), rows, met...); err != nil || !slices.Equal(again, first) {
				f.Errorf("with %q: %q, %v; before %q", met, again, err, first)
			}
		}
	}},
	{"a table is told from others", func(f *fixture) {
		seen := map[string]string{}
		for _, t := range Tables() {
			is, err := f.Identity(f.ctx(), t.Name)
			if err != nil || is.ID == "" || seen[is.ID] != "" {
				f.Errorf("%s: %+v, %v; the id is that of %q", t.Name, is, err, seen[is.ID])
			}
			seen[is.ID] = t.Name
			if on := is.Stream != ""; on != t.Stream || on != (is.Images == store.NewAndOldImages) {
				f.Errorf("%s: the stream is %q with %q", t.Name, is.Stream, is.Images)
			}
			if !t.Stream && is.Whole {
				f.Errorf("%s has no stream, and it is whole", t.Name)
			}
		}
	}},
	{"a table and its stream stay what they are", func(f *fixture) {
		first, err := f.Identity(f.ctx(), rows)
		failtest.On(f, err)
		for i := range 3 {
			f.do(put("a", fmt.Sprint(i)))
			now, err := f.Identity(f.ctx(), rows)
			if now.Rows, now.Bytes = first.Rows, first.Bytes; err != nil || now != first {
				f.Errorf("%+v, %v; before %+v", now, err, first)
			}
		}
	}},
	{"a stream from which something was trimmed is not whole", func(f *fixture) {
		f.do(put("a", "b"), put("c", "d"), put("e", "f"))
		f.records(3)
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		for _, s := range shards {
			if rs := f.shard(rows, s, events.Position{}, 100); len(rs) > 0 {
				failtest.On(f, f.Trim(f.ctx(), rows, s.ID, rs[len(rs)-1].Position))
			}
		}
		if is, err := f.Identity(f.ctx(), rows); err != nil || is.Whole {
			f.Errorf("%+v, %v", is, err)
		}
	}},
	{"of an unknown table", func(f *fixture) {
		const none = "storetest-none"
		for name, call := range map[string]func() error{
			"Changed":   func() error { _, err := f.Changed(none); return err },
			"Horizon":   func() error { _, err := f.Horizon(f.ctx(), none, "x"); return err },
			"Streams":   func() error { _, err := f.Streams(f.ctx(), none); return err },
			"Continues": func() error { _, err := f.Continues(f.ctx(), none, "1", "2"); return err },
			"Identity":  func() error { _, err := f.Identity(f.ctx(), none); return err },
			"Trim":      func() error { return f.Trim(f.ctx(), none, "x", events.Position{}) },
		} {
			if err := call(); !errors.Is(err, store.ErrNoTable) {
				f.Errorf("%s: %v", name, err)
			}
		}
	}},
}

// arrived waits, as a follower does, until everything acknowledged before can be read.
func (f *fixture) arrived() {
	f.Helper()
	first := f.Tip()
	f.eventually("the tip", func() string {
		if now := f.Tip().Seen; now.Compare(first.Given) < 0 {
			return fmt.Sprintf("%v can be read, not %v", now, first.Given)
		}
		return ""
	})
	if first.Lag > 0 {
		time.Sleep(first.Lag)
	}
}

// recordsOf is the number of records of a partition's rows that can be read now.
func (f *fixture) recordsOf(pk string) (n int) {
	for _, r := range f.stream(rows, 1000) {
		if r.Keys.Get("PK").Text() == pk {
			n++
		}
	}
	return n
}

func (f *fixture) horizon(sh store.Shard) events.Position {
	f.Helper()
	at, err := f.Horizon(f.ctx(), rows, sh.ID)
	failtest.On(f, err)
	return at
}
