package dynamodbtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// partitions refuse writes beyond a number of units a second for each partition key, as DynamoDB
// does for a partition, which has 1,000. DynamoDB Local says what a write of one row costs; in
// a transaction it costs twice that, as DynamoDB documents.
type partitions struct {
	mu   sync.Mutex
	free map[string]*bucket // by table and partition key
}

// bucket is what a partition has left. It may be in debt: what a write costs is known
// afterwards.
type bucket struct {
	units, cost float64 // left; of the last write
	at          time.Time
}

func (b *bucket) fill(rate float64) {
	now := time.Now()
	b.units = min(rate, b.units+now.Sub(b.at).Seconds()*rate)
	b.at = now
}

// written is the part of a request that says which row it writes.
type written struct {
	TableName     string
	Key, Item     map[string]any
	TransactItems []map[string]written
}

// partitionKey names the partition of a row in tables whose partition key has one of these names.
func (w *written) partitionKey() string {
	key := w.Key
	if key == nil {
		key = w.Item
	}
	for _, name := range []string{"PK", "p", "pk", "id"} {
		if v := key[name]; v != nil {
			return w.TableName + "|" + fmt.Sprint(v)
		}
	}
	return w.TableName
}

// admit reports whether a write may happen now, and has its answer say what it cost. It knows
// writes of one row and transactions; everything else is admitted as it is. refused is the
// answer to a transaction that is not admitted.
func (p *partitions) admit(r *http.Request, body []byte, rate float64) (key string, with, refused []byte, ok bool) {
	var w written
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch op {
	case "UpdateItem", "PutItem", "DeleteItem", "TransactWriteItems":
	default:
		return "", body, nil, true
	}
	whole := map[string]any{}
	if json.Unmarshal(body, &w) != nil || json.Unmarshal(body, &whole) != nil {
		return "", body, nil, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if op == "TransactWriteItems" {
		refused, ok = p.transaction(&w, rate)
		return "", body, refused, ok
	}
	whole["ReturnConsumedCapacity"] = "INDEXES"
	with, err := json.Marshal(whole)
	if err != nil {
		return "", body, nil, true
	}
	key = w.partitionKey()
	b := p.of(key, rate)
	if b.units <= 0 {
		return key, nil, nil, false
	}
	b.units -= b.cost
	return key, with, nil, true
}

// of is a partition as it is now. p.mu is locked.
func (p *partitions) of(key string, rate float64) *bucket {
	if p.free == nil {
		p.free = map[string]*bucket{}
	}
	b := p.free[key]
	if b == nil {
		b = &bucket{units: rate, cost: 1, at: time.Now()}
		p.free[key] = b
	}
	b.fill(rate)
	return b
}

// transaction admits a transaction if each of its partitions admits its write. p.mu is locked.
func (p *partitions) transaction(w *written, rate float64) (refused []byte, ok bool) {
	type reason struct{ Code, Message string }
	reasons, all := []reason{}, []*bucket{}
	ok = true
	for _, item := range w.TransactItems {
		for _, one := range item {
			b := p.of(one.partitionKey(), rate)
			all = append(all, b)
			why := reason{Code: "None"}
			if b.units <= 0 {
				why, ok = reason{"ThrottlingError", "Throughput exceeds the current capacity"}, false
			}
			reasons = append(reasons, why)
		}
	}
	if ok {
		for _, b := range all {
			b.units -= 2 * b.cost
		}
		return nil, true
	}
	refused, _ = json.Marshal(map[string]any{
		"__type":  "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
		"Message": "Transaction cancelled", "CancellationReasons": reasons,
	})
	return refused, false
}

// paid takes what a write cost, where that differs from the write before.
func (p *partitions) paid(key string, answer []byte) {
	var said struct {
		ConsumedCapacity struct {
			Table struct{ CapacityUnits float64 }
		}
	}
	if key == "" || json.Unmarshal(answer, &said) != nil || said.ConsumedCapacity.Table.CapacityUnits == 0 {
		return // a failed condition costs what the row would have
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.free[key]
	b.units -= said.ConsumedCapacity.Table.CapacityUnits - b.cost
	b.cost = said.ConsumedCapacity.Table.CapacityUnits
}
