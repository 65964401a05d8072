package owntable_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// written returns the row that a write leaves of a row, and whether its condition holds.
func written(row value.Item, w store.Write) (value.Item, bool) {
	if !w.If.Holds(row) {
		return row, false
	}
	own := owntable.Table()
	next := row.With(own.Item(w.Key)...)
	if w.Put != nil {
		next = w.Put
	}
	for _, op := range w.Ops {
		switch op.Kind {
		case store.Set:
			next = next.With(value.Attr{Name: op.Attr, Value: op.Value})
		case store.Remove:
			next = next.With(value.Attr{Name: op.Attr})
		}
	}
	return next, true
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestBuilds: the catalog says of builds what was written.
func TestBuilds(t *testing.T) {
	at, since := owntable.Catalog("m"), time.Unix(1_700_000_000, 0).UTC()
	builds := owntable.Builds{
		{Generation: 1, Entity: "An Album", State: owntable.BuildVerified, Since: since, Announced: since.Add(-time.Hour), Base: 7},
		{Generation: 4, Entity: "An Album", State: owntable.BuildBuilding, Since: since, Announced: since, Base: 8},
		{Generation: 15, Entity: "Media", State: owntable.BuildDropped, Since: since, Announced: since, Base: 8},
	}
	none := must[owntable.CatalogRow](t)(owntable.DecodeCatalog(nil))
	next := none.Clone()
	next.Builds = builds
	row, ok := written(nil, none.Becomes(at, next))
	is := must[owntable.CatalogRow](t)(owntable.DecodeCatalog(row))
	if !ok || is.Count != 1 || !reflect.DeepEqual(is.Builds, builds) {
		t.Fatalf("%v %+v", ok, is)
	}
	if is.Same(none) || !is.Same(next) {
		t.Error("catalogs differ by their builds")
	}
	shown, building := is.Builds.Of("An Album")
	if shown.Generation != 1 || building.Generation != 4 || len(is.Builds.Counting()) != 2 || !slices.Equal(is.Builds.Generations(), []int64{1, 4}) {
		t.Errorf("%+v %+v", shown, building)
	}
	if shown, building := is.Builds.Of("Media"); shown.State != "" || building.State != "" {
		t.Errorf("%+v %+v", shown, building)
	}
	if _, err := owntable.DecodeCatalog(row.With(value.Attr{Name: "g:4", Value: value.OfString("odd")})); err == nil {
		t.Error("an entry that cannot be read is read")
	}
	next.Builds = nil
	if row, ok := written(row, is.Becomes(at, next)); !ok || len(must[owntable.CatalogRow](t)(owntable.DecodeCatalog(row)).Builds) > 0 {
		t.Errorf("%v %v", ok, row)
	}
}

// TestFenceRow: a fenced checkpoint moves only for views that are not older, and a fence is
// taken only of the checkpoint that was read.
func TestFenceRow(t *testing.T) {
	at := owntable.Checkpoint("m", "t", "s")
	p, q := events.PositionOf(7), events.PositionOf(9)
	row, ok := written(nil, owntable.CheckpointRow{}.Move(at, events.Position{}, p, owntable.Counts{}))
	if !ok {
		t.Fatal("the first move is refused")
	}
	var none contribution.Fence
	fence, _ := none.Take(3, []int64{2, 3}, p)
	if _, ok := written(row, owntable.TakeFence(at, none, fence, q)); ok {
		t.Error("a checkpoint that has moved is fenced")
	}
	fenced, ok := written(row, owntable.TakeFence(at, none, fence, p))
	if is := must[contribution.Fence](t)(owntable.FenceOf(fenced)); !ok || !is.Same(fence) {
		t.Fatalf("%v %+v, want %+v", ok, is, fence)
	}
	if _, ok := written(fenced, owntable.TakeFence(at, none, fence, p)); ok {
		t.Error("a fence is taken twice")
	}
	move := owntable.CheckpointRow{}.Move(at, p, q, owntable.Counts{})
	for view, want := range map[int64]bool{0: false, 2: false, 3: true, 4: true} {
		if _, ok := written(fenced, owntable.UnderView(view, move)); ok != want {
			t.Errorf("under view %d the checkpoint moves: %v", view, ok)
		}
		if _, ok := written(row, owntable.UnderView(view, move)); !ok {
			t.Errorf("under view %d a checkpoint without a fence does not move", view)
		}
	}
	if len(move.If) != 2 {
		t.Error("Under changed the write that it was given")
	}
	later, _ := fence.Take(5, []int64{3, 5}, q)
	moved, _ := written(fenced, owntable.UnderView(4, move))
	again, ok := written(moved, owntable.TakeFence(at, fence, later, q))
	is := must[contribution.Fence](t)(owntable.FenceOf(again))
	if !ok || !is.Same(later) || is.Floors[3] != p || is.Floors[5] != q || is.Counts(3, p) || !is.Counts(3, q) {
		t.Errorf("%v %+v", ok, is)
	}
	empty, _ := none.Take(1, []int64{1}, events.Position{})
	first, ok := written(nil, owntable.TakeFence(at, none, empty, events.Position{}))
	if is := must[contribution.Fence](t)(owntable.FenceOf(first)); !ok || !is.Same(empty) || !is.Counts(1, p) {
		t.Errorf("a checkpoint without records: %v %+v", ok, is)
	}
}

// TestContributionRow: a mark is written only over the one that was read, and one of nothing
// expires.
func TestContributionRow(t *testing.T) {
	ref := func(key string) store.Ref {
		return store.Ref{Table: "t", Key: store.Key{Partition: value.OfString(key)}}
	}
	key := func(key string) value.Item { return value.Item{{Name: "PK", Value: value.OfString(key)}} }
	at := owntable.Mark("m#1", ref("target"), ref("source"))
	c := owntable.Contribution{Source: ref("source"), Target: ref("target"), SourceKey: key("source"), TargetKey: key("target")}
	amounts := []value.Attr{{Name: "a:n", Value: value.OfInt(3)}}
	step, _ := contribution.Row(c.Mark, amounts)
	row, ok := written(nil, c.Becomes(at, step.Mark, value.OfInt(99)))
	is := must[owntable.Contribution](t)(owntable.DecodeContribution(row))
	if !ok || is.Version != 1 || !contribution.Same(is.Amounts, amounts) || !is.Position.IsZero() || row.Has(owntable.Expiry) ||
		is.Source.Table != "t" || !value.EqualItems(is.SourceKey, key("source")) || !value.EqualItems(is.TargetKey, key("target")) {
		t.Fatalf("%v %+v", ok, is)
	}
	if _, ok := written(row, c.Becomes(at, step.Mark, value.OfInt(99))); ok {
		t.Error("a mark that exists is taken for none")
	}
	step, _ = contribution.Record(is.Mark, events.PositionOf(5), nil)
	gone, ok := written(row, is.Becomes(at, step.Mark, value.OfInt(99)))
	now := must[owntable.Contribution](t)(owntable.DecodeContribution(gone))
	if !ok || !now.Nothing() || now.Mark.Position != events.PositionOf(5) || gone.Get(owntable.Expiry).Text() != "99" {
		t.Errorf("%v %+v", ok, now)
	}
	if _, ok := written(gone, is.Becomes(at, step.Mark, value.OfInt(99))); ok {
		t.Error("a mark that has changed is replaced")
	}
}

// TestSegmentRow: a builder loses a segment that another takes.
func TestSegmentRow(t *testing.T) {
	at := owntable.Segment("m", 4, "rows", 2)
	now := time.UnixMilli(1800000000000).UTC()
	mine, w := owntable.SegmentRow{Plan: "8"}.Take(at, now)
	row, ok := written(nil, w)
	if !ok || !mine.HeldCheck(at).If.Holds(row) {
		t.Fatal("the first builder does not get the segment")
	}
	mine.Rows, mine.Puts, mine.Table, mine.Cursor = 10, 3, 1, value.Item{{Name: "PK", Value: value.OfString("x")}}
	row, ok = written(row, mine.Save(at, now))
	is := must[owntable.SegmentRow](t)(owntable.DecodeSegment(row))
	if !ok || !reflect.DeepEqual(is, mine) {
		t.Errorf("%v %+v, want %+v", ok, is, mine)
	}
	theirs, w := is.Take(at, now)
	row, ok = written(row, w)
	if !ok || theirs.Rows != 10 || mine.HeldCheck(at).If.Holds(row) || !theirs.HeldCheck(at).If.Holds(row) {
		t.Error("the segment does not change hands")
	}
	if _, ok := written(row, mine.Save(at, now)); ok {
		t.Error("a builder that lost the segment saves its progress")
	}
	if _, ok := written(row, w); ok {
		t.Error("a segment is taken twice at the same time")
	}
}
