package build_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/build"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/soaktest"
	"weir/internal/value"
)

const shown = `model: shown
tables:
  films: {key: [PK, SK]}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {title: string, label: string}}
  Rating:
    where: {type: Rating}
    key: {PK: "USER#{user}", SK: "RATING#{movie}"}
    attributes: {stars: number, mood: string}
  Card: {where: {type: Card}, key: {PK: "CARD#{user}", SK: "{movie}"}, attributes: {stars: number, title: string}}
derive:
  Movie.rows: {count: Rating, to: {id: movie}}
  Movie.stars: {sum: Rating.stars, to: {id: movie}}
  Movie.moods: {distinct: Rating.mood, to: {id: movie}, max: 100}
  Card: {row: Rating, set: {user: user, movie: movie, stars: stars, title: {follow: Movie.title, by: {id: movie}}}}
`

// TestPreviews: a dry run says what rows will show, of each derivation that changes, and the
// build makes them show that and changes nothing else.
func TestPreviews(t *testing.T) {
	soaktest.Calm(t)
	was := load(t, shown)
	is := load(t, strings.NewReplacer(
		"Movie.rows: {count: Rating, to", "Movie.rows: {count: Rating, where: {mood: [m0, m1]}, to",
		"  Movie.stars:", "  Movie.mean: {mean: Rating.stars, to: {id: movie}, round: 1}\n  Movie.stars:",
		"Movie.title", "Movie.label", "Card: {row: Rating, set", "Card: {row: Rating, where: {mood: [m0, m2]}, set").Replace(shown))
	for seed := range uint64(5) {
		f := open(t, was)
		d := rand.New(rand.NewPCG(seed, 3))
		for nr := range 9 {
			f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie", "title", fmt.Sprint("film ", nr), "label", fmt.Sprint("film ", nr/3*3))
		}
		for range 60 {
			f.write("PK", fmt.Sprint("USER#", d.IntN(20)), "SK", fmt.Sprint("RATING#", d.IntN(8)), "type", "Rating", "stars", d.IntN(6), "mood", fmt.Sprint("m", d.IntN(4)))
		}
		f.catchUp()
		f.with(is)
		before := f.rows(f.table)
		b := f.builder(model.BuildInPlace, "Movie")
		b.Again = false
		said := f.previews(b)
		f.build(owntable.BuildLive, model.BuildInPlace, "Movie")
		f.verified()

		after := f.rows(f.table)
		want := map[string][]scratch.Example{"Movie.rows": nil, "Movie.mean": nil, "Card": nil, "Card.title": nil}
		for key, row := range after {
			if have, will := before[key].Get("title"), row.Get("title"); row.Get("type").Text() == "Card" && !value.Equal(have, will) {
				want["Card.title"] = append(want["Card.title"], scratch.Example{Row: "films " + key, Is: runner.ValueText(have), Will: runner.ValueText(will)})
			}
			for _, attr := range []string{"rows", "mean"} {
				if have, will := before[key].Get(attr), row.Get(attr); !value.Equal(have, will) {
					name := "Movie." + attr
					want[name] = append(want[name], scratch.Example{Row: "films " + key, Is: runner.ValueText(have), Will: runner.ValueText(will)})
				}
			}
		}
		for key, row := range before {
			if _, left := after[key]; !left {
				have := row.Filter(func(name string) bool { return !owntable.IsOurs(name) && name != "title" })
				want["Card"] = append(want["Card"], scratch.Example{Row: "films " + key, Is: runner.ValueText(value.OfMap(have)), Will: runner.Nothing})
				if title := row.Get("title"); !title.IsMissing() {
					want["Card.title"] = append(want["Card.title"], scratch.Example{Row: "films " + key, Is: runner.ValueText(title), Will: runner.Nothing})
				}
			}
		}
		var names []string
		for _, p := range said {
			names = append(names, p.Derivation)
			w := want[p.Derivation]
			slices.SortFunc(w, func(a, b scratch.Example) int { return strings.Compare(a.Row, b.Row) })
			if !slices.Equal(w, p.Some) || p.Differ != int64(len(w)) || strings.HasPrefix(p.Derivation, "Movie") && p.Rows != 9 {
				t.Errorf("seed %d: %s: %d of %d differ:\n%v, want\n%v", seed, p.Derivation, p.Differ, p.Rows, p.Some, w)
			}
		}
		if !slices.Equal(names, []string{"Card", "Card.title", "Movie.mean", "Movie.rows"}) || len(want["Card"]) == 0 || len(want["Movie.rows"]) == 0 {
			t.Errorf("seed %d: %v", seed, names)
		}
	}
}

// TestPreviewsOfKinds: a dry run says which statuses, sets, copies, followed values and lists of
// subscribers a build changes, and no others.
func TestPreviewsOfKinds(t *testing.T) {
	soaktest.Calm(t)
	for name, older := range olders {
		derivation := map[string]string{
			"set changed": "Tags.tags", "set added": "Tags.tags", "status changed": "Task.status", "status added": "Task.status", "tally beside status": "Task.points",
			"copy changed": "Owned", "copy added": "Owned", "follow changed": "Owned.boss", "follow added": "Owned.boss", "feed changed": "Told", "feed added": "Told",
		}[name]
		t.Run(name, func(t *testing.T) {
			f, now := open(t, load(t, strings.Replace(mixed, older[0], older[1], 1))), load(t, mixed)
			w := &interleaved{fixture: f, d: rand.New(rand.NewPCG(7, 7))}
			for range 60 {
				editMixed(w)
			}
			f.catchUp()
			f.with(now)
			names := allNames(now)
			before := f.shown(derivation)
			b := f.builder(names...)
			b.Again = false
			said := map[string]int64{}
			for _, p := range f.previews(b) {
				said[p.Derivation] = p.Differ
			}
			f.build(owntable.BuildLive, names...)
			f.catchUp()
			f.compareMixed()
			if derivation == "" || strings.HasPrefix(name, "feed") {
				if derivation != "" && said[derivation] == 0 {
					t.Errorf("%v", said)
				}
				return
			}
			differ := int64(0)
			after := f.shown(derivation)
			for key := range after {
				if before[key] != after[key] {
					differ++
				}
			}
			for key := range before {
				if _, left := after[key]; !left {
					differ++
				}
			}
			if said[derivation] != differ || differ == 0 {
				t.Errorf("%v, and %d differ", said, differ)
			}
		})
	}
}

// previews returns what a dry run of a builder says, with up to 1,000 examples.
func (f *fixture) previews(b *build.Builder) []scratch.Preview {
	f.Helper()
	_, err := b.Estimate(f.Context())
	f.ok(err)
	names, err := b.Rebuilds(f.Context())
	f.ok(err)
	v := scratch.Of(f.System, f.Models[0])
	v.InMemory, v.Model = true, b.Runner.Model
	out, err := v.Preview(f.Context(), names, 1000)
	f.ok(err)
	return out
}

// shown returns what rows of the mixed model show of a derivation.
func (f *fixture) shown(derivation string) map[string]string {
	f.Helper()
	out := map[string]string{}
	for key, row := range f.rows(f.table) {
		is, pk := row.Get("type").Text(), row.Get("PK").Text()
		switch {
		case derivation == "Tags.tags" && row.Has("tags"):
			out[pk] = strings.Join(append(strings.Fields(out[pk]), elements(row.Get("tags"))...), " ")
		case derivation == "Task.status" && is == "Task":
			out[key] = row.Get("status").Text() + row.Get("closed_at").Text()
		case derivation == "Task.points" && is == "Task":
			out[key] = row.Get("points").Text()
		case derivation == "Owned" && is == "Owned":
			out[key] = row.Get("name").Text() + row.Get("old").Text()
		case derivation == "Owned.boss" && is == "Owned":
			out[key] = row.Get("boss").Text()
		}
	}
	return out
}
