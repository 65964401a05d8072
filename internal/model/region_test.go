package model

import (
	"testing"

	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/value"
)

// TestRegionFenceIsNoEntity: the row of weir in a replicated table counts for nothing, also where every row is of an entity.
func TestRegionFenceIsNoEntity(t *testing.T) {
	m, err := Parse("all.yaml", []byte("model: all\ntables: {all: {key: [id]}}\nentities:\n  Thing: {key: {id: \"{id}\"}, attributes: {id: string!}}\n"))
	failtest.On(t, err)
	table := m.Table("all")
	row := table.Item(owntable.RegionFenceOf(&table.Table).Key)
	if table.Classify(row) == nil {
		t.Error("a row with its key alone is of no entity")
	}
	if row = append(row, value.Attr{Name: "weir.region", Value: value.OfString("eu-west-1")}); table.Classify(row) != nil {
		t.Error("the fence is of an entity")
	}
	if row[0].Value = value.OfString("other"); table.Classify(row) == nil {
		t.Error("a row that follows a value in its attribute region is of no entity")
	}
}
