package owntable_test

import (
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestPartitions: all rows that a build has under the name of its generation are found to be removed with it, and none of
// another one, whose name begins alike.
func TestPartitions(t *testing.T) {
	row := store.Ref{Table: "press", Key: store.Key{Partition: value.OfString("AUTHOR#a"), Sort: value.OfString("ABOUT")}}
	const model, before, after = "press#1", "press", "press#12"
	rows := func(of string) map[string]store.Ref {
		ledger := owntable.Ledger(of, row)
		return map[string]store.Ref{
			"ledger": ledger, "mark": owntable.Mark(of, row, row), "node": owntable.Node(of, row, ""), "value": owntable.ValueAt(ledger, owntable.DistinctAmount("titles", "T")),
			"fact": owntable.Fact(of, owntable.FactsOf("Author.state", row), "x"), "list": owntable.Subscribers(of, owntable.SubscriberList("News", []string{"a"})),
			"letter": owntable.Letter(of, "1"), "part": owntable.DeadPart(of, "1", 0), "job": owntable.Ref(owntable.Jobs(of), "1"),
		}
	}
	is := owntable.Partitions(model)
	for of, want := range map[string]bool{model: true, before: false, after: false} {
		for kind, ref := range rows(of) {
			if got := is(ref.Key.Partition.Text()); got != want {
				t.Errorf("%s of %s: %v", kind, of, got)
			}
		}
	}
}
