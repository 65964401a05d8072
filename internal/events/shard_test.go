package events

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestShard: a record is of the shard that its recording names before it.
func TestShard(t *testing.T) {
	failure := func(payload string) string {
		return `{"DDBStreamBatchInfo":{"shardId":"shardId-7","streamArn":"arn:aws:dynamodb:eu-west-1:1:table/things/stream/x"},"payload":` + payload + `}`
	}
	records := `{"Records":[` + streamRecord(1) + `,` + streamRecord(2) + `]}`
	kinesis := fmt.Sprintf(`{"Records":[{"kinesis":{"data":%q},"eventID":"shardId-000000000006:49590338271490256608559692538361571095921575989136588898"}]}`,
		base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf(kinesisRecord, "1700000000123", ""))))
	for _, c := range []struct{ name, content, want string }{
		{"on failure", failure(records), "shardId-7 shardId-7"},
		{"on failure, as text", failure(fmt.Sprintf("%q", records)), "shardId-7 shardId-7"},
		{"one after the other", failure(records) + records, "shardId-7 shardId-7  "},
		{"a window", `{"shardId":"shardId-8","window":{},` + records[1:], "shardId-8 shardId-8"},
		{"said too late", records[:len(records)-1] + `,"shardId":"shardId-8"}`, " "},
		{"Kinesis", kinesis, "shardId-000000000006"},
		{"records alone", streamRecord(1) + "\n" + streamRecord(2), " "},
	} {
		var shards []string
		err := Read(strings.NewReader(c.content), "f", func(e Entry) error {
			if e.Bad != nil {
				t.Errorf("%s: %v", c.name, e.Bad.Err)
			}
			shards = append(shards, e.Shard)
			return nil
		})
		if got := strings.Join(shards, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}
