package runner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/migrate"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// denied is a store that refuses every write to one table, as a policy does.
type denied struct {
	store.Store
	table   string
	tried   int                    // writes to the table that it refused
	meets   func(ws []store.Write) // if set, is called before writes
	deleted bool                   // the table cannot be read either
	unread  bool                   // it cannot be read, and takes writes
	fails   func() error           // if set, is asked before and after writes whether the process ends there
}

var errPolicy = errors.New("AccessDeniedException: not authorized to perform dynamodb:UpdateItem")

func (d *denied) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if (d.deleted || d.unread) && slices.ContainsFunc(refs, func(r store.Ref) bool { return r.Table == d.table }) {
		return nil, errPolicy
	}
	return d.Store.Get(ctx, refs)
}

func (d *denied) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if (d.deleted || d.unread) && q.Table == d.table {
		return store.Page{}, errPolicy
	}
	return d.Store.Query(ctx, q)
}

// Trim forgets nothing: the audit reads all records.
func (d *denied) Trim(context.Context, string, string, events.Position) error { return nil }

func (d *denied) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if err := d.ends(); err != nil {
		return nil, err
	}
	if d.meets != nil {
		d.meets(ws)
	}
	out, first := make([]store.Outcome, len(ws)), error(nil)
	for i := range ws {
		if ws[i].Table == d.table && !d.unread {
			d.tried++
			out[i].Err = errPolicy
			first = errPolicy
			continue
		}
		one, err := d.Store.Write(ctx, ws[i:i+1])
		if err != nil {
			return out, err
		}
		out[i] = one[0]
	}
	if err := d.ends(); err != nil {
		return nil, err
	}
	return out, first
}

// ends returns the error of a process that ends there.
func (d *denied) ends() error {
	if d.fails == nil {
		return nil
	}
	return d.fails()
}

func (d *denied) Transact(ctx context.Context, ws []store.Write) error {
	if err := d.ends(); err != nil {
		return err
	}
	if slices.ContainsFunc(ws, func(w store.Write) bool { return w.Table == d.table && !d.unread && (d.deleted || !w.Check) }) {
		return errPolicy
	}
	return cmp.Or(d.Store.Transact(ctx, ws), d.ends())
}

const twoTables = `
model: press
tables: {posts: {key: [PK, SK]}, authors: {key: [PK, SK]}, cards: {key: [PK, SK]}}
entities:
  Post: {table: posts, where: {type: Post}, key: {PK: "POST#{id}", SK: POST}, attributes: {author: string, tag: string, at: string, title: string}}
  Author: {table: authors, where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: ABOUT}, attributes: {name: string, state: {type: string, enum: [new, busy]}}}
  Tag: {table: cards, where: {type: Tag}, key: {PK: "TAG#{id}", SK: ABOUT}, attributes: {name: string}}
derive:
  Author.posts: {count: Post, to: {id: author}}
  Author.last: {latest: Post.title, by: at, to: {id: author}}
  Author.state: {steps: {busy: {when: Post, to: {id: author}}}}
  Tag.posts: {count: Post, to: {id: tag}}
`

// manyKinds derives rows of every kind in the table made.
const manyKinds = `
model: press
tables: {posts: {key: [PK, SK]}, people: {key: [PK, SK]}, counts: {key: [PK, SK]}, made: {key: [PK, SK]}}
entities:
  Post: {table: posts, where: {type: Post}, key: {PK: "POST#{id}", SK: POST}, attributes: {author: string, title: string}}
  Author: {table: people, where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: ABOUT}, attributes: {name: string}}
  Reader: {table: people, where: {type: Reader}, key: {PK: "READER#{reader}", SK: "READS#{author}"}}
  Tag: {table: counts, where: {type: Tag}, key: {PK: "TAG#{id}", SK: ABOUT}}
  Card: {table: made, where: {type: Card}, key: {PK: CARDS, SK: "{author}#{id}"}, attributes: {title: string, name: string, last: string}}
  Log: {table: made, where: {type: Log}, key: {PK: "LOG#{id}", SK: "{position}"}, attributes: {title: string, event: string, name: string}}
  News: {table: made, where: {type: News}, key: {PK: "NEWS#{reader}", SK: "{position}"}, attributes: {title: string}}
  Shelf: {table: made, where: {type: Shelf}, key: {PK: "SHELF#{author}", SK: "ALL[#{leaf}]"}}
derive:
  Tag.posts: {count: Post, to: {id: author}}
  Card: {row: Post, set: {id: id, author: author, title: title, name: {follow: Author.name, by: {id: author}}, last: {follow: Author.name, by: {id: author}, keep: true}}}
  Log: {row: Post, keep: [insert, modify, remove], set: {id: id, position: $position, event: $event, title: title, name: {follow: Author.name, by: {id: author}}}}
  News: {row: Post, keep: [insert], each: {of: Reader, by: [author]}, set: {reader: Reader.reader, position: $position, title: title}}
  Shelf.posts: {set: Post.id}
`

// shelves writes the table made for a set alone.
const shelves = `
model: press
tables: {posts: {key: [PK, SK]}, counts: {key: [PK, SK]}, made: {key: [PK, SK]}}
entities:
  Post: {table: posts, where: {type: Post}, key: {PK: "POST#{id}", SK: POST}, attributes: {author: string}}
  Tag: {table: counts, where: {type: Tag}, key: {PK: "TAG#{id}", SK: ABOUT}}
  Shelf: {table: made, where: {type: Shelf}, key: {PK: "SHELF#{author}", SK: "ALL[#{leaf}]"}}
derive:
  Tag.posts: {count: Post, to: {id: author}}
  Shelf.posts: {set: Post.id}
`

// outageWorld is a follower of a model with three tables, one of which refuses all writes for a while.
type outageWorld struct {
	*harness
	d       *denied
	stopped map[string]string
	step    *runner.Stepper
	run     *runner.Runner
}

func newOutageWorld(t *testing.T, text string) *outageWorld {
	m, err := loadText(t, text)
	must(t, err)
	w := &outageWorld{harness: newHarness(t, m), stopped: map[string]string{}}
	w.d = &denied{Store: w.store}
	w.restart()
	return w
}

// restart begins a process.
func (w *outageWorld) restart() {
	w.run = (&runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.d, Now: w.now, Mono: w.now, Mover: &migrate.Mover{Model: w.model, Store: w.d, Now: w.now}}).Outlasting()
	f := &runner.Follower{Runner: w.run, Stopped: func(_, table, _, why string) { w.stopped[table] = why }}
	w.step = f.Stepper(runner.GroupRows)
}

// runs lets time pass, in steps of the group, and returns how many of them failed.
func (w *outageWorld) runs(during time.Duration) (failed int) {
	for end := w.clock.Add(during); w.clock.Before(end); w.clock = w.clock.Add(5 * time.Second) {
		for range 20 {
			n, left, err := w.step.Step(w.t.Context())
			if err != nil {
				if !strings.Contains(err.Error(), "AccessDenied") {
					w.t.Fatal(err)
				}
				failed++
				f := &runner.Follower{Runner: w.run, Stopped: func(_, table, _, why string) { w.stopped[table] = why }}
				w.step = f.Stepper(runner.GroupRows)
				break
			}
			if n == 0 && !left {
				break
			}
		}
	}
	return failed
}

// out begins with an author who has a post. Then the authors' table takes no writes, and there is another post.
func (w *outageWorld) out(during time.Duration) {
	w.t.Helper()
	must(w.t, w.write(`put authors {"PK":"AUTHOR#a","SK":"ABOUT","type":"Author","state":"new"}`))
	w.post(0)
	w.runs(10 * time.Second)
	w.d.table = "authors"
	w.post(1)
	w.runs(during)
}

func (w *outageWorld) post(id int) {
	must(w.t, w.write(fmt.Sprintf(`put posts {"PK":"POST#%d","SK":"POST","type":"Post","author":"a","tag":"t","at":"%03d","title":"title %d"}`, id, id, id)))
}

// owedKinds counts what waits for a table, by its kind.
func (w *outageWorld) owedKinds(table string) map[string]int {
	page, err := w.store.Query(w.t.Context(), owntable.Owed(w.model.Name, table, 1000))
	must(w.t, err)
	kinds := map[string]int{}
	for _, row := range page.Rows {
		kinds[owntable.OwedFrom(row).Kind]++
	}
	return kinds
}

// whole fails if anything derived is not as it should be, or anything waits or is left.
func (w *outageWorld) whole() {
	w.t.Helper()
	w.pull()
	for i := range w.records {
		w.done[i+1] = true
	}
	if out := w.audit(); out != "" {
		w.t.Error(out)
	}
	must(w.t, w.harness.runner(nil).Dead(w.t.Context(), func(d runner.Dead) error {
		w.t.Errorf("left: %s %s", d.Kind, d.Reason)
		return nil
	}))
	jobs, err := w.store.Query(w.t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Jobs("press"))})
	if err != nil || len(jobs.Rows) > 0 {
		w.t.Error("the job is left", jobs.Rows, err)
	}
}

// owed counts the targets that wait.
func (w *outageWorld) owed() (n int) {
	page, err := w.store.Query(w.t.Context(), owntable.Owed(w.model.Name, w.d.table, 1000))
	must(w.t, err)
	return len(page.Rows)
}

// shows returns an attribute of a row.
func (w *outageWorld) shows(table, pk, attr string) string {
	row, err := store.GetRow(w.t.Context(), w.store, store.Ref{Table: table, Key: store.Key{Partition: value.OfString(pk), Sort: value.OfString("ABOUT")}})
	must(w.t, err)
	return row.Get(attr).Text()
}

// TestOutage: a table that refuses every write for long stops what is shown there, and nothing else; it is
// named; it is tried with few writes; and all comes by itself when it takes writes again.
func TestOutage(t *testing.T) {
	w := newOutageWorld(t, twoTables)
	defer w.close()
	must(t, w.write(`put authors {"PK":"AUTHOR#a","SK":"ABOUT","type":"Author","state":"new"}`))
	must(t, w.write(`put cards {"PK":"TAG#t","SK":"ABOUT","type":"Tag"}`))
	w.post(0)
	w.runs(10 * time.Second)
	w.d.table = "authors"
	w.post(1)
	if failed := w.runs(50 * time.Second); failed < 8 || len(w.stopped) > 0 || w.owed() > 0 {
		t.Fatalf("a short outage: %d failures, %v, %d targets owed", failed, w.stopped, w.owed())
	}
	if failed := w.runs(30 * time.Second); failed > 4 {
		t.Errorf("%d failures after a minute", failed)
	}
	if why := w.stopped["authors"]; !strings.Contains(why, "takes no writes since") || !strings.Contains(why, "AccessDenied") || len(w.stopped) != 1 {
		t.Errorf("it says %v", w.stopped)
	}
	w.d.tried = 0
	for id := 2; id < 40; id++ {
		w.post(id)
		if failed := w.runs(10 * time.Second); failed > 0 {
			t.Fatalf("post %d: a batch fails", id)
		}
	}
	if n := w.shows("cards", "TAG#t", "posts"); n != "40" {
		t.Errorf("the other table shows %s posts", n)
	}
	if n := w.shows("authors", "AUTHOR#a", "posts"); n != "1" || w.owed() != 1 {
		t.Errorf("the table that is out shows %s posts, and %d targets are owed", n, w.owed())
	}
	if w.d.tried == 0 || w.d.tried > 12 {
		t.Errorf("%d writes were tried in six minutes", w.d.tried)
	}
	w.restart() // what it knew is forgotten
	w.d.tried = 0
	w.post(40)
	if failed := w.runs(10 * time.Second); failed > 1 || w.owed() != 1 {
		t.Errorf("a process that starts: %d failures", failed)
	}
	w.d.table = ""
	w.runs(6 * time.Minute)
	w.d.table = "authors"
	if w.stopped["authors"] != "" || w.owed() != 0 {
		t.Errorf("it takes writes again: %v, %d owed", w.stopped, w.owed())
	}
	w.d.table = ""
	w.runs(10 * time.Second)
	w.whole()
}

// TestOutageOfWhatIsMade: a table that refuses every write, or is deleted, stops the rows in it that weir makes, of
// every kind, and nothing else. When it is there again, all of them are as one pass over the records makes them.
func TestOutageOfWhatIsMade(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted=%v", deleted), func(t *testing.T) {
			w := newOutageWorld(t, manyKinds)
			defer w.close()
			write := func(format string, args ...any) {
				t.Helper()
				must(t, w.write(fmt.Sprintf(format, args...)))
			}
			post := func(id int, author, title string) {
				write(`put posts {"PK":"POST#%d","SK":"POST","type":"Post","author":"%s","title":"%s"}`, id, author, title)
			}
			for _, a := range []string{"a", "b", "c", "d"} {
				write(`put people {"PK":"AUTHOR#%s","SK":"ABOUT","type":"Author","name":"name %s"}`, a, a)
				write(`put counts {"PK":"TAG#%s","SK":"ABOUT","type":"Tag"}`, a)
			}
			write(`put people {"PK":"READER#r","SK":"READS#a","type":"Reader"}`)
			for id := range 8 {
				post(id, "a", "first")
			}
			post(8, "d", "first")
			post(9, "d", "first")
			post(500, "c", "first")
			w.runs(10 * time.Second)

			w.d.table, w.d.deleted = "made", deleted
			post(0, "a", "edited")
			w.runs(90 * time.Second)
			if why := w.stopped["made"]; !strings.Contains(why, "takes no writes since") {
				t.Fatalf("it says %v", w.stopped)
			}
			w.d.tried = 0
			calm := func() {
				t.Helper()
				if failed := w.runs(10 * time.Second); failed > 0 {
					t.Fatal("a batch fails")
				}
			}
			post(1, "b", "moved")
			write(`delete posts {"PK":"POST#2","SK":"POST"}`)
			calm()
			write(`put people {"PK":"AUTHOR#a","SK":"ABOUT","type":"Author","name":"another name"}`)
			write(`delete people {"PK":"AUTHOR#d","SK":"ABOUT"}`)
			for id := 10; id < 150; id++ { // a set that is split
				post(id, "a", "new")
			}
			calm()
			post(3, "b", "there")
			calm()
			post(3, "a", "and back")
			write(`delete posts {"PK":"POST#4","SK":"POST"}`)
			calm()
			post(4, "a", "again")
			post(5, "b", "moved, and deleted")
			calm()
			write(`delete posts {"PK":"POST#5","SK":"POST"}`)
			write(`delete people {"PK":"READER#r","SK":"READS#a"}`)
			calm()
			post(200, "a", "after the reader")
			if !deleted {
				write(`set made {"PK":"CARDS","SK":"a#6"} {"title":"overwritten"}`)
				write(`delete made {"PK":"CARDS","SK":"a#7"}`)
				write(`set made {"PK":"CARDS","SK":"c#500"} {"name":"overwritten"}`)
				write(`put made {"PK":"CARDS","SK":"a#12","type":"Card","title":"written over"}`)
				calm()
			}
			write(`delete posts {"PK":"POST#12","SK":"POST"}`)
			calm()
			if n := w.shows("counts", "TAG#a", "posts"); n != "145" {
				t.Errorf("the other table shows %s posts", n)
			}
			if w.d.tried > 12 {
				t.Errorf("%d writes were tried", w.d.tried)
			}
			kinds := w.owedKinds("made")
			for _, kind := range []string{owntable.OwedCopy, owntable.OwedEntry, owntable.OwedFollow, owntable.OwedLeft, owntable.OwedNotification, owntable.OwedSet} {
				if kinds[kind] == 0 {
					t.Errorf("nothing is owed of kind %q: %v", kind, kinds)
				}
			}
			w.clock = w.clock.Add(3 * 24 * time.Hour) // longer than a value lives whose row is gone
			_, err := w.store.Sweep(t.Context(), w.clock, 1000, nil)
			must(t, err)
			w.d.table, w.d.deleted = "", false
			w.runs(6 * time.Minute)
			if n := w.owedKinds("made"); len(n) > 0 {
				t.Errorf("it takes writes again: %v is owed", n)
			}
			w.whole()
		})
	}
}

// TestOutageNamedAgain: a target that another process names again while it is shown is shown again.
func TestOutageNamedAgain(t *testing.T) {
	w := newOutageWorld(t, twoTables)
	defer w.close()
	w.out(2 * time.Minute)
	other := (&runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.d, Now: w.now, Mono: w.now}).Outlasting()
	w.d.table = ""
	again := false
	w.d.meets = func(ws []store.Write) {
		if again || !ws[0].Delete || owntable.Kind(ws[0].Key.Partition.Text()) != owntable.KindOwed {
			return
		}
		again = true // after the row was shown, and before its note is deleted
		must(t, w.write(`set authors {"PK":"AUTHOR#a","SK":"ABOUT"} {"posts":999}`))
		must(t, other.Owe(t.Context(), store.Ref{Table: "authors", Key: store.Key{Partition: value.OfString("AUTHOR#a"), Sort: value.OfString("ABOUT")}}))
	}
	jobs := &runner.Jobs{Runner: w.run} // no stream is read that would show it
	for range 100 {
		_, err := jobs.Step(t.Context())
		must(t, err)
		w.clock = w.clock.Add(5 * time.Second)
	}
	w.d.meets = nil
	if !again {
		t.Fatal("nothing was settled")
	}
	if n := w.shows("authors", "AUTHOR#a", "posts"); n != "2" {
		t.Errorf("it shows %s posts", n)
	}
	w.restart()
	w.runs(10 * time.Second)
	w.whole()
}

// TestOutageIsTried: a table is tried by a write before batches write to it again, also where what waits needs none.
func TestOutageIsTried(t *testing.T) {
	w := newOutageWorld(t, manyKinds)
	defer w.close()
	author := func(name string) {
		t.Helper()
		must(t, w.write(`put people {"PK":"AUTHOR#a","SK":"ABOUT","type":"Author","name":"`+name+`"}`))
	}
	author("one")
	must(t, w.write(`put posts {"PK":"POST#1","SK":"POST","type":"Post","author":"a","title":"x"}`))
	w.runs(10 * time.Second)
	w.d.table = "made"
	author("two")
	w.runs(2 * time.Minute)
	if n := w.owedKinds("made"); n[owntable.OwedFollow] != 1 || len(n) != 1 {
		t.Fatalf("%v is owed", n)
	}
	if failed := w.runs(10 * time.Minute); failed > 0 {
		t.Errorf("%d steps failed", failed)
	}
	if why := w.stopped["made"]; why == "" {
		t.Error("the table is said to work")
	}
	w.d.table = ""
	w.runs(6 * time.Minute)
	w.whole()
}

// TestOutageLateChanges: changes that were left out while the table of a copy took no writes may come again
// later, in any order, as from a worker that was delayed. They do not replace what the newest of them left.
func TestOutageLateChanges(t *testing.T) {
	w := newOutageWorld(t, manyKinds)
	defer w.close()
	post := func(title string) {
		t.Helper()
		must(t, w.write(`put posts {"PK":"POST#1","SK":"POST","type":"Post","author":"a","title":"`+title+`"}`))
		w.pull()
	}
	shows := func(title string) {
		t.Helper()
		row, err := store.GetRow(t.Context(), w.store, store.Ref{Table: "made", Key: store.Key{Partition: value.OfString("CARDS"), Sort: value.OfString("a#1")}})
		must(t, err)
		if got := row.Get("title").Text(); got != title {
			t.Errorf("the copy shows %q, not %q", got, title)
		}
	}
	late := func(r *runner.Runner, n int) {
		t.Helper()
		_, err := r.Rows(t.Context(), w.batch(n))
		must(t, err)
	}
	post("zero") // record 1
	w.runs(10 * time.Second)
	shows("zero")
	w.d.table = "made"
	post("one") // record 2
	w.runs(90 * time.Second)
	at := len(w.records)
	post("two")
	if w.records[at].rec.New.Get("title").Text() != "two" {
		t.Fatal("another record came before it")
	}
	post("three")
	w.runs(10 * time.Second)
	late(w.run, at) // "one", while the table takes no writes
	w.d.table = ""
	w.runs(6 * time.Minute)
	shows("three")
	late(w.run, at+1) // "two"
	shows("three")
	must(t, w.write(`delete posts {"PK":"POST#1","SK":"POST"}`))
	w.runs(10 * time.Second)
	shows("")
	w.whole()
}

// TestOutageOfOneRow: what cannot be done when a table takes writes again holds up nothing else that waits for it. It is
// left, and its job is named.
func TestOutageOfOneRow(t *testing.T) {
	w := newOutageWorld(t, twoTables)
	defer w.close()
	w.out(90 * time.Second)
	for id := range 60 { // more than one step does
		row := store.Ref{Table: "authors", Key: store.Key{Partition: value.OfString(fmt.Sprint("AUTHOR#", id)), Sort: value.OfString("ABOUT")}}
		unknown := owntable.OwedRow{Kind: "!of a newer version", Table: "authors", Key: w.model.Table("authors").Item(row.Key)}
		_, err := w.store.Write(t.Context(), []store.Write{unknown.Owe("press", row)})
		must(t, err)
	}
	w.d.table = ""
	for end := w.clock.Add(10 * time.Minute); w.clock.Before(end); w.clock = w.clock.Add(5 * time.Second) {
		_, _, err := w.step.Step(t.Context())
		must(t, err)
	}
	if n := w.shows("authors", "AUTHOR#a", "posts"); n != "2" || w.owedKinds("authors")["!of a newer version"] != 60 {
		t.Errorf("the author shows %s posts, and there wait %v", n, w.owedKinds("authors"))
	}
	if why := fmt.Sprint(w.stopped); !strings.Contains(why, "no kind of projection of this version knows what waits for authors") {
		t.Errorf("it says %s", why)
	}
}

// TestOutageOfASplit: a table is also found to take no writes where weir writes it only together with our own, as a split
// of a set does.
func TestOutageOfASplit(t *testing.T) {
	w := newOutageWorld(t, shelves)
	defer w.close()
	post := func(id int) {
		must(t, w.write(fmt.Sprintf(`put posts {"PK":"POST#%d","SK":"POST","type":"Post","author":"a"}`, id)))
	}
	must(t, w.write(`put counts {"PK":"TAG#a","SK":"ABOUT","type":"Tag"}`))
	for id := range 64 { // one leaf, which is full
		post(id)
	}
	w.runs(10 * time.Second)
	w.d.table = "made"
	post(64)
	w.runs(90 * time.Second)
	if why := w.stopped["made"]; !strings.Contains(why, "takes part in no transaction since") {
		t.Errorf("it says %v", w.stopped)
	}
	post(65)
	w.runs(10 * time.Second)
	if n := w.shows("counts", "TAG#a", "posts"); n != "66" {
		t.Errorf("the other table shows %s posts", n)
	}
	w.d.table = ""
	w.runs(6 * time.Minute)
	w.whole()
}
