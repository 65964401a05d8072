package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// apart has a status and a set whose rows nothing else shows, and a count beside the status.
const apart = `model: apart
tables:
  apart: {key: [PK, SK]}
entities:
  Job:
    where: {type: Job}
    key: {PK: "JOB#{job}", SK: METADATA}
    attributes:
      team: string
      status: {type: string, enum: [open, done, closed], forward: true}
      helpers: {type: list, else: Member.user}
      closed_at: string
  Vote:
    where: {type: Vote}
    key: {PK: "JOB#{job}", SK: "VOTE#{nr}"}
    attributes: {up: string}
  Sign:
    where: {type: Sign}
    key: {PK: "JOB#{job}", SK: "SIGN#{user}"}
    attributes: {at: string}
  Note:
    where: {type: Note}
    key: {PK: "JOB#{job}", SK: "NOTE#{nr}"}
    attributes: {text: string}
  Member:
    where: {type: Member}
    key: {PK: "TEAM#{team}", SK: "MEMBER#{user}"}
    attributes: {name: string}
  Item:
    where: {type: Item}
    key: {PK: "OWNER#{owner}", SK: "ITEM#{nr}"}
    attributes: {tag: string}
  Tags:
    key: {PK: "OWNER#{owner}", SK: "TAGS[#{leaf}]"}
derive:
  Job.notes: {count: Note}
  Job.status:
    steps:
      done: {when: Vote, where: {up: "yes"}}
      closed: {when: Sign, who: user, each: helpers, set: {closed_at: at}}
  Tags.tags: {set: Item.tag, to: {owner: owner}}
`

// TestKindsBesideTheSwitch: a function is invoked with one record before a build is shown,
// and puts what the record says after the builder has shown all rows. The function shows it:
// no other record of the row comes.
func TestKindsBesideTheSwitch(t *testing.T) {
	names := []string{"Job", "Tags"}
	for _, c := range []struct {
		name   string
		put    string // what the function puts first
		record []any
		status string // of the job afterwards
		tags   string
	}{
		{"a fact", "fact|apart#", []any{"PK", "JOB#1", "SK", "VOTE#1", "type", "Vote", "up", "yes"}, "done", "[a]"},
		{"the last fact of a group", "fact|apart#", []any{"PK", "JOB#1", "SK", "SIGN#1", "type", "Sign", "at", "today"}, "closed", "[a]"},
		{"a group", "fact|apart#", []any{"PK", "TEAM#2", "SK", "MEMBER#2", "type", "Member", "name", "m"}, "open", "[a]"},
		{"a count", "ledger|apart#", []any{"PK", "JOB#1", "SK", "NOTE#0"}, "open", "[a]"},
		{"a member of a set", "set|apart#", []any{"PK", "OWNER#1", "SK", "ITEM#1", "type", "Item", "tag", "b"}, "open", "[b]"},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, ", built before: ", again), func(t *testing.T) {
				f := open(t, load(t, apart))
				f.write("PK", "JOB#1", "SK", "METADATA", "type", "Job", "team", "1", "status", "open")
				f.write("PK", "TEAM#1", "SK", "MEMBER#1", "type", "Member", "name", "m")
				f.write("PK", "JOB#2", "SK", "METADATA", "type", "Job", "team", "2", "status", "open")
				f.write("PK", "TEAM#2", "SK", "MEMBER#1", "type", "Member", "name", "m")
				f.write("PK", "JOB#2", "SK", "SIGN#1", "type", "Sign", "at", "today")
				if c.name == "a group" { // it is a member that has not signed whom the job waits for
					f.write("PK", "JOB#2", "SK", "SIGN#1")
					f.write("PK", "TEAM#2", "SK", "MEMBER#1")
					f.write("PK", "JOB#2", "SK", "SIGN#2", "type", "Sign", "at", "today")
				}
				f.write("PK", "OWNER#1", "SK", "ITEM#1", "type", "Item", "tag", "a")
				if again {
					f.catchUp()
				} else {
					f.unread()
					f.unbuilt()
				}
				f.announced(names...)
				f.readByFunction()
				if strings.HasPrefix(c.put, "set|") {
					f.putSome("Tags") // so that the builder leaves to the function what changes now
				}
				before := f.records()
				f.write("PK", "JOB#1", "SK", "NOTE#0", "type", "Note", "text", "n")
				if ok, why := f.invoke(f.function(f.runner()), f.since(before)...); !ok {
					t.Fatal(why)
				}
				before = f.records()
				f.write(c.record...)
				late := &paused{Store: f.Store, puts: ownPut(c.put), act: func() { f.build(owntable.BuildLive, names...) }}
				r := *f.runner()
				r.Store, r.Catalog = writesPaused{late}, catalog.New(f.model, f.Store, f.now, catalog.Options{})
				records := f.since(before)
				if ok, why := f.invoke(f.function(&r), records...); !ok || len(records) != 1 {
					t.Fatal(len(records), why)
				}
				if late.act != nil {
					t.Fatal("nothing was put")
				}
				want := map[string]string{"JOB#1": c.status, "JOB#2": "closed", "OWNER#1": c.tags}
				if c.status == "open" {
					want["JOB#1"] = "open"
				}
				for _, row := range f.rows(f.table) {
					is, pk := row.Get("status").Text(), row.Get("PK").Text()
					if row.Has("tags") {
						is = fmt.Sprint(elements(row.Get("tags")))
					}
					if is != "" && is != want[pk] {
						t.Errorf("%s shows %s, want %s", pk, is, want[pk])
					}
				}
				f.verified()
			})
		}
	}
}

// TestSetBesideTheSwitch: an invocation that has an older view splits a leaf, joins leaves,
// or checks a row that the application wrote, after a build has shown its own nodes. It
// replaces none of them. If it had more to show than a join, its records come again.
func TestSetBesideTheSwitch(t *testing.T) {
	members := func(f *fixture, from, to int) {
		for i := from; i < to; i++ {
			f.write("PK", "OWNER#1", "SK", fmt.Sprint("ITEM#", i), "type", "Item", "tag", fmt.Sprint("tag", i))
		}
	}
	tags := func(ref store.Ref) bool {
		return ref.Table == "apart" && strings.HasPrefix(ref.Key.Sort.Text(), "TAGS")
	}
	write := func(w *store.Write) bool { return tags(w.Ref) }
	for _, c := range []struct {
		name        string
		first, last int // members, before and afterwards
		reads, ok   bool
		puts        func(*store.Write) bool
	}{
		{name: "a leaf is split", first: 60, last: 70, puts: write},
		{name: "leaves are joined", first: 70, last: 4, ok: true, puts: func(w *store.Write) bool { return tags(w.Ref) && w.Delete }},
		{name: "a row is checked", first: 3, last: 3, reads: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, load(t, apart))
			members(f, 0, c.first)
			f.catchUp()
			f.announced("Tags")
			f.readByFunction()
			before := f.records()
			members(f, c.first, c.last)
			for i := c.last; i < c.first; i++ {
				f.write("PK", "OWNER#1", "SK", fmt.Sprint("ITEM#", i))
			}
			if c.reads {
				f.write("PK", "OWNER#1", "SK", "TAGS", "tags", "spoilt")
			}
			act := func() { f.build(owntable.BuildLive, "Tags") }
			late := &paused{Store: f.Store, puts: c.puts, act: act}
			r := *f.runner()
			r.Store, r.Catalog = writesPaused{late}, catalog.New(f.model, f.Store, f.now, catalog.Options{})
			if c.reads {
				late.puts = func(*store.Write) bool { return false }
				r.Store = getsPaused{late, tags}
			}
			records, h := f.since(before), f.function(&r)
			if ok, why := f.invoke(h, records...); ok != c.ok || !ok && !strings.Contains(why, runner.ErrSwitched.Error()) {
				t.Error(ok, why)
			}
			if late.act != nil {
				t.Fatal("it was never late")
			}
			f.aboveBase()
			if ok, why := f.invoke(h, records...); !ok {
				t.Error(why)
			}
			f.aboveBase()
			f.verified()
		})
	}
}

// since returns the records of all shards without those that there were before.
func (f *fixture) since(before []json.RawMessage) []json.RawMessage {
	was := map[string]bool{}
	for _, r := range before {
		was[string(r)] = true
	}
	return slices.DeleteFunc(f.records(), func(r json.RawMessage) bool { return was[string(r)] })
}

// getsPaused pauses before rows are read.
type getsPaused struct {
	*paused
	gets func(store.Ref) bool
}

func (p getsPaused) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if p.act != nil && slices.ContainsFunc(refs, p.gets) {
		act := p.act
		p.act = nil
		act()
	}
	return p.Store.Get(ctx, refs)
}

// putSome builds until something is put, and the scan is not over.
func (f *fixture) putSome(name string) {
	f.Helper()
	ctx, kill := context.WithCancel(f.Context())
	b := f.builder(name)
	b.Segments = 1
	b.Report = func(p build.Progress) {
		if p.Puts > 0 {
			kill()
		}
	}
	if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		f.Fatal(err)
	}
}

// readByFunction makes the catalog say that functions read the stream.
func (f *fixture) readByFunction() {
	f.Helper()
	_, err := f.runner().Catalog.Change(f.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		pin := next.Tables[f.table]
		pin.Reader = string(catalog.Shard)
		next.Tables[f.table] = pin
		return next, nil
	})
	f.ok(err)
}

// TestValueBesideACopy: a copy is made with the value that it follows as that is kept, just
// before a builder corrects the kept one, and after the builder has read which rows follow it.
func TestValueBesideACopy(t *testing.T) {
	f := open(t, load(t, mixed))
	for _, row := range lateRows {
		f.write(row...)
	}
	f.catchUp()
	f.write("PK", "OWNER#o", "SK", "PERSON", "type", "Person", "name", "q")
	f.unread() // that is lost
	late := &paused{Store: f.Store, puts: ownPut("follow|mixed|")}
	late.act = func() {
		f.write("PK", "TASK#2", "SK", "METADATA", "type", "Task", "name", "b", "owner", "o", "team", "1", "tag", "y", "status", "open")
		f.catchUp()
	}
	b := f.builder(model.BuildInPlace)
	b.Segments, b.Runner = 1, f.over(late)
	if is, err := b.Run(t.Context()); err != nil || is[0].State != owntable.BuildLive {
		t.Fatal(is, err)
	}
	if late.act != nil {
		t.Fatal("no value was corrected")
	}
	f.compareMixed()
}

// TestTwoValuesFollowed: a row follows two values of another one and is on neither list. A
// build enters it in both.
func TestTwoValuesFollowed(t *testing.T) {
	const boss = ", boss: {follow: Person.name, by: {owner: owner}}"
	f := open(t, load(t, strings.Replace(mixed, boss, boss+", old: {follow: Person.other, by: {owner: owner}}", 1)))
	f.write("PK", "OWNER#o", "SK", "PERSON", "type", "Person", "name", "p", "other", "q")
	f.write("PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "a", "owner", "o", "team", "1", "tag", "x", "status", "open")
	f.catchUp()
	lists := func() (n int) {
		for _, row := range f.rows(owntable.TableName) {
			at := owntable.Ref(row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text())
			if strings.HasPrefix(at.Key.Partition.Text(), "follow|mixed|Person.") && row.Has("key") && row.Has("a") {
				n++
				_, err := f.Store.Write(t.Context(), []store.Write{{Ref: at, Delete: true}})
				f.ok(err)
			}
		}
		return n
	}
	if n := lists(); n != 2 {
		t.Fatalf("the row is on %d lists, want 2", n)
	}
	f.build(owntable.BuildLive, model.BuildInPlace)
	if n := lists(); n != 2 {
		t.Errorf("after the build, the row is on %d lists, want 2", n)
	}
}

// TestOrphans: copies at keys that a rule no longer makes are counted, and nothing else is.
func TestOrphans(t *testing.T) {
	older := load(t, strings.Replace(mixed, `SK: "TASK#{task}"}`, `SK: "OLD#{task}"}`, 1))
	f := open(t, older)
	for nr := range 3 {
		f.write("PK", fmt.Sprint("TASK#", nr), "SK", "METADATA", "type", "Task", "name", "a", "owner", "o", "team", "1", "tag", "x", "status", "open")
	}
	f.write("PK", "OWNER#p", "SK", "OLD#7", "type", "Owned", "name", "an application's own")
	f.catchUp()
	b := f.builder(model.BuildInPlace)
	_, err := b.Run(t.Context())
	f.ok(err)
	if n := b.Done().Orphans; n != 0 {
		t.Errorf("%d orphans under the model that made the copies", n)
	}
	f.with(load(t, mixed))
	b = f.builder(model.BuildInPlace)
	_, err = b.Run(t.Context())
	f.ok(err)
	if n := b.Done().Orphans; n != 3 {
		t.Errorf("%d orphans, want 3", n)
	}
	if n := f.copies(); n != 6 {
		t.Errorf("%d copies, want 3 at each of both keys", n)
	}
}

// firstRows are the partitions of what no build made, by the name of the build that replaces
// it.
var firstRows = map[string][]string{
	"Task": {"ledger|mixed|", "fact|mixed|"}, "Tags": {"set|mixed|"}, model.BuildSubscribers + "Told": {"feed|mixed|"},
}

// TestPruneOfKinds: pruning removes what builds have replaced, of each kind, and leaves what
// they have not.
func TestPruneOfKinds(t *testing.T) {
	for name, gone := range firstRows {
		t.Run(name, func(t *testing.T) {
			f := open(t, load(t, mixed))
			for _, row := range lateRows {
				f.write(row...)
			}
			f.catchUp()
			before := f.inPartitions()
			f.build(owntable.BuildLive, name)
			f.clock.Add(2)
			_, removed, err := f.builder(name).Prune(t.Context())
			f.ok(err)
			after := f.inPartitions()
			for of, parts := range firstRows {
				for _, part := range parts {
					switch was, is := before[part], after[part]; {
					case was == 0:
						t.Errorf("there was nothing in %s", part)
					case slices.Contains(gone, part) && is > 0:
						t.Errorf("%d rows of %s are left in %s", is, of, part)
					case !slices.Contains(gone, part) && is != was:
						t.Errorf("%d rows of %s are left of %d in %s", is, of, was, part)
					}
				}
			}
			if removed == 0 {
				t.Error("nothing was removed")
			}
			f.compareMixed()
			f.write(lateRows[1][:4]...)
			f.write(lateRows[5][:4]...)
			f.catchUp()
			f.compareMixed()
		})
	}
}

// inPartitions counts the rows of the own table by the beginnings in firstRows.
func (f *fixture) inPartitions() map[string]int {
	n := map[string]int{}
	for _, row := range f.rows(owntable.TableName) {
		for _, parts := range firstRows {
			for _, part := range parts {
				if strings.HasPrefix(row.Get(owntable.Partition).Text(), part) {
					n[part]++
				}
			}
		}
	}
	return n
}
