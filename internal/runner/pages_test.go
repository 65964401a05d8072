package runner_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/cli"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/memory"
	"weir/internal/memory/memorytest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/soaktest"
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
  Author: {where: {type: Author}, key: {PK: "AUTHOR#{author}", SK: METADATA}, attributes: {posts: number, titles: number}}
  Desk: {where: {type: Desk}, key: {PK: DESK, SK: DESK}}
derive:
  Author: {group: Post, by: {author: author}, set: {posts: count, titles: {distinct: title, max: 10}}}
  Desk.last: {latest: Post.title, by: author, to: {}}
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

// TestOrderedShardsInLittleMemory: a model with a feed, a group and a latest holds a page of each of
// 60 shards at the same time, 60 MB of records all in all. What it holds is bounded, and the
// changes of all shards are applied in their order, though pages end at their size.
// WEIR_TEST_SHARDS=100, with CGO_ENABLED=0 or 1, has that many shards, on disk, with 1,000 records of 10 KB each,
// and ends the test if more than 256 MB are resident meanwhile.
func TestOrderedShardsInLittleMemory(t *testing.T) {
	soaktest.Calm(t)
	m, err := loadText(t, letters)
	failtest.On(t, err)
	tables := []store.Table{owntable.Table(), m.Tables[0].Table}
	tables[1].Stream = true
	dir, opts, pads, posts, size := "store", embedded.Options{FS: vfs.NewMem(), Shards: 60}, 300, 2700, 20<<10
	if n, err := strconv.Atoi(os.Getenv("WEIR_TEST_SHARDS")); err == nil {
		dir, opts, pads, posts, size = t.TempDir(), embedded.Options{Shards: n}, 1000, 1000*(n-1), 10<<10
		defer cli.LimitMemory(memory.Default, 0).Stop()
	}
	db, err := embedded.Open(dir, tables, opts)
	failtest.On(t, err)
	defer db.Close()
	ctx := t.Context()
	s, big := value.OfString, value.OfString(strings.Repeat("x", size))
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
		failtest.On(t, err)
		failtest.On(t, out[0].Err)
	}
	want := map[string]bool{}
	for i := range pads { // the reader's own shard is far behind the others
		put("PK", "READER#a", "SK", fmt.Sprint("PAD#", i), "pad", "")
	}
	for i := range posts {
		put("PK", fmt.Sprint("POST#early", i), "SK", "METADATA", "type", "Post", "author", "b", "pad", "")
	}
	put("PK", "DESK", "SK", "DESK", "type", "Desk")
	put("PK", "READER#a", "SK", "READS#b", "type", "Reader")
	for i := range 100 {
		put("PK", fmt.Sprint("POST#late", i), "SK", "METADATA", "type", "Post", "author", "b", "title", "t")
		want[fmt.Sprint("NEWS#late", i)] = true
	}
	if size < 20<<10 {
		debug.FreeOSMemory() // of what writing took
		memorytest.Bound(t, memory.Default)
	}
	held := &holding{Store: db, bytes: map[string]int{}}
	run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: held, Now: time.Now}
	done := make(chan struct{})
	close(done)
	failtest.On(t, (&reader.Follower{Runner: run}).CatchUp(ctx, done))
	const bound = 20 << 20 // passBytes, and one page
	if held.most > bound {
		t.Errorf("%d MB of records are held at the same time", held.most>>20)
	}
	page, err := db.Query(ctx, store.Query{Table: "letters", Partition: s("READER#a"), Sort: store.Range{Prefix: s("NEWS#")}})
	failtest.On(t, err)
	for _, row := range page.Rows {
		sk := row.Get("SK").Text()
		if !want[sk] {
			t.Errorf("the reader has %s, of a post from before it read the author", sk)
		}
		delete(want, sk)
	}
	rows, err := db.Get(ctx, []store.Ref{
		{Table: "letters", Key: store.Key{Partition: s("AUTHOR#b"), Sort: s("METADATA")}}, {Table: "letters", Key: store.Key{Partition: s("DESK"), Sort: s("DESK")}},
	})
	failtest.On(t, err)
	if n, _ := rows[0].Get("posts").Int64(); n != int64(posts+100) || rows[1].Get("last").Text() != "t" {
		t.Errorf("the group of the author and the latest show %v", rows)
	}
	if len(want) > 0 {
		t.Errorf("the reader does not have %d of the posts from after it read the author", len(want))
	}
}
