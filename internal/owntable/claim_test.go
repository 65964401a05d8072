package owntable_test

import (
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

func rowRef(id string) store.Ref {
	return store.Ref{Table: "T", Key: store.Key{Partition: value.OfString(id)}}
}

func keyOf(id string) value.Item {
	return value.NewItem(value.Attr{Name: "id", Value: value.OfString(id)})
}

// TestClaims: of two commands that read the same claim one takes it, a claim that came
// back under another token is not freed by an old reader, and a row frees only its own.
func TestClaims(t *testing.T) {
	o := ownTable(t)
	at := owntable.Claim("m", "User", "email", "a@b")
	none := owntable.ClaimFrom(o.row(at))
	if !o.writes(none.Take(at, rowRef("1"), keyOf("1"), "t1")) || o.writes(none.Take(at, rowRef("2"), keyOf("2"), "t2")) {
		t.Error("two commands took the claim that both read as free")
	}
	first := owntable.ClaimFrom(o.row(at))
	if !first.IsOf(rowRef("1")) || first.IsOf(rowRef("2")) || first.Table != "T" || !value.EqualItems(first.Key, keyOf("1")) {
		t.Errorf("the claim is of %+v", first)
	}
	if w := first.Free(at, rowRef("2")); w.Delete || o.Transact(t.Context(), []store.Write{w}) != nil || !owntable.ClaimFrom(o.row(at)).IsOf(rowRef("1")) {
		t.Error("another row's claim is checked and left")
	}
	if !o.writes(first.Free(at, rowRef("1"))) || o.row(at) != nil {
		t.Error("the claim was not freed")
	}
	if !o.writes(owntable.ClaimRow{}.Take(at, rowRef("1"), keyOf("1"), "t3")) || o.writes(first.Free(at, rowRef("1"))) {
		t.Error("a claim that was taken again is freed by a command that read the one before")
	}
}

// TestOnce: a key is used once until its row expires.
func TestOnce(t *testing.T) {
	o := ownTable(t)
	at, now := owntable.CommandResult("m", "k"), time.Unix(1_700_000_000, 0)
	is := owntable.OnceRow{Hash: "h", Done: "created", Table: "T", Key: keyOf("1")}
	if !o.writes(owntable.OnceFrom(nil).Becomes(at, is, now)) || o.writes(owntable.OnceFrom(nil).Becomes(at, is, now)) {
		t.Error("a key was used twice")
	}
	was := owntable.OnceFrom(o.row(at))
	if was.Hash != "h" || was.Done != "created" || was.Table != "T" || !value.EqualItems(was.Key, keyOf("1")) {
		t.Errorf("stored as %+v", was)
	}
	if was.Expired(now.Add(owntable.OnceLife-time.Second)) || !was.Expired(now.Add(owntable.OnceLife)) {
		t.Error("a key is remembered for OnceLife")
	}
	if !o.writes(was.Becomes(at, is, now.Add(owntable.OnceLife))) {
		t.Error("an expired key that TTL has not deleted yet can be used again")
	}
}

// TestScans: what Advance stores is what the next process reads, and only ForgetScan and
// BeginScan begin at the beginning.
func TestScans(t *testing.T) {
	o := ownTable(t)
	at := owntable.Migration("m", "v1")
	o.writes(owntable.BeginScan(at, "v1", true))
	if s := owntable.ScanFrom(o.row(at)); s.Plan != "v1" || !s.On || s.Over || s.Cursor != nil || len(s.Counts) != 0 {
		t.Errorf("begun as %+v", s)
	}
	o.writes(owntable.ScanRow{Cursor: keyOf("7"), Counts: map[string]int{"moved": 3}}.Advance(at))
	if s := owntable.ScanFrom(o.row(at)); s.Plan != "v1" || !s.On || s.Over || !value.EqualItems(s.Cursor, keyOf("7")) || s.Counts["moved"] != 3 {
		t.Errorf("on its way as %+v", s)
	}
	o.writes(owntable.ScanRow{Over: true, Counts: map[string]int{"moved": 4}}.Advance(at))
	if s := owntable.ScanFrom(o.row(at)); !s.Over || s.Cursor != nil || s.Counts["moved"] != 4 {
		t.Errorf("ended as %+v", s)
	}
	o.writes(owntable.ForgetScan(at))
	if s := owntable.ScanFrom(o.row(at)); s.Over || s.Plan != "" || len(s.Counts) != 0 || !s.On {
		t.Errorf("forgotten as %+v", s)
	}
}

// TestSeenMarks: the newest removal stays, and a swept row's digest goes with the next one.
func TestSeenMarks(t *testing.T) {
	o := ownTable(t)
	mark := func(n string) value.Value { return value.OfBinary(n) }
	row := rowRef("1")
	if !o.writes(owntable.LeaveSeen(row, mark("2"), false)) || o.writes(owntable.LeaveSeen(row, mark("1"), false)) || o.writes(owntable.LeaveSeen(row, mark("2"), false)) {
		t.Error("an older removal replaced a newer one")
	}
	if !o.writes(owntable.LeaveSwept(row, mark("2"), keyOf("1"))) || o.writes(owntable.LeaveSwept(row, mark("1"), keyOf("1"))) {
		t.Error("a sweep is as new as the row's mark, and no older")
	}
	if v := owntable.Swept(o.row(owntable.ReplayRemoval(row))); !value.Equal(v, owntable.Digest(keyOf("1"))) || value.Equal(v, owntable.Digest(keyOf("2"))) {
		t.Error("the digest is of what the row was")
	}
	if !o.writes(owntable.LeaveSeen(row, mark("0"), true)) || !owntable.Swept(o.row(owntable.ReplayRemoval(row))).IsMissing() {
		t.Error("a removal without a position is always stored, and is no sweep")
	}
}
