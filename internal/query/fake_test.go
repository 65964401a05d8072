package query

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// fake is a store in memory whose pages are as unkind as production's: short,
// sometimes empty, with a Next that leads to nothing.
type fake struct {
	store.Store // what no query needs
	mu          sync.Mutex
	tables      map[string]*store.Table
	rows        map[string][]value.Item
	dice        *rand.Rand // nil: kind pages
	queries     int
	gets        int
	scanned     int // rows that queries returned
}

func newFake(m *model.Model, seed uint64) *fake {
	f := &fake{tables: map[string]*store.Table{}, rows: map[string][]value.Item{}}
	for _, t := range m.Tables {
		f.tables[t.Name] = &t.Table
	}
	if seed > 0 {
		f.dice = rand.New(rand.NewPCG(seed, seed))
	}
	return f
}

func (f *fake) put(t *testing.T, table string, row value.Item) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	k, ok := f.tables[table].KeyOf(row)
	if !ok {
		t.Fatalf("a row without a key: %v", row)
	}
	f.rows[table] = slices.DeleteFunc(f.rows[table], func(have value.Item) bool { return f.keyOf(table, have) == keyText(k) })
	f.rows[table] = append(f.rows[table], row)
}

func (f *fake) remove(table string, k store.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[table] = slices.DeleteFunc(f.rows[table], func(have value.Item) bool { return f.keyOf(table, have) == keyText(k) })
}

func (f *fake) keyOf(table string, row value.Item) string {
	k, _ := f.tables[table].KeyOf(row)
	return keyText(k)
}

func (f *fake) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gets++
	out := make([]value.Item, len(refs))
	for i, r := range refs {
		for _, row := range f.rows[r.Table] {
			if f.keyOf(r.Table, row) == keyText(r.Key) {
				out[i] = row
			}
		}
	}
	return out, ctx.Err()
}

func (f *fake) Sync(context.Context) error { return nil }

func (f *fake) Write(_ context.Context, ws []store.Write) ([]store.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]store.Outcome, len(ws))
	for i, w := range ws {
		var have value.Item
		for _, row := range f.rows[w.Table] {
			if f.keyOf(w.Table, row) == keyText(w.Key) {
				have = row
			}
		}
		if !w.If.Holds(have) {
			out[i] = store.Outcome{Err: store.ErrCondition, Row: have}
			continue
		}
		f.rows[w.Table] = append(f.rows[w.Table], w.Put)
	}
	return out, nil
}

// entry is a row as an index has it.
type entry struct {
	key, primary store.Key
	row          value.Item
}

func (f *fake) Query(ctx context.Context, q store.Query) (store.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queries++
	t := f.tables[q.Table]
	if t == nil {
		return store.Page{}, store.ErrNoTable
	}
	schema, sparse := t.Key, false
	if q.Index != "" {
		ix := t.Index(q.Index)
		if ix == nil {
			return store.Page{}, store.ErrNoTable
		}
		schema, sparse = ix.Key, ix.KeysOnly
	}
	entries := f.entries(t, q, schema)
	slices.SortFunc(entries, func(a, b entry) int { return order(a, b, q.Reverse) })
	var page store.Page
	limit := cmp.Or(q.Limit, 1<<20)
	if f.dice != nil && f.dice.IntN(3) == 0 {
		limit = f.dice.IntN(min(limit, 4) + 1)
		if limit == 0 && q.After == nil {
			limit = 1
		}
	}
	for _, e := range entries {
		if q.After != nil && order(e, entry{key: q.After.Entry, primary: q.After.Key}, q.Reverse) <= 0 && q.Index != "" {
			continue
		}
		if q.After != nil && q.Index == "" && order(e, entry{key: q.After.Key, primary: q.After.Key}, q.Reverse) <= 0 {
			continue
		}
		if len(page.Rows) >= limit {
			if len(page.Rows) == 0 {
				page.Next = q.After
			}
			return page, ctx.Err()
		}
		c := store.Cursor{Key: e.primary}
		if q.Index != "" {
			c.Entry = e.key
		}
		if sparse {
			e.row = e.row.Filter(func(n string) bool {
				return n == t.Key.Partition.Name || n == t.Key.Sort.Name || n == schema.Partition.Name || n == schema.Sort.Name
			})
		}
		page.Rows, page.Next = append(page.Rows, e.row), &c
		f.scanned++
	}
	if f.dice == nil || f.dice.IntN(2) == 0 {
		page.Next = nil
	}
	return page, ctx.Err()
}

func (f *fake) entries(t *store.Table, q store.Query, schema store.KeySchema) []entry {
	var out []entry
	for _, row := range f.rows[q.Table] {
		p, s := row.Get(schema.Partition.Name), row.Get(schema.Sort.Name)
		if p.Kind() != schema.Partition.Type || s.Kind() != schema.Sort.Type || !value.Equal(p, q.Partition) || !within(s, q.Sort) {
			continue
		}
		k, _ := t.KeyOf(row)
		out = append(out, entry{store.Key{Partition: p, Sort: s}, k, row})
	}
	return out
}

func within(v value.Value, r store.Range) bool {
	switch {
	case !r.Equal.IsMissing():
		return value.Equal(v, r.Equal)
	case !r.Prefix.IsMissing():
		return strings.HasPrefix(v.Text(), r.Prefix.Text())
	}
	return (r.From.IsMissing() || value.Compare(v, r.From) >= 0) && (r.Below.IsMissing() || value.Compare(v, r.Below) < 0)
}

func order(a, b entry, reverse bool) int {
	c := cmp.Or(compareKeys(a.key, b.key), compareKeys(a.primary, b.primary))
	if reverse {
		return -c
	}
	return c
}

// shelf is a search index in memory: it finds documents that have all words, in
// the order of their ids.
type shelf struct {
	search.Index
	docs  []search.Document
	calls int
}

func (s *shelf) Search(_ context.Context, q search.Query) ([]search.Hit, error) {
	s.calls++
	schema := search.Schema{Name: q.Index, Filters: []string{"brand", "shop", "tag", "stars", "hot", "tags"}, Sorts: []string{"at", "stars"}}
	plan, err := schema.Plan(q)
	if err != nil {
		return nil, err
	}
	var found []search.Document
	for _, d := range s.docs {
		if d.Index == q.Index && !plan.Nothing && s.matches(d, plan) {
			found = append(found, d)
		}
	}
	place := func(d search.Document) search.Place {
		if q.Sort == "" {
			return search.PlaceByScore(1, d.ID)
		}
		if key, ok := search.SortKey(d.Values[q.Sort]); ok {
			return search.PlaceByKey(key, d.ID)
		}
		return search.PlaceLast(d.ID)
	}
	slices.SortFunc(found, func(a, b search.Document) int { return plan.Compare(place(a), place(b)) })
	var hits []search.Hit
	for _, d := range found {
		if plan.After != nil && plan.Compare(place(d), *plan.After) <= 0 || len(hits) == q.Limit {
			continue
		}
		hits = append(hits, search.Hit{ID: d.ID, After: place(d).String()})
	}
	return hits, nil
}

func (s *shelf) matches(d search.Document, p search.Plan) bool {
	words := search.Words(strings.Join(d.Text, " "))
	for _, w := range p.Words {
		if !slices.Contains(words, w) {
			return false
		}
	}
	if !p.Every() && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, p.Last) }) {
		return false
	}
	for _, f := range p.Filters {
		if !slices.Contains(search.Terms(d.Values[f.Field]), f.Term) {
			return false
		}
	}
	return true
}

var noon = time.Date(2025, 11, 13, 12, 0, 0, 0, time.UTC)

var testSecret = []byte("0123456789abcdef0123456789abcdef")

// position is any position; documents need one.
var position = events.PositionOf(1)
