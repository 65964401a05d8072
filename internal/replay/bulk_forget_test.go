package replay_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/replay"
)

// TestForgottenRemoval: a replay in bulk brings no row back whose removal was forgotten: it refuses the change, or leaves it to a
// live replay, which does.
func TestForgottenRemoval(t *testing.T) {
	for name, text := range map[string]string{"applied": shop, "reduced": flat} {
		t.Run(name, func(t *testing.T) {
			m, err := model.Parse("shop.yaml", []byte(text))
			failtest.On(t, err)
			w, s := newBulkWorld(t, m), &scripted{}
			s.put("B#b", "META", "kind", "branch", "city", "c")
			s.put("B#b", "META")
			w.bulk(copied([][]events.Entry{s.all}), 1<<30)
			if n, err := w.replay().Forget(t.Context(), time.Unix(1_800_000_000, 0)); err != nil || n != 1 {
				t.Fatal(n, err)
			}
			b, why, err := replay.New(t.Context(), w.replay(), sized(1<<30))
			if err != nil || why != "" {
				t.Fatal(why, err)
			}
			if err = b.Batch(t.Context(), slices.Clone(s.all), ""); err == nil {
				err = b.Land(t.Context())
			}
			failtest.On(t, b.Close())
			if !errors.Is(err, replay.ErrForgotten) && !errors.Is(err, replay.ErrLive) {
				t.Fatal(err)
			}
			if err := w.replay().Batch(t.Context(), slices.Clone(s.all), ""); !errors.Is(err, replay.ErrForgotten) {
				t.Error(err)
			}
		})
	}
}
