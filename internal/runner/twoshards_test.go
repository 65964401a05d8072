package runner_test

import (
	"testing"

	"weir/internal/mergedlog"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
)

// TestLetterOfOneOfTwoShards: a batch has two records with one position, each of another shard. Of the copy that its table refuses,
// the dead letter has the record that asked for it.
func TestLetterOfOneOfTwoShards(t *testing.T) {
	m, err := loadText(t, `model: notes
tables:
  notes: {key: [PK]}
entities:
  Note: {where: {type: Note}, key: {PK: "NOTE#{id}"}, attributes: {text: string}}
  Twice: {where: {type: Twice}, key: {PK: "TWICE#{id}"}, attributes: {text: string, again: string}}
derive:
  Twice: {row: Note, set: {id: id, text: text, again: text}}
`)
	must(t, err)
	h := newHarness(t, m)
	defer h.close()
	must(t, h.write(`put notes {"PK":"NOTE#small","type":"Note","text":"a"}`))
	must(t, h.write(`put notes {"PK":"NOTE#large","type":"Note","text":{"$noise":300000}}`))
	h.pull()
	b, shards := runner.Batch{ShardKey: "log"}, []string{"one", "other"}
	for i := range h.records {
		c, _ := projections.NewChange(h.records[i].table, &h.records[i].rec)
		c.ShardKey, c.Position = owntable.ShardKey("notes", shards[i]), h.records[0].rec.Position
		c.Offset = mergedlog.Offset{Batch: 1, Position: c.Position, Nth: i}
		b.Changes = append(b.Changes, c)
	}
	_, err = h.runner(nil).Rows(t.Context(), b)
	must(t, err)
	n := 0
	must(t, h.runner(nil).Dead(t.Context(), func(d runner.Dead) error {
		n++
		if d.ShardKey != owntable.ShardKey("notes", "other") {
			t.Errorf("the letter of %s is of a record of shard one", d.Target)
		}
		return nil
	}))
	if n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}
