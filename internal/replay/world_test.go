package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const shopModel = `
model: shop
tables:
  shop: {key: [PK, SK], indexes: {byMood: [mood]}}
entities:
  Album: {where: {type: Album}, key: {PK: "ALBUM#{id}", SK: METADATA}, attributes: {title: string, open: flag}}
  Photo: {where: {type: Photo}, key: {PK: "ALBUM#{album}", SK: "PHOTO#{id}"}}
  Card: {where: {type: Card}, key: {PK: CARDS, SK: "{id}"}, attributes: {title: string}}
derive:
  Album.photos: {count: Photo, to: {id: album}}
  Card: {row: Album, set: {id: id, title: title}}
`

// world is a store that recordings are replayed into.
type world struct {
	t     testing.TB
	model *model.Model
	store *embedded.Store
	gaps  []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldOf(t, parse(t, shopModel))
}

func parse(t testing.TB, text string) *model.Model {
	t.Helper()
	m, err := model.Parse("model.yaml", []byte(text))
	failtest.On(t, err)
	return m
}

func worldOf(t testing.TB, m *model.Model) *world {
	t.Helper()
	tables := []store.Table{owntable.Table()}
	for _, mt := range m.Tables {
		st := mt.Table
		st.Stream = true
		tables = append(tables, st)
	}
	s, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Shards: 1})
	failtest.On(t, err)
	t.Cleanup(func() { s.Close() })
	return &world{t: t, model: m, store: s}
}

// over replays through a store that may stand before the world's own.
func (w *world) over(s store.Store) *replay.Replay {
	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	return &replay.Replay{
		Model: w.model, Store: s, Runner: &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: s, Now: now},
		Gap: func(g replay.Gap) {
			w.gaps = append(w.gaps, fmt.Sprintf("%d %s: %s", g.Where.Line, g.Row.Key.Partition.Text(), g.Reason))
		},
	}
}

// replay replays entries in batches of a size, all in one for 0.
func (w *world) replay(entries []events.Entry, size int) replay.Summary {
	w.t.Helper()
	r := w.over(w.store)
	failtest.On(w.t, batches(r, entries, size))
	return r.Summary
}

// batches gives a replay batches of a size, until one fails.
func batches(r *replay.Replay, entries []events.Entry, size int) error {
	for b := range slices.Chunk(slices.Clone(entries), max(1, size, len(entries)*(1-min(size, 1)))) {
		if err := r.Batch(context.Background(), b, ""); err != nil {
			return err
		}
	}
	return nil
}

// stream is what the store's own stream tells of the core table.
func (w *world) stream() []events.Record {
	table := w.model.Tables[0].Name
	shards, err := w.store.Shards(context.Background(), table)
	failtest.On(w.t, err)
	page, err := w.store.Read(context.Background(), table, shards[0].ID, events.Position{}, 100000)
	failtest.On(w.t, err)
	return page.Records
}

// history is the stream, a line for each change, those of one row together: what
// changed, and when and where that was first written.
func (w *world) history() string {
	recs := w.stream()
	name := func(r events.Record) string { return plain(r.Keys) }
	slices.SortStableFunc(recs, func(a, b events.Record) int { return strings.Compare(name(a), name(b)) })
	var b strings.Builder
	for _, r := range recs {
		fmt.Fprintf(&b, "%s %s@%s %s -> %s\n", name(r), r.Time.UTC().Format(time.DateTime), r.Origin, plain(unmarked(r.Old)), plain(unmarked(r.New)))
	}
	return b.String()
}

// row is a row of the core table as it stands, all but the mark of the replay.
func (w *world) row(pk, sk string) string { return plain(unmarked(w.get(pk, sk))) }

func (w *world) get(pk, sk string) value.Item {
	return w.at(ref(pk, sk))
}

func (w *world) at(r store.Ref) value.Item {
	rows, err := w.store.Get(context.Background(), []store.Ref{r})
	failtest.On(w.t, err)
	return rows[0]
}

// app writes as an application, or as weir's own runner, would.
func (w *world) app(wr store.Write) {
	w.t.Helper()
	out, err := w.store.Write(context.Background(), []store.Write{wr})
	failtest.On(w.t, errors.Join(err, out[0].Err))
}

func ref(pk, sk string) store.Ref {
	return store.Ref{Table: "shop", Key: store.Key{Partition: value.OfString(pk), Sort: value.OfString(sk)}}
}

func unmarked(it value.Item) value.Item {
	return it.Filter(func(n string) bool { return n != owntable.SeenMark })
}

func plain(it value.Item) string {
	if it == nil {
		return "nothing"
	}
	return string(value.AppendPlainItem(nil, it))
}

func same(t testing.TB, what, have, want string) {
	t.Helper()
	if have != want {
		t.Errorf("%s is\n%s\nand should be\n%s", what, have, want)
	}
}

// album is a record of a stream: at its place n, the album a changes from old to
// new, which are its other attributes as JSON, "" where there is none.
func album(n int, old, new string) events.Entry {
	e := events.Entry{}
	e.Record = events.Record{
		Keys:     item(`{"PK":"ALBUM#a","SK":"METADATA"}`),
		Position: events.PositionOf(uint64(n)), Time: time.Date(2025, 1, 1, 0, 0, n, 0, time.UTC),
	}
	e.Line = int64(n)
	image := func(text string) value.Item {
		if text == "" {
			return nil
		}
		return item(text).With(append(item(`{"type":"Album"}`), e.Record.Keys...)...)
	}
	e.Record.Old, e.Record.New = image(old), image(new)
	return e
}

func item(text string) value.Item {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var x map[string]any
	if err := dec.Decode(&x); err != nil {
		panic(err)
	}
	return valueOf(x).Item()
}

func valueOf(x any) value.Value {
	switch x := x.(type) {
	case map[string]any:
		var attrs []value.Attr
		for name, v := range x {
			attrs = append(attrs, value.Attr{Name: name, Value: valueOf(v)})
		}
		return value.OfMap(value.NewItem(attrs...))
	case bool:
		return value.OfBool(x)
	case json.Number:
		return value.MustNumber(x.String())
	}
	return value.OfString(x.(string))
}

// breaking is a store whose connection breaks at one single write: before it,
// after it (the answer is lost), or with only it, or all but it, having happened;
// writes of one call have no order among each other.
type breaking struct {
	store.Store
	at, how, calls int
	sent           int
}

const hows = 4

var errBroken = errors.New("the connection broke")

func (b *breaking) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	i := b.at - b.calls - 1
	b.calls += len(ws)
	b.sent++
	if i < 0 || i >= len(ws) {
		return b.Store.Write(ctx, ws)
	}
	some := [hows][]store.Write{ws[:i], ws[:i+1], ws[i : i+1], slices.Concat(ws[:i], ws[i+1:])}[b.how]
	_, _ = b.Store.Write(ctx, some) // whatever its outcome, the caller does not learn it
	return nil, errBroken
}

// meanwhile is a store in which something happens before a write.
type meanwhile struct {
	store.Store
	before func()
}

func (m *meanwhile) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if do := m.before; do != nil && ws[0].Table != owntable.TableName {
		m.before = nil
		do()
	}
	return m.Store.Write(ctx, ws)
}
