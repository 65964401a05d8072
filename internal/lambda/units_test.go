package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir/internal/lambda"
	"weir/internal/memory/memorytest"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// metered is a store that adds up what ledgers cost by DynamoDB's documented rules: a write takes
// one unit for each KB of the row begun, also if its condition fails, and a read of a row one for
// each 4 KB begun.
type metered struct {
	store.Store
	writes, reads float64
	failed        int
	largest       int
	other         int // reads of shards' rows
}

func units(row value.Item, each int) float64 { return float64(max(1, (row.Size()+each-1)/each)) }

func (m *metered) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	for i := range ws {
		ws[i].Return = ws[i].Return || isLedger(ws[i].Ref)
	}
	out, err := m.Store.Write(ctx, ws)
	for i := range out {
		if isLedger(ws[i].Ref) {
			m.writes += units(out[i].Row, 1024)
			m.largest = max(m.largest, out[i].Row.Size())
			if out[i].Err != nil {
				m.failed++
			}
		}
	}
	return out, err
}

func (m *metered) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := m.Store.Get(ctx, refs)
	for i, row := range rows {
		switch {
		case isLedger(refs[i]):
			m.reads += units(row, 4096)
		case owntable.Kind(refs[i].Key.Partition.Text()) == owntable.KindCheckpoint:
			m.reads += units(row, 4096)
			m.other++
		}
	}
	return rows, err
}

func isLedger(ref store.Ref) bool {
	return owntable.Kind(ref.Key.Partition.Text()) == owntable.KindLedger
}

// readPrice is what a read unit costs in write units, by DynamoDB's price list.
const readPrice = 0.2

// TestLedgerUnits: what a record costs in a ledger hardly depends on the number of shards
// that a function reads, whether its batch has records for one ledger or for several. The reads and
// writes of removals are part of it; those by which any event is admitted are not.
func TestLedgerUnits(t *testing.T) {
	soaktest.Calm(t)
	for _, ledgers := range []int{1, 4} {
		var flat float64
		for i, shards := range []int{1, 1000, 10, 100} {
			if i == soaktest.Count(2, 4) {
				break
			}
			w := newWorld(t)
			m := &metered{Store: w}
			var processes []*lambda.Handler // of the function; each remembers what it met
			for range 8 {
				processes = append(processes, w.over(m))
			}
			dice := rand.New(rand.NewPCG(1, 2))
			c := &counting{model: "gallery", rows: "ledger|", record: func(n int) string {
				return fmt.Sprintf(`"PK":{"S":"ALBUM#%d"},"SK":{"S":"MEDIA#%d"}|,"EntityType":{"S":"AlbumMedia"},"albumId":{"S":"a"},"mediaId":{"S":"%d"},"addedAt":{"S":"2025-01-01T00:00:00Z"}`, n%ledgers, n, n)
			}}
			const warm, events = 300, 1500
			for i := range warm + events {
				if i == warm {
					*m = metered{Store: w}
				}
				numbers := make([]int, ledgers)
				for k := range numbers {
					numbers[k] = i*ledgers + k + 1
				}
				w.must(processes[dice.IntN(len(processes))], c.event(w, fmt.Sprint("s", dice.IntN(shards)), numbers...))
			}
			each := float64(events * ledgers)
			reads := m.reads - float64(events) // each event reads its shard's row first
			cost := (m.writes + readPrice*reads) / each
			if flat == 0 {
				flat = cost
			}
			t.Logf("%d ledgers in a batch, %d shards: %d bytes at most; a record of a ledger: %.2f write units, %.2f read units, of the cost of %.2f write units (%.2f of flat); %.1f%% of the writes fail",
				ledgers, shards, m.largest, m.writes/each, reads/each, cost, cost/flat, 100*float64(m.failed)/m.writes)
			if cost > 1.5*flat || m.largest > 1024 {
				t.Errorf("%d ledgers, %d shards: %.2f of flat, %d bytes", ledgers, shards, cost/flat, m.largest)
			}
		}
	}
}

// TestManyShardsAtOnce: very many shards that count in one ledger at the same time do not keep each other
// from it: few conditions fail, and all is counted once.
func TestManyShardsAtOnce(t *testing.T) {
	w := newWorld(t)
	var writes, failed, done atomic.Int64
	const shards, workers, each = 1000, 16, 3
	var wg sync.WaitGroup
	todo := make(chan int)
	errs := make(chan error, workers)
	for range workers {
		s := &tallied{Store: w, writes: &writes, failed: &failed}
		h := w.over(s)
		wg.Go(func() {
			for i := range todo {
				c := &countings[0]
				if _, err := h.Invoke(t.Context(), c.event(w, fmt.Sprint("s", i%shards), i+1)); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
				done.Add(1)
			}
		})
	}
	for i := range shards * each {
		todo <- i
	}
	close(todo)
	wg.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	n, _ := w.ledger("a")
	t.Logf("%d writes of the ledger for %d events of %d shards, %d failed", writes.Load(), shards*each, shards, failed.Load())
	most := int64(shards * each / 2)
	if memorytest.Race { // its slowness lets more writers meet
		most *= 2
	}
	if n != shards*each || failed.Load() > most {
		t.Errorf("%d counted of %d, %d writes failed", n, shards*each, failed.Load())
	}
	for _, row := range own(w, "ledger|") {
		if strings.Contains(row.Get(owntable.Partition).Text(), "ALBUM") && row.Size() > 2048 {
			t.Errorf("the ledger has %d bytes", row.Size())
		}
	}
}

// tallied counts writes of ledgers.
type tallied struct {
	store.Store
	writes, failed *atomic.Int64
}

func (s *tallied) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out, err := s.Store.Write(ctx, ws)
	for i := range out {
		if isLedger(ws[i].Ref) {
			s.writes.Add(1)
			if errors.Is(out[i].Err, store.ErrCondition) {
				s.failed.Add(1)
			}
		}
	}
	return out, err
}

// charged is a store that adds up the write units of all rows, by DynamoDB's documented rules: a write takes one for each KB of the
// larger of the rows before and after, also if its condition fails, and twice as much in a transaction.
type charged struct {
	store.Store
	units float64
	reads int // requests
}

func (c *charged) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	was, err := c.Store.Get(ctx, refsOf(ws))
	if err != nil {
		return nil, err
	}
	for i := range ws {
		ws[i].Return = true
	}
	out, err := c.Store.Write(ctx, ws)
	for i := range out {
		c.units += max(units(was[i], 1024), units(out[i].Row, 1024))
	}
	return out, err
}

func (c *charged) Transact(ctx context.Context, ws []store.Write) error {
	was, err := c.Store.Get(ctx, refsOf(ws))
	if err != nil {
		return err
	}
	err = c.Store.Transact(ctx, ws)
	is, bad := c.Store.Get(ctx, refsOf(ws))
	for i := range is {
		c.units += 2 * max(units(was[i], 1024), units(is[i], 1024))
	}
	return errors.Join(err, bad)
}

func (c *charged) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	c.reads++
	return c.Store.Get(ctx, refs)
}

func refsOf(ws []store.Write) (out []store.Ref) {
	for i := range ws {
		out = append(out, ws[i].Ref)
	}
	return out
}

// TestEventUnits: an event writes each target and each ledger once, whatever its size. What it costs besides is what its marks take.
func TestEventUnits(t *testing.T) {
	for _, of := range []struct {
		records, albums int
		most            float64
		reads           int
	}{{200, 3, 9, 3}, {1000, 3, 12, 3}, {1000, 1000, 2006, 3}} {
		w := newWorld(t)
		c := &charged{Store: w.Store}
		var ws []store.Write
		for a := range of.albums {
			key := store.Key{Partition: value.OfString(fmt.Sprint("ALBUM#", a)), Sort: value.OfString("METADATA")}
			ws = append(ws, store.Write{Ref: store.Ref{Table: "gallery", Key: key}, Put: w.model.Tables[0].Item(key).With(value.Attr{Name: "EntityType", Value: value.OfString("Album")})})
		}
		if _, err := w.Store.Write(t.Context(), ws); err != nil {
			t.Fatal(err)
		}
		h := w.over(c)
		at := 0
		event := func() string {
			var records []string
			for range of.records {
				at++
				records = append(records, strings.ReplaceAll(picture(fmt.Sprint(at)), `"ALBUM#a"`, fmt.Sprintf(`"ALBUM#%d"`, at%of.albums)))
			}
			return ofShard(recordsOf(records...))
		}
		w.must(h, []byte(event()))
		c.units, c.reads = 0, 0
		w.must(h, []byte(event()))
		t.Logf("%d records for %d albums: %.0f write units, %d requests that read", of.records, of.albums, c.units, c.reads)
		if c.units > of.most || c.reads > of.reads {
			t.Errorf("%d records for %d albums: %.0f write units and %d requests that read, want at most %.0f and %d", of.records, of.albums, c.units, c.reads, of.most, of.reads)
		}
		// What weir wrote comes back: it asks for nothing, and is noted in one write. The first has marks leave the row.
		for n := range 2 {
			c.units = 0
			at++
			row := `"PK":{"S":"ALBUM#0"},"SK":{"S":"METADATA"},"EntityType":{"S":"Album"},"mediaCount":{"N":"%[2]d"},"weir":{"N":"%[2]d"}`
			echo := `{"eventID":"e","eventName":"MODIFY","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x","dynamodb":{"SequenceNumber":"%[1]d",` +
				`"Keys":{"PK":{"S":"ALBUM#0"},"SK":{"S":"METADATA"}},"OldImage":{` + row + `},"NewImage":{` + strings.ReplaceAll(row, "[2]", "[3]") + `}}}`
			w.must(h, []byte(ofShard(recordsOf(fmt.Sprintf(echo, at, n, n+1)))))
		}
		if c.units > 1 {
			t.Errorf("an event of what weir wrote takes %.0f write units", c.units)
		}
	}
}
