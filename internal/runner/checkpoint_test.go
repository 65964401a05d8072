package runner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/store"
	"weir/internal/value"
)

const shelfAndDrawer = shelf + `  Bin.things: {count: Item, to: {id: bin}}
`

// TestUnreadableCheckpoint spoils the checkpoint of one table's shard. The error names
// it, the counts of the other table become right all the same, and with the checkpoint
// as it was, so do those of the table itself.
func TestUnreadableCheckpoint(t *testing.T) {
	text := strings.Replace(shelfAndDrawer, "entities:\n", `  drawer: {key: [PK, SK]}
entities:
  Bin: {table: drawer, where: {type: Bin}, key: {PK: "BIN#{id}", SK: METADATA}, attributes: {title: string}}
  Item: {table: drawer, where: {type: Item}, key: {PK: "BIN#{bin}", SK: "ITEM#{n}"}, attributes: {name: string}}
`, 1)
	text = strings.ReplaceAll(text, "{where: {type: Box}", "{table: shelf, where: {type: Box}")
	text = strings.ReplaceAll(text, "{where: {type: Thing}", "{table: shelf, where: {type: Thing}")
	m, err := loadText(t, text)
	failtest.On(t, err)
	h := newHarness(t, m)
	t.Cleanup(h.close)
	done := make(chan struct{})
	close(done)
	catchUp := func() error {
		r := h.runner(nil)
		r.Store = untrimmed{h.store}
		f := reader.Follower{Runner: r}
		return f.CatchUp(t.Context(), done)
	}
	failtest.On(t, catchUp())
	things(t, h, 1, 5)
	failtest.On(t, catchUp())
	var places []store.Ref
	for _, table := range []string{"shelf", "drawer"} {
		shards, err := h.store.Shards(t.Context(), table)
		failtest.On(t, err)
		places = append(places, owntable.Checkpoint("shelf", table, shards[0].ID).Ref)
	}
	spoil := store.Op{Kind: store.Set, Attr: owntable.Position, Value: value.OfString("7")}
	for i, at := range places {
		is, err := h.store.Get(t.Context(), []store.Ref{at})
		failtest.On(t, err)
		_, err = h.store.Write(t.Context(), []store.Write{{Ref: at, Ops: []store.Op{spoil}}})
		failtest.On(t, err)
		things(t, h, 6, 7)
		failtest.On(t, h.write(`put drawer {"PK":"BIN#1","SK":"METADATA","type":"Bin","title":"One"}`))
		failtest.On(t, h.write(`put drawer {"PK":"BIN#1","SK":"ITEM#1","type":"Item","name":"x"}`))
		err = catchUp()
		if !errors.Is(err, owntable.ErrRow) || !strings.Contains(err.Error(), `"`+at.Key.Sort.Text()+`", attribute p is "7"`) {
			t.Errorf("%v", err)
		}
		shows := func(table, pk string) string {
			for _, row := range h.scan(table) {
				if row.Get("PK").Text() == pk && row.Get("SK").Text() == "METADATA" {
					return row.Get("things").Text()
				}
			}
			return ""
		}
		if box, bin := shows("shelf", "BOX#1"), shows("drawer", "BIN#1"); i == 0 && (box != "" || bin != "1") || i == 1 && box != "7" {
			t.Errorf("%s spoilt: %s things in the box, %s in the bin", at.Key.Sort.Text(), box, bin)
		}
		_, err = h.store.Write(t.Context(), []store.Write{{Ref: at, Put: is[0]}})
		failtest.On(t, err)
		failtest.On(t, catchUp())
		if box, bin := shows("shelf", "BOX#1"), shows("drawer", "BIN#1"); box != "7" || bin != "1" {
			t.Errorf("%s as it was: %s things in the box, %s in the bin", at.Key.Sort.Text(), box, bin)
		}
	}
}

// TestPlacesPastUnreadable says that a checkpoint that cannot be read hides no other.
func TestPlacesPastUnreadable(t *testing.T) {
	h := newShelf(t)
	r := h.runner(nil)
	at := func(shard string) owntable.ShardRef { return owntable.Checkpoint("shelf", "shelf", shard) }
	p := events.PositionOf(7)
	_, err := h.store.Write(t.Context(), []store.Write{
		owntable.BeginCheckpoint(at("a")),
		{Ref: at("a").Ref, Ops: []store.Op{{Kind: store.Set, Attr: owntable.Position, Value: value.OfString("7")}}},
		owntable.OvertakeCheckpoint(at("b"), p),
	})
	failtest.On(t, err)
	places, err := reader.ReadPlaces(t.Context(), r)
	if !errors.Is(err, owntable.ErrRow) || len(places) != 2 || !slices.ContainsFunc(places, func(p reader.Place) bool { return p.Shard == "a" }) || !slices.ContainsFunc(places, func(is reader.Place) bool { return is.At == p }) {
		t.Errorf("%+v, %v", places, err)
	}
}
