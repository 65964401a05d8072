package system_test

import (
	"context"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// A sweep removes what was written here and is over, and leaves what a recording
// wrote to the recording.
func TestSweep(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := system.Open(context.Background(), t.TempDir(), []*model.Model{m}, system.Options{NoSearch: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	replayInto(t, s, systemtest.Files(t, "../../testdata/streams/gallery"))
	if n, err := s.Sweep(context.Background()); n != 0 || err != nil {
		t.Fatalf("%d recorded rows are removed: %v", n, err)
	}
	key := store.Key{Partition: value.OfString("SESSION#live"), Sort: value.OfString("METADATA")}
	out, err := s.Store.Write(context.Background(), []store.Write{{
		Ref: store.Ref{Table: "gallery", Key: key},
		Put: value.NewItem(
			value.Attr{Name: "PK", Value: key.Partition}, value.Attr{Name: "SK", Value: key.Sort},
			value.Attr{Name: "ttl", Value: value.OfInt(now.Unix() - 1)}),
	}})
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	if n, err := s.Sweep(context.Background()); n != 1 || err != nil {
		t.Fatalf("%d rows are removed, not 1: %v", n, err)
	}
}
