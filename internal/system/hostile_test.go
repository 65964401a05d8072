package system_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// TestHostileRows: whatever another writer puts into a row, all changes are applied,
// verify and a build end, each dead letter can be read, and nothing differs.
func TestHostileRows(t *testing.T) {
	soaktest.Calm(t)
	for _, name := range builtIn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sampled(t, name, embeddedStore)
			rounds := 10
			if testing.Short() {
				rounds = 4
			}
			for i := range rounds {
				hostileRows(t, s, newRand(uint64(i)), 12)
			}
		})
	}
}

func hostileRows(t *testing.T, s *system.System, d *rand.Rand, most int) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	taken := 0
	for _, mt := range s.Models[0].Model.Tables {
		rows := allRows(t, s.Store, mt.Name)
		d.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		for _, row := range rows[:min(most, len(rows))] {
			if e := mt.Classify(row); e == nil || e.Derived {
				continue
			}
			key, _ := mt.KeyOf(row)
			spoilt := hostile(d, mt, row)
			if !value.EqualItems(row, spoilt) && put(t, s.Store, store.Write{Ref: store.Ref{Table: mt.Name, Key: key}, Put: spoilt}) {
				taken++
			}
		}
	}
	failtest.On(t, catchUp(ctx, s))
	letters := readable(t, s)
	diffs, err := verifyAll(s)
	failtest.On(t, err)
	t.Logf("%d rows, %d dead letters, %d differences", taken, len(letters), len(diffs))
	buildAgain(t, s)
	if diffs, err = verifyAll(s); err != nil || len(diffs) > 0 {
		t.Errorf("built again: %+v, %v", diffs, err)
	}
}

// readable reads every dead letter whole.
func readable(t *testing.T, s *system.System) (ids []string) {
	t.Helper()
	r := s.Models[0].Runner
	err := r.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
		ids = append(ids, d.ID)
		_, err := r.DeadByID(t.Context(), d.ID)
		return err
	})
	failtest.On(t, err)
	return ids
}

// put reports whether the store takes a row.
func put(t *testing.T, db store.Store, w store.Write) bool {
	t.Helper()
	out, err := db.Write(t.Context(), []store.Write{w})
	failtest.On(t, err)
	return out[0].Err == nil
}

// hostile is a row of which some attributes are what no model asks for.
func hostile(d *rand.Rand, mt *model.Table, row value.Item) value.Item {
	values := append([]value.Value{
		value.OfString(strings.Repeat("u", 140_000)), value.OfString("2026-01-01T00:00:00." + strings.Repeat("1", 150_000) + "Z"),
		value.OfString(strings.Repeat("h", 398<<10)), value.OfString(strings.Repeat("s", 1025)),
	}, spoilers...)
	for range 1 + d.IntN(2) {
		a := pick(d, row)
		if a.Name == mt.Key.Partition.Name || a.Name == mt.Key.Sort.Name {
			continue
		}
		v := pick(d, values)
		if d.IntN(3) == 0 {
			v = pick(d, values[:4])
		}
		if out := row.With(value.Attr{Name: a.Name, Value: v}); mt.Classify(out) != nil {
			row = out
		}
	}
	return row
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
