package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const letters = `model: letters
tables:
  letters: {key: [PK, SK]}
entities:
  Reader: {where: {type: Reader}, key: {PK: "READER#{reader}", SK: "READS#{author}"}, attributes: {since: time}}
  Post: {where: {type: Post}, key: {PK: "POST#{id}", SK: METADATA}, attributes: {title: string, author: string}}
  News: {where: {type: News}, key: {PK: "READER#{reader}", SK: "NEWS#{id}"}, attributes: {title: string}}
derive:
  News: {row: Post, keep: [insert], each: {of: Reader, by: [author]}, set: {reader: Reader.reader, id: id, title: title}}
`

// holding measures what its reader holds: the last page of each shard that was read since a
// checkpoint was written.
type holding struct {
	*embedded.Store
	bytes map[string]int
	most  int
}

func (h *holding) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := h.Store.Read(ctx, table, shard, after, limit)
	h.bytes[shard] = 0
	for i := range page.Records {
		h.bytes[shard] += page.Records[i].Size()
	}
	all := 0
	for _, n := range h.bytes {
		all += n
	}
	h.most = max(h.most, all)
	return page, err
}

func (h *holding) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if len(ws) > 0 && strings.HasPrefix(ws[0].Key.Partition.Text(), "check|") {
		clear(h.bytes)
	}
	return h.Store.Write(ctx, ws)
}

// TestOrderedShardsInLittleMemory: a model with a feed holds a page of each of 60 shards at
// the same time, 60 MB of records all in all. What it holds is bounded, and the changes of
// all shards are applied in their order, though pages end at their size.
func TestOrderedShardsInLittleMemory(t *testing.T) {
	m, err := loadText(t, letters)
	must(t, err)
	tables := []store.Table{owntable.Table(), m.Tables[0].Table}
	tables[1].Stream = true
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Shards: 60})
	must(t, err)
	defer db.Close()
	ctx := t.Context()
	s, big := value.OfString, value.OfString(strings.Repeat("x", 20<<10))
	put := func(row ...string) {
		t.Helper()
		it := value.Item{}
		for i := 0; i < len(row); i += 2 {
			v := s(row[i+1])
			if row[i] == "pad" {
				v = big
			}
			it = it.With(value.Attr{Name: row[i], Value: v})
		}
		key, _ := tables[1].KeyOf(it)
		out, err := db.Write(ctx, []store.Write{{Ref: store.Ref{Table: "letters", Key: key}, Put: it}})
		must(t, err)
		must(t, out[0].Err)
	}
	want := map[string]bool{}
	for i := range 300 { // the reader's own shard is far behind the others
		put("PK", "READER#a", "SK", fmt.Sprint("PAD#", i), "pad", "")
	}
	for i := range 2700 {
		put("PK", fmt.Sprint("POST#early", i), "SK", "METADATA", "type", "Post", "author", "b", "pad", "")
	}
	put("PK", "READER#a", "SK", "READS#b", "type", "Reader")
	for i := range 100 {
		put("PK", fmt.Sprint("POST#late", i), "SK", "METADATA", "type", "Post", "author", "b", "title", "t")
		want[fmt.Sprint("NEWS#late", i)] = true
	}
	held := &holding{Store: db, bytes: map[string]int{}}
	run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: held, Now: time.Now}
	done := make(chan struct{})
	close(done)
	must(t, (&runner.Follower{Runner: run}).CatchUp(ctx, done))
	const bound = 20 << 20 // passBytes, and one page
	if held.most > bound {
		t.Errorf("%d MB of records are held at the same time", held.most>>20)
	}
	page, err := db.Query(ctx, store.Query{Table: "letters", Partition: s("READER#a"), Sort: store.Range{Prefix: s("NEWS#")}})
	must(t, err)
	for _, row := range page.Rows {
		sk := row.Get("SK").Text()
		if !want[sk] {
			t.Errorf("the reader has %s, of a post from before it read the author", sk)
		}
		delete(want, sk)
	}
	if len(want) > 0 {
		t.Errorf("the reader does not have %d of the posts from after it read the author", len(want))
	}
}
