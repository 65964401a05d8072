package owntable_test

import (
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

func amounts(n int64) []value.Attr {
	return []value.Attr{{Name: owntable.SumAccumulator("count"), Value: value.OfInt(n)}}
}

// TestLedgers: a ledger counts the records of a shard once, nothing passes what is parked,
// and what was decided by one state of it is not written over another.
func TestLedgers(t *testing.T) {
	o := ownTable(t)
	ref, before, never := owntable.Ledger("m", rowRef("1")), value.OfInt(100), value.Value{}
	read := func() owntable.LedgerRow { return owntable.LedgerRow(o.row(ref)) }
	holds := func(sum, version int64) {
		t.Helper()
		if l := read(); !value.Equal(l.Version(), value.OfInt(version)) || !value.Equal(value.Item(l).Get(owntable.SumAccumulator("count")), value.OfInt(sum)) {
			t.Fatalf("the ledger is %v, not %d in version %d", o.row(ref), sum, version)
		}
	}
	if !o.writes(owntable.CountLedger(ref, "s1", off(2), off(4), amounts(3), before, never)) {
		t.Fatal("not counted")
	}
	holds(3, 101)
	if o.writes(owntable.CountLedger(ref, "s1", off(4), off(5), amounts(1), before, never)) || read().PositionIn("s1") != off(4) || !read().PositionIn("s2").IsZero() {
		t.Error("a record that the ledger has seen was counted again")
	}
	if !o.writes(owntable.AddLedger(ref, amounts(2), before)) || !o.writes(owntable.RaiseLedger(ref, before, nil)) {
		t.Fatal("not added")
	}
	holds(5, 103)

	was := read()
	if o.writes(owntable.PassLedger(ref, "s1", off(4), off(6), before, never)) || !o.writes(owntable.PassLedger(ref, "s1", off(5), off(6), before, never)) {
		t.Error("what the ledger has seen is passed")
	}
	if l := read(); l.PositionIn("s1") != off(6) {
		t.Errorf("the ledger is %v", o.row(ref))
	}
	if o.writes(was.Forget(ref, []string{"s1"})) {
		t.Error("a position that has changed is removed")
	}
	if !o.writes(owntable.AddLedger(ref, amounts(4), before)) {
		t.Error("not added")
	}
	holds(9, 105)
	if !o.writes(read().NoteLack(owntable.LacksAll, ref, "letter", "why")) || read().Empty() || !o.writes(owntable.ForgetLack(owntable.LacksAll, ref)) || o.row(ref).Has(owntable.Stale) {
		t.Error("the note of a row that refuses is left")
	}

	if o.writes(was.NoteLack(owntable.LacksTallies, ref, "letter", "why")) || o.Transact(t.Context(), []store.Write{was.Unchanged(ref)}) == nil || o.writes(was.Forget(ref, []string{"s1"})) {
		t.Error("what was decided by an older state was written")
	}
	if !o.writes(read().NoteLack(owntable.LacksTallies, ref, "letter", "a long reason")) {
		t.Fatal("not noted")
	}
	if letter, why := read().LackOf(owntable.LacksTallies); letter != "letter" || why != "a long reason" {
		t.Errorf("it notes %q: %q", letter, why)
	}
	if !o.writes(read().NoteLack(owntable.LacksTallies, ref, "", "")) || o.row(ref).Has("u") {
		t.Error("the note is left")
	}

	if !o.writes(read().Forget(ref, []string{"s1", "none"})) || !read().PositionIn("s1").IsZero() {
		t.Error("the position of a shard that is over is left")
	}
	holds(9, 105)
	if none := owntable.LedgerRow(nil); !none.Version().IsMissing() || !value.Equal(none.WithVersion(9).Version(), value.OfInt(9)) || !value.Equal(read().WithVersion(9).Version(), value.OfInt(105)) {
		t.Error("only a ledger without a version gets one")
	}
}

// TestEpochs: once positions left a ledger, a missing one lets a record count only by the epoch
// that the writer knows, and a whole row is not put over another epoch.
func TestEpochs(t *testing.T) {
	o := ownTable(t)
	ref, before, none := owntable.Ledger("m", rowRef("1")), value.OfInt(100), value.Value{}
	key, other := owntable.ShardKey("t", "1"), owntable.ShardKey("t", "2")
	read := func() owntable.LedgerRow { return owntable.LedgerRow(o.row(ref)) }
	count := func(key string, n uint64, epoch value.Value) bool {
		return o.writes(owntable.CountLedger(ref, key, off(n), off(n), amounts(1), before, epoch))
	}
	if !count(key, 1, none) || !count(other, 1, none) || !read().Epoch().IsMissing() {
		t.Fatal("not counted")
	}
	was := read()
	if !o.writes(was.Forget(ref, []string{key})) || !value.Equal(read().Epoch(), value.OfInt(1)) {
		t.Fatal("not removed")
	}
	if count(key, 1, none) || o.writes(owntable.PassLedger(ref, key, off(1), off(1), before, none)) {
		t.Error("counted by an epoch that is over")
	}
	if !count(other, 2, none) {
		t.Error("a position that is there needs no epoch")
	}
	if !count(func() string { key, _ := owntable.Unlogged(); return key }(), 1, none) {
		t.Error("what comes from no shard needs no epoch")
	}
	is := read()
	if !count(key, 2, is.Epoch()) || count(key, 2, is.Epoch()) {
		t.Error("by the epoch of the ledger a record counts once")
	}
	now := read()
	if !o.writes(now.Forget(ref, []string{other})) {
		t.Error("a position is not forgotten")
	}
}
