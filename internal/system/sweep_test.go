package system_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/replay"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

const boxes = `
model: boxes
tables: {boxes: {key: [PK, SK], ttl: ttl}}
entities:
  Box: {where: {kind: Box}, key: {PK: "BOX#{box}", SK: META}, attributes: {box: string!}}
  Thing: {where: {kind: Thing}, key: {PK: "BOX#{box}", SK: "THING#{thing}"}, attributes: {box: string!, thing: string!, ttl: number, note: string}}
derive:
  Box.things: {count: Thing}
queries:
  box: {get: Box, with: [box]}
`

var sweepNow = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// recordedThing is a record of a thing: its number, and how it was and is, as note and
// hours to live, "" where it was not or is not.
func recordedThing(n int, thing, was, is string) string {
	key := fmt.Sprintf(`"PK": {"S": "BOX#b"}, "SK": {"S": "THING#%s"}`, thing)
	image := func(name, text string) string {
		var note string
		var hours int64
		if text == "" {
			return ""
		}
		fmt.Sscan(text, &note, &hours)
		return fmt.Sprintf(`, "%s": {%s, "kind": {"S": "Thing"}, "box": {"S": "b"}, "thing": {"S": "%s"}, "note": {"S": "%s"}, "ttl": {"N": "%d"}}`,
			name, key, thing, note, sweepNow.Unix()+hours*3600)
	}
	event := "MODIFY"
	if was == "" {
		event = "INSERT"
	} else if is == "" {
		event = "REMOVE"
	}
	return fmt.Sprintf(`{"eventID": "e%d", "eventName": "%s", "eventSource": "aws:dynamodb", "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/boxes/stream/1", "dynamodb": {`+
		`"ApproximateCreationDateTime": %d, "SequenceNumber": "%d", "StreamViewType": "NEW_AND_OLD_IMAGES", "Keys": {%s}%s%s}}`+"\n",
		n, event, sweepNow.Add(-48*time.Hour).Unix()+int64(n), n*100, key, image("OldImage", was), image("NewImage", is))
}

// A sweep removes expired rows that a replay wrote as it does others, and derived values
// follow. The same files bring none of them back; later ones go on from what they were.
func TestSweepOfReplayedRows(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, records ...string) []string {
		path := filepath.Join(dir, name)
		failtest.On(t, os.WriteFile(path, []byte(strings.Join(records, "")), 0o600))
		return []string{path}
	}
	m, err := model.Parse("boxes.yaml", []byte(boxes))
	failtest.On(t, err)
	open := func() *system.System {
		s, err := system.Open(context.Background(), filepath.Join(dir, "data"), []*model.Model{m}, system.Options{NoSearch: true, Now: func() time.Time { return sweepNow }})
		failtest.On(t, err)
		return s
	}
	s := open()
	defer func() { s.Close() }()
	sweep := func(want int) {
		t.Helper()
		if n, err := s.Sweep(t.Context()); n != want || err != nil {
			t.Fatalf("%d rows are removed, not %d: %v", n, want, err)
		}
		if n := expirations(t, s); n != want {
			t.Errorf("%d removals in the stream are TTL's", n)
		}
		settle(t, s)
		verifyNothing(t, s)
	}
	again := func(files []string, applied, gaps int) {
		t.Helper()
		if sum := replayInto(t, s, files); sum.Applied != applied || sum.Gaps != gaps || sum.Dead != 0 {
			t.Fatalf("the replay did %+v, not %d with %d gaps", sum, applied, gaps)
		}
		verifyNothing(t, s)
	}
	things := func(want int64) {
		t.Helper()
		rows, err := s.Store.Get(t.Context(), []store.Ref{{Table: "boxes", Key: boxKey("META")}})
		if err != nil || !value.Equal(rows[0].Get("things"), value.OfInt(want)) {
			t.Fatalf("the box has not %d things: %v %v", want, rows, err)
		}
	}
	out, err := s.Store.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "boxes", Key: boxKey("META")}, Put: value.NewItem(
		value.Attr{Name: "PK", Value: value.OfString("BOX#b")}, value.Attr{Name: "SK", Value: value.OfString("META")},
		value.Attr{Name: "kind", Value: value.OfString("Box")}, value.Attr{Name: "box", Value: value.OfString("b")})}})
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}

	first := file("first.jsonl", recordedThing(1, "gone", "", "new 5"), recordedThing(2, "gone", "new 5", "old -1"), recordedThing(3, "here", "", "new 5"),
		recordedThing(4, "longer", "", "new -1"), recordedThing(5, "missing", "", "new -1"), recordedThing(6, "removed", "", "new -1"))
	again(first, 6, 0)
	things(5)
	sweep(4)
	things(1)
	again(first, 0, 0)
	if s.Close(); true {
		s = open()
	}
	again(first, 0, 0)
	things(1)
	sweep(0)

	second := file("second.jsonl", recordedThing(7, "longer", "new -1", "longer 9"), recordedThing(8, "missing", "other 3", "longer 9"), recordedThing(9, "removed", "new -1", ""),
		recordedThing(10, "removed", "", "back 7"))
	again(second, 3, 1)
	things(4)
	again(append(first, second...), 0, 0)
	sweep(0)
	things(4)
}

func boxKey(sort string) store.Key {
	return store.Key{Partition: value.OfString("BOX#b"), Sort: value.OfString(sort)}
}

// expirations is how many removals in what is left of the stream are TTL's.
func expirations(t *testing.T, s *system.System) (n int) {
	t.Helper()
	shards, err := s.Store.Shards(t.Context(), "boxes")
	failtest.On(t, err)
	for _, sh := range shards {
		got, err := s.Store.Read(t.Context(), "boxes", sh.ID, events.Position{}, 1000)
		for at := uint64(1); errors.Is(err, store.ErrTrimmed) && at < 1000; at++ {
			got, err = s.Store.Read(t.Context(), "boxes", sh.ID, events.PositionOf(at), 1000)
		}
		failtest.On(t, err)
		for _, r := range got.Records {
			if r.Expired && r.New == nil {
				n++
			}
		}
	}
	return n
}

// A crash between the mark of an expired row and its removal leaves the row to the next
// sweep, and to later records.
func TestSweepIsCut(t *testing.T) {
	m, err := model.Parse("boxes.yaml", []byte(boxes))
	failtest.On(t, err)
	dir := t.TempDir()
	s, err := system.Open(context.Background(), filepath.Join(dir, "data"), []*model.Model{m}, system.Options{NoSearch: true, Now: func() time.Time { return sweepNow }})
	failtest.On(t, err)
	defer s.Close()
	path := filepath.Join(dir, "first.jsonl")
	failtest.On(t, os.WriteFile(path, []byte(recordedThing(1, "a", "", "new -1")+recordedThing(2, "b", "", "new -1")), 0o600))
	replayInto(t, s, []string{path})
	cut := []store.Write{{Ref: store.Ref{Table: "boxes", Key: boxKey("THING#a")}, Delete: true}}
	failtest.On(t, replay.BeforeSweep(t.Context(), s.Store, map[string]*model.Table{"boxes": m.Tables[0]}, cut))
	if sum := replayInto(t, s, []string{path}); sum.Applied != 0 || sum.Gaps != 0 {
		t.Errorf("the same file did %+v", sum)
	}
	failtest.On(t, os.WriteFile(path, []byte(recordedThing(3, "a", "new -1", "longer 3")), 0o600))
	if sum := replayInto(t, s, []string{path}); sum.Applied != 1 || sum.Gaps != 0 {
		t.Errorf("a later file did %+v", sum)
	}
	if out, err := s.Store.Write(t.Context(), cut); err != nil || !errors.Is(out[0].Err, store.ErrCondition) {
		t.Errorf("a removal that was prepared before a replay wrote its row: %v %v", out, err)
	}
	if n, err := s.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("%d rows are removed, not b alone: %v", n, err)
	}
}
