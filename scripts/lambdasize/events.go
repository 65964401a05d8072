package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/sample"
	"weir/internal/system"
	"weir/internal/value"
)

// sampleRecords are n stream records of sample rows of a model, each of another row that something is derived from.
func sampleRecords(ctx context.Context, m *model.Model, streams map[string]string, n int) (out [][]byte, err error) {
	dir, err := os.MkdirTemp("", "weir-lambda-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := system.Open(ctx, dir, []*model.Model{m}, system.Options{NoSearch: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := &ingest.Writer{Model: m, Store: s.Store, Now: time.Now}
	for i := range n {
		for _, r := range w.Do(ctx, sample.Apart(m, time.Now(), fmt.Sprintf("start%d-", i))) {
			if r.Err != nil {
				return nil, r.Err
			}
		}
	}
	for _, t := range m.Tables {
		shards, err := s.Store.Shards(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		for _, shard := range shards {
			page, err := s.Store.Read(ctx, t.Name, shard.ID, events.Position{}, 1<<20)
			if err != nil {
				return nil, err
			}
			for _, r := range page.Records {
				if e := t.Classify(r.New); e != nil && hasDerivations(e) && len(out) < n {
					keys, row := value.AppendTypedItem(nil, r.Keys), value.AppendTypedItem(nil, r.New)
					out = append(out, makeRecord(streams[t.Name], 1000+len(out), string(keys), string(row)))
				}
			}
		}
	}
	if len(out) < n {
		return nil, fmt.Errorf("%d rows of the sample lead to something, and %d are wanted", len(out), n)
	}
	return out, nil
}

// hasDerivations reports whether a row of the entity leads to something.
func hasDerivations(e *model.Entity) bool {
	return len(e.Sources)+len(e.Rules)+len(e.Follow)+len(e.Statuses)+len(e.Stages)+len(e.LatestOf) > 0
}

// makeRecord returns a new row's record as Lambda has it.
func makeRecord(stream string, n int, keys, row string) []byte {
	return fmt.Appendf(nil, `{"eventID":"%d","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-central-1",`+
		`"eventSourceARN":"%s","dynamodb":{"ApproximateCreationDateTime":%d,"SequenceNumber":"%d","StreamViewType":"NEW_AND_OLD_IMAGES",`+
		`"Keys":%s,"NewImage":%s}}`, n, stream, time.Now().Unix(), n, keys, row)
}

// makeEvent returns an event of records of one shard, in a tumbling window.
func makeEvent(records ...[]byte) []byte {
	var of struct {
		EventSourceARN string `json:"eventSourceARN"`
	}
	_ = json.Unmarshal(records[0], &of)
	return fmt.Appendf(nil, `{"Records":[%s],"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:05:00Z"},"state":{},"shardId":"shardId-00000001",`+
		`"eventSourceARN":"%s","isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}`, bytes.Join(records, []byte(",")), of.EventSourceARN)
}

// countApplied returns how many records the function says that it applied, in its log.
func countApplied(log string) (n int) {
	for line := range strings.Lines(log) {
		var report struct{ Applied int }
		if json.Unmarshal([]byte(line), &report) == nil {
			n += report.Applied
		}
	}
	return n
}
