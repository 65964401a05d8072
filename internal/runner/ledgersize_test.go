package runner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const manyShards = `model: tagged
tables:
  tagged: {key: [PK, SK]}
entities:
  Tag: {where: {type: Tag}, key: {PK: "TAG#{id}", SK: METADATA}, attributes: {title: string}}
  Thing: {where: {type: Thing}, key: {PK: "THING#{n}", SK: METADATA}, attributes: {tag: string}}
derive:
  Tag.things: {count: Thing, to: {id: tag}}
`

// writeUnits are those of a write of a row by DynamoDB's documented rules: one for each KB begun.
func writeUnits(row value.Item) int { return (row.Size() + 1023) / 1024 }

// TestLedgerSize: the ledger of a row for which records of very many shards count stays below 1 KB, so that its write costs
// one unit. Functions: TestLedgerUnitsByShard.
func TestLedgerSize(t *testing.T) {
	m, err := loadText(t, manyShards)
	must(t, err)
	for _, shards := range []int{1, 10, 100, 1000} {
		mt := m.Tables[0]
		table := mt.Table
		table.Stream = true
		db, err := embedded.Open("store", []store.Table{owntable.Table(), table}, embedded.Options{FS: vfs.NewMem(), Shards: shards})
		must(t, err)
		r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
		ledger := func() value.Item {
			row, err := r.GetRow(t.Context(), owntable.Ledger(m.Name, store.Ref{Table: "tagged", Key: store.Key{Partition: value.OfString("TAG#x"), Sort: value.OfString("METADATA")}}))
			must(t, err)
			return row
		}
		var ws []store.Write
		for n := range 20 * shards {
			ws = append(ws, store.Write{Ref: store.Ref{Table: "tagged"}, Put: value.NewItem(
				value.Attr{Name: "PK", Value: value.OfString(fmt.Sprint("THING#", n))}, value.Attr{Name: "SK", Value: value.OfString("METADATA")},
				value.Attr{Name: "type", Value: value.OfString("Thing")}, value.Attr{Name: "tag", Value: value.OfString("x")},
			)})
			ws[n].Ref.Key, _ = mt.KeyOf(ws[n].Put)
		}
		_, err = db.Write(t.Context(), ws)
		must(t, err)
		done := make(chan struct{})
		close(done)
		must(t, (&runner.Follower{Runner: r}).CatchUp(t.Context(), done))
		log := ledger()
		if n := log.Get(owntable.Sum("things")); !value.Equal(n, value.OfInt(int64(20*shards))) {
			t.Errorf("%d shards: %v things of %d", shards, n, 20*shards)
		}
		if writeUnits(log) != 1 {
			t.Errorf("%d shards: %d bytes, %d units", shards, log.Size(), writeUnits(log))
		}
		t.Logf("%d shards: %d bytes, %d units", shards, log.Size(), writeUnits(log))
		must(t, db.Close())
	}
}
