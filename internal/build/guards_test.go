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
)

// apart has a status and a set whose rows nothing else shows.
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
				f.readByItem()
				if strings.HasPrefix(c.put, "set|") {
					f.putSome("Tags") // so that the builder leaves to the function what changes now
				}
				before := f.records()
				f.write(c.record...)
				late := &paused{Store: f.Store, puts: ownPut(c.put), act: func() { f.build(owntable.BuildLive, names...) }}
				r := *f.runner()
				r.Store, r.Catalog = writesPaused{late}, catalog.New(f.model, f.Store, f.now, catalog.Options{})
				records := slices.DeleteFunc(f.records(), func(r json.RawMessage) bool {
					return slices.ContainsFunc(before, func(b json.RawMessage) bool { return string(b) == string(r) })
				})
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

// readByItem makes the catalog say that functions read the stream by item.
func (f *fixture) readByItem() {
	f.Helper()
	_, err := f.runner().Catalog.Change(f.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		pin := next.Tables[f.table]
		pin.Reader = string(catalog.Item)
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
	"Task": {"ledger|mixed|", "fact|mixed|"}, "Tags": {"set|mixed|"}, model.BuildSubscribers + "Told": {"each|mixed|"},
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
