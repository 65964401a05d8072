package build_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
)

// TestRetiredWithoutAFile: all of a model is retired by its name alone. What derives it is refused,
// its builds end, and an hour later its ledgers go, those of builds and of before. With the file
// it is derived again, exactly.
func TestRetiredWithoutAFile(t *testing.T) {
	f := open(t, load(t, mixed))
	for _, row := range lateRows {
		f.write(row...)
	}
	f.catchUp()
	f.build(owntable.BuildLive, "Task")
	again := f.builder(mixedNames...)
	again.Asked = f.now()
	_, err := again.Announce(t.Context())
	f.ok(err)
	f.catchUp()
	m, ok := model.Named(f.model.Name)
	if !ok {
		t.Fatal("it cannot be named")
	}
	r := *f.runner()
	r.Model, r.Catalog = m, catalog.New(m, f.Store, f.now, catalog.Options{})
	b := &build.Builder{Runner: &r, Contributions: kinds.Contributions}
	if _, _, err := b.PruneRetired(t.Context()); !errors.Is(err, build.ErrDerived) {
		t.Errorf("pruned while it is derived: %v", err)
	}
	retired, err := r.Catalog.RetireAll(t.Context())
	if f.ok(err); len(retired) == 0 || !slices.IsSorted(retired) {
		t.Errorf("retired: %v", retired)
	}
	if more, err := r.Catalog.RetireAll(t.Context()); err != nil || len(more) > 0 {
		t.Error(more, err)
	}
	if err := catalog.New(f.model, f.Store, f.now, catalog.Options{}).Start(t.Context(), nil); !errors.Is(err, catalog.ErrRefused) || !strings.Contains(err.Error(), "is retired since") {
		t.Errorf("what derives it is not refused: %v", err)
	}
	row, err := r.Catalog.Row(t.Context())
	f.ok(err)
	if n := len(row.Builds.Counting()); n > 0 {
		t.Errorf("%d builds go on", n)
	}
	out, removed, err := b.PruneRetired(t.Context())
	if f.ok(err); removed > 0 || len(out) != 1 || out[0].Why == "" {
		t.Errorf("within the hour %d rows are removed: %+v", removed, out)
	}
	f.clock.Add(2)
	ours := owntable.Partitions(m.Name)
	f.unharmed(func() {
		_, removed, err := b.PruneRetired(t.Context())
		if f.ok(err); removed == 0 {
			t.Error("nothing is removed")
		}
	})
	for name, row := range f.rows(owntable.TableName) {
		if p := row.Get(owntable.Partition).Text(); ours(p) || strings.HasPrefix(p, owntable.FollowedIn(m.Name)) {
			t.Errorf("%s is left", name)
		}
	}
	if row, err = r.Catalog.Row(t.Context()); err != nil || len(row.Builds) > 0 || len(row.Derivations) == 0 {
		t.Errorf("%+v, %v", row, err)
	}
	f.write(lateRows[1][:4]...)
	f.build(owntable.BuildLive, mixedNames...)
	f.catchUp()
	f.compareMixed()
}
