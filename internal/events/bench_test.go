//go:build unix

package events

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	simdjson "github.com/minio/simdjson-go"
)

// BenchmarkDecode sets decoding a Lambda event beside the ways that others have:
// run them together, and trust the ratios rather than the speeds. simdjson only
// parses, nothing is made of it; once its result may be kept, as of the others,
// and once its memory is used again for the next.
func BenchmarkDecode(b *testing.B) {
	const records = 1000
	payload := lambdaPayload(records)
	b.Run("weir", func(b *testing.B) {
		perRecord(b, records, payload, func() {
			event, err := DecodeLambda(payload)
			if err != nil || len(event.Entries) != records || event.Entries[records-1].Bad != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("encoding-json", func(b *testing.B) {
		perRecord(b, records, payload, func() {
			var event lambdaevents.DynamoDBEvent
			if err := json.Unmarshal(payload, &event); err != nil || len(event.Records) != records {
				b.Fatal(err)
			}
		})
	})
	var parsed *simdjson.ParsedJson
	for name, keep := range map[string]bool{"simdjson": true, "simdjson-reused": false} {
		b.Run(name, func(b *testing.B) {
			if !simdjson.SupportedCPU() {
				b.Skip("simdjson-go needs AVX2 and CLMUL, which this processor lacks")
			}
			perRecord(b, records, payload, func() {
				if keep {
					parsed = nil
				}
				var err error
				if parsed, err = simdjson.Parse(payload, parsed); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkRead reads the same records from files.
func BenchmarkRead(b *testing.B) {
	const records = 10_000
	payload := lambdaPayload(records)
	var lines, indented bytes.Buffer
	for line := range bytes.SplitSeq(payload[len(`{"Records":[`):len(payload)-2], []byte(`,{"eventID"`)) {
		if lines.Len() > 0 {
			lines.WriteString(`{"eventID"`)
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	json.Indent(&indented, payload, "", "    ")
	for _, form := range []struct{ name, content string }{
		{"event", string(payload)}, {"lines", lines.String()}, {"pretty", indented.String()},
		{"gzip", gzipped(b, lines.String())}, {"zstd", zstded(b, lines.String())},
	} {
		b.Run(form.name, func(b *testing.B) {
			perRecord(b, records, payload, func() {
				n := 0
				err := Read(strings.NewReader(form.content), "f", func(e Entry) error {
					if n++; e.Bad != nil {
						return e.Bad
					}
					return nil
				})
				if err != nil || n != records {
					b.Fatal(n, err)
				}
			})
		})
	}
}

// perRecord runs decode and reports what it costs for each record: allocations,
// and processor time, which a busy machine disturbs less than the clock.
func perRecord(b *testing.B, records int, payload []byte, decode func()) {
	b.SetBytes(int64(len(payload)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime()
	for b.Loop() {
		decode()
	}
	spent := processorTime() - start
	runtime.ReadMemStats(&after)
	n := float64(b.N) * float64(records)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/record")
	b.ReportMetric(float64(spent)/n, "cpu-ns/record")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
