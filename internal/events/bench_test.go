package events

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"syscall"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	simdjson "github.com/minio/simdjson-go"
)

// lambdaPayload is an event of n records of about 1.4 KB, the shapes and sizes of
// a table with a few dozen attributes in mixed types.
func lambdaPayload(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		image := func(rating int) string {
			return fmt.Sprintf(`{"SK":{"S":"METADATA"},"title":{"S":"The long way home, part %d"},"PK":{"S":"MOVIE#%08d"},"GSI1PK":{"S":"MOVIE"},`+
				`"ratingCount":{"N":"%d"},"rating":{"N":"%d.%d"},"isPublic":{"BOOL":true},"description":{"S":"A story told \"twice\", in caf\u00e9s and on trains; 旅の話 %d"},`+
				`"genres":{"L":[{"S":"drama"},{"S":"comedy"}]},"extra":{"M":{"year":{"N":"1999"},"country":{"S":"IS"},"none":{"NULL":true}}},`+
				`"createdAt":{"S":"2024-06-10T19:26:16.525Z"},"EntityType":{"S":"Movie"},"tags":{"SS":["a","b","c"]}}`,
				i, i, rating*3, rating, 1+rng.IntN(9), i)
		}
		fmt.Fprintf(&b, `{"eventID":"%032x","eventName":"MODIFY","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",`+
			`"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"SK":{"S":"METADATA"},"PK":{"S":"MOVIE#%08d"}},"NewImage":%s,"OldImage":%s,`+
			`"SequenceNumber":"%d","SizeBytes":700,"StreamViewType":"NEW_AND_OLD_IMAGES"},`+
			`"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/catalogue/stream/2024-06-10T19:26:16.525"}`,
			rng.Uint64(), 1700000000+i, i, image(rng.IntN(10)), image(rng.IntN(10)), 4421584500000000000+int64(i))
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkDecode(b *testing.B) {
	const records = 1000
	payload := lambdaPayload(records)
	b.Run("weir", func(b *testing.B) {
		start(b, payload)
		for b.Loop() {
			event, err := DecodeLambda(payload)
			if err != nil || len(event.Entries) != records || event.Entries[records-1].Bad != nil {
				b.Fatal(err)
			}
		}
		perRecord(b, records)
	})
	b.Run("encoding-json", func(b *testing.B) {
		start(b, payload)
		for b.Loop() {
			var event lambdaevents.DynamoDBEvent
			if err := json.Unmarshal(payload, &event); err != nil || len(event.Records) != records {
				b.Fatal(err)
			}
		}
		perRecord(b, records)
	})
	b.Run("simdjson", func(b *testing.B) {
		if !simdjson.SupportedCPU() {
			b.Skip("simdjson-go needs AVX2 and CLMUL, which this processor lacks")
		}
		start(b, payload)
		var parsed *simdjson.ParsedJson
		for b.Loop() {
			var err error
			if parsed, err = simdjson.Parse(payload, parsed); err != nil {
				b.Fatal(err)
			}
		}
		perRecord(b, records)
	})
}

func start(b *testing.B, payload []byte) {
	cpuStart = cpuTime()
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
}

// perRecord reports allocations a record; it runs the benchmark's inside no more.
func perRecord(b *testing.B, records int) {
	b.ReportMetric(float64(cpuTime()-cpuStart)/float64(b.N)/float64(records), "cpu-ns/record")
}

var cpuStart time.Duration

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano()+u.Stime.Nano())
}
