package owntable_test

import (
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestOwedAgain: a target that is named again while it is shown is shown once more, since what it was named for may be newer than
// what was shown. Then its row goes.
func TestOwedAgain(t *testing.T) {
	o := ownTable(t)
	target := store.Ref{Table: "authors", Key: store.Key{Partition: value.OfString("AUTHOR#a")}}
	owe := owntable.Owe("press", target, value.NewItem(value.Attr{Name: "PK", Value: target.Key.Partition}))
	owed := func() (rows []value.Item) {
		t.Helper()
		page, err := o.Query(t.Context(), owntable.Owed("press", "authors", 10))
		if err != nil {
			t.Fatal(err)
		}
		return page.Rows
	}
	if !o.writes(owe) {
		t.Fatal("it is not named")
	}
	first := owntable.OwedFrom(owed()[0])
	if !o.writes(owe) || o.writes(first.Settle()) || len(owed()) != 1 {
		t.Fatal("it is settled by what was read before it was named again")
	}
	if !o.writes(owntable.OwedFrom(owed()[0]).Settle()) || len(owed()) != 0 {
		t.Error("its row stays")
	}
}
