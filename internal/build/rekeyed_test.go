package build_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/soaktest"
	"weir/internal/value"
)

// rekeyed is a copy of each rating, with what is counted over the copies.
const rekeyed = unitEntities + `  Mine: {where: {type: Mine}, key: {PK: "MINE#{nr}", SK: "{id}"}, attributes: {stars: number, mood: string, more: string}}
derive:
  Mine: {row: Rating, set: {id: id, nr: nr, stars: stars, mood: mood, more: more}}
  Movie.mine: {count: Mine}
  Movie.stars: {sum: Mine.stars}
`

// TestDryRunOfNewKeys: a dry run says within a tenth what a build takes that makes copies and counts
// them, at first and when it gives them other keys: copies at the keys of before are removed, and counted
// no more. The counts that it shows before are those that rows show afterwards.
func TestDryRunOfNewKeys(t *testing.T) {
	soaktest.Calm(t)
	for shape, of := range map[string]struct {
		movies, ratings, bytes int
		indexes                string
		table                  string // of the copies
	}{
		"1,000 rows":    {20, 50, 0, "", "kinds"},
		"rows of 6 KB":  {10, 10, 6000, "", "kinds"},
		"indexes, 6 KB": {10, 10, 6000, unitIndexes, "kinds"},
		"two tables":    {10, 10, 0, "", "mines"},
	} {
		t.Run(shape, func(t *testing.T) {
			text := strings.Replace(rekeyed, "{key: [PK, SK]}", "{key: [PK, SK]"+of.indexes+"}\n  mines: {key: [PK, SK]}", 1)
			text = strings.NewReplacer("Movie:\n", "Movie:\n    table: kinds\n", "Rating:\n", "Rating:\n    table: kinds\n", "Mine: {where", "Mine: {table: "+of.table+", where").Replace(text)
			f := open(t, load(t, text))
			f.kindRows(of.movies, of.ratings, of.bytes, "m")
			f.unread()
			f.unbuilt()
			f.counted("first keys")
			for _, changed := range [][2]string{
				{`{PK: "MINE#{nr}", SK: "{id}"}`, `{PK: "MINE#{id}", SK: "{nr}"}`},
				{"Movie.mine: {count: Mine}", "Movie.mine: {count: Mine, where: {stars: [2, 3]}}"},
				{"{row: Rating, set", `{row: Rating, where: {stars: [1, 2]}, set`},
			} {
				text = strings.Replace(text, changed[0], changed[1], 1)
				f.with(load(t, text))
				f.counted(changed[1])
			}
		})
	}
}

// TestDryRunWaits: of what nothing but another build can tell, a dry run says that, and shows no examples.
func TestDryRunWaits(t *testing.T) {
	text := unitEntities + unitKinds["group"].entities + `  Mine: {where: {type: Mine}, key: {PK: "MINE#{nr}", SK: "{id}"}, attributes: {stars: number, title: string}}
  Yours: {where: {type: Yours}, key: {PK: "YOURS#{nr}", SK: "{id}"}, attributes: {stars: number}}
derive:
  Day: {group: Rating, by: {id: id, day: {day: at, zone: UTC}}, set: {n: count}}
  Movie.days: {count: Day, to: {id: id}}
  Movie.ratings: {count: Rating, to: {id: id}}
  Mine: {row: Rating, set: {id: id, nr: nr, stars: stars, title: {follow: Movie.title}}}
  Yours: {row: Mine, set: {id: id, nr: nr, stars: stars}}
`
	f := open(t, load(t, text))
	f.kindRows(3, 4, 0, "m")
	f.unread()
	f.unbuilt()
	b := f.builder(f.model.InBuildOrder(func(string) bool { return true })...)
	got := map[string]string{}
	for _, p := range f.previews(b) {
		got[p.Derivation] = fmt.Sprint(p.Differ, len(p.Some))
	}
	want := map[string]string{
		"Day": "3 3", "Day.n": "3 3", "Movie.days": "3 3", "Movie.ratings": "3 3",
		"Mine": "12 12", "Mine.title": "12 12", "Yours": "12 12",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestDryRunOfFollowedCopies: a dry run also tells what reads the values that copies follow, where the copy is changed, or another one.
func TestDryRunOfFollowedCopies(t *testing.T) {
	entities := unitEntities + `  Mine: {where: {type: Mine}, key: {PK: "MINE#{nr}", SK: "{id}"}, attributes: {stars: number, title: string}}
  Yours: {where: {type: Yours}, key: {PK: "YOURS#{nr}", SK: "{id}"}, attributes: {stars: number}}
derive:
  Mine: {row: Rating, set: {id: id, nr: nr, stars: stars, title: {follow: Movie.title}}}
  Yours: {row: Rating, set: {id: id, nr: nr, stars: stars}}
`
	for _, changed := range []string{"", "Mine", "Yours"} {
		f := open(t, load(t, entities))
		f.kindRows(3, 4, 0, "m")
		f.unread()
		f.unbuilt()
		_, err := f.builder(f.model.InBuildOrder(func(string) bool { return true })...).Run(t.Context())
		f.ok(err)
		f.catchUp()
		text := entities + "  Movie.titled: {count: Mine, where: {title: present}}\n  Movie.all: {count: Mine}\n"
		want := map[string]string{"Movie.titled": "3 3", "Movie.all": "3 3"}
		if changed != "" {
			text = strings.Replace(text, changed+": {row: Rating, ", changed+": {row: Rating, where: {stars: present}, ", 1)
			want[changed] = "0 0"
		}
		f.with(load(t, text))
		b := f.builder(f.model.InBuildOrder(func(string) bool { return true })...)
		b.Again = false
		got := map[string]string{}
		for _, p := range f.previews(b) {
			got[p.Derivation] = fmt.Sprint(p.Differ, len(p.Some))
		}
		if !maps.Equal(got, want) {
			t.Errorf("%q is changed: %v, want %v", changed, got, want)
		}
	}
}

// counted builds all, and compares what it takes and what movies show with what the dry run said before.
func (f *fixture) counted(name string) {
	f.Helper()
	before := f.rows(f.table)
	b := f.builder(f.model.InBuildOrder(func(string) bool { return true })...)
	previews := f.previews(b)
	f.billed(name)
	f.catchUp()
	said, want := map[string][]scratch.Example{}, map[string][]scratch.Example{}
	for _, p := range previews {
		if p.Derivation == "Mine" {
			continue
		}
		said[p.Derivation], want[p.Derivation] = p.Some, nil
		if p.Rows == 0 {
			f.Errorf("%s: %+v", name, p)
		}
	}
	for key, row := range f.rows(f.table) {
		for _, attr := range []string{"mine", "stars"} {
			_, tells := said["Movie."+attr]
			if have, will := before[key].Get(attr), row.Get(attr); tells && row.Get("type").Text() == "Movie" && !value.Equal(have, will) {
				want["Movie."+attr] = append(want["Movie."+attr], scratch.Example{Row: f.table + " " + key, Is: runner.ValueText(have), Will: runner.ValueText(will)})
			}
		}
	}
	for d, w := range want {
		slices.SortFunc(w, func(a, b scratch.Example) int { return strings.Compare(a.Row, b.Row) })
		if !slices.Equal(w, said[d]) {
			f.Errorf("%s: %s: said %v, and rows show %v", name, d, said[d], w)
		}
	}
	f.verified()

}
