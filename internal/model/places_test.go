package model

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/internal/value"
)

// everyPlace is a model with one condition in every place that may have one.
const everyPlace = `
model: places
tables: {tab: {key: [PK, SK]}}
entities:
  Thing: {where: {kind: thing}, key: {PK: "T#{t}", SK: T}, attributes: {state: {type: string, enum: [a, b], default: a}}}
  Src: {where: {kind: src}, key: {PK: "T#{t}", SK: "S#{s}"}, attributes: {n: number, x: string, at: time, who: string}}
  Own: {where: {kind: own, WHERE}, key: {PK: "OWN#{o}", SK: OWN}, attributes: {n: number, x: string, at: time}}
  Fan: {where: {kind: fan}, key: {PK: "T#{t}", SK: "FAN#{user}"}, attributes: {}}
  Step:
    where: {state: [BEGUN, DONE]}
    key: {PK: "STEP#{who}", SK: "{state}|{what}"}
    attributes: {state: {type: string, required: true, enum: [BEGUN, DONE]}, what: string!, n: number, x: string, at: time!, times: list}
    supersede: {where: {state: DONE, WHERE}, row: {state: BEGUN}, append: {times: at}}
  Group: {where: {kind: group}, key: {PK: "G#{t}", SK: G}, attributes: {c: number}}
  Set: {where: {kind: set}, key: {PK: "SET#{t}", SK: "SET[#{leaf}]"}}
  Copy: {where: {kind: copy}, key: {PK: "C#{t}", SK: "{s}"}}
  Past: {where: {kind: past}, key: {PK: "H#{t}", SK: "{s}#{position}"}}
  News: {where: {kind: news}, key: {PK: "U#{user}", SK: "{s}#{position}"}}
derive:
  Thing.count: {count: Src, where: {WHERE}}
  Thing.last: {latest: Src.who, by: s, where: {WHERE}}
  Thing.state: {steps: {b: {when: Src, where: {WHERE}}}}
  Group: {group: Src, where: {WHERE}, set: {c: count}}
  Set.all: {set: Src.who, where: {WHERE}}
  Copy: {row: Src, where: {WHERE}, set: {t: t, s: s}}
  Past: {row: Src, keep: insert, where: {WHERE}, set: {t: t, s: s, position: $position}}
  News: {row: Src, keep: insert, where: {WHERE}, each: {of: Fan, by: [t]}, set: {user: Fan.user, s: s, position: $position}}
search:
  things: {of: Src, where: {WHERE}, text: [who]}
queries:
  list: {list: Src, with: [t], where: {WHERE}}
  then: {get: Thing, with: [t], then: {list: Src, with: {t: t}, where: {WHERE}}}
  find: {search: things, where: {WHERE}}
`

// TestEveryWordInEveryPlace: the same words stand in every place that has a condition, and mean
// the same there, also for values that are missing or of another type.
func TestEveryWordInEveryPlace(t *testing.T) {
	values := map[string]value.Value{
		"missing": {}, "null": value.OfNull(), "yes": value.OfBool(true), "list": value.OfList(value.OfInt(5)), "set": value.OfStrings([]string{"b"}),
		"4": value.OfInt(4), "5": value.MustNumber("5.0"), "6": value.OfInt(6), "'5'": value.OfString("5"),
		"a": value.OfString("a"), "b": value.OfString("b"), "bc": value.OfString("bc"), "empty": value.OfString(""),
		"noon": value.OfString("2026-01-31T12:00:00Z"), "noon+2": value.OfString("2026-01-31T14:00:00.0+02:00"), "later": value.OfString("2026-01-31T12:00:00.5Z"),
		"day": value.OfString("2026-01-31"), "midnight": value.OfString("2026-01-31T00:00:00Z"),
	}
	all := strings.Join(slices.Sorted(maps.Keys(values)), " ")
	but := func(left string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(all), func(n string) bool { return slices.Contains(strings.Fields(left), n) }), " ")
	}
	for _, tt := range []struct{ where, pass string }{
		{"n: 5", "5"}, {"n: [4, 5]", "4 5"}, {"n: {in: [5, 6]}", "5 6"}, {"n: {not: 5}", but("5")}, {"n: {not: [4, 5]}", but("4 5")},
		{"n: present", but("missing null")}, {"n: absent", "missing null"}, {"n: {exists: true}", but("missing null")}, {"n: {exists: false}", "missing null"},
		{"n: {atLeast: 5}", "5 6"}, {"n: {above: 5}", "6"}, {"n: {atMost: 5}", "4 5"}, {"n: {below: 5}", "4"}, {"n: {between: [4, 5]}", "4 5"},
		{"n: {above: 4, below: 6}", "5"},

		{"x: b", "b"}, {"x: {in: [a, b]}", "a b"}, {"x: {not: b}", but("b")}, {"x: {exists: true}", but("missing null")}, {"x: absent", "missing null"},
		{"x: {begins: b}", "b bc"}, {"x: {atLeast: b}", "b bc"}, {"x: {above: b}", "bc"}, {"x: {atMost: a}", "'5' 2 a empty"}, {"x: {below: a}", "'5' 2 empty"},
		{"x: {between: [a, b]}", "a b"}, {"x: {begins: b, not: b}", "bc"},

		{"at: 2026-01-31T12:00:00Z", "noon noon+2"}, {"at: {not: 2026-01-31T12:00:00Z}", but("noon noon+2")}, {"at: present", but("missing null")},
		{"at: {exists: false}", "missing null"},
		{"at: {atLeast: 2026-01-31T12:00:00Z}", "noon noon+2 later"}, {"at: {above: 2026-01-31T12:00:00Z}", "later"},
		{"at: {atMost: 2026-01-31T12:00:00Z}", "noon noon+2 day midnight"}, {"at: {below: 2026-01-31T12:00:00.5Z}", "noon noon+2 day midnight"},
		{"at: 2026-01-31", "day midnight"}, {"at: {not: [2026-01-31]}", but("day midnight")}, {"at: {above: 2026-01-31}", "noon noon+2 later"},
		{"at: {between: [2026-01-31, 2026-01-31T12:00:00Z]}", "noon noon+2 day midnight"}, {"at: {below: 2026-02-01}", "noon noon+2 later day midnight"},
		{"at: {between: [2026-01-31T12:00:00Z, 2026-01-31T12:00:00.4Z]}", "noon noon+2"},
	} {
		attr, _, _ := strings.Cut(tt.where, ":")
		m, err := Parse("places.yaml", []byte(strings.ReplaceAll(everyPlace, "WHERE", tt.where)))
		if err != nil {
			t.Errorf("%s: %v", tt.where, err)
			continue
		}
		pass := strings.Fields(strings.ReplaceAll(tt.pass, " 2 ", " noon noon+2 later day midnight "))
		slices.Sort(pass)
		for place, holds := range conditionsOf(m) {
			var got []string
			for name, v := range values {
				row := value.NewItem(value.Attr{Name: "kind", Value: value.OfString("own")}, value.Attr{Name: "PK", Value: value.OfString("STEP#p")}, value.Attr{Name: "SK", Value: value.OfString("DONE|film")})
				if !v.IsMissing() {
					row = row.With(value.Attr{Name: attr, Value: v})
				}
				if holds(row) {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, pass) {
				t.Errorf("%s in %s: %v pass, want %v", tt.where, place, got, pass)
			}
		}
	}
}

// conditionsOf returns the condition of each place of the model.
func conditionsOf(m *Model) map[string]func(value.Item) bool {
	tests := func(where []Test) func(value.Item) bool {
		return func(row value.Item) bool { return Holds(where, row) }
	}
	filters := func(where []Filter) func(value.Item) bool {
		return func(row value.Item) bool {
			return !slices.ContainsFunc(where, func(f Filter) bool { return !f.Holds(f.Field.Get(row), nil) })
		}
	}
	out := map[string]func(value.Item) bool{
		"an entity":     tests(m.Entity("Own").Where),
		"supersede":     tests(m.Entity("Step").Supersede.Where),
		"a stage":       tests(m.Statuses[0].Stages[0].Where),
		"latest":        tests(m.Latest[0].Where),
		"a search":      tests(m.Searches[0].Where),
		"a query":       filters(m.Queries[0].Steps[0].Where),
		"a second step": filters(m.Queries[1].Steps[1].Where),
		"a found row":   filters(m.Queries[2].Where),
	}
	for _, r := range m.Rows {
		out["the rows "+r.Name] = tests(r.Where)
	}
	for _, s := range m.Entity("Src").Sources {
		out["the tally "+s.Tally.Name] = tests(s.Where)
	}
	return out
}
