package set

import (
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A set holds the values that the application gave, also where the key that they are
// read from has them escaped.
func TestMembersAreTheApplicationsOwnValues(t *testing.T) {
	m, err := model.Load("viewing")
	if err != nil {
		t.Fatal(err)
	}
	e := m.Entity("History")
	attr := func(name, v string) value.Attr { return value.Attr{Name: name, Value: value.OfString(v)} }
	for key, id := range map[string]string{"COMPLETED|x%7Cy": "x|y", "COMPLETED|x|y": "x|y", "COMPLETED|a%23b": "a%23b"} {
		row := value.NewItem(attr("profileId", "p"), attr("sk", key), attr("a.assetId", id), attr("a.state", "COMPLETED"))
		k, _ := e.Table.KeyOf(row)
		var f projections.Faults
		adds := Fold(&projections.Change{Table: e.Table, Row: store.Ref{Table: e.Table.Name, Key: k}, New: row, Is: e}, &f)
		if len(adds) != 1 || adds[0].Field != owntable.MemberAmount("assetIds", id) {
			t.Errorf("%s: %+v", key, adds)
		}
	}
}
