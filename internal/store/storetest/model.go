package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// model is a store as its caller sees it: a map of rows, and package store's own
// functions for the effect of a write.
type model struct {
	table   store.Table
	rows    map[string]value.Item // by Ref.String
	changes int
}

// write executes a write as a driver must, and returns its outcome.
func (m *model) write(w *store.Write) store.Outcome {
	id := w.Ref.String()
	row := m.rows[id]
	fail := func(err error) store.Outcome { return store.Outcome{Err: err} }
	if err := m.table.Validate(w); err != nil {
		return fail(err)
	}
	if !w.If.Holds(row) {
		return store.Outcome{Err: store.ErrCondition, Row: row}
	}
	next, err := m.table.Apply(w, row)
	if err != nil {
		return fail(err)
	}
	for i := range m.table.Indexes {
		if _, _, err := store.IndexEntry(&m.table.Indexes[i], next); err != nil {
			return fail(err)
		}
	}
	if !value.EqualItems(row, next) {
		m.changes++
	}
	if m.rows[id] = next; next == nil {
		delete(m.rows, id)
	}
	return store.Outcome{Row: next}
}

// entries returns the rows of an index under a partition, in the index's order. Rows
// with equal index keys may be in any order.
func (m *model) entries(ix *store.Index, partition string) (its []value.Item) {
	for _, row := range m.rows {
		if k, ok, _ := store.IndexEntry(ix, row); ok && k.Partition.Text() == partition {
			its = append(its, row)
		}
	}
	slices.SortFunc(its, func(a, b value.Item) int {
		return value.Compare(a.Get(ix.Key.Sort.Name), b.Get(ix.Key.Sort.Name))
	})
	return its
}

// anyWrite draws a write over few keys and values, so that many writes touch the same
// rows.
func anyWrite(rng *rand.Rand) store.Write {
	w := store.Write{Ref: ref(fmt.Sprint("p", rng.IntN(3)), fmt.Sprint("s", rng.IntN(4))), Return: true}
	attrs := map[string]func() value.Value{
		"n":     func() value.Value { return val(rng.IntN(3)) },
		"kind":  func() value.Value { return val(fmt.Sprint("k", rng.IntN(2))) },
		"at":    func() value.Value { return val(fmt.Sprint(rng.IntN(4))) },
		"score": func() value.Value { return val(rng.IntN(5) - 2) },
		"size":  func() value.Value { return val(rng.IntN(3)) },
		"bad":   func() value.Value { return val("text") },
	}
	names := []string{"n", "kind", "at", "score", "size", "bad"}
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for range rng.IntN(3) {
		name := names[rng.IntN(len(names))]
		t := store.Test{Attr: name, Is: store.Comparison(rng.IntN(6)), Value: attrs[name]()}
		or := store.Test{Attr: "PK", Is: store.Comparison(rng.IntN(2))}
		w.If = append(w.If, [][]store.Test{{t}, {t, or}, {or}}[rng.IntN(3)])
	}
	switch rng.IntN(5) {
	case 0:
		w.Delete = true
	case 1, 2:
		w.Put = item("PK", w.Key.Partition, "SK", w.Key.Sort)
		for _, name := range names[:rng.IntN(6)] {
			w.Put = w.Put.With(value.Attr{Name: name, Value: attrs[name]()})
		}
	default:
		for _, name := range names[:1+rng.IntN(3)] {
			op := store.Op{Kind: store.OpKind(rng.IntN(3)), Attr: name}
			if op.Kind != store.Remove {
				op.Value = attrs[name]()
			}
			if op.Kind == store.Add && rng.IntN(2) == 0 {
				op.From = val(100)
			}
			w.Ops = append(w.Ops, op)
		}
		// An update always sets another attribute, too. So no driver has to decide what
		// a Remove from a row that does not exist makes.
		w.Ops = append(w.Ops, set("mark", rng.IntN(3)))
	}
	return w
}

var modelCases = func() (cases []testCase) {
	for seed := range uint64(6) {
		cases = append(cases, testCase{fmt.Sprint("seed ", seed), func(f *fixture) { f.compare(seed) }})
	}
	return cases
}()

// compare executes random writes, and after each call compares the store with the
// model.
func (f *fixture) compare(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &model{table: Tables()[0], rows: map[string]value.Item{}}
	for round := range 25 {
		var ws []store.Write
		for range 1 + rng.IntN(12) {
			ws = append(ws, anyWrite(rng))
		}
		if round%4 == 3 {
			f.compareTransact(m, ws)
		} else {
			for i, got := range f.try(ws...) {
				f.sameOutcome(fmt.Sprintf("round %d, write %d", round, i), got, m.write(&ws[i]))
			}
		}
		for id, row := range m.rows {
			k, _ := m.table.KeyOf(row)
			f.same(fmt.Sprintf("round %d, %s", round, id), f.row(store.Ref{Table: rows, Key: k}), row)
		}
		if n := len(f.pages(store.Query{Table: rows, Limit: 5})); n != len(m.rows) {
			f.Fatalf("round %d: %d rows, want %d", round, n, len(m.rows))
		}
	}
	f.chains(f.records(m.changes))
	for i := range m.table.Indexes {
		ix := &m.table.Indexes[i]
		for _, partition := range []string{"k0", "k1", "p0", "p1", "p2"} {
			f.sameEntries(ix, partition, m.entries(ix, partition))
		}
	}
}

// compareTransact executes the first write of each key in one transaction.
func (f *fixture) compareTransact(m *model, ws []store.Write) {
	f.Helper()
	seen := map[string]bool{}
	trial := &model{table: m.table, rows: map[string]value.Item{}}
	for id, row := range m.rows {
		trial.rows[id] = row
	}
	var once []store.Write
	var want error
	for i := range ws {
		w := ws[i]
		if seen[w.Ref.String()] {
			continue
		}
		seen[w.Ref.String()] = true
		w.Return = false
		once = append(once, w)
		if out := trial.write(&w); want == nil {
			want = out.Err
		}
	}
	err := f.transact(once...)
	if (err == nil) != (want == nil) || err != nil && !isCondition(err) && !errors.Is(err, store.ErrRefused) {
		f.Fatalf("transact: %v, want %v", err, want)
	}
	if err == nil {
		m.rows = trial.rows
		m.changes += trial.changes
	}
}

func (f *fixture) sameOutcome(what string, got, want store.Outcome) {
	f.Helper()
	for _, kind := range []error{store.ErrCondition, store.ErrRefused} {
		if errors.Is(got.Err, kind) != errors.Is(want.Err, kind) {
			f.Fatalf("%s: error %v, want %v", what, got.Err, want.Err)
		}
	}
	if want.Err != nil && !isCondition(want.Err) {
		return
	}
	f.same(what, got.Row, want.Row)
}

func (f *fixture) sameEntries(ix *store.Index, partition string, want []value.Item) {
	f.Helper()
	q := store.Query{Table: rows, Index: ix.Name, Partition: val(partition), Limit: 3}
	line := func(its []value.Item) string {
		var order, all []string
		for _, it := range its {
			order = append(order, it.Get(ix.Key.Sort.Name).Text())
			if ix.KeysOnly {
				it = it.Filter(func(name string) bool { return name == "PK" || name == "SK" || name == ix.Key.Partition.Name })
			}
			all = append(all, text(it))
		}
		slices.Sort(all)
		return strings.Join(order, " ") + "\n" + strings.Join(all, "\n")
	}
	f.eventually(ix.Name+" "+partition, func() string {
		if got := line(f.pages(q)); got != line(want) {
			return got + "\nwant " + line(want)
		}
		return ""
	})
}
