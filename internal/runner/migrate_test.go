package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

func (h *harness) mover(b *breaker) *ingest.Mover {
	return &ingest.Mover{Model: h.model, Store: h.runner(b).Store}
}

// migrateAll does a migration's scan, and says what became of each old row.
func (h *harness) migrateAll(b *breaker, name string, dry bool) (string, error) {
	var out []string
	s := ingest.Scan{Mover: h.mover(b), Migration: h.model.Migration(name), DryRun: dry, Rows: 2}
	if s.Migration == nil {
		return "", fmt.Errorf("no migration %q", name)
	}
	s.Each = func(row store.Ref, _ value.Item, r ingest.MigrationResult) {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", row, r.Outcome, r.Reason), ": "))
	}
	counts, err := s.Run(context.Background())
	slices.Sort(out)
	for _, o := range [...]ingest.Outcome{ingest.Moved, ingest.Followed, ingest.There, ingest.Kept, ingest.Refused} {
		if n := counts[o]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(out, "\n"), err
}

func (s *script) migrate(words []string, args map[string]string) (string, error) {
	do := func(h *harness, b *breaker) error {
		_, err := h.migrateAll(b, words[0], false)
		return err
	}
	switch {
	case args["crash"] != "":
		return s.everyCrash(args, do)
	case args["sleep"] != "":
		return s.sleep(args, do)
	case slices.Contains(words, "dry"):
		return s.h.migrateAll(nil, words[0], true)
	}
	var out string
	err := s.do(func(h *harness) (err error) {
		out, err = h.migrateAll(nil, words[0], false)
		return err
	})
	s.h.pull()
	s.shown = len(s.h.records) // in no order that stays: rows are moved abreast
	return out, err
}

// TestRunnerWithoutMover: where old rows would silently stay as they are, the runner
// refuses to go on.
func TestRunnerWithoutMover(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	r := h.runner(nil)
	r.Mover = nil
	old := value.NewItem(
		value.Attr{Name: "PK", Value: value.OfString("ALBUM#a")}, value.Attr{Name: "SK", Value: value.OfString("MEDIA#m")},
		value.Attr{Name: "EntityType", Value: value.OfString("Media")}, value.Attr{Name: "filename", Value: value.OfString("f")})
	c, ok := projections.NewChange(m.Tables[0], &events.Record{Keys: m.Tables[0].Item(store.Key{Partition: old.Get("PK"), Sort: old.Get("SK")}), New: old, Position: events.PositionOf(1)})
	if !ok || len(projections.OldRows(&c)) != 1 {
		t.Fatalf("it is no old row: %v", c.Is)
	}
	if _, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: "l", Changes: []projections.Change{c}}); err == nil || !strings.Contains(err.Error(), "without a Mover") {
		t.Errorf("an old row: %v", err)
	}
	if m, err = model.Load("watchlists"); err == nil {
		_, err = (&runner.Runner{Kinds: kinds.All(), Model: m}).FollowedTables(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "without a Mover") {
		t.Errorf("a table of old rows: %v", err)
	}
}

// TestWithoutKinds: a runner that was made without a list of kinds refuses a batch. It
// would derive nothing.
func TestWithoutKinds(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	r := h.runner(nil)
	r.Kinds = nil
	if _, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: "l"}); err == nil || !strings.Contains(err.Error(), "without kinds") {
		t.Errorf("a batch: %v", err)
	}
}
