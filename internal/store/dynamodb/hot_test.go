package dynamodb

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/budget"
	"weir/internal/store"
)

// partition is a service whose row "hot" has units for so many writes in a second, and refuses
// others. Each request takes 5 ms.
type partition struct {
	rate float64

	mu               sync.Mutex
	left             float64
	at               time.Time
	written, refused int
}

func (p *partition) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Millisecond)
	a := good
	if strings.Contains(string(body), `"hot"`) {
		p.mu.Lock()
		p.left = min(p.rate, p.left+time.Since(p.at).Seconds()*p.rate)
		p.at = time.Now()
		if p.left < 1 {
			a = throttled
			p.refused++
		} else {
			p.left--
			p.written++
		}
		p.mu.Unlock()
	}
	return (&service{answers: []answer{a}}).answered(r, a), nil
}

func (s *service) answered(r *http.Request, a answer) *http.Response {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}}
}

func mustWrite(t *testing.T, s *Store, ws ...store.Write) {
	t.Helper()
	out, err := s.Write(t.Context(), ws)
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
}

// TestHotRow writes a row as often as it can, whose partition takes 10 writes a second. It is
// written about as often as that, and few writes are refused. Afterwards it is like any other.
func TestHotRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &partition{rate: 10, at: time.Now()}
		s := opened(p, Options{})
		for start := time.Now(); time.Since(start) < time.Minute; {
			mustWrite(t, s, setThing("hot"))
		}
		if p.written < 300 || p.refused > p.written/10 {
			t.Errorf("%d writes in a minute, and %d refused", p.written, p.refused)
		}
		p.rate = 1e6
		start := time.Now()
		for len(s.hot.of) > 0 && time.Since(start) < 2*time.Minute {
			mustWrite(t, s, setThing("hot"))
		}
		if took := time.Since(start); took > 70*time.Second {
			t.Errorf("the row is spaced %v after its partition took any number", took)
		}
	})
}

// TestOthersOfAHotRow: writes of other rows do not wait for it.
func TestOthersOfAHotRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &partition{rate: 2, at: time.Now()}
		s := opened(p, Options{})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Write(ctx, []store.Write{setThing("hot")})
			}
		})
		for range 1000 {
			start := time.Now()
			mustWrite(t, s, setThing("cold"))
			if took := time.Since(start); took > 5*time.Millisecond {
				t.Fatalf("a write of another row took %v", took)
			}
		}
		stop()
		wg.Wait()
	})
}

// TestOneRefusalIsNoHotRow: a request that is refused by chance is sent again within
// milliseconds.
func TestOneRefusalIsNoHotRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(&service{answers: []answer{throttled, good}}, Options{})
		start := time.Now()
		mustWrite(t, s, setThing("a"))
		if took := time.Since(start); took > 20*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// TestRefusedByChance: a row of which now and then one write is refused, as of any other, is not taken for a hot one.
func TestRefusedByChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []answer
		for range 50 {
			for range 19 {
				answers = append(answers, good)
			}
			answers = append(answers, throttled)
		}
		s := opened(&service{answers: append(answers, good)}, Options{})
		start := time.Now()
		for range 50 * 19 {
			mustWrite(t, s, setThing("a"))
		}
		if took, each := time.Since(start), 15*time.Millisecond; took > 50*each {
			t.Errorf("50 refusals of 1000 took %v", took)
		}
	})
}

func consumed(units string) answer {
	return answer{200, `{"ConsumedCapacity":{"TableName":"things","CapacityUnits":` + units + `}}`, nil}
}

// TestWritesWaitForTheBudget: writes, those whose condition fails, and transactions are paid for by
// what DynamoDB documents, and wait for the budget.
func TestWritesWaitForTheBudget(t *testing.T) {
	bigRow := answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":{"PK":{"S":"a"},"v":{"S":"` + strings.Repeat("x", 9<<10) + `"}}}`, nil}
	transaction := answer{200, `{"ConsumedCapacity":[{"TableName":"things","CapacityUnits":4}]}`, nil}
	cancelled := answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"no","CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"None"}]}`, nil}
	for name, c := range map[string]struct {
		answer answer
		writes int
		units  float64
	}{
		"a write of 20 units":                           {consumed("20"), 1, 20},
		"a condition that fails on a row of 9 KB":       {bigRow, 1, 10},
		"a transaction of which too little is said":     {transaction, 5, 10},
		"a transaction that is cancelled, of two":       {cancelled, 2, 4},
		"a transaction of one, of which enough is said": {transaction, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := budget.New(10, "weir")
				writes.Share([]string{"things"}, 1)
				s := opened(&service{answers: []answer{c.answer}}, Options{Writes: writes})
				send := func() {
					if !strings.Contains(name, "transaction") {
						_, _ = s.Write(t.Context(), []store.Write{onlyIf(putThing("a"))})
						return
					}
					ws := make([]store.Write, c.writes)
					for i := range ws {
						ws[i] = onlyIf(putThing(string(rune('a' + i))))
						ws[i].Return = false
					}
					_ = s.Transact(t.Context(), ws)
				}
				send()
				if got := writes.Uses()[0].Units; got != c.units {
					t.Fatalf("%v units, should be %v", got, c.units)
				}
				start := time.Now()
				send()
				if took, want := time.Since(start), time.Duration(c.units/10*float64(time.Second)); took < want-50*time.Millisecond || took > want+50*time.Millisecond {
					t.Errorf("the next one waited for %v, should wait for %v", took, want)
				}
			})
		})
	}
}
