package runner_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// churner makes and removes rows of every kind while a simulated year passes.
type churner struct {
	*harness
	at    map[string]events.Position           // how far each shard was read
	round func(day, from, n int) []store.Write // n of a day, from the from-th on
	made  int
}

// row puts a row of the model's first table.
func (c *churner) row(pk, sk, kind string, attrs ...string) store.Write {
	it := value.Item{{Name: "PK", Value: value.OfString(pk)}, {Name: "SK", Value: value.OfString(sk)}, {Name: "type", Value: value.OfString(kind)}}
	for i := 0; i < len(attrs); i += 2 {
		it = append(it, value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
	}
	row, table := value.NewItem(it...), c.model.Tables[0]
	key, _ := table.KeyOf(row)
	return store.Write{Ref: store.Ref{Table: table.Name, Key: key}, Put: row}
}

// orders are of shops that go again and of one that stays, each day with groups of its own.
func (c *churner) orders(day, from, n int) (ws []store.Write) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, day).Format(time.RFC3339)
	for i := range n {
		id := fmt.Sprintf("%d.%d", day, from+i)
		for _, shop := range []string{"stays", id} {
			ws = append(ws, c.row("ORDER#"+id+shop, "ORDER", "order", "shop", shop, "at", at, "customer", id, "status", "paid"))
			ws = append(ws, c.row("ORDER#"+id+shop, "REFUND#1", "refund", "shop", shop, "at", at, "customer", id, "status", "paid"))
		}
	}
	return ws
}

// messages are in a channel that goes again and in one that stays, each day by other people, with
// members who have read some, and reactions. A month has more authors than its distinct may have.
func (c *churner) messages(day, from, n int) (ws []store.Write) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, day)
	put := func(pk, sk, kind string, attrs ...string) { ws = append(ws, c.row(pk, sk, kind, attrs...)) }
	for i := range n {
		id := fmt.Sprintf("%d.%d", day, from+i)
		for _, channel := range []string{"stays", id} {
			for person := range 5 {
				who, when := fmt.Sprint(id, "-", person), at.Add(time.Duration(person)*time.Minute).Format(time.RFC3339)
				message := channel + who
				put("CHANNEL#"+channel, "MESSAGE#"+when+"#"+message, "message", "author", who, "text", "T"+message, "channel", channel, "at", when, "message", message)
				put("CHANNEL#"+channel, "MEMBER#"+who, "member", "role", "owner", "channel", channel, "person", who)
				put("MESSAGE#"+message, who+"#:)", "reaction", "message", message, "emoji", ":)")
				ws = append(ws, c.row("PERSON#"+who, "MARK#"+channel, "mark", "channel", channel))
				ws[len(ws)-1].Put = ws[len(ws)-1].Put.With(value.Attr{Name: "messages", Value: value.OfInt(-1)})
			}
		}
		put("CHANNEL#"+id, "CHANNEL", "channel", "channel", id)
	}
	return ws
}

// posts are the rows that one round makes: of an author that goes again, and of one that stays.
func (c *churner) posts(day, from, n int) (ws []store.Write) {
	put := func(pk, sk, kind string, attrs ...string) { ws = append(ws, c.row(pk, sk, kind, attrs...)) }
	const at = "2026-01-01T00:00:00Z"
	for i := range n {
		id := fmt.Sprintf("%d.%d", day, from+i)
		for _, author := range []string{"stays", id} {
			reader := id + "." + author
			put("READER#"+reader, "READS#"+author, "Reader", "since", at)
			put("READER#"+reader, "PRAISE#"+author, "Praise", "at", at, "kind", "warm")
			put("POST#"+reader, "METADATA", "Post", "title", "T"+reader, "author", author, "at", at)
		}
		put("AUTHOR#"+id, "METADATA", "Author", "name", "N"+id, "at", at)
	}
	return ws
}

func (c *churner) write(ws []store.Write) {
	c.t.Helper()
	for some := range slices.Chunk(ws, 500) {
		out, err := c.store.Write(c.t.Context(), some)
		failtest.On(c.t, err)
		for i := range out {
			failtest.On(c.t, out[i].Err)
		}
	}
	c.apply()
}

// apply applies everything that the stream has.
func (c *churner) apply() {
	c.t.Helper()
	r := c.runner(nil)
	jobs := &runner.Jobs{Runner: r}
	for again := true; again; {
		again = false
		for _, table := range c.model.Tables {
			again = c.applyTable(r, table) || again
		}
		left, err := jobs.RunStep(c.t.Context())
		failtest.On(c.t, err)
		again = again || left
	}
}

// applyTable applies what a table's stream has, and reports whether there was anything.
func (c *churner) applyTable(r *runner.Runner, table *model.Table) (again bool) {
	c.t.Helper()
	shards, err := c.store.Shards(c.t.Context(), table.Name)
	failtest.On(c.t, err)
	for _, s := range shards {
		at := table.Name + s.ID
		page, err := c.store.Read(c.t.Context(), table.Name, s.ID, c.at[at], 1000)
		failtest.On(c.t, err)
		if len(page.Records) == 0 {
			continue
		}
		b := runner.Batch{ShardKey: owntable.ShardKey(table.Name, s.ID)}
		for i := range page.Records {
			if change, ok := projections.NewChange(table, &page.Records[i]); ok {
				b.Changes = append(b.Changes, change)
			}
		}
		n, err := r.ApplyRows(c.t.Context(), b)
		failtest.On(c.t, err)
		if n.Dead > 0 {
			c.t.Fatalf("%d dead letters: %v", n.Dead, c.letters())
		}
		last := page.Records[len(page.Records)-1].Position
		c.at[at], again = last, true
		failtest.On(c.t, c.store.Trim(c.t.Context(), table.Name, s.ID, last))
	}
	return again
}

// removed deletes the rows that a round made, and the news that was made of them.
func (c *churner) removed(ws []store.Write) {
	c.t.Helper()
	gone := make([]store.Write, len(ws))
	for i := range ws {
		gone[i] = store.Write{Ref: ws[i].Ref, Delete: true}
	}
	c.write(gone)
	gone = nil
	table := c.model.Tables[0]
	for _, row := range c.scan(table.Name) {
		if strings.HasPrefix(row.Get("SK").Text(), "NEWS#") {
			key, _ := table.KeyOf(row)
			gone = append(gone, store.Write{Ref: store.Ref{Table: table.Name, Key: key}, Delete: true})
		}
	}
	c.write(gone)
}

// passes lets time pass and deletes what has expired.
func (c *churner) passes(d time.Duration) {
	c.t.Helper()
	c.clock = c.clock.Add(d)
	for {
		n, err := c.store.Sweep(c.t.Context(), c.clock, 1<<20, func(context.Context, []store.Write) error { return nil })
		failtest.On(c.t, err)
		if n == 0 {
			break
		}
	}
	c.apply()
}

// own returns how many rows of each kind the own table has, and how many bytes.
func (c *churner) own() (rows map[string]int, bytes int) {
	rows = map[string]int{}
	for _, row := range c.scan(owntable.TableName) {
		kind := owntable.Kind(row.Get(owntable.Partition).Text())
		if kind == "secret" { // one for the store, which keys revisions
			continue
		}
		if row.Get(owntable.Sort).Text() == "-" {
			kind += " head"
		}
		rows[kind]++
		bytes += row.Size()
	}
	return rows, bytes
}

// TestChurn: rows come and go for a year, and the own table has at the end at most 1.1 times
// the rows and bytes that it had after the first week.
// WEIR_TEST_CHURN=1000000 makes and removes that many rows, in each of the tests.
func TestChurn(t *testing.T) {
	churn(t, "../sim/testdata/press.yaml", func(c *churner) {
		c.round = c.posts
		failtest.On(t, c.harness.write(`put press {"PK":"AUTHOR#stays","SK":"METADATA","type":"Author","name":"N"}`))
	})
}

// TestChurnOfGroups: groups of each day come and go for a year. At the end no row of a group is
// left, and the own table is no larger than after a week.
func TestChurnOfGroups(t *testing.T) {
	soaktest.Calm(t)
	churn(t, "../sim/testdata/shops.yaml", func(c *churner) { c.round = c.orders })
}

// TestChurnOfChannels: latest rows, unread counts, groups of months whose distinct has far more
// values than its max, with the dead letters about that, and all that follows them.
func TestChurnOfChannels(t *testing.T) {
	soaktest.Calm(t)
	churn(t, "../../examples/chat/model.yaml", func(c *churner) {
		c.round = c.messages
		failtest.On(t, c.harness.write(`put chat {"PK":"CHANNEL#stays","SK":"CHANNEL","type":"channel","channel":"stays"}`))
	})
}

// atOnce is how many of a day's rounds are there at one time: all posts of an author reach all of its
// readers, so the news of a day are as many as the square of this.
const atOnce = 5

func churn(t *testing.T, name string, begins func(*churner)) {
	text, err := os.ReadFile(name)
	failtest.On(t, err)
	text = []byte(strings.Replace(string(text), "max: 1000}", "max: 2}", 1))
	days := 365
	if testing.Short() {
		days = 60
	}
	m, err := model.Parse(name, text)
	failtest.On(t, err)
	c := &churner{harness: newHarness(t, m), at: map[string]events.Position{}}
	defer c.close()
	begins(c)
	perDay := 1
	if s := os.Getenv("WEIR_TEST_CHURN"); s != "" {
		n, err := strconv.Atoi(s)
		failtest.On(t, err)
		perDay = max(1, n/days/len(c.round(0, 0, 1)))
	}
	var week map[string]int
	var weekBytes int
	for day := range days {
		for from := 0; from < perDay; from += atOnce {
			ws := c.round(day, from, min(atOnce, perDay-from))
			c.write(ws)
			c.made += len(ws)
			c.removed(ws)
		}
		c.passes(24 * time.Hour)
		if day == 6 {
			week, weekBytes = c.own()
		}
	}
	year, bytes := c.own()
	t.Logf("%d rows made and removed; after a week %d bytes, %v; after a year %d, %v", c.made, weekBytes, week, bytes, year)
	was, is := 0, 0
	for kind := range year {
		was, is = was+week[kind], is+year[kind]
	}
	if 10*bytes > 11*weekBytes {
		t.Errorf("%d bytes, after a week %d", bytes, weekBytes)
	}
	if 10*is > 11*was {
		for _, kind := range slices.Sorted(maps.Keys(year)) {
			t.Errorf("%s: %d rows, after a week %d", kind, year[kind], week[kind])
		}
	}
	for _, table := range m.Tables {
		for _, row := range c.scan(table.Name) {
			if e := table.Classify(row); e != nil && e.Group != nil {
				t.Errorf("a row of %s is left: %s", e.Name, row.Get("PK").Text())
			}
		}
	}
}
