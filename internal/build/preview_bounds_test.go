package build

import (
	"fmt"
	"testing"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// TestPreviewIsBounded: a preview holds so many ledgers and values, and says nothing of rows
// whose ledger it does not have.
func TestPreviewIsBounded(t *testing.T) {
	m, err := model.Parse("m.yaml", []byte(`model: m
tables: {rows: {key: [PK, SK]}}
entities:
  A: {where: {t: a}, key: {PK: "{id}", SK: A}}
  B: {where: {t: b}, key: {PK: "{a}", SK: "B{id}"}, attributes: {x: string}}
derive:
  A.n: {count: B, to: {id: a}}
  A.x: {distinct: B.x, to: {id: a}, max: 1000}
`))
	if err != nil {
		t.Fatal(err)
	}
	ref := func(id int) store.Ref {
		return store.Ref{Table: "rows", Key: store.Key{Partition: value.OfString(fmt.Sprint(id)), Sort: value.OfString("A")}}
	}
	n := func(name string) value.Attr { return value.Attr{Name: name, Value: value.OfInt(1)} }
	p := &preview{most: 3, model: m, by: map[string]*Preview{}}
	p.of([]string{"A.n"}, m.Entity("A"))
	for id := range previewTargets + 10 {
		p.adds(projections.Contribution{Target: ref(id), Amounts: []value.Attr{n("a:n")}})
	}
	for id := range previewTargets + 20 {
		p.compares(ref(id), nil)
	}
	if is := p.by["A.n"]; is.Rows != previewTargets || is.Differ != previewTargets || len(is.Some) != 3 || len(p.ledgers) != previewTargets {
		t.Errorf("%d ledgers, %+v", len(p.ledgers), is)
	}
	p.of([]string{"A.x"}, m.Entity("A"))
	for i := range previewValues + 10 {
		p.adds(projections.Contribution{Target: ref(i % 2), Amounts: []value.Attr{n(fmt.Sprint("d:x:", i))}})
	}
	if p.values > previewValues || len(p.unknown) == 0 {
		t.Errorf("%d values, %d without", p.values, len(p.unknown))
	}
	for id := range 2 {
		p.compares(ref(id), nil)
	}
	if is := p.by["A.x"]; int(is.Rows) != 2-len(p.unknown) {
		t.Errorf("%+v", is)
	}
}
