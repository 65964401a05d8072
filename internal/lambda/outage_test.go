package lambda_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/lambda"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/owntable"
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

func (d *denies) Transact(ctx context.Context, ws []store.Write) error {
	if slices.ContainsFunc(ws, func(w store.Write) bool { return w.Table == d.table && !w.Check }) {
		return errPolicy
	}
	return d.Store.Transact(ctx, ws)
}

func (d *denies) Write(ctx context.Context, ws []store.Write) (out []store.Outcome, err error) {
	for i := range ws {
		one := []store.Outcome{{Err: errPolicy}}
		if e := errPolicy; ws[i].Table == d.table {
			err = e
		} else if one, e = d.Store.Write(ctx, ws[i:i+1]); e != nil {
			return append(out, make([]store.Outcome, len(ws)-i)...), e
		}
		out = append(out, one...)
	}
	return out, err
}

// TestOutage: while its table takes no writes, a function's events are applied after a minute, and say so; what they show comes
// with an event after the table takes writes again.
func TestOutage(t *testing.T) { outage(t, inMemory) }

func TestOutageOnDynamoDB(t *testing.T) { outage(t, onDynamoDB) }

func outage(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	inBothOrders(t, func(t *testing.T, o lambda.Order) { outageIn(t, o, open) })
}

func outageIn(t *testing.T, o lambda.Order, open func(*testing.T, []store.Table) store.Store) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	w := worldOf(t, m, open)
	d := &denies{Store: w.Store}
	h := w.outlasts(o, d)
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
		w.invoke(h, "shardId-1", "sea", w.next) // it comes again
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

// outlasts is a function by whose clock no time passes but the world's.
func (w *world) outlasts(o lambda.Order, s store.Store) *lambda.Handler {
	now := func() time.Time { return w.now }
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: s, Now: now, Mono: now}
	return lambda.New(run, o, catalog.Drained{}, func(context.Context) error { return nil })
}

// manyKinds derives rows of every kind in the table made.
const manyKinds = `
model: press
tables: {posts: {key: [PK, SK]}, people: {key: [PK, SK]}, counts: {key: [PK, SK]}, made: {key: [PK, SK]}}
entities:
  Post: {table: posts, where: {type: Post}, key: {PK: "POST#{id}", SK: POST}, attributes: {author: string, title: string}}
  Author: {table: people, where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: ABOUT}, attributes: {name: string}}
  Reader: {table: people, where: {type: Reader}, key: {PK: "READER#{reader}", SK: "READS#{author}"}}
  Tag: {table: counts, where: {type: Tag}, key: {PK: "TAG#{id}", SK: ABOUT}}
  Card: {table: made, where: {type: Card}, key: {PK: CARDS, SK: "{author}#{id}"}, attributes: {title: string, name: string}}
  Log: {table: made, where: {type: Log}, key: {PK: "LOG#{id}", SK: "{position}"}, attributes: {title: string}}
  News: {table: made, where: {type: News}, key: {PK: "NEWS#{reader}", SK: "{position}"}, attributes: {title: string}}
  Shelf: {table: made, where: {type: Shelf}, key: {PK: "SHELF#{author}", SK: "ALL[#{leaf}]"}}
  Sum: {table: made, where: {type: Sum}, key: {PK: "SUM#{author}", SK: SUM}, attributes: {posts: number}}
derive:
  Tag.posts: {count: Post, to: {id: author}}
  Card: {row: Post, set: {id: id, author: author, title: title, name: {follow: Author.name, by: {id: author}}}}
  Log: {row: Post, keep: [insert, modify, remove], set: {id: id, position: $position, title: title}}
  News: {row: Post, keep: [insert], each: {of: Reader, by: [author]}, set: {reader: Reader.reader, position: $position, title: title}}
  Shelf.posts: {set: Post.id}
  Sum: {group: Post, set: {posts: count}}
`

// press is an application with posts, and a function by item that derives rows of every kind from them.
type press struct {
	*world
	d       *denies
	h       *lambda.Handler
	said    map[string]string            // the tables that take no writes
	posts   map[string][2]string         // by id, their authors and titles
	log     map[string]int               // changes of each post
	read    bool                         // there is a reader
	news    int                          // posts since then
	rows    []string                     // that have records which are not delivered, each with its table
	records map[string][]json.RawMessage // of each of those
	n       uint64
}

// puts writes a row; without attributes, it deletes it.
func (p *press) puts(table, pk, sk string, attrs ...string) {
	p.t.Helper()
	rec := events.Record{Table: table, Keys: value.NewItem(value.Attr{Name: "PK", Value: value.OfString(pk)}, value.Attr{Name: "SK", Value: value.OfString(sk)}), Time: p.now}
	key, _ := p.model.Table(table).KeyOf(rec.Keys)
	w := store.Write{Ref: store.Ref{Table: table, Key: key}, Delete: true}
	if len(attrs) > 0 {
		rec.New = rec.Keys
		for i := 0; i < len(attrs); i += 2 {
			rec.New = rec.New.With(value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
		}
		w = store.Write{Ref: w.Ref, Put: rec.New}
	}
	var err error
	if rec.Old, err = store.GetRow(p.t.Context(), p.Store, w.Ref); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.Store.Write(p.t.Context(), []store.Write{w}); err != nil {
		p.t.Fatal(err)
	}
	p.n++
	rec.Position = events.PositionOf(p.n)
	at := table + " " + pk + " " + sk
	if p.records[at] == nil {
		p.rows = append(p.rows, at)
	}
	p.records[at] = append(p.records[at], lambdatest.Record(table, &rec))
}

// post writes a post, or deletes it if it has no author.
func (p *press) post(id, author, title string) {
	p.t.Helper()
	if p.log[id]++; author == "" {
		p.puts("posts", "POST#"+id, "POST")
		delete(p.posts, id)
		return
	}
	if p.posts[id] == [2]string{} && p.read {
		p.news++
	}
	p.puts("posts", "POST#"+id, "POST", "type", "Post", "author", author, "title", title)
	p.posts[id] = [2]string{author, title}
}

// delivers hands the function all records that it has not had, twice: the last row's first, and those of a row in their
// order. It returns how often an event failed.
func (p *press) delivers() (failed int) {
	p.t.Helper()
	for len(p.rows) > 0 {
		var event []json.RawMessage
		table := ""
		for n := len(p.rows) - 1; n >= 0 && len(event) < 10; n-- {
			of, _, _ := strings.Cut(p.rows[n], " ")
			if table = cmp.Or(table, of); table != of {
				break
			}
			event = append(event, p.records[p.rows[n]]...)
			delete(p.records, p.rows[n])
			p.rows = p.rows[:n]
		}
		payload, err := json.Marshal(map[string]any{"Records": event})
		if err != nil {
			p.t.Fatal(err)
		}
		for range 2 {
			failed += p.delivered(payload)
		}
	}
	return failed
}

// delivered sends an event until it is applied, and returns how often it failed.
func (p *press) delivered(event []byte) (failed int) {
	p.t.Helper()
	for ; failed < 30; failed++ {
		out, err := p.h.Invoke(p.t.Context(), event)
		switch {
		case err == nil && string(out) == `{"batchItemFailures":[]}`:
			return failed
		case err != nil && !errors.Is(err, errPolicy):
			p.t.Fatal(err)
		}
		p.now = p.now.Add(15 * time.Second)
	}
	p.t.Fatal("an event fails again and again")
	return failed
}

// all reads the rows of a table.
func (p *press) all(table string) (rows []value.Item) {
	p.t.Helper()
	for page, err := range store.Pages(p.t.Context(), p.Store, store.Query{Table: table}) {
		if err != nil {
			p.t.Fatal(err)
		}
		rows = append(rows, page...)
	}
	return rows
}

// recounts compares all that is derived in a table with the posts, and the names of their authors.
func (p *press) recounts(names map[string]string) {
	p.t.Helper()
	want, is := map[string]int{}, map[string]int{}
	for id, post := range p.posts {
		author, title := post[0], post[1]
		want["TAG#"+author]++
		want["SUM#"+author]++
		want["SHELF#"+author+" has "+id]++
		want["CARDS "+author+"#"+id+" "+title+" by "+names[author]]++
	}
	for id, n := range p.log {
		want["LOG#"+id] = n
	}
	if p.news > 0 {
		want["NEWS#r"] = p.news
	}
	for _, table := range []string{"counts", "made"} {
		for _, row := range p.all(table) {
			pk := row.Get("PK").Text()
			count, _ := row.Get("posts").Int64()
			switch kind, _, _ := strings.Cut(pk, "#"); kind {
			case "TAG", "SUM":
				if is[pk] = int(count); count == 0 {
					delete(is, pk)
				}
			case "SHELF":
				for _, id := range row.Get("posts").Elements() {
					is[pk+" has "+id.Value.Text()]++
				}
			case "CARDS":
				is[pk+" "+row.Get("SK").Text()+" "+row.Get("title").Text()+" by "+row.Get("name").Text()]++
			default:
				is[pk]++
			}
		}
	}
	if d := gocmp.Diff(want, is); d != "" {
		p.t.Errorf("(-want +is)\n%s", d)
	}
}

// TestOutageOfWhatIsMade: a table that takes no writes stops the rows in it that a function by item makes, of every kind, and
// nothing else. When it takes writes again, all are as its records make them, each once.
func TestOutageOfWhatIsMade(t *testing.T) { outageOfWhatIsMade(t, inMemory) }

func TestOutageOfWhatIsMadeOnDynamoDB(t *testing.T) { outageOfWhatIsMade(t, onDynamoDB) }

func outageOfWhatIsMade(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	m, err := model.Parse("press.yaml", []byte(manyKinds))
	if err != nil {
		t.Fatal(err)
	}
	p := &press{world: worldOf(t, m, open), posts: map[string][2]string{}, log: map[string]int{}, records: map[string][]json.RawMessage{}}
	p.d = &denies{Store: p.Store}
	p.h = p.outlasts(lambda.ByItem, p.d)
	p.h.Report = func(r lambda.Report) { p.said = r.Out }
	names := map[string]string{"a": "Ann", "b": "Ben"}
	for a, name := range names {
		p.puts("people", "AUTHOR#"+a, "ABOUT", "type", "Author", "name", name)
		p.puts("counts", "TAG#"+a, "ABOUT", "type", "Tag")
	}
	p.puts("people", "READER#r", "READS#a", "type", "Reader")
	p.puts("people", "READER#r", "READS#b", "type", "Reader")
	p.delivers()
	p.read = true
	for id := range 64 { // a set of one leaf, which is full
		p.post(fmt.Sprint(id), "a", "first")
	}
	p.delivers()
	p.recounts(names)

	p.d.table = "made"
	p.post("64", "a", "the leaf is split")
	if failed := p.delivers(); failed < 4 || failed > 8 || !strings.Contains(p.said["made"], errPolicy.Error()) {
		t.Errorf("%d events fail in the first minute, and it says %v", failed, p.said)
	}
	calm := func() {
		t.Helper()
		if failed := p.delivers(); failed > 0 {
			t.Errorf("%d events fail", failed)
		}
	}
	p.post("0", "a", "edited")
	p.post("1", "b", "moved")
	p.post("2", "", "")
	p.post("3", "b", "there")
	p.post("3", "a", "and back")
	calm()
	p.post("4", "", "")
	p.post("4", "b", "again")
	p.post("65", "b", "new")
	p.post("65", "", "")
	names["a"] = "Anna"
	p.puts("people", "AUTHOR#a", "ABOUT", "type", "Author", "name", "Anna")
	calm()
	p.post("66", "b", "last")
	calm()
	tags := func(author string) (n int64) {
		for _, row := range p.all("counts") {
			if row.Get("PK").Text() == "TAG#"+author {
				n, _ = row.Get("posts").Int64()
			}
		}
		return n
	}
	if a, b := tags("a"), tags("b"); a != 62 || b != 3 {
		t.Errorf("the other table shows %d and %d posts", a, b)
	}
	for _, row := range p.all("made") {
		if title := row.Get("title").Text(); title != "" && title != "first" {
			t.Errorf("a row was written: %s", value.AppendTypedItem(nil, row))
		}
	}

	p.d.table = ""
	p.now = p.now.Add(6 * time.Minute)
	p.post("67", "a", "the table is there")
	calm()
	p.post("68", "a", "and stays")
	calm()
	if len(p.said) > 0 {
		t.Errorf("it says %v", p.said)
	}
	p.recounts(names)
	for _, row := range p.all(owntable.TableName) {
		if k := owntable.Kind(row.Get(owntable.Partition).Text()); k == owntable.KindOwed || k == owntable.KindDead || k == owntable.KindDeadPart {
			t.Errorf("left: %s", value.AppendTypedItem(nil, row))
		}
	}
}
