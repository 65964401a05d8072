package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestManyDistincts: rows that lead to more values of a target than one expression of DynamoDB adds
// to, or than one transaction has, are counted in parts, by a build, beside it, and when they go: nothing is parked.
func TestManyDistincts(t *testing.T) {
	soaktest.Calm(t)
	open(t, load(t, manyDistincts())).manyDistincts()
}

// TestManyDistinctsOnDynamoDB is the same on DynamoDB.
func TestManyDistinctsOnDynamoDB(t *testing.T) {
	openOnDynamoDB(t, load(t, manyDistincts())).manyDistincts()
}

func manyDistincts() string {
	text := strings.NewReplacer("mood: string}", "mood: string, a: string, b: string, c: string}",
		"derive:\n", "  Fan: {where: {type: Fan}, key: {PK: \"USER#{user}\", SK: FAN}, attributes: {movie: string}}\nderive:\n").Replace(films)
	for _, attr := range []string{"a", "b", "c"} {
		text += fmt.Sprintf("  Movie.%s: {distinct: Rating.%s, to: {id: movie}, max: 1000}\n", attr, attr)
	}
	for i := range 195 {
		text += fmt.Sprintf("  Movie.r%d: {count: Rating, to: {id: movie}}\n  Movie.f%d: {count: Fan, to: {id: movie}}\n", i, i)
	}
	return strings.Replace(text, "max: 100}", "max: 1000}", 1)
}

func (f *fixture) manyDistincts() {
	rate := func(from, to int) {
		f.ratings(from, to, func(i int) value.Item {
			row := value.NewItem(value.Attr{Name: "type", Value: value.OfString("Rating")}, value.Attr{Name: "movie", Value: value.OfString("1")})
			for _, attr := range []string{"mood", "a", "b", "c"} {
				row = row.With(value.Attr{Name: attr, Value: value.OfString(fmt.Sprint(attr, i))})
			}
			return row
		})
	}
	shows := func(when string, n int) {
		f.Helper()
		if dead := f.dead(); len(dead) > 0 {
			f.Errorf("%s: %d dead letters, the first: %s", when, len(dead), dead[0].Reason)
		}
		rows, err := f.Store.Get(f.Context(), []store.Ref{f.theMovie()})
		f.ok(err)
		for _, attr := range []string{"rows", "moods", "a", "b", "c", "r194"} {
			if got, _ := rows[0].Get(attr).Int64(); got != int64(n) {
				f.Errorf("%s: %d %s, should be %d", when, got, attr, n)
			}
		}
	}
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.write("PK", "USER#1", "SK", "FAN", "type", "Fan", "movie", "1")
	rate(0, 150)
	f.unread()
	f.unbuilt()
	f.build(owntable.BuildLive, "Movie")
	shows("built", 150)
	rate(150, 300)
	f.catchUp()
	shows("beside it", 300)
	f.unrate(0, 200)
	f.catchUp()
	shows("after they went", 100)
	f.verified()
}
