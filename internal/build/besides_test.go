package build_test

import (
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestRemovalsLeaveOtherModels: of one own table, pruning, ending a build and removing marks take
// no row of another model, also if its name begins as this model's, and none of a generation
// whose number begins as that of one that goes.
func TestRemovalsLeaveOtherModels(t *testing.T) {
	t.Run("prune and abort", func(t *testing.T) {
		f := open(t, load(t, mixed))
		for _, row := range lateRows {
			f.write(row...)
		}
		f.catchUp()
		f.build(owntable.BuildLive, mixedNames...)
		f.clock.Add(2)
		again := f.builder(mixedNames...)
		again.Asked = f.now()
		_, err := again.Announce(t.Context())
		f.ok(err)
		f.write(lateRows[1][:4]...)
		f.catchUp()
		f.unharmed(func() {
			_, removed, err := f.builder(mixedNames...).Prune(t.Context())
			if err != nil || removed == 0 {
				t.Error(removed, err)
			}
			f.ok(f.builder(mixedNames...).Abort(t.Context()))
		})
	})
	t.Run("marks", func(t *testing.T) {
		f := handed(t)
		f.unharmed(func() {
			for range 2 {
				_, _, err := f.builder("Movie").Prune(t.Context())
				f.ok(err)
				f.clock.Add(2)
			}
		})
	})
}

// unharmed puts a row of other models, and one of another generation, beside each row of the
// model in the own table, and expects that these stay as they are.
func (f *fixture) unharmed(do func()) {
	f.Helper()
	var ws []store.Write
	own := owntable.Table()
	put := func(row value.Item, partition string) {
		row = row.With(value.Attr{Name: owntable.Partition, Value: value.OfString(partition)})
		key, _ := own.KeyOf(row)
		ws = append(ws, store.Write{Ref: store.Ref{Table: own.Name, Key: key}, Put: row})
	}
	for _, row := range f.rows(own.Name) {
		kind, rest, _ := strings.Cut(row.Get(owntable.Partition).Text(), "|")
		rest, ours := strings.CutPrefix(rest, f.model.Name)
		if !ours {
			continue
		}
		for _, name := range []string{"another", f.model.Name + "2", f.model.Name + "-2"} {
			put(row, kind+"|"+name+rest)
		}
		if generation, rest, is := strings.Cut(rest, "|"); is && strings.HasPrefix(generation, "#") {
			put(row, kind+"|"+f.model.Name+generation+"0|"+rest)
		}
	}
	out, err := f.Store.Write(f.Context(), ws)
	f.ok(err)
	for i := range out {
		f.ok(out[i].Err)
	}
	names := map[string]bool{}
	for _, w := range ws {
		names[string(value.AppendPlainItem(nil, own.Item(w.Key)))] = true
	}
	before := f.rows(own.Name)
	do()
	after, gone := f.rows(own.Name), 0
	for name, row := range before {
		switch is := after[name]; {
		case names[name] && !value.EqualItems(is, row):
			f.Errorf("%s is changed or gone", name)
		case is == nil:
			gone++
		}
	}
	if gone == 0 {
		f.Error("nothing was removed")
	}
}
