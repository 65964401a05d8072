package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// denied is a store that refuses every write to one table, as a policy does.
type denied struct {
	store.Store
	table string
	tried int // writes to the table that it refused
}

var errPolicy = errors.New("AccessDeniedException: not authorized to perform dynamodb:UpdateItem")

func (d *denied) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(ws))
	var first error
	for i := range ws {
		if ws[i].Table == d.table {
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
	return out, first
}

func (d *denied) Transact(ctx context.Context, ws []store.Write) error {
	if slices.ContainsFunc(ws, func(w store.Write) bool { return w.Table == d.table }) {
		return errPolicy
	}
	return d.Store.Transact(ctx, ws)
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

// outageWorld is a follower of a model with three tables, one of which refuses all writes for a while.
type outageWorld struct {
	*harness
	d       *denied
	stopped map[string]string
	step    *runner.Stepper
	run     *runner.Runner
}

func newOutageWorld(t *testing.T) *outageWorld {
	m, err := loadText(t, twoTables)
	must(t, err)
	w := &outageWorld{harness: newHarness(t, m), stopped: map[string]string{}}
	w.d = &denied{Store: w.store}
	w.restart()
	return w
}

// restart begins a process.
func (w *outageWorld) restart() {
	w.run = (&runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.d, Now: w.now, Mono: w.now}).Outlasting()
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

func (w *outageWorld) post(id int) {
	must(w.t, w.write(fmt.Sprintf(`put posts {"PK":"POST#%d","SK":"POST","type":"Post","author":"a","tag":"t","at":"%03d","title":"title %d"}`, id, id, id)))
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
	w := newOutageWorld(t)
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
	if out := w.audit(); out != "" {
		t.Error(out)
	}
	must(t, w.harness.runner(nil).Dead(t.Context(), func(d runner.Dead) error {
		t.Errorf("left: %s %s", d.Kind, d.Reason)
		return nil
	}))
	if jobs, err := w.store.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Jobs("press"))}); err != nil || len(jobs.Rows) > 0 {
		t.Error("the job is left", jobs.Rows, err)
	}
}
