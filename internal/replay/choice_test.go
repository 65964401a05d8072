package replay_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/replay"
	"weir/internal/system"
	"weir/internal/value"
)

func bulkModel(t testing.TB, with string) *model.Model {
	t.Helper()
	m, err := model.Parse("shop.yaml", []byte(shop+with))
	failtest.On(t, err)
	return m
}

func shopStream(seed uint64, n int) [][]events.Entry {
	r := &teller{Rand: rand.New(rand.NewPCG(seed, 1)), rows: map[string]value.Item{}}
	return r.batches(r.stream(n))
}

// TestFollowed: a directory into whose streams something was written is not for bulk.
func TestFollowed(t *testing.T) {
	w := newBulkWorld(t, bulkModel(t, ""))
	w.live(shopStream(1, 10))
	if _, why, err := replay.New(context.Background(), w.replay(), sized(1)); err != nil || why == "" {
		t.Errorf("in bulk beside a stream: %q, %v", why, err)
	}
}

// TestReduces: the changes of a row are reduced to one where nothing is derived from what is derived,
// and all other models are applied change by change.
func TestReduces(t *testing.T) {
	for file, reduces := range map[string]bool{
		"movienight": false, "viewing": false, "wardrobe": false, "watchlists": false, "gallery": true,
		"../../examples/chat/model.yaml": false, "../../examples/shop/model.yaml": false,
	} {
		m, err := model.Load(file)
		failtest.On(t, err)
		b, why, err := replay.New(context.Background(), newBulkWorld(t, m).replay(), sized(1))
		failtest.On(t, err)
		if why != "" || b.Reduces() != reduces {
			t.Errorf("%s: reduces %v, not in bulk: %q", file, b.Reduces(), why)
		}
		failtest.On(t, b.Close())
	}
}

// TestNewDerivation: no stream has what came in bulk, so a derivation that is new afterwards
// is refused until it is built from the rows.
func TestNewDerivation(t *testing.T) {
	for _, text := range []string{shop, flat, made} {
		testNewDerivation(t, text)
	}
}

func testNewDerivation(t *testing.T, text string) {
	m, err := model.Parse("shop.yaml", []byte(text))
	failtest.On(t, err)
	w := newBulkWorld(t, m)
	w.bulk(shopStream(2, 100), 1000)
	failtest.On(t, w.sys.Close())
	m, err = model.Parse("shop.yaml", []byte(text+"  Branch.gifts: {count: Gift, to: {branch: branch}}\n"))
	failtest.On(t, err)
	w.sys, err = system.Open(context.Background(), w.dir, []*model.Model{m}, system.Options{NoSearch: true})
	failtest.On(t, err)
	if err := w.sys.Start(context.Background()); !errors.Is(err, catalog.ErrUnbuilt) {
		t.Errorf("a derivation that is new begins with no row: %v", err)
	}
}
