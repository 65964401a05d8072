package runner_test

import (
	"testing"

	"weir/internal/failtest"
)

// TestReplicatedRows: version 2017.11.29 of global tables writes attributes of its own to a
// row after the application's write, and before a deletion. Nothing counts twice by that.
func TestReplicatedRows(t *testing.T) {
	m, err := loadText(t, shelf)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	for _, line := range []string{
		`put shelf {"PK":"BOX#1","SK":"METADATA","type":"Box","title":"One"}`,
		`put shelf {"PK":"BOX#1","SK":"METADATA","type":"Box","title":"One","aws:rep:deleting":false,"aws:rep:updateregion":"us-east-1","aws:rep:updatetime":1767323045.5}`,
		`put shelf {"PK":"BOX#1","SK":"THING#1","type":"Thing","name":"x"}`,
		`put shelf {"PK":"BOX#1","SK":"THING#1","type":"Thing","name":"x","aws:rep:deleting":false,"aws:rep:updateregion":"us-east-1","aws:rep:updatetime":1767323045.5}`,
		`put shelf {"PK":"BOX#1","SK":"THING#2","type":"Thing","name":"x","aws:rep:deleting":false,"aws:rep:updateregion":"us-east-1","aws:rep:updatetime":1767323046.5}`,
		`put shelf {"PK":"BOX#1","SK":"THING#2","type":"Thing","name":"x","aws:rep:deleting":true,"aws:rep:updateregion":"us-east-1","aws:rep:updatetime":1767323047.5}`,
		`delete shelf {"PK":"BOX#1","SK":"THING#2"}`,
	} {
		failtest.On(t, h.write(line))
	}
	failtest.On(t, h.settle(1))
	for _, row := range h.scan("shelf") {
		if row.Get("SK").Text() == "METADATA" {
			if n, _ := row.Get("things").Int64(); n != 1 {
				t.Errorf("the box shows %d things, it has 1", n)
			}
		}
	}
	if out := h.audit(); out != "" {
		t.Error(out)
	}
}
