package build_test

import (
	"math/rand/v2"
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// kept is a store that stays open when one of its users has closed it.
type kept struct{ store.Store }

func (kept) Close() error { return nil }

// TestRemovedInAStage: of two stages of one model in one account one removes what is retired. Every row of the other one stays
// as it is, in its tables and in its own table, and it goes on.
func TestRemovedInAStage(t *testing.T) {
	removedInAStage(t, func(tables []store.Table) store.Store {
		db, err := embedded.Open(t.TempDir(), tables, embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	})
}

// TestRemovedInAStageOnDynamoDB is the same on DynamoDB Local.
func TestRemovedInAStageOnDynamoDB(t *testing.T) {
	removedInAStage(t, func(tables []store.Table) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	})
}

func removedInAStage(t *testing.T, over func(tables []store.Table) store.Store) {
	m := load(t, ownRows+ownRowsGone+ownRowsDerive+ownRowsRetired)
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	prod := stage.Stage{Name: "prod", Tables: []stage.Pair{{Logical: "texts", Real: "texts-prod"}, {Logical: "bytes", Real: "bytes-prod"}, {Logical: "numbers", Real: "numbers-prod"}}}
	real := map[string]store.Table{}
	var of []stage.Names
	for _, s := range []stage.Stage{{}, prod} {
		n, err := stage.New(s, tables)
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, n)
		for _, r := range n.Tables(tables) {
			real[r.Name] = r
		}
	}
	var all []store.Table
	for _, r := range real {
		all = append(all, r)
	}
	db := over(all)
	open := func(n stage.Names) *fixture {
		f := &fixture{TB: t, model: m, table: m.Tables[0].Name}
		f.System, err = system.Over(t.Context(), kept{stage.Wrap(db, n)}, "", []*model.Model{m}, system.Options{Now: f.now, NoSearch: true})
		f.ok(err)
		return f
	}
	other, f := open(of[0]), open(of[1])
	d := rand.New(rand.NewPCG(2, 0))
	for n := range votesOn {
		for i := range 4 {
			other.vote(4*n+i, n, d)
		}
	}
	for range 60 {
		other.edit(d)
	}
	other.catchUp()
	state := func() map[string]value.Item {
		out := other.rows(owntable.TableName)
		for _, mt := range m.Tables {
			for name, row := range other.rows(mt.Name) {
				out[mt.Name+" "+name] = row
			}
		}
		return out
	}
	before := state()
	removedOwnRows(f, d)
	after := state()
	for name, row := range before {
		if !value.EqualItems(row, after[name]) {
			t.Errorf("%s was %v, is %v", name, row, after[name])
		}
	}
	if len(before) != len(after) || len(before) < 100 {
		t.Errorf("%d rows, were %d", len(after), len(before))
	}
	other.edit(d)
	other.catchUp()
	other.verified()
}
