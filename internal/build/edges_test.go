package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// edges are tables that a build may meet.
var edges = map[string]func(*fixture){
	"no rows":                (*fixture).noRows,
	"one row":                (*fixture).oneRow,
	"no rows of the target":  (*fixture).noTargets,
	"rows of 400 KB":         (*fixture).fullRows,
	"rows that expire":       (*fixture).expiring,
	"replicated by DynamoDB": (*fixture).replicatedRows,
}

var filmsThatExpire = strings.Replace(films, "key: [PK, SK]}", "key: [PK, SK], ttl: expires}", 1)

func TestEdges(t *testing.T) {
	for name, edge := range edges {
		t.Run(name, func(t *testing.T) { edge(open(t, load(t, filmsThatExpire))) })
	}
}

func TestEdgesOnDynamoDB(t *testing.T) {
	for name, edge := range edges {
		t.Run(name, func(t *testing.T) { edge(openOnDynamoDB(t, load(t, filmsThatExpire))) })
	}
}

func (f *fixture) film(nr int) {
	f.Helper()
	f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie", "title", "t")
}

func (f *fixture) rated(nr, movie int, more ...any) {
	f.Helper()
	f.write(append([]any{"PK", "USER#1", "SK", fmt.Sprint("RATING#", nr), "type", "Rating", "movie", fmt.Sprint(movie), "stars", nr % 5, "mood", fmt.Sprint("m", nr%3)}, more...)...)
}

// audited is what follows each build: it was right, and stays right a day later.
func (f *fixture) audited() {
	f.Helper()
	f.catchUp()
	f.compare()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	f.compare()
}

func (f *fixture) noRows() {
	f.build(owntable.BuildLive, "Movie")
	f.film(1)
	f.rated(1, 1)
	f.audited()
}

func (f *fixture) oneRow() {
	f.rated(1, 1)
	f.unreadIf()
	f.build(owntable.BuildLive, "Movie")
	f.film(1)
	f.audited()
}

func (f *fixture) noTargets() {
	for nr := range 20 {
		f.rated(nr, nr%2)
	}
	f.unreadIf()
	f.build(owntable.BuildLive, "Movie")
	f.film(0)
	f.film(1)
	f.rated(3, 0) // moves from the other one
	f.audited()
}

// unreadIf makes rows older than weir.
func (f *fixture) unreadIf() {
	f.Helper()
	if f.older {
		f.unread()
	}
}

// fullRows has sources of 400 KB, and a movie that has no room for its values.
func (f *fixture) fullRows() {
	f.film(1)
	for nr := range 5 {
		f.rated(nr, nr%3, "text", strings.Repeat("x", 400<<10-200))
	}
	key := store.Key{Partition: value.OfString("MOVIE#2"), Sort: value.OfString("METADATA")}
	full := []any{"PK", "MOVIE#2", "SK", "METADATA", "type", "Movie", "title", strings.Repeat("x", 400<<10-50)}
	f.write(full...)
	f.unreadIf()
	f.build(owntable.BuildLive, "Movie")
	f.catchUp()
	row, err := store.GetRow(f.Context(), f.Store, store.Ref{Table: f.table, Key: key})
	f.ok(err)
	if !row.Get("rows").IsMissing() {
		f.Fatalf("the row has room for %v", row.Get("rows"))
	}
	letters := 0
	f.ok(f.runner().EachDeadLetter(f.Context(), func(d deadletter.Letter) error {
		f.Logf("%s %s: %s", d.Kind, d.Target, d.Reason)
		if letters++; !strings.Contains(d.Target, "MOVIE#2") {
			f.Errorf("a letter of %s", d.Target)
		}
		return nil
	}))
	if letters == 0 {
		f.Error("nothing says that the movie's values are not shown")
	}
	f.film(2) // has room again
	f.catchUp()
	f.ok(f.runner().EachDeadLetter(f.Context(), func(d deadletter.Letter) error {
		f.Errorf("the row has room, and there is still a letter: %s %s", d.Kind, d.Target)
		return nil
	}))
	f.audited()
}

// expiring removes rows as a TTL does, before the scan, and after it.
func (f *fixture) expiring() {
	f.film(1)
	for nr := range 30 {
		f.rated(nr, 1)
	}
	f.unreadIf()
	f.announced("Movie")
	expire := func(from, to int) {
		for nr := from; nr < to; nr++ {
			if f.older { // the store has a TTL
				f.rated(nr, 1, "expires", int(f.now().Unix())-10)
			} else {
				f.write("PK", "USER#1", "SK", fmt.Sprint("RATING#", nr))
			}
		}
		if n, err := f.Store.Sweep(f.Context(), f.now(), 100, nil); err != nil || f.older && n != to-from {
			f.Fatalf("%d rows expired: %v", n, err)
		}
	}
	expire(0, 5)
	f.catchUp()
	expire(5, 10)
	f.build(owntable.BuildLive, "Movie")
	expire(10, 15)
	f.audited()
}

// replicatedRows have the attributes that version 2017.11.29 of global tables writes.
func (f *fixture) replicatedRows() {
	f.film(1)
	replica := []any{"aws:rep:deleting", "", "aws:rep:updateregion", "eu-west-1", "aws:rep:updatetime", "1700000000.000001"}
	for nr := range 10 {
		f.rated(nr, 1, replica...)
	}
	f.unreadIf()
	f.announced("Movie")
	f.rated(3, 1, replica...)
	f.build(owntable.BuildLive, "Movie")
	replica[3] = "us-east-1"
	f.rated(4, 1, replica...)
	f.audited()
}
