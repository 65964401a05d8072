package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/value"
)

// describe writes an entry on one line, as the expectations in these tests do.
func describe(e Entry) string {
	var b strings.Builder
	if e.Location.File != "" {
		fmt.Fprintf(&b, "%d@%d ", e.Line, e.Offset)
	}
	if e.Bad != nil {
		fmt.Fprintf(&b, "bad: %s", e.Bad.Error())
		return b.String()
	}
	r := e.Record
	b.WriteString(r.Event())
	if r.Expired {
		b.WriteString(" expired")
	}
	for _, part := range []struct{ name, text string }{
		{"table", r.Table}, {"id", r.ID}, {"pos", zeroless(r.Position)}, {"arrival", r.Arrival}, {"time", timeText(r.Time)},
		{"keys", itemText(r.Keys)}, {"old", itemText(r.Old)}, {"new", itemText(r.New)},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, " %s=%s", part.name, part.text)
		}
	}
	return b.String()
}

func zeroless(p Position) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func itemText(it value.Item) string {
	if it == nil {
		return ""
	}
	return string(value.AppendTypedItem(nil, it))
}

// readAll reads a file named f and describes what came of it, an entry a line.
func readAll(r io.Reader) string {
	var b strings.Builder
	err := Read(r, "f", func(e Entry) error {
		b.WriteString(describe(e) + "\n")
		return nil
	})
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}

// streamRecord is record n of a stream, as Lambda and GetRecords have it.
func streamRecord(n int) string {
	return fmt.Sprintf(`{"eventID":"e%[1]d","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",`+
		`"dynamodb":{"ApproximateCreationDateTime":1700000000,"Keys":{"id":{"S":"k%[1]d"}},"NewImage":{"id":{"S":"k%[1]d"},"n":{"N":"%[1]d"}},`+
		`"SequenceNumber":"%[1]d00000000000000000001","SizeBytes":9,"StreamViewType":"NEW_AND_OLD_IMAGES"},`+
		`"eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/things/stream/2024-06-10T19:26:16.525"}`, n)
}

func streamRecords(from, n int) []string {
	var all []string
	for i := range n {
		all = append(all, streamRecord(from+i))
	}
	return all
}

// positions lists the positions of the good records and counts the bad ones.
func positions(t *testing.T, content []byte) (good []string, bad int) {
	t.Helper()
	err := Read(bytes.NewReader(content), "f", func(e Entry) error {
		if e.Bad != nil {
			bad++
		} else {
			good = append(good, e.Record.Position.String())
		}
		return nil
	})
	failtest.On(t, err)
	return good, bad
}

// pretty lays a document out over lines, as the AWS CLI does.
func pretty(t *testing.T, doc string) string {
	t.Helper()
	var b bytes.Buffer
	failtest.On(t, json.Indent(&b, []byte(doc), "", "    "))
	return b.String() + "\n"
}

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
