package ingest_test

import (
	"context"
	"testing"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// between runs a function before the second read, and another before the write.
type between struct {
	store.Store
	gets          int
	second, write func()
}

func (s *between) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if s.gets++; s.gets == 2 {
		s.second()
	}
	return s.Store.Get(ctx, refs)
}

func (s *between) Transact(ctx context.Context, ws []store.Write) error {
	if do := s.write; do != nil {
		s.write = nil
		do()
	}
	return s.Store.Transact(ctx, ws)
}

// galleryStore returns the gallery and an empty store for it, which the test's end closes.
func galleryStore(t *testing.T) (*model.Model, *embedded.Store) {
	t.Helper()
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	db, err := embedded.Open(t.TempDir(), tables, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return m, db
}

// TestAClaimTakenAgainIsAnotherClaim: a claim that was given back and taken again since
// it was read counts as another claim.
func TestAClaimTakenAgainIsAnotherClaim(t *testing.T) {
	m, db := galleryStore(t)
	ann := &ingest.Writer{Model: m, Store: db}
	do := func(w *ingest.Writer, op ingest.Op, item string) string {
		return kind(w.Do(t.Context(), []ingest.Command{command(op, "User", item)})[0])
	}
	moves := func(to string) func() {
		return func() {
			if got := do(ann, ingest.Update, `{"userId":"ann","email":"`+to+`"}`); got != "ok" {
				t.Errorf("ann moves to %s: %s", to, got)
			}
		}
	}
	do(ann, ingest.Create, `{"userId":"ann","email":"a","createdAt":"2025-01-01T00:00:00Z"}`)
	bob := &ingest.Writer{Model: m, Store: &between{Store: db, second: moves("b"), write: moves("a")}}
	if got := do(bob, ingest.Create, `{"userId":"bob","email":"a","createdAt":"2025-01-01T00:00:00Z"}`); got != "taken" {
		t.Errorf("ann has the address again, and bob is answered %s", got)
	}
}

// ahead is a store whose clock is behind the machine's.
type ahead struct {
	store.Store
	by time.Duration
}

func (s ahead) Tip() store.Tip { return store.Tip{Ahead: s.by} }

// TestTimeOfTheStore: an idempotency key counts for 48 hours by the store's clock, however wrong the
// machine's is, so that two machines agree on it, and TTL does not delete it early.
func TestTimeOfTheStore(t *testing.T) {
	for _, by := range []time.Duration{0, 3 * 24 * time.Hour, -3 * 24 * time.Hour} {
		m, db := galleryStore(t)
		w := &ingest.Writer{Model: m, Store: ahead{db, by}}
		c := command(ingest.Create, "User", `{"userId":"ann","email":"a","createdAt":"2025-01-01T00:00:00Z"}`)
		c.IdempotencyKey = "k"
		if got := kind(w.Do(t.Context(), []ingest.Command{c})[0]); got != "ok" {
			t.Fatal(got)
		}
		row, err := store.GetRow(t.Context(), db, owntable.CommandResult("gallery", "k"))
		if err != nil {
			t.Fatal(err)
		}
		expires, _ := row.Get(owntable.Expiry).Int64()
		if want := time.Now().Add(48*time.Hour - by).Unix(); expires < want-600 || expires > want+600 {
			t.Errorf("the machine is ahead by %s: the key expires at %d, want about %d", by, expires, want)
		}
	}
}
