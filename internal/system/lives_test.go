package system_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// years is a system in which rows of every kind come and go while simulated days pass.
type years struct {
	*testing.T
	*system.System
	db       *noting
	dir      string
	text     string
	days     time.Duration // that have passed
	function bool          // reads, and not a process
	at       map[string]events.Position
	made     int
}

// noting notes which kinds of rows of the own table are written. Its stream is like one of DynamoDB: it has one shard, which ends each time
// that renew is called: another goes on, and the one before the last is no longer listed.
type noting struct {
	*embedded.Store
	one  string // the name of its shard
	mu   sync.Mutex
	met  map[string]bool
	ends []events.Position // of the shards that are over
}

// renew ends the shard.
func (n *noting) renew(at events.Position) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends = append(n.ends, at)
}

// shardName is the name of the i-th shard.
func shardName(i int) string { return fmt.Sprintf("shard-%06d", i) }

func (n *noting) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	last := len(n.ends)
	if last == 0 {
		return []store.Shard{{ID: shardName(0)}}, nil
	}
	return []store.Shard{{ID: shardName(last - 1), Closed: true}, {ID: shardName(last), Parent: shardName(last - 1)}}, nil
}

func (n *noting) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := after
	for i, end := range n.ends {
		if shard > shardName(i) && from.Compare(end) < 0 {
			from = end
		}
		if shard == shardName(i) && from.Compare(end) >= 0 {
			return store.Records{End: true}, nil
		}
	}
	if after.IsZero() {
		oldest, err := n.Store.Horizon(ctx, table, n.one)
		if err != nil {
			return store.Records{}, err
		}
		if from.Compare(oldest) < 0 {
			from = oldest
		}
	}
	page, err := n.Store.Read(ctx, table, n.one, from, limit)
	for i, end := range n.ends {
		if shard == shardName(i) {
			all := len(page.Records)
			page.Records = slices.DeleteFunc(page.Records, func(r events.Record) bool { return r.Position.Compare(end) > 0 })
			page.End = len(page.Records) < all || !page.More
		}
	}
	return page, err
}

// Horizon is zero, as of DynamoDB: what reads a shard begins at its oldest record that is left.
func (*noting) Horizon(context.Context, string, string) (at events.Position, err error) {
	return at, nil
}

func (n *noting) Trim(ctx context.Context, table, _ string, upTo events.Position) error {
	return n.Store.Trim(ctx, table, n.one, upTo)
}

func (n *noting) note(ws []store.Write) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range ws {
		if ws[i].Ref.Table == owntable.TableName && !ws[i].Delete && !ws[i].Check {
			n.met[owntable.Kind(ws[i].Ref.Key.Partition.Text())] = true
		}
	}
}

func (n *noting) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	n.note(ws)
	return n.Store.Write(ctx, ws)
}

func (n *noting) Transact(ctx context.Context, ws []store.Write) error {
	n.note(ws)
	return n.Store.Transact(ctx, ws)
}

func (*noting) Close() error { return nil } // a system that is opened again goes on with it

// outside are the kinds of rows that no life of a row writes, and how many there can be.
var outside = map[string]string{
	"made": "one for each table that a replay made",
}

// TestChurnOfLives: authors, posts, readers and users come and go for a year in every way that rows have: by commands
// and by other programs, edited, moved to another parent, deleted, made another kind of row and expired, with lists of
// more than 200 and with what cannot be applied, while streams split, definitions of an index change, and all is built
// again, replayed and migrated. At the end the own table has no more of any kind of row than after the first week.
// Each kind that package owntable lists was written.
func TestChurnOfLives(t *testing.T) {
	soaktest.Calm(t)
	met := map[string]bool{}
	for _, function := range []bool{false, true} {
		t.Run(map[bool]string{false: "read by a process", true: "read by a function"}[function], func(t *testing.T) { lives(t, function, met) })
	}
	if t.Failed() {
		return
	}
	text, err := os.ReadFile("../owntable/owntable.go") // TestKindsAreListed holds its comment to what is written
	failtest.On(t, err)
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z]+)(?:\|\S+)? +s \S`).FindAllStringSubmatch(string(text), -1) {
		if kind := m[1]; met[kind] == (outside[kind] != "") {
			t.Errorf("rows %q were written: %v", kind, met[kind])
		}
	}
}

func lives(t *testing.T, function bool, met map[string]bool) {
	days, perDay := 28, 1
	if testing.Short() {
		days = 21
	}
	if s := os.Getenv("WEIR_TEST_CHURN"); s != "" {
		n, err := strconv.Atoi(s)
		failtest.On(t, err)
		days = 364
		perDay = max(1, n/days/14)
	}
	y := openYears(t, function, met)
	var first map[string]amount
	for day := range days {
		y.day(day, perDay)
		if day%14 == 0 { // every other week: a build replaces ledgers, and what the week before left of them
			y.builds()
		}
		if day%7 == 3 {
			y.week(day)
		}
		y.passes(24 * time.Hour)
		if day%7 != 6 {
			continue
		}
		is := y.own()
		t.Logf("day %d: %d rows made and removed; %v", day, y.made, is)
		if first == nil {
			first = is
		}
		y.nothingOver(is)
		for _, kind := range slices.Sorted(maps.Keys(is)) {
			more, was := is[kind], first[kind]
			if more.rows > was.rows || 10*more.bytes > 11*was.bytes+1500 { // a lease is larger while a process has it
				t.Errorf("day %d: %s: %v, after the first week %v", day, kind, more, was)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// nothingOver fails if a kind of row is left that a build, a command, a migration or a long list needs only for a while: the first week
// has none of it, either.
func (y *years) nothingOver(is map[string]amount) {
	y.Helper()
	over := []string{"claim", "jobs", "move", unbuilt}
	if !y.function { // ledgers count by positions, and the post of splits has gone with its title
		over = append(over, "mark", "value")
	}
	for _, kind := range over {
		if is[kind].rows > 0 {
			y.Errorf("%s: %v, of which nothing should be left", kind, is[kind])
		}
	}
}

// unbuilt stands for rows of ledgers that no build made.
const unbuilt = "unbuilt"

// amount is how many rows of a kind the own table has, and how many bytes.
type amount struct{ rows, bytes int }

func openYears(t *testing.T, function bool, met map[string]bool) *years {
	text, err := os.ReadFile("testdata/lives.yaml")
	failtest.On(t, err)
	y := &years{T: t, text: string(text), dir: t.TempDir(), function: function, at: map[string]events.Position{}}
	m := y.model(0)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: y.now, Shards: 1})
	failtest.On(t, err)
	t.Cleanup(func() { db.Close() })
	shards, err := db.Shards(t.Context(), "lives")
	failtest.On(t, err)
	y.db = &noting{Store: db, one: shards[0].ID, met: met}
	y.opens(0)
	t.Cleanup(func() { y.Close() })
	y.write(y.row("AUTHOR#stays", "METADATA", "Author", "name", "N"))
	return y
}

func (y *years) now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(y.days) }

// model is the model with its i-th definition of the index.
func (y *years) model(i int) *model.Model {
	y.Helper()
	m, err := model.Parse("lives.yaml", []byte(strings.Replace(y.text, "text: title", fmt.Sprintf("where: {author: {not: never-%d}}, text: title", i), 1)))
	failtest.On(y, err)
	return m
}

// opens begins with the i-th definition of the index.
func (y *years) opens(i int) {
	y.Helper()
	s, err := system.Over(y.Context(), y.db, y.dir, []*model.Model{y.model(i)}, system.Options{Now: y.now, Shared: true, AssumeComplete: true})
	failtest.On(y, err)
	y.System = s
	s.Models[0].Runner.MostPositions = 1 // what redundant positions take is bounded by their number: see TestLedgerSize
	failtest.On(y, s.Reach(y.Context(), nil))
}

// row puts a row.
func (y *years) row(pk, sk, kind string, attrs ...string) store.Write {
	it := value.Item{{Name: "PK", Value: value.OfString(pk)}, {Name: "SK", Value: value.OfString(sk)}, {Name: "type", Value: value.OfString(kind)}}
	for i := 0; i < len(attrs); i += 2 {
		it = append(it, value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
	}
	row := value.NewItem(it...)
	return store.Write{Ref: store.Ref{Table: "lives", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}, Put: row}
}

func number(w store.Write, attr string, n int64) store.Write {
	w.Put = w.Put.With(value.Attr{Name: attr, Value: value.OfInt(n)})
	return w
}

// write writes rows, and what reads the stream applies them.
func (y *years) write(ws ...store.Write) {
	y.Helper()
	for some := range slices.Chunk(ws, 500) {
		out, err := y.Store.Write(y.Context(), some)
		failtest.On(y, err)
		for i := range out {
			failtest.On(y, out[i].Err)
		}
	}
	y.made += len(ws)
	y.apply()
}

// apply applies all that the streams have, and all jobs.
func (y *years) apply() {
	y.Helper()
	if !y.function {
		settle(y, y.System)
		return
	}
	for y.invoke() {
	}
	h := lambda.New(y.Models[0].Runner, func(context.Context) error { return nil })
	out, err := h.Invoke(y.Context(), []byte(`{"detail-type":"Scheduled Event","time":"2026-01-01T00:01:00Z"}`))
	if failtest.On(y, err); string(out) != "{}" {
		y.Fatalf("the schedule: %s", out)
	}
}

// down is an index that takes no documents.
type down struct{ search.Index }

func (down) Apply(context.Context, []search.Document) ([]error, error) {
	return nil, errors.New("it is down")
}

// invoke gives the function what the stream has, and reports whether that was anything.
func (y *years) invoke() (again bool) {
	y.Helper()
	run := *y.Models[0].Runner
	if len(y.at)%2 > 0 { // the index is down now and then
		run.Index = down{run.Index}
	}
	h := lambda.New(&run, func(context.Context) error { return nil })
	shards, err := y.Store.Shards(y.Context(), "lives")
	failtest.On(y, err)
	for _, s := range shards {
		page, err := y.Store.Read(y.Context(), "lives", s.ID, y.at[s.ID], 100)
		failtest.On(y, err)
		if len(page.Records) == 0 {
			continue
		}
		var records [][]byte
		for i := range page.Records {
			records = append(records, lambdaRecord(&page.Records[i]))
		}
		payload := join([]byte(`{"Records":[`), records, ",")
		payload = fmt.Appendf(payload, `],"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:05:00Z"},"shardId":%q,"eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/lives/stream/x","state":{},"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}`, s.ID)
		out, err := h.Invoke(y.Context(), payload)
		if failtest.On(y, err); !strings.HasPrefix(string(out), `{"batchItemFailures":[]`) {
			y.Fatalf("%.500s", out)
		}
		y.at[s.ID], again = page.Records[len(page.Records)-1].Position, true
	}
	return again
}

// day is what happens on each day, n times.
func (y *years) day(day, n int) {
	y.Helper()
	at, later := y.now().Format(time.RFC3339), y.now().Add(time.Minute).Format(time.RFC3339)
	expires := y.now().Add(12 * time.Hour).Unix()
	for i := range n {
		id := fmt.Sprintf("%d.%d", day, i)
		y.commands(id)
		var ws, edits, gone []store.Write
		for _, author := range []string{"stays", id} {
			reader := id + "." + author
			post := y.row("POST#"+reader, "METADATA", "Post", "title", "T"+reader, "author", author, "at", at)
			ws = append(ws, y.row("READER#"+reader, "READS#"+author, "Reader", "since", at), y.row("READER#"+reader, "PRAISE#"+author, "Praise", "at", at),
				number(post, "words", 3), number(y.row("POST#"+reader+"x", "METADATA", "Post", "title", "U"+reader, "author", author, "at", later), "ttl", expires))
			edits = append(edits, y.row("POST#"+reader, "METADATA", "Post", "title", "V"+reader, "author", id+"moved", "at", later))
		}
		ws = append(ws, y.row("AUTHOR#"+id, "METADATA", "Author", "name", "N"+id))
		y.write(ws...)
		y.write(edits...)
		for _, w := range ws {
			switch {
			case w.Put.Has("ttl"):
			case i%2 == 0 && w.Put.Get("type").Text() == "Post": // a soft deletion
				soft := y.row(w.Put.Get("PK").Text(), w.Put.Get("SK").Text(), "Deleted")
				gone = append(gone, number(soft, "ttl", expires))
			default:
				gone = append(gone, store.Write{Ref: w.Ref, Delete: true})
			}
		}
		y.write(gone...)
		y.removeNews()
	}
}

// removeNews removes the notifications, which belong to the application.
func (y *years) removeNews() {
	y.Helper()
	var ws []store.Write
	for _, row := range scan(y, y.Store, store.Query{Table: "lives"}) {
		if strings.HasPrefix(row.Get("SK").Text(), "NEWS#") {
			ws = append(ws, store.Write{Ref: store.Ref{Table: "lives", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}, Delete: true})
		}
	}
	y.write(ws...)
}

// commands make a user with a unique email, give it another, and delete it: by a command, by another program, or by TTL.
func (y *years) commands(id string) {
	y.Helper()
	w := &ingest.Writer{Model: y.Models[0].Model, Store: y.Store, Now: y.now}
	attr := func(name, v string) value.Attr { return value.Attr{Name: name, Value: value.OfString(v)} }
	for n, how := range []string{"command", "program"} {
		user := id + how
		todo := []ingest.Command{
			{Op: "create", Entity: "User", IdempotencyKey: user, Item: value.NewItem(attr("id", user), attr("email", user+"@x"), attr("name", "N"))},
			{Op: "update", Entity: "User", Item: value.NewItem(attr("id", user), attr("email", user+"@y"))},
			{Op: "delete", Entity: "User", Item: value.NewItem(attr("id", user))},
		}
		for _, c := range todo[:3-n] {
			failtest.On(y, w.Do(y.Context(), []ingest.Command{c})[0].Err)
		}
	}
	y.apply()
	other := y.row("USER#"+id+"program", "METADATA", "User", "email", id+"@z", "id", id+"program")
	y.write(other)
	y.write(store.Write{Ref: other.Ref, Delete: true})
}

// week is what happens once a week.
func (y *years) week(day int) {
	y.Helper()
	id := fmt.Sprint("week", day)
	y.long(id)
	y.letters(id)
	y.migrates(id)
	y.replays(id)
	y.redefines(day)
	for range 4 {
		y.splits()
	}
}

// long has lists of more than one page of readers and of posts.
func (y *years) long(id string) {
	y.Helper()
	var ws []store.Write
	for i := range runner.PageOfList + 10 {
		ws = append(ws, y.row(fmt.Sprint("READER#", id, ".", i), "READS#"+id, "Reader", "since", "2026-01-01T00:00:00Z"),
			y.row(fmt.Sprint("POST#", id, ".", i), "METADATA", "Post", "title", "T", "author", id, "at", "2026-01-01T00:00:00Z"))
	}
	author := y.row("AUTHOR#"+id, "METADATA", "Author", "name", "N")
	slices.SortStableFunc(ws, func(a, b store.Write) int { // readers first, and one post that all are told of
		return strings.Compare(b.Put.Get("type").Text(), a.Put.Get("type").Text())
	})
	y.write(append(ws[:runner.PageOfList+11:runner.PageOfList+11], author)...)
	var gone []store.Write
	for i := range ws {
		gone = append(gone, store.Write{Ref: ws[i].Ref, Delete: true})
	}
	y.write(gone[:runner.PageOfList+10]...)
	y.write(ws[runner.PageOfList+11:]...)
	y.write(y.row("AUTHOR#"+id, "METADATA", "Author", "name", "M"))
	y.write(append(gone[runner.PageOfList+10:], store.Write{Ref: author.Ref, Delete: true})...)
	y.removeNews()
}

// letters has dead letters, small and with parts, that go with their cause, by a retry, or are discarded.
func (y *years) letters(id string) {
	y.Helper()
	r := y.Models[0].Runner
	text := noise(9000)
	big := strings.Repeat("x", store.MaxItemBytes-300)
	author := y.row("AUTHOR#"+id, "METADATA", "Author", "name", "N", "filler", big)
	unfit := y.row("POST#"+id+"unfit", "METADATA", "Post", "title", "T", "author", id, "at", strings.Repeat("9", 2000), "words", "many", "filler", text)
	long := y.row("POST#"+id+strings.Repeat("y", 1500), "METADATA", "Post", "title", "T", "author", id, "at", "2026-01-01T00:00:00Z", "filler", text)
	y.write(author)
	y.write(unfit, long)
	ids := func() (ids []string) {
		failtest.On(y, r.EachDeadLetter(y.Context(), func(d deadletter.Letter) error { ids = append(ids, d.ID); return nil }))
		return ids
	}
	if n := len(ids()); n < 3 {
		y.Fatalf("%d dead letters", n)
	}
	small := y.row("AUTHOR#"+id, "METADATA", "Author", "name", "N")
	y.write(small)
	for _, id := range ids() {
		_ = r.RetryLetter(y.Context(), id) // may have gone with another
	}
	y.write(store.Write{Ref: unfit.Ref, Delete: true}, store.Write{Ref: long.Ref, Delete: true}, store.Write{Ref: author.Ref, Delete: true})
	for _, id := range ids() {
		failtest.On(y, r.DiscardLetter(y.Context(), id))
	}
}

// builds builds all that is derived again, with its audit and the hand-over, and removes what was replaced: of rows that have a
// subscriber, many values, and a dead letter about more than a distinct may have.
func (y *years) builds() {
	y.Helper()
	there := []store.Write{y.row("READER#builds", "READS#stays", "Reader", "since", y.now().Format(time.RFC3339))}
	for i := range 8 {
		id := fmt.Sprint("builds", i)
		there = append(there, number(y.row("POST#"+id, "METADATA", "Post", "title", "T"+id, "author", "stays", "at", y.now().Format(time.RFC3339)), "words", int64(i)))
	}
	y.write(there...)
	b := y.Models[0].Builder()
	b.Again, b.Segments, b.Wait = true, 1, func(context.Context, time.Duration) error { return nil }
	for _, wait := range []time.Duration{25 * time.Hour, 2 * time.Hour, 2 * time.Hour} { // the audit, the hand-over, the end
		_, err := b.Run(y.Context())
		failtest.On(y, err)
		b.Again = false
		y.days += wait
		y.write(y.row("POST#between", "METADATA", "Post", "title", "T", "author", "stays", "at", y.now().Format(time.RFC3339)))
	}
	y.write(store.Write{Ref: y.row("POST#between", "METADATA", "").Ref, Delete: true})
	_, _, err := b.Prune(y.Context())
	failtest.On(y, err)
	for i := range there {
		there[i] = store.Write{Ref: there[i].Ref, Delete: true}
	}
	y.write(there...)
	y.removeNews()
}

// migrates moves an old row, and gives a row its default.
func (y *years) migrates(id string) {
	y.Helper()
	m := y.Models[0].Model
	mover := &ingest.Mover{Model: m, Store: y.Store, Now: y.now}
	old, user := y.row("POST#"+id, "OLD", "Old", "title", "T", "id", id), y.row("USER#"+id, "METADATA", "User", "id", id, "email", id+"@old")
	y.write(old, user)
	_, err := (&ingest.Scan{Mover: mover, Migration: m.Migrations[0]}).Run(y.Context())
	failtest.On(y, err)
	y.apply()
	failtest.On(y, mover.End(y.Context(), m.Migrations[0]))
	_, err = (&ingest.Backfill{Model: m, Store: y.Store}).Run(y.Context())
	failtest.On(y, err)
	y.write(store.Write{Ref: old.Ref, Delete: true}, store.Write{Ref: user.Ref, Delete: true}, store.Write{Ref: y.row("POST#"+id, "METADATA", "").Ref, Delete: true})
}

// replays replays a recording of a row that was made and removed, and of bytes that are no record. Both are new each time: the dead
// letter is discarded, and the removal is forgotten.
func (y *years) replays(id string) {
	y.Helper()
	path := filepath.Join(y.TempDir(), "recording.json")
	at := y.now()
	row := y.row("POST#replayed"+id, "METADATA", "Post", "title", "T", "author", "stays", "at", "2025-01-01T00:00:00Z").Put
	keys := value.NewItem(value.Attr{Name: "PK", Value: row.Get("PK")}, value.Attr{Name: "SK", Value: row.Get("SK")})
	first := lambdaRecord(&events.Record{Table: "lives", Keys: keys, New: row, Position: events.PositionOf(1), Time: at})
	last := lambdaRecord(&events.Record{Table: "lives", Keys: keys, Old: row, Position: events.PositionOf(2), Time: at})
	torn := fmt.Appendf(nil, `{"dynamodb":{"Keys":{"PK":{"S":%q}},"NewImage":%q}}`, id, noise(100_000)) // more than the head of a letter holds
	failtest.On(y, os.WriteFile(path, append(join([]byte(`{"Records":[`), [][]byte{first, torn, last}, ","), "]}"...), 0o600))
	in, err := events.Open(path)
	failtest.On(y, err)
	if n := replayOnly(y, y.System, in); n.Dead != 1 || n.Applied != 2 {
		y.Fatalf("%+v", n)
	}
	y.apply()
	y.discards(deadletter.Record)
	n, err := (&replay.Replay{Model: y.Models[0].Model, Store: y.Store}).Forget(y.Context(), at)
	if failtest.On(y, err); n != 1 {
		y.Fatalf("%d removals were forgotten", n)
	}
}

// discards discards the dead letters of a kind, of which there must be some.
func (y *years) discards(kind deadletter.Kind) {
	y.Helper()
	var ids []string
	r := y.Models[0].Runner
	failtest.On(y, r.EachDeadLetter(y.Context(), func(d deadletter.Letter) error {
		if d.Kind == kind {
			ids = append(ids, d.ID)
		}
		return nil
	}))
	if len(ids) == 0 {
		y.Fatalf("there is no letter of kind %s", kind)
	}
	for _, id := range ids {
		failtest.On(y, r.DiscardLetter(y.Context(), id))
	}
}

// noise is text that does not compress to much less.
func noise(n int) string {
	text := make([]byte, n)
	for i, d := 0, rand.New(rand.NewPCG(1, 2)); i < n; i++ {
		text[i] = byte('a' + d.IntN(26))
	}
	return string(text)
}

// redefines begins with another definition of the index, and removes the one before.
func (y *years) redefines(day int) {
	y.Helper()
	failtest.On(y, y.Close())
	y.opens(day)
	y.days += 2 * time.Hour
	y.apply()
	failtest.On(y, y.Prune(y.Context(), y.Models[0], func(system.Pruned) {}))
}

// splits ends the shard: another begins, and after the next time the stream no longer lists the one before. A process
// follows the stream for a while and notices.
func (y *years) splits() {
	y.Helper()
	y.db.renew(y.newest())
	y.write(y.row("POST#split", "METADATA", "Post", "title", "T", "author", "stays", "at", "2026-01-01T00:00:00Z"))
	if y.function {
		return
	}
	stop, _ := follows(y.System)
	defer y.apply() // what the process left
	defer func() {
		stop()
		y.days += 13 * time.Hour // in which what is over is missed
	}()
	out, err := y.Store.Write(y.Context(), []store.Write{{Ref: y.row("POST#split", "METADATA", "Post").Ref, Delete: true}})
	failtest.On(y, err)
	failtest.On(y, out[0].Err)
	card := store.Ref{Table: "lives", Key: store.Key{Partition: value.OfString("CARDS"), Sort: value.OfString("split")}}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		rows, err := y.Store.Get(y.Context(), []store.Ref{card})
		if failtest.On(y, err); rows[0] == nil {
			break
		}
		if time.Now().After(end) {
			y.Fatal("the process applies nothing")
		}
	}
}

// newest is the position of the newest record of the stream, which is read to its end.
func (y *years) newest() (at events.Position) {
	y.Helper()
	shards, err := y.Store.Shards(y.Context(), "lives")
	failtest.On(y, err)
	for more := true; more; {
		page, err := y.Store.Read(y.Context(), "lives", shards[len(shards)-1].ID, at, 1000)
		failtest.On(y, err)
		if n := len(page.Records); n > 0 {
			at = page.Records[n-1].Position
		}
		more = len(page.Records) > 0
	}
	return at
}

// passes lets time pass and deletes what has expired.
func (y *years) passes(d time.Duration) {
	y.Helper()
	newest := y.newest()
	y.days += d
	failtest.On(y, y.db.Trim(y.Context(), "lives", "", newest))
	for {
		n, err := y.Sweep(y.Context())
		failtest.On(y, err)
		y.apply()
		if n == 0 {
			return
		}
	}
}

// own returns what the own table has of each kind of row.
func (y *years) own() map[string]amount {
	is := map[string]amount{}
	for _, row := range scan(y, y.Store, store.Query{Table: owntable.TableName}) {
		partition := row.Get(owntable.Partition).Text()
		kind := owntable.Kind(partition)
		if owntable.Partitions("lives")(partition) && kind != "deadpart" && row.Get("kind").Text() != string(deadletter.Document) { // of no build
			is[unbuilt] = amount{is[unbuilt].rows + 1, is[unbuilt].bytes + row.Size()}
		}
		is[kind] = amount{is[kind].rows + 1, is[kind].bytes + row.Size()}
	}
	return is
}
