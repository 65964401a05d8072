package build_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/soaktest"
	"weir/internal/value"
)

// mixed has a projection of each kind that rows tell: tallies and a status on one row, a set,
// a copy, values that a copy and history follow, and subscribers.
const mixed = `model: mixed
tables:
  mixed: {key: [PK, SK]}
entities:
  Task:
    where: {type: Task}
    key: {PK: "TASK#{task}", SK: METADATA}
    attributes:
      name: string
      owner: string
      team: string
      tag: string
      status: {type: string, enum: [open, done, closed], forward: true}
      helpers: {type: list, else: Member.user}
      closed_at: string
  Vote:
    where: {type: Vote}
    key: {PK: "TASK#{task}", SK: "VOTE#{nr}"}
    attributes: {up: string, points: number}
  Sign:
    where: {type: Sign}
    key: {PK: "TASK#{task}", SK: "SIGN#{user}"}
    attributes: {at: string}
  Member:
    where: {type: Member}
    key: {PK: "TEAM#{team}", SK: "MEMBER#{user}"}
    attributes: {name: string}
  Person:
    where: {type: Person}
    key: {PK: "OWNER#{owner}", SK: PERSON}
    attributes: {name: string, other: string}
  Owned:
    where: {type: Owned}
    key: {PK: "OWNER#{owner}", SK: "TASK#{task}"}
    attributes: {name: string, boss: string, old: string}
  Tags:
    key: {PK: "OWNER#{owner}", SK: "TAGS[#{leaf}]"}
  Watch:
    where: {type: Watch}
    key: {PK: "USER#{user}", SK: "WATCH#{task}"}
    attributes: {as: string}
  Told:
    where: {type: Told}
    key: {PK: "USER#{user}", SK: "TOLD#{task}#{nr}#{position}"}
    attributes: {as: string}
  Log:
    where: {type: Log}
    key: {PK: "TASK#{task}", SK: "LOG#{nr}#{position}"}
    attributes: {name: string}
derive:
  Task.votes: {count: Vote}
  Task.points: {sum: Vote.points}
  Task.status:
    steps:
      done: {when: Vote, where: {up: "yes"}}
      closed: {when: Sign, who: user, each: helpers, set: {closed_at: at}}
  Tags.tags: {set: Task.tag, to: {owner: owner}}
  Owned:
    row: Task
    set: {owner: owner, task: task, name: name, boss: {follow: Person.name, by: {owner: owner}}}
  Told:
    row: Vote
    keep: [insert]
    each: {of: Watch, by: [task]}
    set: {user: Watch.user, as: Watch.as, task: task, nr: nr, position: $position}
  Log:
    row: Vote
    keep: [insert]
    set: {task: task, nr: nr, position: $position, name: {follow: Task.name, by: {task: task}, keep: true}}
`

// mixedNames are what is built of it.
var mixedNames = []string{"Task", "Tags", model.BuildSubscribers + "Told", model.BuildInPlace}

func editMixed(w *interleaved) {
	task, n := fmt.Sprint("TASK#", w.d.IntN(3)), w.d.IntN(3)
	put := func(chance int, attrs ...any) {
		if w.d.IntN(chance) == 0 {
			attrs = attrs[:4]
		}
		w.write(attrs...)
	}
	switch w.d.IntN(9) {
	case 0, 1, 2:
		row := []any{"PK", task, "SK", "METADATA", "type", "Task", "name", fmt.Sprint("n", n), "owner", fmt.Sprint(w.d.IntN(2)),
			"team", fmt.Sprint(w.d.IntN(2)), "tag", fmt.Sprint("t", w.d.IntN(3)), "status", "open"}
		put(4, row...)
	case 3:
		put(3, "PK", task, "SK", fmt.Sprint("VOTE#", n), "type", "Vote", "up", []string{"yes", "no", "no"}[n], "points", w.d.IntN(4))
	case 4:
		put(3, "PK", task, "SK", fmt.Sprint("SIGN#", n), "type", "Sign", "at", fmt.Sprint("at", w.d.IntN(9)))
	case 5:
		put(3, "PK", fmt.Sprint("TEAM#", w.d.IntN(2)), "SK", fmt.Sprint("MEMBER#", n), "type", "Member", "name", "x")
	case 6, 7:
		put(3, "PK", fmt.Sprint("OWNER#", w.d.IntN(2)), "SK", "PERSON", "type", "Person", "name", fmt.Sprint("p", w.d.IntN(4)))
	case 8:
		put(3, "PK", fmt.Sprint("USER#", n), "SK", fmt.Sprint("WATCH#", w.d.IntN(3)), "type", "Watch", "as", fmt.Sprint("a", w.d.IntN(2)))
	}
}

// TestInterleavedKinds: as TestInterleaved, with all kinds that rows tell.
func TestInterleavedKinds(t *testing.T) {
	soaktest.Calm(t)
	interleave(t, &scenario{mixed, mixedNames, editMixed, (*fixture).compareMixed})
}

// compareMixed compares what is derived with what the rows say, without weir's code, and then
// as verify does.
func (f *fixture) compareMixed() {
	f.Helper()
	type row = map[string]string
	of := map[string]map[string]row{} // by type and key
	sets := map[string][]string{}
	for _, it := range f.rows(f.table) {
		r := row{}
		for _, a := range it {
			r[a.Name] = a.Value.Text()
		}
		if it.Has("tags") {
			sets[r["PK"]] = append(sets[r["PK"]], elements(it.Get("tags"))...)
		}
		if of[r["type"]] == nil {
			of[r["type"]] = map[string]row{}
		}
		of[r["type"]][r["PK"]+" "+r["SK"]] = r
	}
	same := func(what string, have, want any) {
		f.Helper()
		if fmt.Sprint(have) != fmt.Sprint(want) {
			f.Errorf("%s: %v, want %v", what, have, want)
		}
	}
	owned, tags := map[string]row{}, map[string][]string{}
	for key, task := range of["Task"] {
		votes, points, done, signed := 0, 0, false, map[string]string{}
		for _, v := range of["Vote"] {
			if v["PK"] == task["PK"] {
				n := 0
				fmt.Sscan(v["points"], &n)
				votes, points, done = votes+1, points+n, done || v["up"] == "yes"
			}
		}
		last := ""
		for _, s := range of["Sign"] {
			if s["PK"] == task["PK"] {
				signed[strings.TrimPrefix(s["SK"], "SIGN#")] = s["at"]
			}
		}
		members, all := 0, true
		for _, m := range of["Member"] {
			if m["PK"] == "TEAM#"+task["team"] {
				at, has := signed[strings.TrimPrefix(m["SK"], "MEMBER#")]
				members, all = members+1, all && has
				last = max(last, at)
			}
		}
		status := "open"
		if done {
			status = "done"
		}
		closed := ""
		if all && members > 0 {
			status, closed = "closed", last
		}
		same("votes of "+key, task["votes"], votes)
		same("points of "+key, task["points"], points)
		same("status of "+key, task["status"], status)
		same("closed_at of "+key, task["closed_at"], closed)
		nr := strings.TrimPrefix(task["PK"], "TASK#")
		boss := of["Person"]["OWNER#"+task["owner"]+" PERSON"]["name"]
		owned["OWNER#"+task["owner"]+" TASK#"+nr] = row{"name": task["name"], "boss": boss}
		if pk := "OWNER#" + task["owner"]; !slices.Contains(tags[pk], task["tag"]) {
			tags[pk] = append(tags[pk], task["tag"])
		}
	}
	same("copies", slices.Sorted(maps.Keys(of["Owned"])), slices.Sorted(maps.Keys(owned)))
	for key, want := range owned {
		same("name of "+key, of["Owned"][key]["name"], want["name"])
		same("boss of "+key, of["Owned"][key]["boss"], want["boss"])
	}
	same("owners with tags", slices.Sorted(maps.Keys(sets)), slices.Sorted(maps.Keys(tags)))
	for pk := range tags {
		slices.Sort(tags[pk])
		slices.Sort(sets[pk])
		same("tags of "+pk, sets[pk], tags[pk])
	}
	for key, log := range of["Log"] {
		if task, there := of["Task"][log["PK"]+" METADATA"]; there {
			same("name of "+key, log["name"], task["name"])
		}
	}
	f.subscribed(len(of["Watch"]))
	f.verified()
}

// subscribed counts the subscribers in the lists that notifications go to.
func (f *fixture) subscribed(want int) {
	f.Helper()
	row, err := f.runner().Catalog.Row(f.Context())
	f.ok(err)
	lists := owntable.SubscriberLists(f.model.Name)
	if b, _ := row.Builds.Of(model.BuildSubscribers + "Told"); b.State.IsShown() {
		lists = owntable.SubscriberLists(b.Ledgers(f.model.Name))
	}
	n := 0
	for _, row := range f.rows(owntable.TableName) {
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), lists) && strings.HasPrefix(row.Get(owntable.Sort).Text(), "m") && row.Has("n") {
			n++
		}
	}
	if n != want {
		f.Errorf("%d subscribers, want %d", n, want)
	}
}

func elements(v value.Value) (out []string) {
	for _, el := range v.Elements() {
		out = append(out, el.Value.Text())
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

// olders are models before a derivation of each kind was changed or added: what stands in
// mixed, and what stood in its place.
var olders = map[string][2]string{
	"set changed":         {"{set: Task.tag, to", "{set: Task.name, to"},
	"set added":           {"  Tags.tags: {set: Task.tag, to: {owner: owner}}\n", ""},
	"status changed":      {`{up: "yes"}`, `{up: "no"}`},
	"status added":        {mixed[strings.Index(mixed, "  Task.status:"):strings.Index(mixed, "  Tags.tags:")], ""},
	"tally beside status": {"  Task.points: {sum: Vote.points}\n", ""},
	"copy changed":        {"task: task, name: name, boss", "task: task, name: tag, old: team, boss"},
	"copy added":          {mixed[strings.Index(mixed, "  Owned:\n    row"):strings.Index(mixed, "  Told:\n    row")], ""},
	"follow added":        {", boss: {follow: Person.name, by: {owner: owner}}}", "}"},
	"follow changed":      {"follow: Person.name", "follow: Person.other"},
	"feed changed":        {"as: Watch.as, task", "as: Watch.user, task"},
	"feed added":          {mixed[strings.Index(mixed, "  Told:\n    row"):strings.Index(mixed, "  Log:\n    row")], ""},
	"history added":       {mixed[strings.Index(mixed, "  Log:\n    row"):], ""},
}

// allNames are all builds of a model.
func allNames(m *model.Model) []string {
	return slices.Compact(slices.Sorted(maps.Values(m.Builds())))
}

// TestChangedKinds: each kind is changed or added while weir runs. The program with the new
// model is refused until a build is announced. Then rows show what they showed, or nothing,
// until the build is live; afterwards they show what the new model says.
func TestChangedKinds(t *testing.T) {
	soaktest.Calm(t)
	for name, older := range olders {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(mixed, older[0], older[1], 1)
			if text == mixed {
				t.Fatal("the older model is the newer one")
			}
			f := open(t, load(t, text))
			f.changes(load(t, mixed))
		})
	}
}

// changes goes from the model that runs to another one, and back, while rows are written.
func (f *fixture) changes(now *model.Model) {
	f.Helper()
	older, w := f.model, &interleaved{fixture: f, d: rand.New(rand.NewPCG(7, 7))}
	for range 60 {
		editMixed(w)
	}
	f.write("PK", "TASK#8", "SK", "METADATA", "type", "Task", "name", "n", "owner", "8", "team", "8", "tag", "t", "status", "open") // has no votes
	f.catchUp()
	f.verified()
	f.with(now)
	f.write("PK", "X", "SK", "Y", "what", "a row of no entity")
	f.refused("the newer program before the build")
	shown := f.shownMixed()
	f.announced(allNames(now)...)
	f.catchUp()
	is := f.shownMixed()
	for key, was := range shown {
		if is[key] != was {
			f.Errorf("during the build, %s shows %s, and showed %s", key, is[key], was)
		}
	}
	for range 20 {
		editMixed(w)
	}
	f.build(owntable.BuildLive, allNames(now)...)
	f.catchUp()
	f.compareMixed()
	f.aboveBase()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, allNames(now)...)
	f.compareMixed()
	w.rollsBack(older, now, 20)
	f.compareMixed()
}

// refused expects that the program may not apply what is in the stream.
func (f *fixture) refused(when string) {
	f.Helper()
	done := make(chan struct{})
	close(done)
	follower := reader.Follower{Runner: f.runner()}
	if err := follower.CatchUp(f.Context(), done); !errors.Is(err, catalog.ErrRefused) {
		f.Fatalf("%s: %v", when, err)
	}
}

// TestRetiredBuilds: a set, or subscribers, that a build made are retired. The program whose
// model has them no longer goes on, and pruning removes what the build made.
func TestRetiredBuilds(t *testing.T) {
	for name, of := range map[string]string{"set added": "Tags.tags", "feed added": "Told"} {
		t.Run(name, func(t *testing.T) {
			f := open(t, load(t, mixed))
			w := &interleaved{fixture: f, d: rand.New(rand.NewPCG(7, 7))}
			for range 40 {
				editMixed(w)
			}
			f.catchUp()
			f.build(owntable.BuildLive, allNames(f.model)...)
			f.with(load(t, strings.Replace(mixed, olders[name][0], olders[name][1], 1)))
			f.retired(of)
			for range 20 {
				editMixed(w)
			}
			f.catchUp()
			row, err := f.runner().Catalog.Row(t.Context())
			f.ok(err)
			var gone []owntable.Build
			for _, b := range row.Builds {
				if b.State == owntable.BuildDropped {
					gone = append(gone, b)
				}
			}
			f.clock.Add(2)
			_, removed, err := f.builder(allNames(f.model)...).Prune(t.Context())
			f.ok(err)
			if len(gone) != 1 || removed == 0 {
				t.Fatalf("%d rows are removed of %+v", removed, gone)
			}
			left := owntable.Partitions(gone[0].Ledgers(f.model.Name))
			for key, row := range f.rows(owntable.TableName) {
				if left(row.Get(owntable.Partition).Text()) {
					t.Errorf("%s is left", key)
				}
			}
		})
	}
}

// rollsBack goes back to an older model while so many rows change, and then on to the newer one again.
// What each derives is right by its own definitions.
func (w *interleaved) rollsBack(older, newer *model.Model, during int) {
	w.Helper()
	for _, m := range []*model.Model{older, newer} {
		w.with(m)
		b := w.builder(allNames(m)...)
		b.Again = false
		if m == older {
			w.retired()
		}
		_, err := b.Announce(w.Context())
		w.ok(err)
		for range during {
			editMixed(w)
		}
		w.catchUp()
		if m == older { // killed, and typed again
			w.retired()
		}
		_, err = b.Run(w.Context())
		w.ok(err)
		for range during / 2 {
			editMixed(w)
		}
		w.catchUp()
		w.verified()
		w.with(map[bool]*model.Model{true: newer, false: older}[m == older])
		w.write("PK", "X", "SK", "Y", "what", m.Name+fmt.Sprint(m == older))
		w.refused("the program with the other model")
		w.with(m)
		w.catchUp()
		w.verified()
	}
}

// TestRollBackOnDynamoDB: a change of a count is taken back on DynamoDB, while rows change.
func TestRollBackOnDynamoDB(t *testing.T) {
	text := strings.Replace(mixed, olders["status changed"][0], olders["status changed"][1], 1)
	text = strings.Replace(text, olders["tally beside status"][0], "", 1)
	text = strings.Replace(text, olders["set changed"][0], olders["set changed"][1], 1)
	f, newer := openOnDynamoDB(t, load(t, text)), load(t, mixed)
	w := &interleaved{fixture: f, d: rand.New(rand.NewPCG(7, 7))}
	older := f.model
	for range 40 {
		editMixed(w)
	}
	f.catchUp()
	f.verified()
	f.with(newer)
	f.build(owntable.BuildLive, allNames(newer)...)
	f.catchUp()
	f.compareMixed()
	w.rollsBack(older, newer, 20)
	w.compareMixed()
}

// aboveBase expects that rows show versions of the generations that were built, which no
// older one reaches: a worker with an old view then replaces none of them.
func (f *fixture) aboveBase() {
	f.Helper()
	view, err := f.runner().Catalog.Row(f.Context())
	f.ok(err)
	for key, row := range f.rows(f.table) {
		b, _ := view.Builds.Of("Task")
		if row.Has("tags") {
			b, _ = view.Builds.Of("Tags")
		} else if row.Get("type").Text() != "Task" {
			continue
		}
		if n, _ := row.Get(owntable.Version).Int64(); n < b.Base {
			f.Errorf("%s shows version %d, which older ones may reach; the generation begins at %d", key, n, b.Base)
		}
	}
}

// shownMixed returns what rows show that may be built.
func (f *fixture) shownMixed() map[string]string {
	out := map[string]string{}
	for key, row := range f.rows(f.table) {
		if row.Has("tags") {
			out[key] = fmt.Sprint(elements(row.Get("tags")))
		}
		if row.Get("type").Text() == "Task" {
			out[key] = row.Get("status").Text() + row.Get("closed_at").Text()
			for _, name := range []string{"votes", "points"} {
				out[key] += fmt.Sprint(" ", name, "=", row.Get(name).Text())
			}
		}
	}
	return out
}

// TestRollBackOfABuild: a build of a later model is not live. It stays by itself, until it is aborted or what it builds is
// retired, and then there is nothing to build.
func TestRollBackOfABuild(t *testing.T) {
	newer := load(t, mixed)
	f := open(t, load(t, strings.Replace(mixed, olders["tally beside status"][0], "", 1)))
	older, w := f.model, &interleaved{fixture: f, d: rand.New(rand.NewPCG(7, 7))}
	for range 20 {
		editMixed(w)
	}
	f.catchUp()
	f.with(newer)
	f.announced("Task")
	f.with(older)
	if retired, err := f.builder("Task").Retire(t.Context(), false); err != nil || len(retired) > 0 {
		t.Fatal(retired, err)
	}
	retired, err := f.builder("Task").Retire(t.Context(), true)
	if err != nil || len(retired) == 0 {
		t.Fatal(retired, err)
	}
	f.ok(f.builder("Task").Abort(t.Context()))
	for range 20 {
		editMixed(w)
	}
	f.catchUp()
	f.verified()
	b := f.builder("Task")
	b.Again = false
	if is, err := b.Run(t.Context()); err != nil || len(is) > 0 {
		t.Fatal(is, err)
	}
}
