package system_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// dump is everything that two systems in the same state share, a line each: the
// rows without bookkeeping, the entries of every index, which documents there are,
// and what is kept.
func dump(t testing.TB, s *system.System) []string {
	t.Helper()
	m := s.Models[0].Model
	var out []string
	for _, table := range m.Tables {
		for _, row := range scan(t, s.Store, store.Query{Table: table.Name}) {
			out = append(out, "row "+table.Name+" "+shown(row))
		}
		for _, ix := range table.Indexes {
			for _, row := range scan(t, s.Store, store.Query{Table: table.Name, Index: ix.Name}) {
				key, _ := table.KeyOf(row)
				out = append(out, "entry "+table.Name+" "+ix.Name+" "+shown(table.Item(key)))
			}
		}
	}
	for _, sr := range m.Searches {
		for _, id := range hits(t, s.Index, document.IndexName(m, sr)) {
			out = append(out, "document "+sr.Name+" "+id)
		}
	}
	for _, row := range scan(t, s.Store, store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Dead(m.Name))}) {
		out = append(out, "kept "+row.Get("kind").Text()+" "+row.Get("target").Text())
	}
	slices.Sort(out)
	return out
}

func shown(row value.Item) string {
	return string(value.AppendTypedItem(nil, row.Filter(func(n string) bool { return !owntable.IsOurs(n) })))
}

func scan(t testing.TB, s store.Store, q store.Query) (rows []value.Item) {
	t.Helper()
	for row, err := range store.EachRow(context.Background(), s, q) {
		failtest.On(t, err)
		rows = append(rows, row)
	}
	return rows
}

func hits(t testing.TB, ix search.Index, name string) (ids []string) {
	t.Helper()
	q := search.Query{Index: name, Limit: 1000}
	for {
		found, err := ix.Search(context.Background(), q)
		failtest.On(t, err)
		for _, h := range found {
			ids = append(ids, h.ID)
			q.After = h.After
		}
		if len(found) < q.Limit {
			return ids
		}
	}
}

// same reports whether two dumps agree, and says where they do not.
func same(t testing.TB, want, have []string) bool {
	t.Helper()
	if slices.Equal(want, have) {
		return true
	}
	lines := strings.SplitAfter(cmp.Diff(want, have), "\n")
	t.Error(fmt.Sprintf("%d lines, want %d:\n", len(have), len(want)) + strings.Join(lines[:min(40, len(lines))], ""))
	return false
}
