package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// moods writes ratings from..to of a movie, each with a mood of its own.
// TestSpreadBuilt: a distinct is built from rows, beside the stream, audited, and handed over to
// positions; pruning takes the values of the ledgers that no build made, and those of a build that another
// one replaced.
func TestSpreadBuilt(t *testing.T) {
	f := open(t, load(t, spreadFilms))
	values := func(when string, want int) {
		f.Helper()
		n := 0
		for _, row := range f.rows(owntable.TableName) {
			if owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindValue {
				n++
			}
		}
		if n != want {
			f.Errorf("%s: %d rows count values, want %d", when, n, want)
		}
	}
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.write("PK", "MOVIE#2", "SK", "METADATA", "type", "Movie")
	f.moods(0, 700, "1", 36)
	f.moods(700, 790, "2", 36)
	f.unread()
	f.unbuilt()
	f.build(owntable.BuildLive, "Movie")
	f.movie("built", "1", 700, 700)
	f.movie("built", "2", 90, 90)
	f.moods(790, 820, "1", 36) // the stream goes on
	f.moods(100, 150, "2", 36) // and rows move
	f.unrate(700, 760)
	f.catchUp()
	f.movie("after", "1", 680, 680)
	f.movie("after", "2", 80, 80)
	values("after", 760)
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	f.movie("audited", "1", 680, 680)
	f.movie("audited", "2", 80, 80)
	values("audited", 760)
	again := f.builder("Movie")
	again.Asked = f.now()
	_, err := again.Announce(f.Context())
	f.ok(err)
	f.catchUp()
	f.build(owntable.BuildLive, "Movie")
	f.movie("built again", "1", 680, 680)
	f.clock.Add(2)
	f.catchUp()
	_, _, err = f.builder("Movie").Prune(f.Context())
	f.ok(err)
	values("pruned", 760)
	f.unrate(0, 820)
	f.catchUp()
	f.movie("gone", "1", 0, 0)
	values("gone", 0)
}

var spreadFilms = strings.Replace(films, ", max: 100", "", 1)

// TestSpreadRetired: the values of a distinct that is retired go with what it has shown, while
// its ledgers go on; those of another one stay.
func TestSpreadRetired(t *testing.T) {
	const more = "  Movie.votes: {distinct: Rating.stars, to: {id: movie}}\n"
	f := open(t, load(t, spreadFilms+more))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.moods(0, 50, "1", 36)
	f.catchUp()
	f.build(owntable.BuildLive, "Movie")
	f.retires(load(t, strings.Replace(films, "  Movie.moods: {distinct: Rating.mood, to: {id: movie}, max: 100}\n", more, 1)))
	f.verified()
	f.clock.Add(2)
	_, _, err := f.builder("Movie").Prune(t.Context())
	f.ok(err)
	for name, row := range f.rows(owntable.TableName) {
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), owntable.ValueRows(f.model.Name)) {
			t.Fatalf("%s is left of what no build made", name)
		}
	}
	x, _ := f.removal(false)
	f.ok(x.Run(t.Context()))
	left := 0
	for name, row := range f.rows(owntable.TableName) {
		if owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindValue {
			if left++; !strings.HasPrefix(row.Get(owntable.Sort).Text(), owntable.ValuesOf("votes")) {
				t.Fatalf("%s is left", name)
			}
		}
	}
	if left == 0 {
		t.Error("the values of the other one are gone")
	}
	f.verified()
}

func (f *fixture) moods(from, to int, movie string, bytes int) {
	f.ratings(from, to, func(i int) value.Item {
		return value.NewItem(
			value.Attr{Name: "type", Value: value.OfString("Rating")}, value.Attr{Name: "movie", Value: value.OfString(movie)},
			value.Attr{Name: "stars", Value: value.OfInt(2)}, value.Attr{Name: "mood", Value: value.OfString(fmt.Sprintf("%0*d", bytes, i))})
	})
}

func (f *fixture) unrate(from, to int) {
	f.ratings(from, to, func(int) value.Item { return nil })
}

func (f *fixture) ratings(from, to int, row func(i int) value.Item) {
	f.Helper()
	for from < to {
		var ws []store.Write
		for ; from < to && len(ws) < 500; from++ {
			key := value.NewItem(value.Attr{Name: "PK", Value: value.OfString(fmt.Sprint("USER#", from))}, value.Attr{Name: "SK", Value: value.OfString("RATING#1")})
			ref, _ := f.model.Tables[0].KeyOf(key)
			w := store.Write{Ref: store.Ref{Table: f.table, Key: ref}}
			if it := row(from); it == nil {
				w.Delete = true
			} else {
				w.Put = value.NewItem(append(it, key...)...)
			}
			ws = append(ws, w)
		}
		out, err := f.Store.Write(f.Context(), ws)
		f.ok(err)
		for i := range out {
			f.ok(out[i].Err)
		}
	}
}

// movie fails unless a movie shows so many ratings and moods; -1 stands for none shown.
func (f *fixture) movie(when, id string, ratings, moods int) {
	f.Helper()
	row := f.rows(f.table)[fmt.Sprintf(`{"PK":"MOVIE#%s","SK":"METADATA"}`, id)]
	want := value.OfInt(int64(moods))
	if moods < 0 {
		want = value.Value{}
	}
	if n, _ := row.Get("rows").Int64(); n != int64(ratings) || !value.Equal(row.Get("moods"), want) {
		f.Errorf("%s: movie %s shows %d ratings and %v moods, want %d and %d", when, id, n, row.Get("moods"), ratings, moods)
	}
	if n, _ := row.Get("stars").Int64(); n != int64(2*ratings) {
		f.Errorf("%s: movie %s shows %d stars, want %d", when, id, n, 2*ratings)
	}
}

// TestDistinctBesideStatus: of a built row with a status, values that no row has leave the ledger, and
// the dead letter about a distinct over its max comes and goes, as of a row without.
func TestDistinctBesideStatus(t *testing.T) {
	f := open(t, load(t, strings.Replace(voted, "  Movie.mood:", "  Movie.users: {distinct: Rating.at, to: {id: movie}, max: 2}\n  Movie.mood:", 1)))
	rate := func(user int, at string) {
		f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 1, "at", at)
	}
	letters := func(when string, want int) {
		t.Helper()
		f.catchUp()
		f.verified()
		if dead := f.dead(); len(dead) != want {
			t.Errorf("%s: dead letters %+v, want %d", when, dead, want)
		}
	}
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "state", "new")
	rate(0, "a")
	f.unread()
	f.unbuilt()
	f.build(owntable.BuildLive, "Movie")
	letters("built", 0)
	rate(1, "b")
	rate(2, "c")
	letters("over its max", 1)
	for i := range 30 {
		rate(2, fmt.Sprint("passing ", i))
		f.catchUp()
	}
	letters("still over it", 1)
	f.write("PK", "USER#2", "SK", "RATING#1")
	letters("below it", 0)
	for name, row := range f.rows(owntable.TableName) {
		if strings.Contains(name, "passing") || strings.Contains(fmt.Sprint(row), "passing") {
			t.Errorf("%s has values that no row has: %v", name, row)
		}
	}
}
