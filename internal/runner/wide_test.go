package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"weir/internal/contribution"
	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// TestWideCopyIsRestored: a copy with very many attributes is written, changed, and made again
// when an application deletes it: no expression of these writes is too large.
func TestWideCopyIsRestored(t *testing.T) {
	const wide = 250
	var fields, set []string
	for i := range wide {
		fields, set = append(fields, fmt.Sprintf("f%d: number", i)), append(set, fmt.Sprintf("f%d: f%d", i, i))
	}
	m, err := loadText(t, `
model: wide
tables: {wide: {key: [PK, SK]}}
entities:
  Sheet: {where: {kind: Sheet}, key: {PK: "SHEET#{id}", SK: META}, attributes: {id: string!, `+strings.Join(fields, ", ")+`}}
  Copy: {where: {kind: Copy}, key: {PK: COPIES, SK: "{id}"}, attributes: {id: string!, `+strings.Join(fields, ", ")+`}}
derive:
  Copy: {row: Sheet, set: {id: id, `+strings.Join(set, ", ")+`}}
`)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	table := m.Tables[0]
	copied := store.Ref{Table: table.Name, Key: store.Key{Partition: value.OfString("COPIES"), Sort: value.OfString("1")}}
	has := func(n int64) {
		t.Helper()
		failtest.On(t, h.settle(len(h.done)+1))
		failtest.On(t, h.runner(nil).EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
			t.Errorf("%s: %s", d.Target, d.Reason)
			return nil
		}))
		rows, err := h.store.Get(t.Context(), []store.Ref{copied})
		failtest.On(t, err)
		for i := range wide {
			if v := rows[0].Get(fmt.Sprintf("f%d", i)); !value.Equal(v, value.OfInt(n)) {
				t.Fatalf("f%d of the copy is %v, not %d", i, v, n)
			}
		}
	}
	for n := range int64(2) {
		row := value.NewItem(
			value.Attr{Name: "PK", Value: value.OfString("SHEET#1")}, value.Attr{Name: "SK", Value: value.OfString("META")},
			value.Attr{Name: "kind", Value: value.OfString("Sheet")}, value.Attr{Name: "id", Value: value.OfString("1")})
		for i := range wide {
			row = row.With(value.Attr{Name: fmt.Sprintf("f%d", i), Value: value.OfInt(n)})
		}
		failtest.On(t, h.writeRow(table, "put", []value.Item{row}))
		has(n)
		failtest.On(t, h.write(`delete wide {"PK":"COPIES","SK":"1"}`))
		has(n)
	}
}

// TestContributionsOfManyWrites: contributions that together change more rows than a transaction
// holds are counted in several, each row once.
func TestContributionsOfManyWrites(t *testing.T) {
	m, err := loadText(t, `
model: parts
tables: {parts: {key: [PK, SK]}}
entities:
  Whole: {where: {kind: Whole}, key: {PK: "WHOLE#{id}", SK: META}, attributes: {id: string!}}
  Part: {where: {kind: Part}, key: {PK: "WHOLE#{id}", SK: "PART#{n}"}, attributes: {id: string!, n: string!}}
derive:
  Whole.parts: {count: Part}
`)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	ref := func(sort string) store.Ref {
		return store.Ref{Table: "parts", Key: store.Key{Partition: value.OfString("WHOLE#1"), Sort: value.OfString(sort)}}
	}
	var rows []runner.ReadRow
	for i := range 10 {
		row := runner.ReadRow{Amounts: []value.Attr{{Name: owntable.SumAccumulator("parts"), Value: value.OfInt(1)}}}
		row.Source = ref(fmt.Sprintf("PART#%d", i))
		row.Key = m.Tables[0].Item(row.Source.Key)
		rows = append(rows, row)
	}
	const each = 25 // rows that a contribution changes
	counted := 0
	into := func(store.Ref) (runner.Into, int) {
		return func(_ context.Context, steps []contribution.Step) (ws []store.Write, err error) {
			for range steps {
				for range each {
					ws = append(ws, store.Write{
						Ref: owntable.Ref("leaf", fmt.Sprint(len(ws))), Ops: []store.Op{{Kind: store.Add, Attr: "n", Value: value.OfInt(1)}},
					})
				}
			}
			counted = len(ws)
			return ws, nil
		}, 10
	}
	failtest.On(t, h.runner(nil).PutRowsInto(t.Context(), ref("META"), rows, into))
	if counted == 0 || counted > 100 {
		t.Errorf("the last transaction has %d rows besides its marks", counted)
	}
	sum := int64(0)
	for _, row := range h.scan(owntable.TableName) {
		if n, ok := row.Get("n").Int64(); ok && row.Get(owntable.Partition).Text() == "leaf" {
			sum += n
		}
	}
	if want := int64(len(rows) * each); sum != want {
		t.Errorf("%d changes were written, not %d", sum, want)
	}
}
