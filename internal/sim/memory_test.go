package sim

import (
	"context"
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestPowerCut: of a transaction that was not made durable a power cut leaves all or
// nothing.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(50) {
		m := newMemory([]store.Table{owntable.Table()}, time.Now, newDice(seed, "store", 0))
		m.keep = true
		put := func(name string) store.Write {
			ref := owntable.Ref(name, "")
			return store.Write{Ref: ref, Put: value.NewItem(owntable.RefItem(ref)...)}
		}
		var err error
		if _, err = m.Write(context.Background(), []store.Write{put("first")}); err == nil {
			err = m.Transact(context.Background(), []store.Write{put("a"), put("b"), put("c")})
		}
		if err != nil {
			t.Fatal(err)
		}
		m.cut(newDice(seed, "cut", 0))
		there := 0
		for _, name := range []string{"a", "b", "c"} {
			if m.tables[owntable.TableName].get(owntable.Ref(name, "").Key) != nil {
				there++
			}
		}
		if there != 0 { // whatever is lost, the newest is
			t.Errorf("seed %d: %d of 3 rows of a transaction are there", seed, there)
		}
	}
}
