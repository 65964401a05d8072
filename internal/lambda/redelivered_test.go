package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestRedelivered: what was delivered within two days is acknowledged without effect, however it comes again: whole, cut, several
// events as one, with new records behind it; and also after invocations that died between the marks that leave the shard's row and
// the row. What was never delivered is refused.
func TestRedelivered(t *testing.T) {
	soaktest.Calm(t)
	w, r := newWorld(t), rand.New(rand.NewPCG(1, 2))
	s := &dying{Store: w.Store}
	h := w.over(s)
	event := func(from, to int) []byte {
		var records []string
		for n := from; n <= to; n++ {
			records = append(records, picture(fmt.Sprint(2*n)))
		}
		return []byte(ofShard(recordsOf(records...)))
	}
	came := 0
	for i, size := range []int{1, 3, 5, 190, 2, 260, 1, 199, 200, 201, 1000, 30, 30, 30, 30, 30, 30, 30, 1500, 1} {
		fresh := came + size
		if i%3 == 1 {
			s.dies = true
			if _, err := h.Invoke(t.Context(), event(came+1, fresh)); err == nil || s.dies {
				t.Fatal("the invocation did not die", err)
			}
			fresh = came + 1 + r.IntN(2*size)
		}
		w.must(h, event(max(1, came-r.IntN(300)), fresh))
		came = fresh
		for range 12 {
			from := 1 + r.IntN(came)
			w.must(h, event(from, from+r.IntN(min(1500, came-from+1))))
		}
		w.must(h, event(1, came))
		if n, _ := w.ledger("a"); n != int64(came) {
			t.Fatalf("%d records count as %d", came, n)
		}
		for n := range min(came, 40) { // odd numbers never came
			if _, err := h.Invoke(t.Context(), []byte(ofShard(recordsOf(picture(fmt.Sprint(2*(came-n)-1)))))); err == nil {
				t.Fatalf("record %d never came, and is acknowledged", 2*(came-n)-1)
			}
		}
	}
	page, err := w.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Tail("gallery", owntable.ShardKey("gallery", "shardId-1")))})
	if err != nil || len(page.Rows) < 5 {
		t.Fatal(len(page.Rows), err)
	}
	for _, row := range page.Rows {
		if at, _ := row.Get(owntable.Expiry).Int64(); at != w.now.Unix()+48*3600 {
			t.Errorf("a row of marks expires at %d", at)
		}
	}
}

// dying is a store that fails the next write of a shard's row: the marks that leave it are stored by then.
type dying struct {
	store.Store
	dies bool
}

func (d *dying) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if d.dies && strings.HasPrefix(ws[0].Key.Partition.Text(), "check|") {
		d.dies = false
		return nil, errors.New("it dies")
	}
	return d.Store.Write(ctx, ws)
}
