package lambda_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

var errPolicy = errors.New("a policy denies its writes")

// denies is a store of which one table takes no writes.
type denies struct {
	store.Store
	table string
}

func (d *denies) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if slices.ContainsFunc(ws, func(w store.Write) bool { return w.Table == d.table }) {
		out := make([]store.Outcome, len(ws))
		for i := range out {
			out[i].Err = errPolicy
		}
		return out, errPolicy
	}
	return d.Store.Write(ctx, ws)
}

// TestOutage: while its table takes no writes, a function's events are applied after a minute, and say so; what they show comes
// with an event after the table takes writes again.
func TestOutage(t *testing.T) { outage(t, inMemory) }

func TestOutageOnDynamoDB(t *testing.T) { outage(t, onDynamoDB) }

func outage(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	w := worldOf(t, m, open)
	d := &denies{Store: w.Store}
	now := func() time.Time { return w.now }
	h := lambda.New(&runner.Runner{Kinds: kinds.All(), Model: m, Store: d, Now: now, Mono: now}, lambda.ByShard, catalog.Drained{}, func(context.Context) error { return nil })
	var said map[string]string
	h.Report = func(r lambda.Report) { said = r.Out }
	album := store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString("ALBUM#sea"), Sort: value.OfString("METADATA")}}
	row := value.NewItem(
		value.Attr{Name: "PK", Value: album.Key.Partition}, value.Attr{Name: "SK", Value: album.Key.Sort},
		value.Attr{Name: "EntityType", Value: value.OfString("Album")}, value.Attr{Name: "albumId", Value: value.OfString("sea")},
	)
	if _, err := w.Write(t.Context(), []store.Write{{Ref: album, Put: row}}); err != nil {
		t.Fatal(err)
	}
	shows := func(want string) {
		t.Helper()
		is, err := store.GetRow(t.Context(), w, album)
		if err != nil || is.Get("mediaCount").Text() != want {
			t.Errorf("the album shows %s pictures, should show %s: %v", is.Get("mediaCount").Text(), want, err)
		}
	}
	w.add(h, "shardId-1", "sea")
	shows("1")
	d.table = "gallery"
	failed := 0
	for w.next++; w.try(h, "shardId-1", "sea", w.next) != nil; failed++ {
		if w.now = w.now.Add(15 * time.Second); failed == 10 {
			t.Fatal("its events fail for more than two minutes")
		}
	}
	if failed < 4 || !strings.Contains(said["gallery"], errPolicy.Error()) {
		t.Errorf("%d events fail in the first minute, and it says %v", failed, said)
	}
	for range 5 {
		w.now = w.now.Add(time.Minute)
		w.add(h, "shardId-1", "sea")
	}
	shows("1")
	d.table = ""
	w.now = w.now.Add(6 * time.Minute)
	for range 3 {
		w.add(h, "shardId-1", "sea")
	}
	if shows("10"); len(said) > 0 {
		t.Errorf("it says %v", said)
	}
}
