package system_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/repair"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
	"weir/internal/verify"
)

// TestRepaired: whatever is spoilt, or changed by records that nobody ever applies, is
// put right, and a second repair finds nothing to do.
func TestRepaired(t *testing.T) {
	eachRecording(t, func(t *testing.T, s *system.System) {
		for _, sp := range spoilsOf(s) {
			t.Run(sp.what, func(t *testing.T) { sp.repaired(t, s) })
		}
		if len(s.Models[0].Model.Searches) > 0 {
			repairDocuments(t, s)
		}
		gap(t, s)
	})
}

func (sp *spoil) repaired(t *testing.T, s *system.System) {
	back := sp.do(t, s)
	lose(t, s)
	found, left := repairAll(t, s)
	if len(found) == 0 {
		t.Error("nothing was put right")
	}
	if len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	if found, left := repairAll(t, s); len(found)+len(left) > 0 {
		t.Errorf("a second time it puts right %+v and leaves %+v", found, left)
	}
	if mt := s.Models[0].Model.Table(sp.table); mt != nil && sp.put == nil && !mt.Classify(back.Put).Derived {
		writeOne(t, s.Store, back)
		if err := catchUp(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		verifyNothing(t, s)
	}
}

// TestForgottenCopy: a copy that the application put back when nobody remembered any more
// that it went stays, is named, and goes by a repair.
func TestForgottenCopy(t *testing.T) {
	m, err := model.Load("wardrobe")
	if err != nil {
		t.Fatal(err)
	}
	s := openSystem(t, t.TempDir(), m)
	var row value.Item
	for _, a := range [][2]string{
		{"PK", "ITEM#i"}, {"SK", "METADATA"}, {"EntityType", "Item"}, {"UserId", "u"}, {"Name", "n"}, {"Category", "c"}, {"Season", "winter"},
		{"CreatedAt", "2026-01-01T00:00:00Z"}, {"UpdatedAt", "2026-01-01T00:00:00Z"},
	} {
		row = row.With(value.Attr{Name: a[0], Value: value.OfString(a[1])})
	}
	applied := func(w store.Write) {
		t.Helper()
		writeOne(t, s.Store, w)
		if err := catchUp(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	at := func(pk, sk string) store.Ref {
		return store.Ref{Table: "WardrobeTable", Key: store.Key{Partition: value.OfString(pk), Sort: value.OfString(sk)}}
	}
	item, copied := at("ITEM#i", "METADATA"), at("USER#u", "ITEM#i")
	applied(store.Write{Ref: item, Put: row})
	was, err := s.Store.Get(t.Context(), []store.Ref{copied})
	if err != nil || was[0] == nil {
		t.Fatal(was, err)
	}
	applied(store.Write{Ref: item, Delete: true})
	writeOne(t, s.Store, store.Write{Ref: owntable.Tombstone(copied), Delete: true}) // as its time to live does
	applied(store.Write{Ref: copied, Put: was[0]})
	if diffs, err := verifyAll(s); err != nil || len(diffs) != 1 {
		t.Errorf("verify names %+v, %v", diffs, err)
	}
	if found, left := repairAll(t, s); len(found) != 1 || len(left) > 0 {
		t.Errorf("it puts right %+v and leaves %+v", found, left)
	}
	verifyNothing(t, s)
}

// TestRepairedLedgerExpires: a ledger that a repair empties expires if its target is gone, because no
// record is to come that would make it expire. While the target is there it stays.
func TestRepairedLedgerExpires(t *testing.T) {
	for _, gone := range []bool{true, false} {
		m, err := model.Load("gallery")
		if err != nil {
			t.Fatal(err)
		}
		s := openSystem(t, t.TempDir(), m)
		row := func(keys ...string) value.Item {
			var row value.Item
			for i := 0; i < len(keys); i += 2 {
				row = row.With(value.Attr{Name: keys[i], Value: value.OfString(keys[i+1])})
			}
			return row
		}
		at := func(row value.Item) store.Ref {
			return store.Ref{Table: "gallery", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}
		}
		album := row("PK", "ALBUM#a", "SK", "METADATA", "EntityType", "Album", "albumId", "a")
		media := row("PK", "ALBUM#a", "SK", "MEDIA#m", "EntityType", "AlbumMedia", "albumId", "a", "mediaId", "m")
		writeOne(t, s.Store, store.Write{Ref: at(album), Put: album})
		writeOne(t, s.Store, store.Write{Ref: at(media), Put: media})
		if gone {
			writeOne(t, s.Store, store.Write{Ref: at(album), Delete: true})
		}
		if err := catchUp(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		ledger := func() owntable.LedgerRow {
			rows, err := s.Store.Get(t.Context(), []store.Ref{owntable.Ledger("gallery", at(album))})
			if err != nil || rows[0] == nil {
				t.Fatal(rows, err)
			}
			return owntable.LedgerRow(rows[0])
		}
		if ledger().Empty() || ledger().Expires() {
			t.Fatalf("before the repair the ledger has %v", ledger())
		}
		writeOne(t, s.Store, store.Write{Ref: at(media), Delete: true})
		lose(t, s)
		if found, left := repairAll(t, s); len(found) == 0 || len(left) > 0 {
			t.Errorf("it puts right %+v and leaves %+v", found, left)
		}
		if is := ledger(); !is.Empty() || is.Expires() != gone {
			t.Errorf("target gone %v: after the repair the ledger has %v", gone, is)
		}
	}
}

// TestLostRecordComesLate: a record that was given up as lost, and that a repair has
// counted since, does not count again when it is delivered after all.
func TestLostRecordComesLate(t *testing.T) {
	for _, c := range [][2]string{{"gallery", "counted row lost"}, {"viewing", "member lost"}} {
		t.Run(c[0], func(t *testing.T) {
			m, err := model.Load(c[0])
			if err != nil {
				t.Fatal(err)
			}
			s := openSystem(t, t.TempDir(), m)
			replayInto(t, s, systemtest.Files(t, filepath.Join("../../testdata/streams", c[0])))
			i := slices.IndexFunc(spoils, func(sp spoil) bool { return sp.model == c[0] && sp.what == c[1] })
			before, err := s.Models[0].Runner.Places(t.Context(), runner.GroupRows)
			if err != nil {
				t.Fatal(err)
			}
			spoils[i].do(t, s)
			late := pending(t, s, before)
			lose(t, s)
			if found, left := repairAll(t, s); len(found) == 0 || len(left) > 0 {
				t.Fatalf("it puts right %+v and leaves %+v", found, left)
			}
			f := runner.Follower{Runner: s.Models[0].Runner}
			if err := f.Stepper(runner.GroupRows).Again(t.Context(), time.Now(), late); err != nil {
				t.Fatal(err)
			}
			verifyNothing(t, s)
		})
	}
}

// pending reads the records behind some places, as a process that is delayed then.
func pending(t *testing.T, s *system.System, places []runner.Place) (pages []runner.Page) {
	t.Helper()
	m := s.Models[0].Model
	for _, p := range places {
		page, err := s.Store.Read(t.Context(), p.Table, p.Shard, p.At, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) > 0 {
			pages = append(pages, runner.Page{Table: m.Table(p.Table), Shard: p.Shard, Records: page.Records})
		}
	}
	if len(pages) == 0 {
		t.Fatal("no record comes late")
	}
	return pages
}

// TestUnnamedValue: a kept value that does not say which row it is of is compared by the
// rows that follow it.
func TestUnnamedValue(t *testing.T) {
	m, err := model.Load("wardrobe")
	if err != nil {
		t.Fatal(err)
	}
	s := openSystem(t, t.TempDir(), m)
	replayInto(t, s, systemtest.Files(t, "../../testdata/streams/wardrobe"))
	name := spoil{"wardrobe", "row of the value", "weir", []string{"k=follow|wardrobe|Item.Name", "s=-", "v"}, without("t", "key"), ""}
	head := name.do(t, s).Put
	key, _ := m.Table("WardrobeTable").KeyOf(head.Get("key").Item())
	writeOne(t, s.Store, store.Write{Ref: store.Ref{Table: "WardrobeTable", Key: key}, Delete: true})
	lose(t, s)
	said(t, s, "Item.Name as followed")
	if found, left := repairAll(t, s); len(found) == 0 || len(left) > 0 {
		t.Fatalf("it puts right %+v and leaves %+v", found, left)
	}
	verifyNothing(t, s)
}

// gap: one that was named is given up when nothing is wrong, and not before.
func gap(t *testing.T, s *system.System) {
	run := s.Models[0].Runner
	if _, err := run.KeepDead(t.Context(), runner.Dead{Kind: runner.DeadGap, Target: "shard s of t", Source: "after 1, up to 2"}); err != nil {
		t.Fatal(err)
	}
	r := repair.Repair{Verify: s.Verify(s.Models[0]), Runner: run, Yield: func(verify.Difference) {}, Passed: func(context.Context) error { return nil }}
	r.Only = func(*verify.Difference) bool { return false }
	for _, want := range []int{1, 0} {
		if _, _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if gaps, err := run.Gaps(t.Context()); err != nil || len(gaps) != want {
			t.Errorf("%d gaps, %v, want %d", len(gaps), err, want)
		}
		r.Only = nil
	}
}

// lose has nobody apply what is in the streams by now.
func lose(t *testing.T, s *system.System) {
	t.Helper()
	tip := s.Store.Tip().Seen
	m := s.Models[0].Model
	for _, g := range s.Models[0].Runner.Groups() {
		for _, mt := range m.AllTables() {
			shards, err := s.Store.Shards(t.Context(), mt.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, sh := range shards {
				writeOne(t, s.Store, store.Write{Ref: owntable.Checkpoint(m.Name, g, mt.Name, sh.ID).Ref, Ops: []store.Op{{Kind: store.Set, Attr: owntable.Position, Value: tip.Value()}}})
			}
		}
	}
}

func catchUp(ctx context.Context, s *system.System) error {
	done := make(chan struct{})
	close(done)
	f := runner.Follower{Runner: s.Models[0].Runner}
	return f.CatchUp(ctx, done)
}

func repairAll(t *testing.T, s *system.System) (found []verify.Difference, left []repair.Left) {
	t.Helper()
	r := repair.Repair{
		Verify: s.Verify(s.Models[0]), Runner: s.Models[0].Runner, Passed: func(ctx context.Context) error { return catchUp(ctx, s) },
		Yield: func(d verify.Difference) { found = append(found, d) },
	}
	left, _, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found, left
}

// repairDocuments gives the index another document of a row, none, and one of a row
// that is not there.
func repairDocuments(t *testing.T, s *system.System) {
	m := s.Models[0].Model
	sr := m.Searches[0]
	doc := searched(t, s, sr)
	stale, gone, other := doc, doc, doc
	stale.Text, gone.Deleted, other.ID = []string{"other words"}, true, doc.ID+"x"
	for _, d := range []search.Document{stale, gone, other} {
		at, err := s.Index.Positions(t.Context(), []search.Document{d})
		if err != nil {
			t.Fatal(err)
		}
		if d.Position = at[0]; d.Position.IsZero() {
			d.Position = events.PositionOf(1)
		}
		if errs, err := s.Index.Apply(t.Context(), []search.Document{d}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		said(t, s, "search "+sr.Name)
		if found, left := repairAll(t, s); len(found) != 1 || len(left) > 0 {
			t.Errorf("it puts right %+v and leaves %+v", found, left)
		}
		verifyNothing(t, s)
	}
	// A change that comes after it is still the newest.
	row := first(t, s.Store, sr.Of.Table.Name, []string{sr.Text[0].Name})
	if sr.Of.Table.Classify(row) != sr.Of {
		return
	}
	key, _ := sr.Of.Table.KeyOf(row)
	writeOne(t, s.Store, store.Write{Ref: store.Ref{Table: sr.Of.Table.Name, Key: key}, Put: row.With(value.Attr{Name: sr.Text[0].Name, Value: value.OfString("afterwards")})})
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	verifyNothing(t, s)
}

// searched is the document of some row.
func searched(t *testing.T, s *system.System, sr *model.Search) (doc search.Document) {
	t.Helper()
	for q := (store.Query{Table: sr.Of.Table.Name}); doc.ID == ""; {
		page, err := s.Store.Query(t.Context(), q)
		if err != nil || len(page.Rows) == 0 {
			t.Fatal(err, "no row is searched")
		}
		for _, row := range page.Rows {
			key, _ := sr.Of.Table.KeyOf(row)
			if d, ok := document.Of(s.Models[0].Model, sr, sr.Of.Table.Classify(row), key, row); ok {
				doc = d
			}
		}
		q.After = page.Next
	}
	return doc
}
