package system_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/verify"
)

var errCrash = errors.New("the process dies")

// dying is who dies at a write: before it happens, or after.
type dying struct {
	at    int // counted from 1; 0 is never
	after bool
	n     int
}

func (d *dying) die(_ store.Ref, write func() error) error {
	d.n++
	switch {
	case d.at == 0 || d.n < d.at:
		return write()
	case d.n == d.at && d.after:
		if err := write(); err != nil {
			return err
		}
	}
	return errCrash
}

// TestRepairCrash: a repair dies before and after each of its writes. The next one
// does the rest, and everything is right.
func TestRepairCrash(t *testing.T) {
	for _, b := range busies {
		t.Run(b.model, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(b.model)
			if err != nil {
				t.Fatal(err)
			}
			writes, step := b.crash(t, m, 0, false), 1
			if testing.Short() {
				step = 7
			}
			if writes < 3 {
				t.Fatalf("a repair has %d writes", writes)
			}
			for at := 1; at <= writes; at += step {
				b.crash(t, m, at, false)
				b.crash(t, m, at, true)
			}
			t.Logf("%d writes", writes)
		})
	}
}

// crash spoils and repairs, dying at a write, and then repairs the rest. It says how
// many writes there were.
func (b *busy) crash(t *testing.T, m *model.Model, at int, after bool) (writes int) {
	t.Helper()
	s, db := b.wrong(t, m)
	defer s.Close()
	d := &dying{at: at, after: after}
	r := repairing(s, db, d.die, func(verify.Difference) {})
	if _, _, err := r.Run(t.Context()); at == 0 && err != nil || at > 0 && !errors.Is(err, errCrash) {
		t.Fatalf("at %d, %v: %v", at, after, err)
	}
	if _, left := repairAll(t, s); len(left) > 0 {
		t.Errorf("at %d, %v: left %+v", at, after, left)
	}
	verifyNothing(t, s)
	b.writes(t, s, 4, 10)
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	verifyNothing(t, s)
	return d.n
}

// wrong is a system in which records were lost and values were spoilt.
func (b *busy) wrong(t *testing.T, m *model.Model) (*system.System, *embedded.Store) {
	t.Helper()
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: now, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	b.writes(t, s, 1, 25)
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	b.writes(t, s, 2, 8)
	lose(t, s)
	b.spoilSome(t, s, rand.New(rand.NewPCG(3, 3)))
	lose(t, s)
	return s, db
}

// writes writes and removes n core rows.
func (b *busy) writes(t *testing.T, s *system.System, seed uint64, n int) {
	t.Helper()
	d, m := rand.New(rand.NewPCG(seed, 1)), s.Models[0].Model
	for i := range n {
		table, row := b.put(d, i)
		key, _ := m.Table(table).KeyOf(row)
		w := store.Write{Ref: store.Ref{Table: table, Key: key}, Put: row}
		if d.IntN(5) == 0 {
			w.Put, w.Delete = nil, true
		}
		writeOne(t, s.Store, w)
	}
}
