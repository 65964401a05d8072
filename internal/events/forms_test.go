package events

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/failtest"
)

const kinesisRecord = `{"awsRegion":"eu-west-1","eventID":"e1","eventName":"MODIFY","userIdentity":null,"recordFormat":"application/json","tableName":"things",` +
	`"dynamodb":{"ApproximateCreationDateTime":%s,"Keys":{"id":{"S":"k"}},"NewImage":{"id":{"S":"k"},"n":{"N":"2"}},"OldImage":{"id":{"S":"k"},"n":{"N":"1"}},"SizeBytes":9%s},"eventSource":"aws:dynamodb"}`

const kinesisWant = `MODIFY table=things id=e1 time=%s keys={"id":{"S":"k"}} old={"id":{"S":"k"},"n":{"N":"1"}} new={"id":{"S":"k"},"n":{"N":"2"}}` + "\n"

func streamWant(n int) string {
	return fmt.Sprintf(`INSERT table=things id=e%[1]d pos=%[1]d00000000000000000001 time=2023-11-14T22:13:20Z keys={"id":{"S":"k%[1]d"}} new={"id":{"S":"k%[1]d"},"n":{"N":"%[1]d"}}`+"\n", n)
}

func TestForms(t *testing.T) {
	millis := fmt.Sprintf(kinesisRecord, "1700000000123", "")
	micros := fmt.Sprintf(kinesisRecord, "1700000000123456", `,"ApproximateCreationDateTimePrecision":"MICROSECOND"`)
	millisWant := fmt.Sprintf(kinesisWant, "2023-11-14T22:13:20.123Z")
	microsWant := fmt.Sprintf(kinesisWant, "2023-11-14T22:13:20.123456Z")
	arrived := func(want string) string { return strings.Replace(want, " id=e1", " id=e1 arrival=49", 1) }
	in64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	failure := func(payload string) string {
		return `{"requestContext":{"requestId":"r","functionArn":"arn:aws:lambda:eu-west-1:1:function:f","condition":"RetryAttemptsExhausted","approximateInvokeCount":1},` +
			`"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"version":"1.0","timestamp":"2019-11-14T00:13:49.717Z",` +
			`"DDBStreamBatchInfo":{"shardId":"shardId-1","startSequenceNumber":"8","endSequenceNumber":"9","batchSize":2,` +
			`"streamArn":"arn:aws:dynamodb:us-east-2:123456789012:table/failed/stream/2019-11-14T00:04:06.388"}` + payload + `}`
	}
	bare := `{"eventName":"REMOVE","dynamodb":{"Keys":{"id":{"S":"k"}},"OldImage":{"id":{"S":"k"}},"SequenceNumber":"7"}}`
	bareWant := func(table string) string {
		return `REMOVE` + table + ` pos=7 keys={"id":{"S":"k"}} old={"id":{"S":"k"}}` + "\n"
	}
	export := `{"Metadata":{"WriteTimestampMicros":{"N":"1680109764000001"}},"Keys":{"id":{"S":"k"}}%s}`
	const exportWant = ` time=2023-03-29T17:09:24.000001Z keys={"id":{"S":"k"}}`

	for _, c := range []struct{ name, content, want string }{
		{"Lambda event", `{"Records":[` + streamRecord(1) + `,` + streamRecord(2) + `]}`, streamWant(1) + streamWant(2)},
		{"Lambda event of a window", `{"shardId":"s","window":{"start":"a","end":"b"},"state":{"x":[1,2]},"Records":[` + streamRecord(1) + `],"isFinalInvokeForWindow":false}`, streamWant(1)},
		{"an empty event", `{"Records":[]}`, ""},
		{"an event without records", `{"Records":null}`, ""},
		{"GetRecords page", `{"NextShardIterator":"AAA","Records":[` + streamRecord(1) + `]}`, streamWant(1)},
		{"a page with the iterator last", `{"Records":[` + streamRecord(1) + `],"NextShardIterator":"AAA"}`, streamWant(1)},
		{"pages, a line each", `{"Records":[` + streamRecord(1) + "]}\n\n" + `{"Records":[` + streamRecord(2) + "]}\r\n", streamWant(1) + streamWant(2)},
		{"an array of pages", `[{"Records":[` + streamRecord(1) + `]},{"Records":[]},{"Records":[` + streamRecord(2) + `]}]`, streamWant(1) + streamWant(2)},
		{"bare records, a line each", streamRecord(1) + "\n" + streamRecord(2) + "\n", streamWant(1) + streamWant(2)},
		{"bare records, nothing between", streamRecord(1) + streamRecord(2), streamWant(1) + streamWant(2)},
		{"bare records, commas between", streamRecord(1) + ",\n" + streamRecord(2) + ",\n", streamWant(1) + streamWant(2)},
		{"an array of bare records", "[\n" + streamRecord(1) + ",\n" + streamRecord(2) + "\n]\n", streamWant(1) + streamWant(2)},
		{"byte order marks", "\ufeff" + streamRecord(1) + "\n\ufeff" + streamRecord(2), streamWant(1) + streamWant(2)},
		{"an empty array", "[]", ""},
		{"nothing", "", ""},
		{"only white space", " \n\t\r\n", ""},
		{"the CLI's page, dates in ISO 8601", pretty(t, strings.ReplaceAll(`{"Records":[`+streamRecord(1)+`],"NextShardIterator":"A"}`, "1700000000", `"2023-11-14T23:13:20+01:00"`)), streamWant(1)},
		{"the CLI's page, dates as floats", pretty(t, strings.ReplaceAll(`{"Records":[`+streamRecord(1)+`]}`, "1700000000", `1700000000.0`)), streamWant(1)},
		{"the CLI's list of records", pretty(t, `[`+streamRecord(1)+`,`+streamRecord(2)+`]`), streamWant(1) + streamWant(2)},
		{"names in other capitals", strings.NewReplacer("eventName", "EventName", "dynamodb\"", "Dynamodb\"", "SequenceNumber", "sequenceNumber", "eventID", "eventId", "eventSourceARN", "EventSourceArn").Replace(streamRecord(1)), streamWant(1)},
		{"types in small letters, as Java functions log events", `{"records":[{"eventName":"INSERT","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/things/stream/x","dynamodb":{"keys":{"id":{"s":"k","n":null,"b":null}},` +
			`"newImage":{"id":{"n":null,"s":"k","m":null,"null":null},"b":{"bool":true},"c":{"bOOL":false},"l":{"l":[{"s":"x"},{"n":"1","s":null}]},"m":{"s":null,"m":{"s":{"n":"2"}}},"o":{"nullValue":true},"p":{"null":true},"t":{"ss":["a"]}},"sequenceNumber":"7","sizeBytes":9}}]}`,
			`INSERT table=things pos=7 keys={"id":{"S":"k"}} new={"b":{"BOOL":true},"c":{"BOOL":false},"id":{"S":"k"},"l":{"L":[{"S":"x"},{"N":"1"}]},"m":{"M":{"s":{"N":"2"}}},"o":{"NULL":true},"p":{"NULL":true},"t":{"SS":["a"]}}` + "\n"},
		{"a record that says little", bare, bareWant("")},
		{"Kinesis, the record alone", millis + "\n" + micros, millisWant + microsWant},
		{"Kinesis, in a Lambda event", `{"Records":[{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":"1","sequenceNumber":"49","data":"` + in64(millis) +
			`","approximateArrivalTimestamp":1.5},"eventSource":"aws:kinesis","eventSourceARN":"arn:aws:kinesis:eu-west-1:1:stream/s"}]}`, arrived(millisWant)},
		{"Kinesis, in a page", `{"Records":[{"SequenceNumber":"49","ApproximateArrivalTimestamp":1.5,"Data":"` + in64(micros+"\n") + `","PartitionKey":"1"}],"MillisBehindLatest":0}`, arrived(microsWant)},
		{"full export", `{"Item":{"id":{"S":"k"},"n":{"N":"1"}}}` + "\n" + `{"Item":{"id":{"S":"l"}}}` + "\n",
			`INSERT new={"id":{"S":"k"},"n":{"N":"1"}}` + "\n" + `INSERT new={"id":{"S":"l"}}` + "\n"},
		{"incremental export, insert", fmt.Sprintf(export, `,"NewImage":{"id":{"S":"k"}}`), `INSERT` + exportWant + ` new={"id":{"S":"k"}}` + "\n"},
		{"incremental export, change", fmt.Sprintf(export, `,"NewImage":{"id":{"S":"k"}},"OldImage":{"id":{"S":"k"}}`), `MODIFY` + exportWant + ` old={"id":{"S":"k"}} new={"id":{"S":"k"}}` + "\n"},
		{"incremental export, removal", fmt.Sprintf(export, `,"OldImage":{"id":{"S":"k"}}`), `REMOVE` + exportWant + ` old={"id":{"S":"k"}}` + "\n"},
		{"incremental export, removal without images", fmt.Sprintf(export, ``), `REMOVE` + exportWant + "\n"},
		{"incremental export, time as a number", `{"Metadata":{"WriteTimestampMicros":1680109764000001},"Keys":{"id":{"S":"k"}}}`, `REMOVE` + exportWant + "\n"},
		{"on-failure document, payload an object", failure(`,"payload":{"Records":[` + streamRecord(1) + `,` + bare + `]}`), streamWant(1) + bareWant(" table=failed")},
		{"on-failure document, payload a string", failure(`,"payload":` + strconv.Quote(`{"Records":[`+streamRecord(1)+`,`+bare+`]}`)), streamWant(1) + bareWant(" table=failed")},
		{"on-failure document, payload an array", failure(`,"payload":[` + streamRecord(1) + `]`), streamWant(1)},
		{"many forms in one file", "[" + streamRecord(1) + "]\n" + millis + failure(`,"payload":{"Records":[]}`) + `{"Item":{"id":{"S":"k"}}}`, streamWant(1) + millisWant + `INSERT new={"id":{"S":"k"}}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			failtest.On(t, Read(strings.NewReader(c.content), "", func(e Entry) error {
				got.WriteString(describe(e) + "\n")
				return nil
			}))
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
