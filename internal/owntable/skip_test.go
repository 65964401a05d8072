package owntable_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// skips reports whether a skip leaves out the fact with a name.
func skips(s owntable.Skip, name string) bool {
	return s.Begin <= name && name < s.End && !slices.ContainsFunc(s.But, func(n owntable.Names) bool { return n.From <= name && name < n.Below })
}

// TestSkips: a skip never leaves out a fact that was put, however many are put within it, and leaves out the others as
// far as the ledger has room; it has few holes, and the ledger stays below 1 KB. What was stored is read again.
func TestSkips(t *testing.T) {
	for _, long := range []int{1, 100, 500} {
		t.Run(fmt.Sprint("keys of ", long), func(t *testing.T) {
			o := ownTable(t)
			ref := owntable.Ledger("m", rowRef("1"))
			name := func(n int) string {
				key := store.Key{Partition: value.OfString(fmt.Sprint(strings.Repeat("k", long), n))}
				name, unfit := owntable.OrderedFact(value.OfInt(int64(n)), key, false)
				if unfit != "" {
					t.Fatal(unfit)
				}
				return name
			}
			read := func() owntable.LedgerRow { return owntable.LedgerRow(o.row(ref)) }
			if !o.writes(owntable.RaiseLedger(ref, value.OfInt(1), nil)) || !o.writes(read().MoveSkip(ref, owntable.Skip{Attr: "a", Begin: name(100), End: name(900)})) {
				t.Fatal("no skip")
			}
			put := map[int]bool{}
			for i := range 60 {
				n := 100 + (i*37)%700
				one := []owntable.PutFacts{{Attr: "a", Names: []string{name(n)}}}
				s := read().Skip("a")
				inside := s.Begin <= name(n) && name(n) < s.End
				if o.writes(owntable.RaiseLedger(ref, value.OfInt(1), one)) == inside {
					t.Fatalf("%d is put: the skip is %+v", n, s)
				}
				cut, within := read().CutSkip("a", one[0].Names)
				if within != inside {
					t.Fatal(n, within)
				}
				if within && !o.writes(owntable.RaiseLedger(ref, value.OfInt(1), nil, cut)) {
					t.Fatal("not cut")
				}
				put[n] = true
				now := read().Skip("a")
				for n := 90; n < 910; n++ {
					if skips(now, name(n)) && (put[n] || n < 100 || n >= 900) {
						t.Fatalf("after %d facts the one of %d is skipped: %+v", i, n, now)
					}
					if !put[n] && n >= 100 && name(n) < now.End && !skips(now, name(n)) {
						t.Fatalf("after %d facts the one of %d is read: %+v", i, n, now)
					}
				}
				size := o.row(ref).Size()
				if len(now.But) > 8 || long <= 100 && size >= 1024 {
					t.Fatalf("%d holes, %d bytes", len(now.But), size)
				}
			}
			if long == 1 && len(read().Skip("a").But) < 8 {
				t.Errorf("%+v", read().Skip("a"))
			}
		})
	}
}
