package ingest_test

import (
	"context"
	"testing"

	"weir/internal/ingest"
	"weir/internal/model"
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

// TestAClaimTakenAgainIsAnotherClaim: a claim that was given back and taken again since
// it was read counts as another claim.
func TestAClaimTakenAgainIsAnotherClaim(t *testing.T) {
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
	defer db.Close()
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
