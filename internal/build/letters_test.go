package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// TestLetterFromBeforeGap: a copy was refused, and what its source became afterwards is lost in a
// gap. After a build, a retry of the dead letter brings back nothing that is older than the source.
func TestLetterFromBeforeGap(t *testing.T) {
	m := load(t, mixed)
	for _, numbered := range []bool{true, false} {
		for name, lost := range map[string][]any{
			"deleted": {"PK", "TASK#1", "SK", "METADATA"},
			"edited":  task("name", "last"),
			"moved":   task("name", "last", "owner", "p"),
			"same":    task("name", strings.Repeat("long", 20)),
		} {
			t.Run(fmt.Sprintf("%s, all changes are numbered %v", name, numbered), func(t *testing.T) { letterFromBeforeGap(t, m, numbered, lost) })
		}
	}
}

// task returns a row of a task with some other attributes.
func task(with ...any) []any {
	row := append([]any{}, lateRows[0]...)
	for i := 0; i < len(with); i += 2 {
		for j := 0; j < len(row); j += 2 {
			if row[j] == with[i] {
				row[j+1] = with[i+1]
			}
		}
	}
	return row
}

func letterFromBeforeGap(t *testing.T, m *model.Model, numbered bool, lost []any) {
	f := open(t, m)
	if !numbered {
		var err error
		f.System, err = system.Over(t.Context(), &approximate{Store: f.Store}, "", []*model.Model{m}, system.Options{Now: f.now, NoSearch: true})
		f.ok(err)
	}
	f.write(task()...)
	f.catchUp()
	f.fillCopy()
	f.catchUp()
	f.write(task("name", strings.Repeat("long", 20))...)
	f.catchUp()
	letters := f.dead()
	if len(letters) != 1 || letters[0].Kind != deadletter.Row {
		t.Fatalf("%+v", letters)
	}
	for key, row := range f.rows(f.table) {
		if strings.Contains(key, "OWNER#o") && row.Has("pad") {
			f.write("PK", row.Get("PK").Text(), "SK", row.Get("SK").Text())
		}
	}
	f.write(lost...)
	f.unread()
	f.announced(mixedNames...)
	f.catchUp()
	f.build(owntable.BuildLive, mixedNames...)
	f.compareMixed()
	if err := f.runner().RetryLetter(t.Context(), letters[0].ID); err != nil {
		t.Fatal(err)
	}
	f.catchUp()
	f.compareMixed()
	if left := f.dead(); len(left) > 0 {
		t.Errorf("%+v", left)
	}
	f.verified()
}

// fillCopy makes an application write into the copy until it has no room.
func (f *fixture) fillCopy() {
	f.Helper()
	for _, row := range f.rows(f.table) {
		if row.Get(owntable.Version).Kind() != value.Binary {
			continue
		}
		key, _ := f.model.Tables[0].KeyOf(row)
		out, err := f.Store.Write(f.Context(), []store.Write{{
			Ref: store.Ref{Table: f.table, Key: key},
			Ops: []store.Op{store.Assign("pad", value.OfString(strings.Repeat("x", store.MaxItemBytes-row.Size()-10)))},
		}})
		f.ok(err)
		f.ok(out[0].Err)
	}
}
