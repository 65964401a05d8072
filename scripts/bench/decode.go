package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	simdjson "github.com/minio/simdjson-go"

	"weir/internal/events"
)

// decode compares how fast the payload of one Lambda invocation is decoded: 1,000 records of a
// gallery's stream with both images, about 1.4 KB on average.
//
// Weir's decoder checks every record and returns typed values with sorted attributes,
// positions and times. The first peer is what Lambda functions in Go use: encoding/json into
// the types of the events package. The second peer, simdjson-go, only parses; it does not read
// the values yet.
func (b *bench) decode() error {
	const records = 1000
	payload := lambdaPayload(records)
	b.say("%d records of %d bytes each", records, len(payload)/records)
	work := []*decoder{{name: "weir", do: decodeWeir}, {name: "encoding/json", do: decodeJSON}}
	if simdjson.SupportedCPU() {
		var parsed *simdjson.ParsedJson
		work = append(work, &decoder{name: "simdjson-go", do: func(p []byte) (err error) {
			parsed, err = simdjson.Parse(p, parsed)
			return err
		}})
	}
	for range pick(b, 5, 9) {
		for _, d := range work {
			if err := d.round(payload, pick(b, 150*time.Millisecond, 500*time.Millisecond)); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			if err := b.ctx.Err(); err != nil {
				return err
			}
		}
	}
	for _, d := range work {
		b.say("%s: %s", d.name, d.show(records))
	}
	weir := work[0]
	b.table.atLeast(8, "×", line{what: "decode, against encoding/json", figure: weir.show(records), peer: work[1].show(records)}, weir.speed(), work[1].speed())
	if len(work) < 3 {
		b.table.add(line{what: "decode, against simdjson-go's bare parse", figure: weir.show(records), peer: "skipped: this processor has no AVX2"})
		return nil
	}
	b.table.atLeast(1, "×", line{what: "decode, against simdjson-go's bare parse", figure: weir.show(records), peer: work[2].show(records)}, weir.speed(), work[2].speed())
	return nil
}

// lambdaPayload returns a Lambda event of n records.
func lambdaPayload(n int) []byte {
	w := newWorld(2)
	w.arn = true
	var record []byte
	for range 20 * n { // until there is something to change
		record = w.next(record[:0])
	}
	out := []byte(`{"Records":[`)
	for range n {
		out = append(w.next(out), ',')
	}
	return append(out[:len(out)-1], `]}`...)
}

func decodeWeir(payload []byte) error {
	event, err := events.DecodeLambda(payload)
	if err != nil {
		return err
	}
	for i := range event.Entries {
		if event.Entries[i].Bad != nil {
			return event.Entries[i].Bad
		}
	}
	return nil
}

func decodeJSON(payload []byte) error {
	var event lambdaevents.DynamoDBEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return err
	}
	if len(event.Records) == 0 {
		return errors.New("no records")
	}
	return nil
}

// decoder is one way to decode a payload, with the times of its rounds.
type decoder struct {
	name   string
	do     func(payload []byte) error
	speeds []float64 // MB/s
	allocs []float64 // a payload
}

// round decodes the payload repeatedly for at least the given time.
func (d *decoder) round(payload []byte, least time.Duration) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start, n := time.Now(), 0
	for ; n == 0 || time.Since(start) < least; n++ {
		if err := d.do(payload); err != nil {
			return err
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	d.speeds = append(d.speeds, float64(n*len(payload))/1e6/took.Seconds())
	d.allocs = append(d.allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
	return nil
}

func (d *decoder) speed() float64 { return median(d.speeds) }

func (d *decoder) show(records int) string {
	return fmt.Sprintf("%.0f MB/s, %.3g allocs/record", d.speed(), median(d.allocs)/float64(records))
}
