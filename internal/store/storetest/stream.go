package storetest

import (
	"errors"
	"fmt"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// stream reads everything that a table's stream has now, each shard from its beginning,
// and checks what must hold for any stream.
func (f *fixture) stream(table string, limit int) (out []events.Record) {
	f.Helper()
	shards, err := f.Shards(f.ctx(), table)
	failtest.On(f, err)
	known := map[string]bool{"": true}
	for _, sh := range shards {
		if known[sh.ID] {
			f.Fatalf("shard %q comes twice", sh.ID)
		}
		known[sh.ID] = true
		out = append(out, f.shard(table, sh, events.Position{}, limit)...)
	}
	return out
}

// shard reads what a shard has after a position.
func (f *fixture) shard(table string, sh store.Shard, after events.Position, limit int) (out []events.Record) {
	f.Helper()
	for {
		page, err := f.Read(f.ctx(), table, sh.ID, after, limit)
		failtest.On(f, err)
		if len(page.Records) > limit {
			f.Fatalf("%d records, the limit is %d", len(page.Records), limit)
		}
		for i := range page.Records {
			r := &page.Records[i]
			if r.Position.Compare(after) <= 0 {
				f.Fatalf("position %v after %v", r.Position, after)
			}
			after = r.Position
			if r.Old == nil && r.New == nil || r.Table != "" && r.Table != table {
				f.Fatalf("record %v: table %q, old %s, new %s", r.Position, r.Table, text(r.Old), text(r.New))
			}
			row := r.New
			if row == nil {
				row = r.Old
			}
			f.same("keys of the record", r.Keys, item("PK", row.Get("PK"), "SK", row.Get("SK")))
		}
		if page.End && !sh.Closed {
			// The shard may have been closed since it was listed.
			sh.Closed = true
		}
		out = append(out, page.Records...)
		if len(page.Records) == 0 || page.End {
			return out
		}
	}
}

// records waits until the stream of the table rows has n records, and returns all. The
// records of each row are in their order.
func (f *fixture) records(n int) (out []events.Record) {
	f.Helper()
	f.eventually("the stream", func() string {
		if out = f.stream(rows, 1000); len(out) < n {
			return fmt.Sprintf("%d records, not %d", len(out), n)
		}
		return ""
	})
	if len(out) > n {
		for _, r := range out {
			f.Logf("%v %s %s", r.Position, r.Event(), text(r.Keys))
		}
		f.Fatalf("%d records, not %d", len(out), n)
	}
	return out
}

// chains checks that the images of each row follow one another without a gap, and end
// with the current row.
func (f *fixture) chains(rs []events.Record) {
	f.Helper()
	last := map[string]value.Item{}
	refs := map[string]store.Ref{}
	for _, r := range rs {
		k := text(r.Keys)
		f.same("old image of "+k, r.Old, last[k])
		if value.EqualItems(r.Old, r.New) {
			f.Errorf("%s: a record of no change", k)
		}
		last[k] = r.New
		refs[k] = store.Ref{Table: rows, Key: store.Key{Partition: r.Keys.Get("PK"), Sort: r.Keys.Get("SK")}}
	}
	for k, r := range refs {
		f.is(r, last[k])
	}
}

var streamCases = []testCase{
	{"tells inserts, changes and removals", func(f *fixture) {
		f.do(put("a", "b", "n", 1))
		f.do(update(ref("a", "b"), add("n", 1)))
		f.do(put("a", "b", "m", 1))
		f.do(store.Write{Ref: ref("a", "b"), Delete: true})
		rs := f.records(4)
		f.chains(rs)
		for i, want := range []string{"INSERT", "MODIFY", "MODIFY", "REMOVE"} {
			if rs[i].Event() != want {
				f.Errorf("record %d is %s, want %s", i, rs[i].Event(), want)
			}
			if rs[i].Expired || rs[i].Time.IsZero() || rs[i].Time.Location() != time.UTC {
				f.Errorf("record %d: expired %v, time %v", i, rs[i].Expired, rs[i].Time)
			}
		}
		f.same("new image", rs[1].New, item("PK", "a", "SK", "b", "n", 2))
	}},
	{"leaves out what changes nothing", func(f *fixture) {
		r := ref("a", "b")
		w := put("a", "b", "n", 1, "l", value.OfList(val(1)), "set", value.OfStrings([]string{"x", "y"}))
		failed := update(r, set("n", 9))
		failed.If = all(absent("PK"))
		f.try(w, w, update(r, add("n", 0)), update(r, set("n", value.MustNumber("1.0"))), update(r, remove("none")), failed,
			update(r, set("set", value.OfStrings([]string{"y", "x"}))), put("a", "b", "kind", 1),
			store.Write{Ref: ref("a", "none"), Delete: true}, update(r, add("n", 1)))
		f.try(put("a", "b", "n", 2, "l", value.OfList(val(1)), "set", value.OfStrings([]string{"x", "y"})), store.Write{Ref: r, Delete: true})
		rs := f.records(3)
		f.chains(rs)
	}},
	{"keeps each row's order in one call", func(f *fixture) {
		var ws []store.Write
		for i := range 40 {
			ws = append(ws, update(ref("a", fmt.Sprint(i%3)), set("n", i)))
			if i%10 == 9 {
				ws = append(ws, store.Write{Ref: ref("a", fmt.Sprint(i%3)), Delete: true})
			}
		}
		f.do(ws...)
		f.chains(f.records(44))
	}},
	{"keeps each row's order among many writers", func(f *fixture) {
		const workers, rounds = 8, 20
		parallel(f, workers, func(w int) error {
			for i := range rounds {
				var ws []store.Write
				for k := range 5 {
					ws = append(ws, update(ref(fmt.Sprint("p", k), "x"), add("n", 1), set("by", w), set("round", i)))
				}
				if _, err := f.Write(f.ctx(), ws); err != nil {
					return err
				}
			}
			return nil
		})
		f.chains(f.records(workers * rounds * 5))
	}},
	{"can be followed while it grows", func(f *fixture) {
		const n = 150
		go func() {
			for i := range n {
				_, _ = f.Write(f.ctx(), []store.Write{update(ref(fmt.Sprint("p", i%9), "x"), add("n", 1))})
			}
		}()
		seen := map[string]bool{}
		at := map[string]events.Position{}
		last := map[string]value.Item{}
		f.eventually("following", func() string {
			shards, err := f.Shards(f.ctx(), rows)
			failtest.On(f, err)
			for _, sh := range shards {
				for _, r := range f.shard(rows, sh, at[sh.ID], 7) {
					at[sh.ID] = r.Position
					if seen[r.Position.String()] {
						f.Fatalf("position %v comes twice", r.Position)
					}
					seen[r.Position.String()] = true
					k := text(r.Keys)
					f.same("old image of "+k, r.Old, last[k])
					last[k] = r.New
				}
			}
			if len(seen) < n {
				return fmt.Sprintf("%d records of %d", len(seen), n)
			}
			return ""
		})
	}},
	{"resumes after each position", func(f *fixture) {
		for i := range 25 {
			f.do(update(ref(fmt.Sprint("p", i%4), "x"), add("n", 1)))
		}
		f.records(25)
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		for _, sh := range shards {
			whole := f.shard(rows, sh, events.Position{}, 1000)
			for i := range whole {
				rest := f.shard(rows, sh, whole[i].Position, 1+i%3)
				if len(rest) != len(whole)-i-1 {
					f.Fatalf("%d records after the %dth of %d", len(rest), i+1, len(whole))
				}
				for j := range rest {
					want := whole[i+1+j]
					if rest[j].Position != want.Position {
						f.Errorf("position %v, want %v", rest[j].Position, want.Position)
					}
					f.same("new image", rest[j].New, want.New)
				}
			}
		}
	}},
	{"says that a page was cut by its limit", func(f *fixture) {
		for i := range 25 {
			f.do(update(ref(fmt.Sprint("p", i%4), "x"), add("n", 1)))
		}
		f.records(25) // from here on nothing is added: a page that is not cut is the last
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		for _, sh := range shards {
			n := len(f.shard(rows, sh, events.Position{}, 1000))
			for limit := range n {
				page, err := f.Read(f.ctx(), rows, sh.ID, events.Position{}, limit+1)
				failtest.On(f, err)
				if len(page.Records) < n && len(page.Records) == limit+1 && !page.More {
					f.Errorf("a page of %d of %d records does not say that it was cut", limit+1, n)
				}
			}
		}
	}},
	{"goes on behind its end", func(f *fixture) {
		f.do(put("a", "b", "n", 1))
		f.records(1)
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		at := map[string]events.Position{}
		for _, sh := range shards {
			for _, r := range f.shard(rows, sh, events.Position{}, 10) {
				at[sh.ID] = r.Position
			}
		}
		f.do(put("a", "b", "n", 2))
		f.eventually("the next record", func() string {
			n := 0
			for _, sh := range shards {
				n += len(f.shard(rows, sh, at[sh.ID], 10))
			}
			if n != 1 {
				return fmt.Sprint(n, " records")
			}
			return ""
		})
	}},
	{"carries where a record came from, if it can", func(f *fixture) {
		origin := &store.Origin{Time: time.Date(2023, 4, 5, 6, 7, 8, 0, time.UTC), Position: events.PositionOf(123)}
		w := put("a", "b")
		w.Origin = origin
		f.do(w)
		r := f.records(1)[0]
		if r.Origin.IsZero() {
			return
		}
		if r.Origin != origin.Position || !r.Time.Equal(origin.Time) {
			f.Errorf("origin %v, time %v", r.Origin, r.Time)
		}
	}},
	{"may be trimmed", func(f *fixture) {
		for i := range 10 {
			f.do(put("a", "b", "n", i))
		}
		f.records(10)
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		for _, sh := range shards {
			rs := f.shard(rows, sh, events.Position{}, 100)
			if len(rs) == 0 {
				continue
			}
			failtest.On(f, f.Trim(f.ctx(), rows, sh.ID, rs[4].Position))
			if got := f.shard(rows, sh, rs[4].Position, 100); len(got) != 5 {
				f.Errorf("%d records after the trimmed ones", len(got))
			}
		}
		f.do(put("a", "b", "n", 10))
	}},
	{"of an unknown table or shard", func(f *fixture) {
		if _, err := f.Shards(f.ctx(), "storetest-none"); !errors.Is(err, store.ErrNoTable) {
			f.Errorf("Shards: %v", err)
		}
		if _, err := f.Read(f.ctx(), "storetest-none", "x", events.Position{}, 1); !errors.Is(err, store.ErrNoTable) {
			f.Errorf("Read: %v", err)
		}
		if _, err := f.Read(f.ctx(), rows, "shardId-none", events.Position{}, 1); err == nil {
			f.Error("no error for an unknown shard")
		}
	}},
}
