package runner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/soaktest"
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
	soaktest.Calm(t)
	m, err := loadText(t, manyShards)
	failtest.On(t, err)
	for _, shards := range []int{1, 10, 100, 1000} {
		mt := m.Tables[0]
		table := mt.Table
		table.Stream = true
		db, err := embedded.Open("store", []store.Table{owntable.Table(), table}, embedded.Options{FS: vfs.NewMem(), Shards: shards})
		failtest.On(t, err)
		r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
		ledger := func() value.Item {
			row, err := r.GetRow(t.Context(), owntable.Ledger(m.Name, store.Ref{Table: "tagged", Key: store.Key{Partition: value.OfString("TAG#x"), Sort: value.OfString("METADATA")}}))
			failtest.On(t, err)
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
		failtest.On(t, err)
		done := make(chan struct{})
		close(done)
		failtest.On(t, (&reader.Follower{Runner: r}).CatchUp(t.Context(), done))
		log := ledger()
		if n := log.Get(owntable.SumAccumulator("things")); !value.Equal(n, value.OfInt(int64(20*shards))) {
			t.Errorf("%d shards: %v things of %d", shards, n, 20*shards)
		}
		if writeUnits(log) != 1 {
			t.Errorf("%d shards: %d bytes, %d units", shards, log.Size(), writeUnits(log))
		}
		t.Logf("%d shards: %d bytes, %d units", shards, log.Size(), writeUnits(log))
		failtest.On(t, db.Close())
	}
}

// TestLargestLedger: no ledger outgrows a row, whatever a model declares and source rows hold. It lists each attribute of a ledger with
// how many there are at most, and how many bytes each has.
func TestLargestLedger(t *testing.T) {
	soaktest.Calm(t)
	const (
		number = 21        // of 38 digits
		name   = 2 + 255   // of an attribute with its prefix
		note   = 1 + 700   // the id of a letter, and why, which is cut
		fact   = 2 * 510   // the name of a fact
		shards = 1000      // at work on one ledger at one time, as many as functions of an account run
		skips  = 100 << 10 // all attributes of skips together
	)
	bounds := map[string]struct{ most, bytes int }{
		"k": {1, 1 + 2048}, "s": {1, 2}, "n": {1, 1 + number}, "e": {1, 1 + number}, "x": {1, 1 + number},
		"q": {1, note}, "u": {1, note}, "m": {1, note}, "p:": {shards, 39}, "a:": {400, name + number}, "c:": {400, name + number},
		"h:": {110, name + fact}, "g:": {110, name + fact}, "i:": {110, name + 8*fact},
	}
	all := skips
	for prefix, b := range bounds {
		if !strings.Contains("h:g:i:", prefix) {
			all += b.most * b.bytes
		}
	}
	if all > store.MaxItemBytes {
		t.Errorf("they are %d bytes", all)
	}
	for _, latest := range []int{0, 110} {
		m, err := loadText(t, largest(latest))
		failtest.On(t, err)
		h := newHarness(t, m)
		defer h.close()
		long := strings.Repeat("k", 1000)
		ref := owntable.Ledger(m.Name, store.Ref{Table: "wide", Key: store.Key{Partition: value.OfString(long), Sort: value.OfString(long)}})
		write := func(ws ...store.Write) value.Item {
			out, err := h.store.Write(t.Context(), ws)
			failtest.On(t, err)
			for i := range out {
				failtest.On(t, out[i].Err)
			}
			row, err := store.GetRow(t.Context(), h.store, ref)
			failtest.On(t, err)
			return row
		}
		before, reason := value.OfInt(1<<52), strings.Repeat("w", 300_000)
		row := write(owntable.RaiseLedger(ref, before, nil))
		for _, l := range m.Entity("Sheet").Latest {
			skip := owntable.Skip{Attr: l.Set[0].Name, Begin: strings.Repeat("1", fact), End: strings.Repeat("f", fact)}
			for i := range 9 {
				skip.But = append(skip.But, owntable.NamesOf(fmt.Sprint(i+2, strings.Repeat("0", fact-1))))
			}
			row = write(owntable.LedgerRow(row).MoveSkip(ref, skip))
		}
		if skipped := row.Size(); skipped > skips {
			t.Errorf("%d skips have %d bytes", latest, skipped)
		}
		amount, err := value.ParseNumber("-" + strings.Repeat("9", 38))
		failtest.On(t, err)
		for i, tally := range m.Entity("Sheet").Values {
			adds, _ := tally.Kind.Adds(nil, tally.Attr, value.OfInt(1))
			for i := range adds {
				adds[i].Value = amount
			}
			write(owntable.CountLedger(ref, fmt.Sprintf("%08d", i), events.PositionOf(7), events.PositionOf(8), adds, before, value.Value{}))
		}
		for i := range shards {
			row = write(owntable.CountLedger(ref, fmt.Sprintf("%08d", i), events.PositionOf(9), events.PositionOf(1<<62), nil, before, value.Value{}))
		}
		row = write(owntable.LedgerRow(row).Forget(ref, []string{"00000001"}))
		for _, what := range []owntable.Lack{owntable.LacksTallies, owntable.LacksStatuses, owntable.LacksAll} {
			row = write(owntable.LedgerRow(row).NoteLack(what, ref, "0123456789abcdef", reason))
		}
		row = write(owntable.LedgerRow(row).Expire(ref, before))
		met := map[string]int{}
		for _, a := range row {
			prefix := a.Name
			if i := strings.Index(a.Name, ":"); i >= 0 {
				prefix = a.Name[:i+1]
			}
			met[prefix]++
			if b := bounds[prefix]; met[prefix] > b.most || (value.Item{a}).Size() > b.bytes {
				t.Errorf("%s, which is the %d., has %d bytes", prefix, met[prefix], (value.Item{a}).Size())
			}
		}
		t.Logf("%d latest: %d bytes, %v", latest, row.Size(), met)
	}
}

// largest is a model in which rows of Sheet have as many and as long attributes as lint takes, some of them the latest of rows. Which
// more are too many: TestWidestModels.
func largest(latest int) string {
	var derive strings.Builder
	for i := range 400 {
		what := fmt.Sprintf("mean: P%d.f, round: 2", i/140)
		if i >= 400-latest {
			what = "max: P0.f"
		}
		fmt.Fprintf(&derive, "  Sheet.%s%03d: {%s}\n", strings.Repeat("c", 252), i, what)
	}
	entities := ""
	for i := range 3 {
		entities += fmt.Sprintf("  P%d: {where: {kind: P%d}, key: {PK: \"SHEET#{id}\", SK: \"P%d#{n}\"}, attributes: {id: string!, n: string!, f: number}}\n", i, i, i)
	}
	return "model: wide\ntables: {wide: {key: [PK, SK]}}\nentities:\n  Sheet: {where: {kind: Sheet}, key: {PK: \"SHEET#{id}\", SK: META}, attributes: {id: string!}}\n" + entities + "derive:\n" + derive.String()
}
