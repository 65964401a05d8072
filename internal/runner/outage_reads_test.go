package runner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// readModel is a model of posts whose effects need rows of the table "out" to be read.
func readModel(entities, derive string) string {
	return `
model: press
tables: {posts: {key: [PK, SK]}, counts: {key: [PK, SK]}, out: {key: [PK, SK]}}
entities:
  Post: {table: posts, where: {type: Post}, key: {PK: "POST#{id}", SK: POST}, attributes: {author: string, title: string, at: string}}
  Tag: {table: counts, where: {type: Tag}, key: {PK: "TAG#{id}", SK: ABOUT}, attributes: {name: string}}
` + entities + `
derive:
  Tag.posts: {count: Post, to: {id: author}}
` + derive
}

// reads are the effects of a post that read rows of another table before they write there, or write nothing there.
var reads = []struct{ name, entities, derive string }{
	{"a row whose where a store cannot be asked", `
  Author: {table: out, where: {type: Author, level: {atLeast: 5}}, key: {PK: "AUTHOR#{id}", SK: ABOUT}, attributes: {level: number}}`, `
  Author.posts: {count: Post, to: {id: author}}`},
	{"a row with a status", `
  Author: {table: out, where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: ABOUT}, attributes: {state: {type: string, enum: [new, busy]}}}`, `
  Author.state: {steps: {busy: {when: Post, to: {id: author}}}}`},
	{"a row with the latest of rows", `
  Author: {table: out, where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: ABOUT}}`, `
  Author.last: {latest: Post.title, by: at, to: {id: author}}`},
	{"a row with a part of a set", `
  Shelf: {table: out, where: {type: Shelf}, key: {PK: "SHELF#{author}", SK: "ALL[#{leaf}]"}}`, `
  Shelf.posts: {set: Post.id}`},
	{"a row of a group", `
  ByAuthor: {table: out, where: {type: ByAuthor}, key: {PK: "BY#{author}", SK: ABOUT}, attributes: {posts: number}}`, `
  ByAuthor: {group: Post, by: {author: author}, set: {posts: count}}`},
}

// TestOutageReads: a table that cannot be read stops what is shown there, and nothing else, whether or not it takes writes.
// When it can be read again, all is as it should be.
func TestOutageReads(t *testing.T) {
	for _, c := range reads {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, writes=%v", c.name, writes), func(t *testing.T) {
				w := newOutageWorld(t, readModel(c.entities, c.derive))
				defer w.close()
				must(t, w.write(`put out {"PK":"AUTHOR#a","SK":"ABOUT","type":"Author","level":7,"state":"new"}`))
				must(t, w.write(`put counts {"PK":"TAG#a","SK":"ABOUT","type":"Tag"}`))
				w.post(0)
				w.runs(10 * time.Second)
				w.d.table, w.d.deleted, w.d.unread = "out", !writes, writes
				w.post(1)
				w.runs(90 * time.Second)
				for id := 2; id < 5; id++ {
					w.post(id)
					must(t, w.write(fmt.Sprintf(`delete posts {"PK":"POST#%d","SK":"POST"}`, id-1)))
					w.calm()
				}
				if n := w.shows("counts", "TAG#a", "posts"); n != "2" {
					t.Errorf("the other table shows %s posts", n)
				}
				if !writes || w.owed() > 0 {
					if why := w.stopped["out"]; len(w.stopped) != 1 || !strings.Contains(why, " since ") || !strings.Contains(why, "AccessDenied") {
						t.Errorf("it says %v", w.stopped)
					}
				}
				w.d.table, w.d.deleted, w.d.unread = "", false, false
				w.runs(6 * time.Minute)
				w.whole()
			})
		}
	}
}

// TestOutageReadsFollowers: whether followers keep the last value of a row that is gone is read from the followers, in all
// their tables at once.
func TestOutageReadsFollowers(t *testing.T) {
	for _, writes := range []bool{false, true} {
		w := newOutageWorld(t, readModel(`
  Card: {table: out, where: {type: Card}, key: {PK: CARDS, SK: "{author}#{id}"}, attributes: {name: string}}
  Note: {table: counts, where: {type: Note}, key: {PK: NOTES, SK: "{author}#{id}"}, attributes: {name: string}}`, `
  Card: {row: Post, set: {id: id, author: author, name: {follow: Tag.name, by: {id: author}, keep: true}}}
  Note: {row: Post, set: {id: id, author: author, name: {follow: Tag.name, by: {id: author}, keep: true}}}`))
		defer w.close()
		must(t, w.write(`put counts {"PK":"TAG#a","SK":"ABOUT","type":"Tag","name":"one"}`))
		must(t, w.write(`put counts {"PK":"TAG#b","SK":"ABOUT","type":"Tag","name":"one"}`))
		w.post(0)
		w.runs(10 * time.Second)
		w.d.table, w.d.deleted, w.d.unread = "out", !writes, writes
		must(t, w.write(`delete counts {"PK":"TAG#a","SK":"ABOUT"}`))
		w.runs(90 * time.Second)
		must(t, w.write(`put posts {"PK":"POST#7","SK":"POST","type":"Post","author":"b"}`))
		w.calm()
		if n := w.shows("counts", "TAG#b", "posts"); n != "1" {
			t.Errorf("the other table shows %s posts", n)
		}
		if why := w.stopped["out"]; len(w.stopped) != 1 || !strings.Contains(why, "cannot be read since") {
			t.Errorf("it says %v", w.stopped)
		}
		w.d.table, w.d.deleted, w.d.unread = "", false, false
		w.runs(6 * time.Minute)
		w.whole()
	}
}

// TestOutageReadsOfSeveral: where rows of several tables cannot be read together, only the table to blame is out.
func TestOutageReadsOfSeveral(t *testing.T) {
	w := newOutageWorld(t, twoTables)
	defer w.close()
	w.d.table, w.d.unread = "authors", true
	key := store.Key{Partition: value.OfString("x"), Sort: value.OfString("ABOUT")}
	for range 70 {
		if _, err := w.run.Get(t.Context(), []store.Ref{{Table: "cards", Key: key}, {Table: "authors", Key: key}}); err == nil {
			t.Fatal("it can be read")
		}
		w.clock = w.clock.Add(time.Second)
	}
	if w.run.IsOut("authors") == nil || w.run.IsOut("cards") != nil {
		t.Errorf("out are %v", w.run.Out())
	}
}

// TestOutageOfASource: a copy that another program touched is made again from its source. If that table cannot be read, the
// copy waits for it alone; the table need not take writes.
func TestOutageOfASource(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		w := newOutageWorld(t, readModel(`
  Old: {table: out, where: {type: Old}, key: {PK: "OLD#{id}", SK: ABOUT}, attributes: {title: string}}
  Card: {table: counts, where: {type: Card}, key: {PK: "CARD#{id}", SK: ABOUT}, attributes: {title: string}}`, `
  Card: {row: Old, set: {id: id, title: title}}`))
		defer w.close()
		for id := range 4 {
			must(t, w.write(fmt.Sprintf(`put out {"PK":"OLD#%d","SK":"ABOUT","type":"Old","title":"title %d"}`, id, id)))
		}
		must(t, w.write(`put counts {"PK":"TAG#a","SK":"ABOUT","type":"Tag"}`))
		w.runs(10 * time.Second)
		w.d.table, w.d.deleted, w.d.unread = "out", deleted, !deleted
		must(t, w.write(`set counts {"PK":"CARD#0","SK":"ABOUT"} {"title":"overwritten"}`))
		w.runs(90 * time.Second)
		must(t, w.write(`delete counts {"PK":"CARD#1","SK":"ABOUT"}`))
		must(t, w.write(`put counts {"PK":"CARD#2","SK":"ABOUT","type":"Card","title":"put"}`))
		must(t, w.write(`delete counts {"PK":"CARD#3","SK":"ABOUT"}`))
		w.post(0)
		w.calm()
		if n := w.shows("counts", "TAG#a", "posts"); n != "1" {
			t.Errorf("the other table shows %s posts", n)
		}
		if n := w.owedKinds("out"); n[owntable.OwedSource] != 4 || len(n) != 1 {
			t.Errorf("%v is owed", n)
		}
		if why := w.stopped["out"]; len(w.stopped) != 1 || !strings.Contains(why, "cannot be read since") {
			t.Errorf("it says %v", w.stopped)
		}
		must(t, w.write(`delete out {"PK":"OLD#3","SK":"ABOUT"}`))
		w.calm()
		if deleted { // it can be read again, and not written
			w.d.deleted = false
		} else {
			w.d.table = ""
		}
		w.runs(6 * time.Minute)
		if n := w.owedKinds("out"); len(n) > 0 {
			t.Errorf("%v is owed", n)
		}
		w.whole()
	}
}

// TestOutageOfWhatIsDeleted: the ledger of a row that is deleted, and the claim on its unique value, go although its table
// cannot be looked at then: the last records of a deleted table are read without it.
func TestOutageOfWhatIsDeleted(t *testing.T) {
	text := strings.Replace(readModel(`
  Author: {table: out, where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: ABOUT}, unique: [mail], attributes: {mail: string}}`, `
  Author.posts: {count: Post, to: {id: author}}`), "out: {key: [PK, SK]}", "out: {key: [PK, SK], indexes: {by-mail: [mail]}}", 1)
	w := newOutageWorld(t, text)
	defer w.close()
	claim := func(id string) store.Ref { return owntable.Claim("press", "Author", "mail", id+"@x") }
	for _, id := range []string{"a", "b", "c"} {
		row := store.Ref{Table: "out", Key: store.Key{Partition: value.OfString("AUTHOR#" + id), Sort: value.OfString("ABOUT")}}
		must(t, w.write(fmt.Sprintf(`put out {"PK":"AUTHOR#%s","SK":"ABOUT","type":"Author","mail":"%s@x"}`, id, id)))
		_, err := w.store.Write(t.Context(), []store.Write{owntable.ClaimRow{}.Take(claim(id), row, w.model.Table("out").Item(row.Key), id)})
		must(t, err)
	}
	must(t, w.write(`put counts {"PK":"TAG#a","SK":"ABOUT","type":"Tag"}`))
	w.post(0)
	w.runs(10 * time.Second)
	must(t, w.write(`delete posts {"PK":"POST#0","SK":"POST"}`))
	w.runs(10 * time.Second)
	w.d.table, w.d.deleted = "out", true
	must(t, w.write(`delete out {"PK":"AUTHOR#a","SK":"ABOUT"}`))
	w.runs(90 * time.Second)
	must(t, w.write(`set out {"PK":"AUTHOR#b","SK":"ABOUT"} {"mail":"other@x"}`))
	must(t, w.write(`set out {"PK":"AUTHOR#c","SK":"ABOUT"} {"mail":"other@x"}`))
	w.calm()
	must(t, w.write(`set out {"PK":"AUTHOR#c","SK":"ABOUT"} {"mail":"c@x"}`))
	w.post(1)
	must(t, w.write(`delete posts {"PK":"POST#1","SK":"POST"}`))
	w.calm()
	if n := w.shows("counts", "TAG#a", "posts"); n != "0" {
		t.Errorf("the other table shows %s posts", n)
	}
	if n := w.owedKinds("out"); n[owntable.OwedClaim] != 3 || n[owntable.OwedTarget] == 0 {
		t.Errorf("%v is owed", n)
	}
	w.d.table, w.d.deleted = "", false
	w.runs(6 * time.Minute)
	for _, id := range []string{"a", "b", "c"} {
		row, err := store.GetRow(t.Context(), w.store, claim(id))
		if must(t, err); (row != nil) != (id == "c") {
			t.Errorf("the claim of %s: %v", id, row)
		}
	}
	ledger, err := store.GetRow(t.Context(), w.store, owntable.Ledger("press", store.Ref{Table: "out", Key: store.Key{Partition: value.OfString("AUTHOR#a"), Sort: value.OfString("ABOUT")}}))
	if must(t, err); ledger == nil || !owntable.LedgerRow(ledger).Expires() {
		t.Errorf("the ledger of a row that is gone: %v", ledger)
	}
	w.whole()
}
