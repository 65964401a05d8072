package system_test

import (
	"testing"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// TestUnreadableGeneration says that a row that cannot be read stops nothing: the indexes are
// filled again.
func TestUnreadableGeneration(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	dir := t.TempDir()
	for i := range 3 {
		s := openSystem(t, dir, m)
		putAlbum(t, s, "a1", "sunset")
		settle(t, s)
		searches(t, s, "sunset", "a1")
		rows := generationRows(t, s)
		if len(rows) != 1 {
			t.Errorf("%d rows", len(rows))
		}
		if g, err := owntable.DecodeGeneration(rows[0]); err != nil || !g.Filled || len(g.Indexes) != 2 {
			t.Errorf("%+v, %v", g, err)
		}
		if i == 0 {
			at := owntable.Ref(rows[0].Get("k").Text(), rows[0].Get("s").Text())
			writeOne(t, s.Store, store.Write{Ref: at, Ops: []store.Op{{Kind: store.Set, Attr: "i", Value: value.OfInt(1)}}})
		}
		failtest.On(t, s.Close())
	}
}

// generationRows are the rows of the model's search generations.
func generationRows(t *testing.T, s *system.System) []value.Item {
	t.Helper()
	return scan(t, s.Store, store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Generations(s.Models[0].Model.Name))})
}
