package tally

import (
	"fmt"
	"testing"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
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
	said := &heard{}
	begin := func(name string) *preview {
		*said = heard{tells: name}
		return Kind{}.Preview(&runner.Previewing{Runner: &runner.Runner{Model: m}, Build: "A", Entity: m.Entity("A"), Says: said}).(*preview)
	}
	compare := func(p *preview, id int) {
		if err := p.Compare(&projections.Change{Row: ref(id), Is: m.Entity("A")}); err != nil {
			t.Fatal(err)
		}
	}
	p := begin("A.n")
	for id := range runner.PreviewTargets + 10 {
		p.add(projections.Contribution{Target: ref(id), Amounts: []value.Attr{n("a:n")}})
	}
	for id := range runner.PreviewTargets + 20 {
		compare(p, id)
	}
	if said.rows != runner.PreviewTargets || said.differ != runner.PreviewTargets || len(p.ledgers) != runner.PreviewTargets {
		t.Errorf("%d ledgers, %+v", len(p.ledgers), said)
	}
	p = begin("A.x")
	for i := range runner.PreviewValues + 10 {
		p.add(projections.Contribution{Target: ref(i % 2), Amounts: []value.Attr{n(fmt.Sprint("d:x:", i))}})
	}
	if p.values > runner.PreviewValues || len(p.unknown) == 0 {
		t.Errorf("%d values, %d without", p.values, len(p.unknown))
	}
	for id := range 2 {
		compare(p, id)
	}
	if said.rows != 2-len(p.unknown) {
		t.Errorf("%+v", said)
	}
}

// heard counts what a preview says of one derivation.
type heard struct {
	tells        string
	rows, differ int
}

func (h *heard) Tells(derivation string) bool { return derivation == h.tells }
func (h *heard) Compared(string)              { h.rows++ }
func (h *heard) Differs(_, _, _, _ string)    { h.differ++ }
