package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/migrate"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// moving has a migration from a table of its own into two tables, and one in place that also makes a row in another
// table.
const moving = `
model: press
tables: {cards: {key: [PK, SK]}, films: {key: [PK, SK]}, tags: {key: [PK, SK]}, posts: {key: [PK, SK]}}
entities:
  Card: {table: cards, where: {type: Card}, key: {PK: "CARD#{tag}", SK: "{name}"}, attributes: {title: string!}}
  Film: {table: films, where: {type: Film}, key: {PK: "FILM#{tag}", SK: "{name}"}, attributes: {title: string}}
  Tag: {table: tags, where: {type: Tag}, key: {PK: "TAG#{id}", SK: ABOUT}}
  OldPost: {table: posts, where: {type: OldPost}, key: {PK: "POST#{id}", SK: POST}, attributes: {title: string, text: string}}
  Post: {table: posts, where: {type: Post}, key: {PK: "POST#{id}", SK: POST}, attributes: {title: string}}
  Text: {table: films, where: {type: Text}, key: {PK: "TEXT#{id}", SK: TEXT}, attributes: {text: string}}
derive:
  Tag.cards: {count: Card, to: {id: tag}}
  Tag.films: {count: Film, to: {id: tag}}
migrate:
  v1: {table: old, key: [id], into: [Card, Film]}
  v2: {rows: OldPost, into: {Post: {}, Text: {}}}
`

// movingWorld is a world in which the migrations are on, and some rows were moved.
func movingWorld(t *testing.T) *outageWorld {
	w := newOutageWorld(t, moving)
	for _, g := range w.model.Migrations {
		_, err := w.store.Write(t.Context(), []store.Write{owntable.BeginScan(owntable.Migration("press", g.Name), g.Name, true)})
		must(t, err)
	}
	must(t, w.write(`put tags {"PK":"TAG#a","SK":"ABOUT","type":"Tag"}`))
	for id := range 6 {
		w.old(id, "Card", "a", "first")
	}
	w.oldPost(1, "first")
	w.runs(10 * time.Second)
	return w
}

func (w *outageWorld) old(id int, of, tag, title string) {
	must(w.t, w.write(fmt.Sprintf(`put old {"id":"%d","type":"%s","tag":"%s","name":"n%d","title":"%s"}`, id, of, tag, id, title)))
}

func (w *outageWorld) drop(id int) {
	must(w.t, w.write(fmt.Sprintf(`delete old {"id":"%d"}`, id)))
}

func (w *outageWorld) oldPost(id int, text string) {
	must(w.t, w.write(fmt.Sprintf(`put posts {"PK":"POST#%d","SK":"POST","type":"OldPost","title":"post","text":"%s"}`, id, text)))
}

// calm lets time pass in which no batch may fail.
func (w *outageWorld) calm() {
	w.t.Helper()
	if failed := w.runs(10 * time.Second); failed > 0 {
		w.t.Fatal("a batch fails")
	}
}

// held returns the keys of a table's rows with the title or text of each.
func (w *outageWorld) held(table string) string {
	var out []string
	for _, row := range w.scan(table) {
		out = append(out, row.Get("PK").Text()+row.Get("id").Text()+" "+row.Get("SK").Text()+" "+row.Get("type").Text()+" "+row.Get("title").Text()+row.Get("text").Text())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestOutageMoves: a table that takes no writes, or is deleted, stops the old rows that a migration moves into it, or out
// of it, and nothing else. When it takes writes again, all of them are as without the outage.
func TestOutageMoves(t *testing.T) {
	for _, table := range []string{"cards", "films", "old", "posts"} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s deleted=%v", table, deleted), func(t *testing.T) {
				w, same := movingWorld(t), movingWorld(t) // the second has no outage
				defer w.close()
				defer same.close()
				each := func(do func(w *outageWorld)) {
					do(w)
					do(same)
				}
				w.d.table, w.d.deleted = table, deleted
				each(func(w *outageWorld) {
					w.old(0, "Card", "a", "edited")
					w.old(100, "Film", "a", "made in a film")
					w.oldPost(2, "second")
				})
				w.runs(90 * time.Second)
				same.runs(90 * time.Second)
				if why := w.stopped[table]; !strings.Contains(why, "takes no writes since") || len(w.stopped) != 1 {
					t.Fatalf("it says %v", w.stopped)
				}
				w.d.tried = 0
				for _, do := range []func(w *outageWorld){
					func(w *outageWorld) {
						w.old(1, "Card", "b", "moved to b")
						w.drop(2)
						w.old(3, "Film", "a", "a film now")
						w.old(101, "Film", "b", "second")
						w.oldPost(3, "third")
					},
					func(w *outageWorld) {
						w.old(1, "Card", "c", "and to c")
						w.drop(3)
						w.old(2, "Card", "a", "again")
						w.old(6, "Card", "a", "new")
						w.drop(101)
					},
					func(w *outageWorld) {
						w.old(1, "Card", "a", "and back")
						w.drop(6)
						w.old(101, "Film", "b", "again")
						w.old(4, "Card", "b", "moved")
						must(w.t, w.write(`set cards {"PK":"CARD#a","SK":"n5"} {"title":"by hand"}`))
						w.old(5, "Card", "a", "not over that")
						w.old(7, "Card", "b", "at the end")
					},
				} {
					do(same)
					do(w)
					w.calm()
					same.calm()
				}
				if n := w.owedKinds(table)[owntable.OwedMove]; n == 0 {
					t.Errorf("no move is owed: %v", w.owedKinds(table))
				}
				if w.d.tried > 20 {
					t.Errorf("%d writes were tried", w.d.tried)
				}
				if table == "films" {
					if got, want := strings.ReplaceAll(w.held("cards"), "CARD#a n3 Card first\n", ""), same.held("cards"); got != want { // it becomes a film
						t.Errorf("what needs no film waits:\n%s\nnot\n%s", got, want)
					}
				}
				w.d.table, w.d.deleted = "", false
				w.runs(6 * time.Minute)
				same.runs(6 * time.Minute)
				if n := w.owedKinds(table); len(n) > 0 {
					t.Errorf("it takes writes again: %v is owed", n)
				}
				w.unlike(same)
			})
		}
	}
}

// unlike fails if the tables of two worlds differ, or anything is left to move.
func (w *outageWorld) unlike(same *outageWorld) {
	w.t.Helper()
	for _, table := range w.model.AllTables() {
		if got, want := w.held(table.Name), same.held(table.Name); got != want {
			w.t.Errorf("%s has\n%s\nnot\n%s", table.Name, got, want)
		}
	}
	if got, want := w.shows("tags", "TAG#a", "cards"), same.shows("tags", "TAG#a", "cards"); got != want {
		w.t.Errorf("it counts %s cards, not %s", got, want)
	}
	w.whole()
}

// TestOutageMovesEnded: what waits for a table is forgotten if its migration ended meanwhile.
func TestOutageMovesEnded(t *testing.T) {
	w := movingWorld(t)
	defer w.close()
	w.d.table = "cards"
	w.old(0, "Card", "a", "edited")
	w.runs(90 * time.Second)
	before := w.held("cards")
	m := &migrate.Mover{Model: w.model, Store: w.store, Now: w.now}
	must(t, m.End(t.Context(), w.model.Migration("v1")))
	w.d.table = ""
	w.runs(6 * time.Minute)
	if got := w.held("cards"); got != before || len(w.owedKinds("cards")) > 0 {
		t.Errorf("%v is owed, and there is\n%s\nnot\n%s", w.owedKinds("cards"), got, before)
	}
	w.whole()
}

// TestOutageMovesRefused: an old row that cannot be moved when the table takes writes again becomes a dead letter with
// the row as it is then, and holds up no other.
func TestOutageMovesRefused(t *testing.T) {
	w := movingWorld(t)
	defer w.close()
	w.d.table = "cards"
	w.old(1, "Card", "a", "edited")
	w.runs(90 * time.Second)
	must(t, w.write(`put cards {"PK":"CARD#a","SK":"n7","type":"Other"}`))
	w.old(7, "Card", "a", "new")
	w.calm()
	w.d.table = ""
	w.runs(6 * time.Minute)
	var letters []string
	must(t, w.harness.runner(nil).Dead(t.Context(), func(d runner.Dead) error {
		letters = append(letters, d.Target+" "+d.Row.String()+": "+d.Reason)
		return nil
	}))
	if len(letters) != 1 || !strings.Contains(letters[0], "migration v1") || !strings.Contains(letters[0], "a row of another kind") {
		t.Errorf("left: %v", letters)
	}
	if got := w.held("cards"); !strings.Contains(got, "n1 Card edited") || len(w.owedKinds("cards")) > 0 {
		t.Errorf("%v is owed, and there is\n%s", w.owedKinds("cards"), got)
	}
}

// TestOutageMovesScan: the scan of a migration ends with the table's error, and beside the job it moves each row once.
func TestOutageMovesScan(t *testing.T) {
	w := movingWorld(t)
	defer w.close()
	w.d.table = "cards"
	w.old(1, "Card", "b", "moved to b")
	w.old(7, "Card", "a", "new")
	w.runs(90 * time.Second)
	scan := &migrate.Scan{Mover: &migrate.Mover{Model: w.model, Store: w.d, Now: w.now}, Migration: w.model.Migration("v1")}
	if _, err := scan.Run(t.Context()); !errors.Is(err, errPolicy) || !strings.Contains(err.Error(), "moving ") {
		t.Errorf("the scan: %v", err)
	}
	w.d.table = ""
	_, err := scan.Run(t.Context())
	must(t, err)
	if got := w.held("cards"); strings.Count(got, " n1 ") != 2 { // the row at the old key waits
		t.Errorf("there is\n%s", got)
	}
	w.runs(6 * time.Minute)
	if got := w.held("cards"); strings.Count(got, " n1 ") != 1 || strings.Count(got, " n7 ") != 1 {
		t.Errorf("there is\n%s", got)
	}
	w.whole()
}

// TestOutageMovesKilled: a process may end between any two calls while it notes what waits, and while that is done.
func TestOutageMovesKilled(t *testing.T) {
	errKilled := errors.New("AccessDenied: the process has ended")
	for at := 0; ; at++ {
		w, same := movingWorld(t), movingWorld(t)
		calls := 0
		w.d.table = "cards"
		w.old(0, "Card", "a", "edited")
		w.runs(90 * time.Second)
		w.d.fails = func() error {
			if calls++; calls == at+1 {
				return errKilled
			}
			return nil
		}
		for _, w := range []*outageWorld{w, same} {
			w.old(1, "Card", "b", "moved to b")
			w.drop(2)
			w.old(7, "Card", "a", "new")
		}
		w.runs(10 * time.Second)
		owing := calls
		w.d.table = ""
		w.runs(6 * time.Minute)
		w.d.fails = nil
		same.old(0, "Card", "a", "edited")
		same.runs(10 * time.Second)
		w.runs(6 * time.Minute)
		w.unlike(same)
		w.close()
		same.close()
		if at >= calls || at > owing+400 || t.Failed() {
			if at < 10 {
				t.Errorf("it ended only at %d calls", at)
			}
			return
		}
	}
}

// TestOutageMovesOfOther: a process that knows nothing of migrations' tables yet finds the outage by its job.
func TestOutageMovesOfOther(t *testing.T) {
	w := movingWorld(t)
	defer w.close()
	w.d.table = "cards"
	w.old(0, "Card", "a", "edited")
	w.runs(90 * time.Second)
	w.restart()
	w.old(1, "Card", "a", "edited")
	if failed := w.runs(10 * time.Second); failed > 1 {
		t.Errorf("%d batches fail", failed)
	}
	w.d.table = ""
	w.runs(6 * time.Minute)
	w.whole()
}
