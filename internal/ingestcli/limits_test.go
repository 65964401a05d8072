package ingestcli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/ingest/ingesttest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/reader"
	again "weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// TestAcceptedIsDerived: of rows whose texts are about as long as anything may be,
// those that the write side accepts are derived from without a dead letter.
func TestAcceptedIsDerived(t *testing.T) {
	for _, name := range ingesttest.Models {
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(name)
			failtest.On(t, err)
			s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{})
			failtest.On(t, err)
			defer s.Close()
			w, rng := &ingest.Writer{Model: m, Store: s.Store}, rand.New(rand.NewPCG(3, 3))
			accepted, refused := 0, 0
			commands := 250
			if testing.Short() {
				commands = 100
			}
			for range commands {
				e := m.Entities[rng.IntN(len(m.Entities))]
				if e.Derived {
					continue
				}
				c := ingest.Command{Op: []ingest.Op{ingest.Put, ingest.Put, ingest.Put, ingest.Update}[rng.IntN(4)], Entity: e.Name, Item: longItem(rng, e)}
				var refusal *ingest.Refusal
				switch r := w.Do(t.Context(), []ingest.Command{c})[0]; {
				case r.Err == nil:
					accepted++
					if rng.IntN(3) == 0 {
						c.Op, c.Item = ingest.Delete, c.Item.Filter(func(name string) bool { return slices.Contains(e.KeyNames(), name) })
						failtest.On(t, w.Do(t.Context(), []ingest.Command{c})[0].Err)
					}
				case errors.As(r.Err, &refusal):
					refused++
				default:
					t.Fatal(r.Err)
				}
			}
			if accepted < 20 || refused < 20 {
				t.Errorf("%d accepted, %d refused", accepted, refused)
			}
			noneDead(t, s)
		})
	}
}

// longItem is an item of an entity with one long text among short ones.
func longItem(rng *rand.Rand, e *model.Entity) value.Item {
	names := e.KeyNames()
	for _, a := range e.Attributes {
		if a.Computed == nil && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	long := names[rng.IntN(len(names))]
	var attrs []value.Attr
	for _, name := range names {
		v := value.OfString(fmt.Sprint("x", rng.IntN(3)))
		switch a := e.Attribute(name); {
		case a != nil && len(a.Enum) > 0:
			v = value.OfString(a.Enum[rng.IntN(len(a.Enum))])
		case a != nil && a.Type == model.TypeTime:
			v = value.OfString(fmt.Sprintf("2025-01-01T00:00:0%dZ", rng.IntN(9)))
		case a != nil && a.Type == model.TypeNumber:
			v = value.OfInt(int64(rng.IntN(5)))
		case a != nil && (a.Type == model.TypeBoolean || a.Type == model.TypeFlag):
			v = value.OfBool(rng.IntN(2) == 0)
		case a != nil && (a.Type == model.TypeList || a.Type == model.TypeMap):
			continue
		case name == long:
			near := []int{0, 480, 500, 940, 1000, 1024, 2000, 2030, 2048, 200 << 10, 400<<10 - 400, 400<<10 - 100}[rng.IntN(12)]
			v = value.OfString(strings.Repeat("#x"[rng.IntN(2):][:1], max(0, near+rng.IntN(24)-12)))
		}
		attrs = append(attrs, value.Attr{Name: name, Value: v})
	}
	return value.NewItem(attrs...)
}

// noneDead derives everything, and complains of dead letters and of what verify finds.
func noneDead(t *testing.T, s *system.System) {
	t.Helper()
	p, done := s.Models[0], make(chan struct{})
	close(done)
	failtest.On(t, s.Reach(t.Context(), nil))
	f := reader.Follower{Runner: p.Runner}
	failtest.On(t, f.CatchUp(t.Context(), done))
	page, err := s.Store.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Dead(p.Model.Name))})
	failtest.On(t, err)
	for _, row := range page.Rows {
		t.Errorf("dead: %.600s", value.AppendPlainItem(nil, row))
	}
	failtest.On(t, again.Of(s, p).Run(t.Context(), func(d again.Difference) { t.Errorf("%.300v", d) }))
}
