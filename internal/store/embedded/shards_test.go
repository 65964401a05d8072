package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
)

// fill writes n rows that spread over the shards.
func fill(t *testing.T, s *Store, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		do(t, s, put(fmt.Sprint("p", i%40), "x", "n", i))
	}
}

func shardsOf(t *testing.T, s *Store) []store.Shard {
	t.Helper()
	shards, err := s.Shards(context.Background(), "things")
	failtest.On(t, err)
	return shards
}

func readAll(t *testing.T, s *Store, shard string) ([]events.Record, bool) {
	t.Helper()
	rs, err := drain(context.Background(), s, "things", shard, events.Position{}, 7)
	failtest.On(t, err)
	var at events.Position
	if len(rs) > 0 {
		at = rs[len(rs)-1].Position
	}
	page, err := s.Read(context.Background(), "things", shard, at, 7)
	if err != nil || len(page.Records) > 0 {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
	return rs, page.End
}

func TestRecordsSpreadOverShards(t *testing.T) {
	s := openMem(t, things())
	fill(t, s, 0, 400)
	shards := shardsOf(t, s)
	if len(shards) != 4 {
		t.Fatalf("%d shards", len(shards))
	}
	home := map[string]string{}
	for _, sh := range shards {
		rs, end := readAll(t, s, sh.ID)
		if len(rs) < 20 || end || sh.Closed || sh.Parent != "" {
			t.Errorf("%+v has %d records, end %v", sh, len(rs), end)
		}
		for _, r := range rs {
			pk := r.Keys.Get("PK").Text()
			if home[pk] != "" && home[pk] != sh.ID {
				t.Errorf("partition %s is in %s and %s", pk, home[pk], sh.ID)
			}
			home[pk] = sh.ID
		}
	}
}

func TestSplit(t *testing.T) {
	ctx := context.Background()
	s := open(t, "data", []store.Table{things()}, Options{FS: vfs.NewMem(), Shards: 1})
	fill(t, s, 0, 100)
	parent := shardsOf(t, s)[0]
	failtest.On(t, s.Split(ctx, "things", parent.ID))
	fill(t, s, 100, 100)
	s = reopen(t, s, things())
	shards := shardsOf(t, s)
	if len(shards) != 3 || shards[0].ID != parent.ID || !shards[0].Closed || shards[1].Parent != parent.ID || shards[2].Parent != parent.ID || shards[1].Closed {
		t.Fatalf("shards %+v", shards)
	}
	old, end := readAll(t, s, parent.ID)
	if len(old) != 100 || !end {
		t.Errorf("the parent has %d records, end %v", len(old), end)
	}
	for _, sh := range shards[1:] {
		rs, end := readAll(t, s, sh.ID)
		if len(rs) < 20 || end {
			t.Errorf("%s has %d records, end %v", sh.ID, len(rs), end)
		}
		if rs[0].Position.Compare(old[len(old)-1].Position) <= 0 {
			t.Errorf("%s begins at %v, its parent ends at %v", sh.ID, rs[0].Position, old[len(old)-1].Position)
		}
	}
	verify(t, s)
	if err := s.Split(ctx, "things", parent.ID); err == nil {
		t.Error("a closed shard was split")
	}
	if err := s.Split(ctx, "things", "none"); !errors.Is(err, store.ErrNoTable) {
		t.Errorf("error %v", err)
	}
	// A page that just reaches the end says so.
	page, err := s.Read(ctx, "things", parent.ID, old[49].Position, 50)
	if err != nil || len(page.Records) != 50 || !page.End {
		t.Errorf("%d records, end %v, %v", len(page.Records), page.End, err)
	}
}

func TestSplitWhileWriting(t *testing.T) {
	s := open(t, "data", []store.Table{things()}, Options{FS: vfs.NewMem(), Shards: 1})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				_, _ = s.Write(context.Background(), []store.Write{put(fmt.Sprint("p", i%50), fmt.Sprint(w), "n", i)})
			}
		})
	}
	for range 5 {
		for _, sh := range shardsOf(t, s) {
			if !sh.Closed {
				failtest.On(t, s.Split(context.Background(), "things", sh.ID))
			}
		}
	}
	wg.Wait()
	verify(t, s)
	if n := len(allRecords(t, s, "things")); n != 800 {
		t.Errorf("%d records", n)
	}
}

func TestTrim(t *testing.T) {
	ctx := context.Background()
	s := openMem(t, things())
	fill(t, s, 0, 200)
	sh := shardsOf(t, s)[2].ID
	rs, _ := readAll(t, s, sh)
	cut := rs[len(rs)/2].Position
	failtest.On(t, s.Trim(ctx, "things", sh, cut))
	check := func() {
		t.Helper()
		for _, at := range []events.Position{{}, rs[0].Position, rs[len(rs)/2-1].Position} {
			if _, err := s.Read(ctx, "things", sh, at, 10); !errors.Is(err, store.ErrTrimmed) {
				t.Errorf("after %v: %v", at, err)
			}
		}
		got, err := drain(ctx, s, "things", sh, cut, 10)
		if err != nil || len(got) != len(rs)-len(rs)/2-1 {
			t.Errorf("%d records, %v", len(got), err)
		}
		if h, err := s.Horizon(ctx, "things", sh); err != nil || h != cut {
			t.Errorf("horizon %v, %v", h, err)
		}
	}
	check()
	if err := s.Trim(ctx, "things", sh, rs[3].Position); err != nil { // going back does nothing
		t.Fatal(err)
	}
	check()
	s = reopen(t, s, things())
	check()
	for _, other := range shardsOf(t, s) {
		if other.ID != sh {
			readAll(t, s, other.ID)
		}
	}
}

// TestTrimBetweenRecords: ErrTrimmed is returned only if records that existed are
// missing.
func TestTrimBetweenRecords(t *testing.T) {
	ctx := context.Background()
	s := open(t, "data", []store.Table{things()}, Options{FS: vfs.NewMem(), Shards: 1})
	fill(t, s, 0, 5)
	sh := shardsOf(t, s)[0].ID
	rs, _ := readAll(t, s, sh)
	last := rs[4].Position.Uint64()
	failtest.On(t, s.Trim(ctx, "things", sh, events.PositionOf(last+1000)))
	if _, err := s.Read(ctx, "things", sh, events.PositionOf(last), 10); err != nil {
		t.Errorf("after the last record: %v", err)
	}
	fill(t, s, 5, 3)
	if got, err := drain(ctx, s, "things", sh, events.PositionOf(last), 10); err != nil || len(got) != 3 {
		t.Errorf("%d records, %v", len(got), err)
	}
	s = reopen(t, s, things())
	fill(t, s, 8, 1)
	if got, err := drain(ctx, s, "things", sh, events.PositionOf(last), 10); err != nil || len(got) != 4 {
		t.Errorf("%d records after reopening, %v", len(got), err)
	}
}

// TestTrimFreesSpace: once all shards of a table have been trimmed past them, records
// are deleted from the store, and new numbers are still greater.
func TestTrimFreesSpace(t *testing.T) {
	ctx := context.Background()
	s := openMem(t, things())
	const n = 3 << segmentBits
	for at := 0; at < n; at += 512 {
		var ws []store.Write
		for i := at; i < at+512; i++ {
			ws = append(ws, put(fmt.Sprint("p", i%40), "x", "n", i))
		}
		do(t, s, ws...)
	}
	stored := func() (n int) {
		scan(t, s, []byte{spaceStream}, func(_, _ []byte) { n++ })
		return n
	}
	if got := len(allRecords(t, s, "things")); got != n {
		t.Errorf("%d records", got)
	}
	shards := shardsOf(t, s)
	end := events.PositionOf(1 << 62)
	for i, sh := range shards {
		failtest.On(t, s.Trim(ctx, "things", sh.ID, end))
		if got := stored(); i < len(shards)-1 && got != n {
			t.Errorf("%d of %d records are stored while shards need them", got, n)
		}
	}
	if got := stored(); got >= 1<<segmentBits {
		t.Errorf("%d records are still stored", got)
	}
	s = reopen(t, s, things())
	fill(t, s, 0, 1)
	for _, sh := range shards {
		h, err := s.Horizon(ctx, "things", sh.ID)
		failtest.On(t, err)
		rs, err := drain(ctx, s, "things", sh.ID, h, 10)
		failtest.On(t, err)
		for _, r := range rs {
			if r.Position.Uint64() <= n {
				t.Errorf("position %v came again", r.Position)
			}
		}
	}
}

func TestChanged(t *testing.T) {
	ctx := context.Background()
	other := things()
	other.Name = "others"
	s := openMem(t, things(), other)
	changed := func() <-chan struct{} {
		t.Helper()
		ch, err := s.Changed("things")
		failtest.On(t, err)
		return ch
	}
	quiet := func(ch <-chan struct{}, why string) {
		t.Helper()
		select {
		case <-ch:
			t.Error("woken by", why)
		default:
		}
	}
	ch := changed()
	w := put("a", "b")
	w.Table = "others"
	do(t, s, w)
	quiet(ch, "another table")
	do(t, s, put("a", "b"))
	<-ch
	ch = changed()
	do(t, s, put("a", "b"), del("no", "row"))
	quiet(ch, "a write of no change")
	failtest.On(t, s.Split(ctx, "things", shardsOf(t, s)[0].ID))
	<-ch
	ch = changed()
	failtest.On(t, s.Close())
	<-ch
	if _, err := s.Changed("things"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// TestFollow: a follower that waits for changes misses none and never sees a gap,
// whatever writers do in parallel.
func TestFollow(t *testing.T) {
	s := open(t, t.TempDir(), []store.Table{things()}, Options{Shards: 2})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const writers, rounds, rows = 8, 60, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				var ws []store.Write
				for r := range rows {
					ws = append(ws, store.Write{Ref: ref(fmt.Sprint("p", (r*w+i)%9), fmt.Sprint("s", r)), Ops: []store.Op{{Kind: store.Add, Attr: "n", Value: val(1)}}})
				}
				if _, err := s.Write(ctx, ws); err != nil {
					t.Error(err)
				}
			}
		})
	}
	counts := map[string]int64{}
	at := map[string]events.Position{}
	for seen := 0; seen < writers*rounds*rows; {
		ch, err := s.Changed("things")
		failtest.On(t, err)
		before := seen
		for _, sh := range shardsOf(t, s) {
			rs, err := drain(ctx, s, "things", sh.ID, at[sh.ID], 50)
			failtest.On(t, err)
			for _, r := range rs {
				k := show(r.Keys)
				if n, _ := r.New.Get("n").Int64(); n != counts[k]+1 {
					t.Fatalf("%s counts %d after %d", k, n, counts[k])
				}
				counts[k]++
				at[sh.ID] = r.Position
				seen++
			}
		}
		if seen > before {
			continue
		}
		select {
		case <-ch:
		case <-ctx.Done():
			t.Fatalf("%d records of %d", seen, writers*rounds*rows)
		}
	}
	wg.Wait()
	verify(t, s)
}

// TestVisible: a reader does not read past a batch that has its numbers and is not
// committed yet, and gets everything at once when it is.
func TestVisible(t *testing.T) {
	s := openMem(t, things())
	tab := s.tables["things"]
	first, second := s.numbers.reserve(10), s.numbers.reserve(5)
	first.take(tab)
	second.take(tab)
	fill(t, s, 0, 40)
	s.numbers.publishTicket(first)
	if n := len(allRecords(t, s, "things")); n != 0 {
		t.Errorf("%d records are visible above numbers in use", n)
	}
	ch, err := s.Changed("things")
	failtest.On(t, err)
	s.numbers.publishTicket(second)
	<-ch
	if n := len(allRecords(t, s, "things")); n != 40 {
		t.Errorf("%d records", n)
	}
}

// TestIdentityOfStores: a store keeps its id when it is opened again, and no other store
// has it. A stream that was off for a while is another one, and is not whole.
func TestIdentityOfStores(t *testing.T) {
	dir := t.TempDir()
	at := func(dir string, stream bool) store.Identity {
		t.Helper()
		tab := things()
		tab.Stream = stream
		s, err := Open(dir, []store.Table{tab}, Options{Logger: quiet})
		failtest.On(t, err)
		defer s.Close()
		is, err := s.Identity(t.Context(), tab.Name)
		failtest.On(t, err)
		return is
	}
	first := at(dir, true)
	if !first.Whole || first.ID == "" || first.Stream == "" || first.Images != store.NewAndOldImages {
		t.Fatalf("a new table is %+v", first)
	}
	if again := at(dir, true); again != first {
		t.Errorf("opened again it is %+v, before %+v", again, first)
	}
	if other := at(t.TempDir(), true); other.ID == first.ID {
		t.Errorf("two stores have the id %s", other.ID)
	}
	if off := at(dir, false); off.Whole || off.Stream != "" || off.Images != "" || off.ID != first.ID {
		t.Errorf("without a stream it is %+v", off)
	}
	if on := at(dir, true); on.Whole || on.Stream == first.Stream || on.ID != first.ID {
		t.Errorf("with a stream again it is %+v, before %+v", on, first)
	}
}
