package system_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

const offers = `
model: offers
tables: {offers: {key: [PK, SK], ttl: ttl}, rest: {key: [PK, SK], ttl: until}}
entities:
  Offer: {table: offers, where: {kind: Offer}, key: {PK: "OFFER#{id}", SK: META}, attributes: {id: string!, ttl: number}}
  Card: {table: offers, where: {kind: Card}, key: {PK: CARDS, SK: "{id}"}, attributes: {id: string!, ttl: number}}
  Old: {table: rest, where: {kind: Old}, key: {PK: "OLD#{id}", SK: META}, attributes: {id: string!, until: number}}
derive:
  Card: {row: Offer, set: {id: id, ttl: ttl}}
queries:
  offer: {get: Offer, with: [id]}
`

// openOffers opens a system with a clock that the test sets, an hour before sweepNow.
func openOffers(t testing.TB) (*model.Model, *system.System, *time.Time) {
	return openExpiring(t, offers)
}

func openExpiring(t testing.TB, text string) (*model.Model, *system.System, *time.Time) {
	m, err := model.Parse("offers.yaml", []byte(text))
	failtest.On(t, err)
	now := sweepNow.Add(-time.Hour)
	s, err := system.Open(t.Context(), filepath.Join(t.TempDir(), "data"), []*model.Model{m}, system.Options{NoSearch: true, Now: func() time.Time { return now }})
	failtest.On(t, err)
	t.Cleanup(func() { s.Close() })
	return m, s, &now
}

// TestExpiredCopies: 1,500 expired rows and the copies that carry their TTL go, the sources
// first, and stay gone. No copy is made again. Another table does not wait for them.
func TestExpiredCopies(t *testing.T) {
	m, s, now := openOffers(t)
	const rows = 1500
	var ws []store.Write
	add := func(table, pk, kind, ttl string, i int) {
		row := rowOf("PK", fmt.Sprintf("%s#%d", pk, i), "SK", "META", "kind", kind, "id", fmt.Sprint(i)).
			With(value.Attr{Name: ttl, Value: value.OfInt(sweepNow.Unix() - int64(i%60) - 1)})
		key, _ := m.Table(table).KeyOf(row)
		ws = append(ws, store.Write{Ref: store.Ref{Table: table, Key: key}, Put: row})
	}
	for i := range rows {
		add("offers", "OFFER", "Offer", "ttl", i)
		add("rest", "OLD", "Old", "until", i)
	}
	if _, err := s.Store.Write(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	cards := func() int {
		t.Helper()
		return len(scan(t, s.Store, store.Query{Table: "offers", Partition: value.OfString("CARDS")}))
	}
	if n := cards(); n != rows {
		t.Fatalf("%d copies of %d rows", n, rows)
	}
	*now = sweepNow
	others, removed, sweeps := 0, 0, 0
	for ; sweeps < 10; sweeps++ {
		n, err := s.Sweep(t.Context())
		failtest.On(t, err)
		if removed += n; n == 0 {
			break
		}
		page, err := s.Store.Query(t.Context(), store.Query{Table: "rest", Limit: 2 * rows})
		failtest.On(t, err)
		if others = len(page.Rows); sweeps == 1 && others == rows {
			t.Error("two sweeps left one of two tables alone")
		}
		settle(t, s)
		verifyNothing(t, s)
	}
	if n := cards(); n > 0 || others > 0 || removed != 2*rows {
		t.Errorf("%d sweeps removed %d rows of %d; %d copies and %d of the other table are left", sweeps, removed, 2*rows, n, others)
	}
}

// TestExpiredCopiesOfCopies: rows, their copies and the copies of these, which all expire in the
// same second: the rows go first although their keys are the greatest, and none is made again.
func TestExpiredCopiesOfCopies(t *testing.T) {
	m, s, now := openExpiring(t, strings.NewReplacer("  Old:",
		"  Pin: {table: rest, where: {kind: Pin}, key: {PK: A-PIN, SK: \"{id}\"}, attributes: {id: string!, until: number}}\n  Old:",
		"queries:", "  Pin: {row: Card, set: {id: id, until: ttl}}\nqueries:").Replace(offers))
	const rows = 700
	var ws []store.Write
	for i := range rows {
		row := rowOf("PK", fmt.Sprint("OFFER#", i), "SK", "META", "kind", "Offer", "id", fmt.Sprint(i)).With(value.Attr{Name: "ttl", Value: value.OfInt(sweepNow.Unix() - 1)})
		key, _ := m.Tables[0].KeyOf(row)
		ws = append(ws, store.Write{Ref: store.Ref{Table: "offers", Key: key}, Put: row})
	}
	if _, err := s.Store.Write(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	*now = sweepNow
	sweeps := 0
	for n := 1; n > 0; sweeps++ {
		var err error
		if n, err = s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			key := func(table, pk, sk string) store.Ref {
				return store.Ref{Table: table, Key: store.Key{Partition: value.OfString(pk), Sort: value.OfString(sk)}}
			}
			id := fmt.Sprint(i)
			is, err := s.Store.Get(t.Context(), []store.Ref{key("offers", "OFFER#"+id, "META"), key("offers", "CARDS", id), key("rest", "A-PIN", id)})
			if err != nil || is[0] != nil && is[1] == nil || is[1] != nil && is[2] == nil {
				t.Fatalf("a copy went before its source: %v, %v", is, err)
			}
		}
		settle(t, s)
		verifyNothing(t, s)
	}
	if sweeps > 4 {
		t.Errorf("%d sweeps for %d rows: what went came back", sweeps, 3*rows)
	}
}

// TestCopyThatExpiresFirst: a copy whose own TTL deletes it before its source is not made
// again, and its absence is no difference.
func TestCopyThatExpiresFirst(t *testing.T) {
	m, s, now := openOffers(t)
	row := rowOf("PK", "OFFER#1", "SK", "META", "kind", "Offer", "id", "1").With(value.Attr{Name: "ttl", Value: value.OfInt(sweepNow.Unix())})
	key, _ := m.Tables[0].KeyOf(row)
	copied := store.Ref{Table: "offers", Key: store.Key{Partition: value.OfString("CARDS"), Sort: value.OfString("1")}}
	if _, err := s.Store.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "offers", Key: key}, Put: row}}); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	*now = sweepNow.Add(time.Minute)
	if _, err := s.Store.Write(t.Context(), []store.Write{{Ref: copied, Delete: true, Origin: &store.Origin{Expired: true}}}); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	rows, err := s.Store.Get(t.Context(), []store.Ref{copied})
	if err != nil || rows[0] != nil {
		t.Errorf("the copy is there again: %v, %v", rows, err)
	}
	verifyNothing(t, s)
}

// TestSweepWaits: while a record is not applied that is older than what is counted of it is
// remembered, rows of the own table stay that expired since; rows of the application go.
func TestSweepWaits(t *testing.T) {
	m, s, now := openOffers(t)
	at := *now
	ttl := value.Attr{Name: "ttl", Value: value.OfInt(at.Add(runner.MaxPending + time.Hour).Unix())}
	row := rowOf("PK", "OFFER#1", "SK", "META", "kind", "Offer", "id", "1").With(ttl)
	key, _ := m.Tables[0].KeyOf(row)
	var ws []store.Write
	for name, after := range map[string]time.Duration{"tomb|early": -time.Hour, "tomb|late": time.Hour} {
		ref := owntable.Ref(name, "")
		expires := value.Attr{Name: owntable.Expiry, Value: value.OfInt(at.Add(runner.MaxPending + after).Unix())}
		ws = append(ws, store.Write{Ref: ref, Put: owntable.RefItem(ref).With(expires)})
	}
	ws = append(ws, store.Write{Ref: store.Ref{Table: m.Tables[0].Name, Key: key}, Put: row})
	out, err := s.Store.Write(t.Context(), ws)
	failtest.On(t, err)
	for i := range out {
		failtest.On(t, out[i].Err)
	}
	left := func() (kinds []string) {
		for _, row := range scan(t, s.Store, store.Query{Table: owntable.TableName}) {
			if k := row.Get(owntable.Partition).Text(); strings.HasPrefix(k, "tomb|") && row.Get(owntable.Expiry).Sign() > 0 && len(k) < 12 {
				kinds = append(kinds, k)
			}
		}
		return kinds
	}
	*now = at.Add(2 * runner.MaxPending)
	if n, err := s.Sweep(t.Context()); n != 2 || err != nil || !slices.Equal(left(), []string{"tomb|late"}) {
		t.Errorf("%d rows are removed before what was written 10 days ago is applied, %v are left: %v", n, left(), err)
	}
	settle(t, s)
	if n, err := s.Sweep(t.Context()); n != 1 || err != nil || len(left()) > 0 {
		t.Errorf("%d rows are removed, not 1, %v are left: %v", n, left(), err)
	}
	verifyNothing(t, s)
}

// BenchmarkSweepCopies deletes expired rows and the copies that carry their TTL, a sweep and
// then what it leads to, after each other. All expire in the same second: so the copies, whose
// keys are smaller, come before their sources. One operation is one of these rows.
func BenchmarkSweepCopies(b *testing.B) {
	m, s, now := openOffers(b)
	for from := 0; from < b.N/2; from += 500 {
		var ws []store.Write
		for i := from; i < min(from+500, b.N/2); i++ {
			row := rowOf("PK", fmt.Sprint("OFFER#", i), "SK", "META", "kind", "Offer", "id", fmt.Sprint(i), "text", strings.Repeat("x", 500)).
				With(value.Attr{Name: "ttl", Value: value.OfInt(sweepNow.Unix() - 1)})
			key, _ := m.Tables[0].KeyOf(row)
			ws = append(ws, store.Write{Ref: store.Ref{Table: "offers", Key: key}, Put: row})
		}
		if _, err := s.Store.Write(b.Context(), ws); err != nil {
			b.Fatal(err)
		}
	}
	settle(b, s)
	*now = sweepNow
	b.ResetTimer()
	for n := 1; n > 0; {
		var err error
		if n, err = s.Sweep(b.Context()); err != nil {
			b.Fatal(err)
		}
		settle(b, s)
	}
	b.StopTimer()
	page, err := s.Store.Query(b.Context(), store.Query{Table: "offers", Limit: 1})
	if err != nil || len(page.Rows) > 0 {
		b.Fatal("rows are left", err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
