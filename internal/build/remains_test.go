package build_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// every has every kind that shows something on rows.
var every = strings.NewReplacer("derive:\n", `  Day:
    where: {type: Day}
    key: {PK: "DAY#{up}", SK: {template: VOTES, case: lower}}
    attributes: {votes: number, points: number, last: number}
derive:
  Day: {group: Vote, by: {up: up}, set: {votes: count, points: {sum: points}, last: {latest: points, by: nr}}}
  Task.lastPoints: {latest: Vote.points, by: nr, also: {lastUp: up}}
`, "model: mixed", "model: every", "  mixed:", "  every:").Replace(mixed)

// underived is every without what is derived, but with the entities that only weir makes.
func underived() string {
	text, _, _ := strings.Cut(every, "derive:\n")
	return text
}

// applications is underived without these entities.
func applications() string {
	var kept []string
	made := false
	for line := range strings.Lines(underived()) {
		if name, is := strings.CutPrefix(line, "  "); is && name[0] != ' ' {
			made = slices.Contains([]string{"Owned:\n", "Tags:\n", "Told:\n", "Log:\n", "Day:\n"}, name)
		}
		if !made {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// everyRows are rows of applications to which every kind adds something.
var everyRows = [][]any{
	{"PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "n", "owner", "1", "team", "1", "tag", "a", "status", "open"},
	{"PK", "TASK#2", "SK", "METADATA", "type", "Task", "name", "n", "owner", "1", "team", "1", "tag", "b", "status", "open"},
	{"PK", "TASK#3", "SK", "METADATA", "type", "Task", "name", "n", "owner", "2", "team", "1", "tag", "b"},
	{"PK", "OWNER#1", "SK", "PERSON", "type", "Person", "name", "p"},
	{"PK", "TEAM#1", "SK", "MEMBER#1", "type", "Member", "name", "m"},
	{"PK", "USER#1", "SK", "WATCH#1", "type", "Watch", "as", "w"},
	{"PK", "TASK#1", "SK", "VOTE#1", "type", "Vote", "up", "yes", "points", 3},
	{"PK", "TASK#1", "SK", "VOTE#2", "type", "Vote", "up", "no", "points", 4},
	{"PK", "TASK#2", "SK", "SIGN#1", "type", "Sign", "at", "today"},
	{"PK", "TASK#3", "SK", "VOTE#1", "type", "Vote", "up", "yes", "points", 5},
}

// derivedRows opens a fixture on which every kind has derived something.
func derivedRows(f *fixture) *fixture {
	f.Helper()
	for _, row := range everyRows {
		f.write(row...)
	}
	f.catchUp()
	return f
}

// retires goes on with a later model, by which all is retired that it does not have.
func (f *fixture) retires(later *model.Model) {
	f.Helper()
	f.with(later)
	f.retired()
}

// retired goes on with the fixture's model, by which so much is retired.
func (f *fixture) retired(want ...string) {
	f.Helper()
	is, err := f.builder().Retire(f.Context(), false)
	f.ok(err)
	if len(want) > 0 && !slices.Equal(is, want) {
		f.Errorf("retired: %v, want %v", is, want)
	}
}

// removal decides what goes, and returns it by its name.
func (f *fixture) removal(dry bool, only ...string) (*build.Removal, map[string]*build.Removed) {
	f.Helper()
	b := f.builder()
	b.Segments = 2
	x := &build.Removal{Builder: b, Only: only, Dry: dry}
	each, err := x.Begin(f.Context())
	f.ok(err)
	by := map[string]*build.Removed{}
	for _, r := range each {
		by[r.Derivation] = r
	}
	return x, by
}

// written returns the rows that an application wrote, as it wrote them.
func written(f *fixture, rows ...[]any) map[string]value.Item {
	was := open(f.TB, f.model)
	for _, row := range rows {
		was.write(row...)
	}
	return was.rows(was.table)
}

func (f *fixture) same(want map[string]value.Item) {
	f.Helper()
	have := f.rows(f.table)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !value.EqualItems(have[name], want[name]) {
			f.Errorf("left: %v\nwant: %v", have[name], want[name])
		}
	}
	for name := range want {
		if have[name] == nil {
			f.Errorf("gone: %s", name)
		}
	}
}

// TestRemains: of every kind, what a retired derivation has shown goes, and every row is then as
// its application wrote it. A dry run counts the same and writes nothing. History stays until it
// is named. What is derived again afterwards is right.
func TestRemains(t *testing.T) { remains(open(t, load(t, every))) }

// TestRemainsOnDynamoDB is the same on DynamoDB Local.
func TestRemainsOnDynamoDB(t *testing.T) { remains(openOnDynamoDB(t, load(t, every))) }

func remains(f *fixture) {
	t, earlier := f.TB, f.model
	derivedRows(f)
	later := load(t, applications())
	f.retires(later)
	if _, by := f.removal(false); len(by) != len(earlier.Derivations()) || by["Task.votes"].Why == "" || by["Owned"].Why == "" {
		t.Errorf("within the hour: %v", by)
	}
	f.clock.Add(2)
	before := f.rows(f.table)
	dry, would := f.removal(true)
	f.ok(dry.Run(t.Context()))
	f.same(before)
	x, did := f.removal(false)
	f.unharmed(func() { f.ok(x.Run(t.Context())) })
	if a, b := dry.Done(), x.Done(); a.Units != b.Units || a.Targets != b.Targets || a.Units == 0 {
		t.Errorf("the dry run said %+v, it was %+v", a, b)
	}
	want := map[string]int64{ // rows of each; -1 stays
		"Task.votes": 3, "Task.points": 3, "Task.status": 3, "Task.lastPoints": 2, "Tags.tags": 2, "Owned": 3, "Owned.boss": 3,
		"Day": 2, "Day.votes": 2, "Day.points": 2, "Day.last": 2, "Told": -1, "Log": -1, "Log.name": -1,
	}
	for name, n := range want {
		r, w := did[name], would[name]
		if r == nil || w == nil || r.Rows != w.Rows || r.Others != 0 || n < 0 != (r.Why != "") || n >= 0 && r.Rows != n {
			t.Errorf("%s: %+v, want %d rows; the dry run said %+v", name, r, n, w)
		}
	}
	if len(did) != len(want) {
		t.Errorf("%d derivations, want %d", len(did), len(want))
	}
	x, _ = f.removal(false, "Told", "Log")
	f.ok(x.Run(t.Context()))
	f.same(written(f, everyRows...))
	for name, row := range f.rows(owntable.TableName) {
		if p := row.Get(owntable.Partition).Text(); owntable.Partitions(f.model.Name)(p) || strings.HasPrefix(p, owntable.FollowedIn(f.model.Name)) {
			t.Errorf("%s is left", name)
		}
	}
	again, _ := f.removal(false)
	f.ok(again.Run(t.Context()))
	if d := again.Done(); d.Targets != 0 || d.Units != 0 {
		t.Errorf("the second time: %+v", d)
	}
	f.with(earlier)
	f.build(owntable.BuildLive, slices.Compact(slices.Sorted(maps.Values(earlier.Builds())))...)
	f.catchUp()
	f.write("PK", "TASK#1", "SK", "VOTE#3", "type", "Vote", "up", "yes", "points", 9)
	f.catchUp()
	f.verified()
}

// rewritten returns a text with parts replaced, each of which it must have.
func rewritten(t *testing.T, text string, oldNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			t.Fatalf("there is no %q", oldNew[i])
		}
		text = strings.Replace(text, oldNew[i], oldNew[i+1], 1)
	}
	return text
}

// TestRemainsThatStay: what is derived or declared today stays, and the result says why. The rows stay as they are.
func TestRemainsThatStay(t *testing.T) {
	const votes, closedAt = "  Task.votes: {count: Vote}\n", "      closed_at: string\n"
	noVotes := rewritten(t, every, votes, "")
	for name, c := range map[string]struct {
		later, only string
		announced   bool              // what the later model has is being built
		stays       map[string]string // a part of why each derivation stays
	}{
		"an attribute of the application": {later: rewritten(t, noVotes, closedAt, closedAt+"      votes: number\n"),
			stays: map[string]string{"Task.votes": "votes is an attribute of Task"}},
		"what is derived": {later: noVotes, only: "Task.points",
			stays: map[string]string{"Task.points": "it is live since"}},
		"what another may take over": {later: rewritten(t, every, votes, "  Task.number: {count: Vote}\n"), announced: true,
			stays: map[string]string{"Task.votes": "Task.number, which may take its place, is not live"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := derivedRows(open(t, load(t, every)))
			f.retires(load(t, c.later))
			if c.announced {
				f.announced("Task")
			}
			f.clock.Add(2)
			before := f.rows(f.table)
			var only []string
			if c.only != "" {
				only = []string{c.only}
			}
			x, by := f.removal(false, only...)
			f.ok(x.Run(t.Context()))
			for name, why := range c.stays {
				if r := by[name]; r == nil || !strings.Contains(r.Why, why) {
					t.Errorf("%s: %+v, want %q", name, r, why)
				}
			}
			if len(by) != len(c.stays) {
				t.Errorf("%v", by)
			}
			f.same(before)
		})
	}
}

// TestRemainsOfATakenTable: on a table that another model has taken, nothing is removed of what a model has shown there.
func TestRemainsOfATakenTable(t *testing.T) {
	f := derivedRows(open(t, load(t, underived()+"derive:\n  Task.votes: {count: Vote}\n")))
	f.retires(load(t, underived()))
	other := load(t, rewritten(t, underived(), "model: every", "model: beside")+"derive:\n  Task.votes: {count: Vote}\n")
	f.ok(catalog.New(other, f.Store, f.now, catalog.Options{Assume: true}).Start(t.Context(), nil))
	f.clock.Add(2)
	before := f.rows(f.table)
	x, by := f.removal(false)
	f.ok(x.Run(t.Context()))
	if r := by["Task.votes"]; r == nil || r.Why != "table every belongs to model beside" {
		t.Errorf("%+v", r)
	}
	f.same(before)
}

// TestRemainsOfTwoRules: rows of one of two rules go if the constants of the rules tell them apart;
// otherwise all stay.
func TestRemainsOfTwoRules(t *testing.T) {
	for _, c := range []struct {
		name, key, vote, sign string
		rows, others          int64
	}{
		{"by a constant", "LOG#{what}#{nr}", "set: {task: task, nr: nr, what: =vote}", "set: {task: task, nr: user, what: =sign}", 3, 0},
		{"by a value that the other has", "LOG#{nr}#{position}", "keep: [insert], set: {task: task, nr: nr, position: $position}", "keep: [insert], set: {task: task, nr: user, position: $position, name: =sign}", 0, 4},
		{"by nothing", "LOG#{nr}#{position}", "keep: [insert], set: {task: task, nr: nr, position: $position}", "keep: [insert], set: {task: task, nr: user, position: $position}", 0, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := func(rules string) string {
				return rewritten(t, underived(), "LOG#{nr}#{position}", c.key) + "derive:\n" + rules
			}
			votes, signs := "  Log(vote): {row: Vote, "+c.vote+"}\n", "  Log(sign): {row: Sign, "+c.sign+"}\n"
			f := derivedRows(open(t, load(t, text(votes+signs))))
			f.retires(load(t, text(signs)))
			f.clock.Add(2)
			before := f.rows(f.table)
			x, by := f.removal(false, "Log(vote)")
			f.ok(x.Run(t.Context()))
			if r := by["Log(vote)"]; len(by) != 1 || r.Rows != c.rows || r.Others != c.others {
				t.Errorf("%+v", r)
			}
			for name, row := range before {
				if strings.HasPrefix(row.Get("SK").Text(), "LOG#vote#") {
					delete(before, name)
				}
			}
			f.same(before)
			f.catchUp()
			f.verified()
		})
	}
}

// TestRemainsOfAGroup: rows of a group whose values are removed first can be told as weir's
// afterwards. Rows that the model shows something on today, or has as the application's, stay: it may
// have put them.
func TestRemainsOfAGroup(t *testing.T) {
	const group = "derive:\n  Day: {group: Vote, by: {up: up}, set: {votes: count, points: {sum: points}, last: {latest: points, by: nr}}}\n"
	for _, c := range []struct {
		name, later string
		first       []string
		why         string
		rows        int64
	}{
		{"values first", applications(), []string{"Day.votes", "Day.points", "Day.last"}, "", 2},
		{"the application's entity", underived(), nil, "Day has such rows, which the application may write", 0},
		{"with a count", strings.Replace(underived(), "    attributes: {votes: number, points: number, last: number}\n", "", 1) + "derive:\n  Day.signs: {count: Sign, to: {up: user}}\n", nil, "stay", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := derivedRows(open(t, load(t, underived()+group)))
			f.retires(load(t, c.later))
			f.clock.Add(2)
			if len(c.first) > 0 {
				x, _ := f.removal(false, c.first...)
				f.ok(x.Run(t.Context()))
			}
			before := f.rows(f.table)
			x, by := f.removal(false, "Day")
			f.ok(x.Run(t.Context()))
			if r := by["Day"]; r == nil || (r.Why == "") != (c.why == "") || !strings.Contains("stay "+r.Why, c.why) || r.Rows != c.rows || r.Others != 0 {
				t.Errorf("%+v", r)
			}
			for name, row := range before {
				if c.rows > 0 && row.Get("type").Text() == "Day" {
					delete(before, name)
				}
			}
			f.same(before)
		})
	}
}

// TestRemainsOfOthers: an attribute on a row that weir has not written since the application put it
// again is the application's, and so is a status that the application has moved on by itself. An
// application that writes on the row meanwhile loses nothing.
func TestRemainsOfOthers(t *testing.T) {
	f := derivedRows(open(t, load(t, every)))
	f.retires(load(t, rewritten(t, every, "  Task.votes: {count: Vote}\n", "", "      closed: {when: Sign, who: user, each: helpers, set: {closed_at: at}}\n", "", "  Task.status:\n    steps:\n      done: {when: Vote, where: {up: \"yes\"}}\n", "")))
	f.clock.Add(2)
	put := []any{"PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "n", "owner", "1", "team", "1", "tag", "a", "status", "closed", "votes", 77}
	f.write(put...) // its program has a votes of its own
	task := func(id string) (store.Ref, value.Item) {
		for _, row := range f.rows(f.table) {
			if row.Get("PK").Text() == "TASK#"+id && row.Get("SK").Text() == "METADATA" {
				key, _ := f.model.Tables[0].KeyOf(row)
				return store.Ref{Table: f.table, Key: key}, row
			}
		}
		t.Fatal("no task " + id)
		return store.Ref{}, nil
	}
	set := func(id, attr, to string) {
		at, _ := task(id)
		out, err := f.Store.Write(t.Context(), []store.Write{{Ref: at, Ops: []store.Op{store.Assign(attr, value.OfString(to))}}})
		f.ok(err)
		f.ok(out[0].Err)
	}
	if _, row := task("2"); row.Get("status").Text() != "closed" {
		t.Fatalf("%v", row)
	}
	set("2", "status", "done") // over what weir shows
	x, by := f.removal(false)
	x.Segments = 1
	late := &paused{Store: f.Store, puts: func(w *store.Write) bool { return w.Table == f.table }, act: func() { set("3", "votes", "mine"); set("3", "status", "closed") }}
	r := *f.runner()
	r.Store = writesPaused{late}
	x.Builder.Runner = &r
	f.ok(x.Run(t.Context()))
	if late.act != nil {
		t.Fatal("nothing was written meanwhile")
	}
	if by["Task.votes"].Others != 1 {
		t.Errorf("%+v", by["Task.votes"])
	}
	if _, row := task("1"); row.Get("votes").Text() != "77" || row.Get("status").Text() != "closed" {
		t.Errorf("what the application put again: %v", row)
	}
	if _, row := task("2"); row.Has("votes") || row.Get("status").Text() != "done" || row.Has(owntable.Own) || !row.Has("points") || !row.Has(owntable.Version) {
		t.Errorf("beside what stays: %v", row)
	}
	if _, row := task("3"); row.Has("votes") || row.Get("status").Text() != "closed" || !row.Has("points") {
		t.Errorf("what was written meanwhile: %v", row)
	}
	f.catchUp()
	f.write("PK", "TASK#3", "SK", "VOTE#7", "type", "Vote", "up", "yes", "points", 5)
	f.catchUp()
	f.verified()
}

// TestRemainsKeepLedgers: ledgers that something else is counted in stay, also if the earlier model
// knows nothing of it.
func TestRemainsKeepLedgers(t *testing.T) {
	const other = "  Task.signs: {count: Sign}\n"
	for name, later := range map[string]string{
		"of the row":      applications() + "derive:\n" + other,
		"of another row":  underived() + "derive:\n  Day: {group: Vote, by: {up: up}, set: {votes: count, points: {sum: points}, last: {latest: points, by: nr}}}\n",
		"of what remains": rewritten(t, applications(), "      closed_at: string\n", "      closed_at: string\n      signs: number\n"),
	} {
		t.Run(name, func(t *testing.T) {
			f := derivedRows(open(t, load(t, every+other)))
			f.retires(load(t, later))
			f.verified() // what is left of what is retired is no difference
			f.clock.Add(2)
			ledgers := func() (n int) {
				for _, row := range f.rows(owntable.TableName) {
					if strings.HasPrefix(row.Get(owntable.Partition).Text(), owntable.Ledgers(f.model.Name)) {
						n++
					}
				}
				return n
			}
			before := ledgers()
			x, _ := f.removal(false)
			f.ok(x.Run(t.Context()))
			if n := ledgers(); n == 0 || before == 0 || name != "of another row" && n != 3 {
				t.Errorf("%d ledgers, were %d", n, before)
			}
			f.catchUp()
			f.write("PK", "TASK#1", "SK", "SIGN#9", "type", "Sign", "at", "today")
			f.write("PK", "TASK#1", "SK", "VOTE#9", "type", "Vote", "up", "yes", "points", 1)
			f.catchUp()
			f.verified()
		})
	}
}

// TestRemainsDerivedAgain: what is derived again while it is removed is not removed any further, and
// the error names what mends it.
func TestRemainsDerivedAgain(t *testing.T) {
	f := derivedRows(open(t, load(t, every)))
	earlier := f.model
	later := load(t, underived())
	f.retires(later)
	f.clock.Add(2)
	x, _ := f.removal(false)
	f.with(earlier)
	f.announced(slices.Compact(slices.Sorted(maps.Values(earlier.Builds())))...)
	before := f.rows(f.table)
	if err := x.Run(t.Context()); !errors.Is(err, build.ErrDerived) || !strings.Contains(err.Error(), "--again puts back what is missing") {
		t.Error(err)
	}
	f.same(before)
	if _, err := (&build.Removal{Builder: f.builder(), Only: []string{"Task.nothing"}}).Begin(t.Context()); !errors.Is(err, build.ErrEarlier) {
		t.Error(err)
	}
}

// twice is a model with two entities whose rows differ by type alone, and two rules into one entity.
const twice = `model: twice
tables:
  twice: {key: [PK, SK]}
entities:
  Task: {where: {type: Task}, key: {PK: "TASK#{task}", SK: METADATA}, attributes: {name: string}}
  Vote: {where: {type: Vote}, key: {PK: "TASK#{task}", SK: "VOTE#{nr}"}, attributes: {up: string, points: number}}
  Sign: {where: {type: Sign}, key: {PK: "TASK#{task}", SK: "SIGN#{nr}"}, attributes: {at: string}}
  Log: {where: {type: Log}, key: {PK: "TASK#{task}", SK: "LOG#{what}#{nr}"}, attributes: {name: string}}
derive:
`

// TestRemainsOfOneKey: a ledger is of a key. It stays if a row of another entity is counted at such
// a key today.
func TestRemainsOfOneKey(t *testing.T) {
	text := rewritten(t, twice, "  twice: {key: [PK, SK]}\n", "  twice: {key: [PK, SK]}\n  signs: {key: [PK, SK]}\n",
		"Task: {where", "Task: {table: twice, where", "Vote: {where", "Vote: {table: twice, where", "Log: {where", "Log: {table: twice, where", "Sign: {where", "Sign: {table: signs, where")
	f := open(t, load(t, text+"  Task.votes: {count: Vote}\n"))
	f.write("PK", "TASK#0", "SK", "METADATA", "type", "Task", "name", "n")
	f.write("PK", "TASK#0", "SK", "VOTE#1", "type", "Vote", "up", "x")
	f.catchUp()
	f.retires(load(t, rewritten(t, text, "Task: {table: twice, where: {type: Task}", "Bug: {table: twice, where: {type: Bug}")+"  Bug.signs: {count: Sign}\n"))
	sign := func(nr string) {
		f.table = "signs"
		f.write("PK", "TASK#1", "SK", "SIGN#"+nr, "type", "Sign", "at", "x")
		f.table = "twice"
	}
	f.write("PK", "TASK#1", "SK", "METADATA", "type", "Bug", "name", "n")
	sign("1")
	f.catchUp() // the stream of signs was never read, so no build is needed
	f.clock.Add(2)
	x, by := f.removal(false)
	f.ok(x.Run(t.Context()))
	if by["Task.votes"].Rows != 1 {
		t.Errorf("%+v", by["Task.votes"])
	}
	f.verified()
	sign("2")
	f.catchUp()
	f.verified()
}

// TestRemainsOfARule: an attribute that follows goes from the rows of its rule, not from those of
// another rule into the same entity.
func TestRemainsOfARule(t *testing.T) {
	rule := func(of, what string) string {
		return "  Log(" + what + "): {row: " + of + ", keep: [insert], set: {task: task, nr: nr, what: =" + what + ", name: {follow: Task.name, by: {task: task}, keep: true}}}\n"
	}
	f := open(t, load(t, twice+rule("Vote", "vote")+rule("Sign", "sign")))
	f.write("PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "n")
	f.write("PK", "TASK#1", "SK", "VOTE#1", "type", "Vote", "up", "yes")
	f.write("PK", "TASK#1", "SK", "SIGN#1", "type", "Sign", "at", "x")
	f.catchUp()
	f.retires(load(t, rewritten(t, twice, `  Log: {where: {type: Log}, key: {PK: "TASK#{task}", SK: "LOG#{what}#{nr}"}, attributes: {name: string}}`+"\n", "")))
	f.clock.Add(2)
	before := f.rows(f.table)
	x, _ := f.removal(false, "Log(vote)")
	f.ok(x.Run(t.Context()))
	for name, row := range before {
		if strings.HasPrefix(row.Get("SK").Text(), "LOG#vote") {
			delete(before, name)
		}
	}
	f.same(before)
}

// TestRemainsOfAnotherModelOfToday: the model must be the one of today. By an earlier one, what a later
// one shows under other names would go.
func TestRemainsOfAnotherModelOfToday(t *testing.T) {
	was := load(t, twice+"  Task.votes: {count: Vote}\n")
	f := open(t, was)
	f.write("PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "n")
	f.write("PK", "TASK#1", "SK", "VOTE#1", "type", "Vote", "up", "yes")
	f.catchUp()
	f.retires(load(t, strings.ReplaceAll(twice, "Task: {", "Item: {")+"  Item.votes: {count: Vote}\n"))
	f.build(owntable.BuildLive, "Item")
	f.with(was)
	f.clock.Add(2)
	if _, err := (&build.Removal{Builder: f.builder()}).Begin(t.Context()); !errors.Is(err, build.ErrEarlier) || !strings.Contains(err.Error(), "Item.votes is live, and the model does not have it") {
		t.Error(err)
	}
}

// TestRemainsOfLetters: a dead letter which says that something cannot be shown goes with what it is about, although no
// record comes for its row. One that is about something else as well says that alone.
func TestRemainsOfLetters(t *testing.T) {
	head, _, _ := strings.Cut(voted, "derive:\n")
	const (
		none    = "  Movie.none: {count: Rating, where: {movie: none}, to: {id: movie}}\n"
		ratings = "  Movie.ratings: {count: Rating, to: {id: movie}}\n"
		moods   = "  Movie.moods: {distinct: Rating.at, to: {id: movie}, max: 2}\n"
		mood    = "  Movie.mood: {steps: {loud: {when: Rating, to: {id: movie}, max: 2}}}\n"
		state   = "  Movie.state: {steps: {seen: {when: Rating, to: {id: movie}, max: 3, set: {by: at}}}}\n"
	)
	text := head + "derive:\n" + none + ratings + moods + mood + state
	for name, c := range map[string]struct {
		gone []string
		want string
	}{
		"a status beside another": {[]string{state}, "number; status mood"},
		"both statuses":           {[]string{state, mood}, "number"},
		"distinct values":         {[]string{moods}, "status mood state"},
		"all":                     {[]string{state, mood, moods, ratings}, ""},
	} {
		for _, built := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", built: ", built), func(t *testing.T) {
				f := open(t, load(t, text))
				f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "state", "new")
				f.read()
				for user := range 4 {
					f.write("PK", fmt.Sprint("USER#", user), "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 9, "at", fmt.Sprint("a", user))
				}
				f.catchUp()
				if built {
					f.build(owntable.BuildLive, "Movie")
					f.catchUp()
				}
				letters := func() string {
					var out []string
					for _, d := range f.dead() {
						is := string(d.Kind)
						for _, of := range []string{"mood", "state"} {
							if strings.Contains(d.Reason, "Movie."+of+" ") {
								is += " " + of
							}
						}
						out = append(out, is)
					}
					slices.Sort(out)
					return strings.Join(out, "; ")
				}
				if got := letters(); got != "number; status mood state" {
					t.Fatalf("before: %s", got)
				}
				later := text
				for _, line := range c.gone {
					later = rewritten(t, later, line, "")
				}
				f.retires(load(t, later))
				f.clock.Add(2)
				for range 2 {
					x, _ := f.removal(false)
					f.ok(x.Run(t.Context()))
				}
				if got := letters(); got != c.want {
					t.Errorf("after: %s, want %s", got, c.want)
				}
				f.catchUp()
				f.verified()
			})
		}
	}
}
