package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// paused is a store that lets others act once, just before a builder puts a row.
type paused struct {
	store.Store
	puts func(*store.Write) bool
	act  func()
}

func (p *paused) Transact(ctx context.Context, ws []store.Write) error {
	if p.act != nil && slices.ContainsFunc(ws, func(w store.Write) bool { return !w.Check && p.puts(&w) }) {
		act := p.act
		p.act = nil
		act()
	}
	return p.Store.Transact(ctx, ws)
}

// latePuts are what builders put, by kind.
var latePuts = map[string]func(*store.Write) bool{
	"fact":       ownPut("fact|mixed#"),
	"subscriber": ownPut("feed|mixed#"),
	"tally":      ownPut("ledger|mixed#"),
	"set":        ownPut("set|mixed#"),
	"copy": func(w *store.Write) bool {
		return w.Ref.Table == "mixed" && strings.HasPrefix(w.Ref.Key.Sort.Text(), "TASK#")
	},
	"followed value": ownPut("follow|mixed|"),
}

func ownPut(begins string) func(*store.Write) bool {
	return func(w *store.Write) bool {
		return w.Ref.Table == owntable.TableName && strings.HasPrefix(w.Ref.Key.Partition.Text(), begins)
	}
}

// TestHeldBetween: all source rows are deleted, and that is applied, between the moment at
// which a builder reads them and that at which it puts what they lead to.
func TestHeldBetween(t *testing.T) {
	for kind, puts := range latePuts {
		t.Run(kind, func(t *testing.T) {
			f, late := lateFixture(t, puts)
			late.act = func() {
				f.deleteSources()
				f.catchUp()
			}
			f.lateBuild(late, nil)
			if late.act != nil {
				t.Fatal("nothing was put")
			}
			if kind == "copy" && f.copies() > 0 {
				t.Error("a copy of a row that is gone was put")
			}
			f.catchUp()
			f.leftNothing()
		})
	}
}

// TestHeldLate: a builder is delayed just before it puts something. Meanwhile another one
// finishes the build, the source rows are deleted, and whatever remembers that they were is
// forgotten. Then the first one goes on.
func TestHeldLate(t *testing.T) {
	for kind, puts := range latePuts {
		t.Run(kind, func(t *testing.T) {
			f, late := lateFixture(t, puts)
			late.act = func() {
				f.build(owntable.BuildLive, mixedNames...)
				f.clock.Add(25)
				f.build(owntable.BuildVerified, mixedNames...)
				f.deleteSources()
				f.catchUp()
				f.forget()
			}
			f.lateBuild(late, runner.ErrLost)
			if late.act != nil {
				t.Fatal("nothing was put")
			}
			f.catchUp()
			f.leftNothing()
		})
	}
}

// lateFixture has one source row of each kind, which weir has not read.
func lateFixture(t *testing.T, puts func(*store.Write) bool) (*fixture, *paused) {
	f := open(t, load(t, mixed))
	for _, row := range lateRows {
		f.write(row...)
	}
	f.unread()
	f.unbuilt()
	f.announced(mixedNames...)
	return f, &paused{Store: f.Store, puts: puts}
}

var lateRows = [][]any{
	{"PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "a", "owner", "o", "team", "1", "tag", "x", "status", "open"},
	{"PK", "TASK#1", "SK", "VOTE#1", "type", "Vote", "up", "yes", "points", 1},
	{"PK", "TASK#1", "SK", "SIGN#1", "type", "Sign", "at", "today"},
	{"PK", "TEAM#1", "SK", "MEMBER#1", "type", "Member", "name", "m"},
	{"PK", "OWNER#o", "SK", "PERSON", "type", "Person", "name", "p"},
	{"PK", "USER#1", "SK", "WATCH#1", "type", "Watch", "as", "w"},
}

func (f *fixture) deleteSources() {
	for _, row := range lateRows {
		f.write(row[:4]...)
	}
}

// lateBuild builds with a store of its own. The error must be the one that is given, or that
// nothing is left to build.
func (f *fixture) lateBuild(s store.Store, want error) {
	f.Helper()
	b := f.builder(mixedNames...)
	b.Again, b.Segments, b.Runner = false, 1, f.over(s)
	if _, err := b.Run(f.Context()); !errors.Is(err, want) {
		f.Errorf("the late builder: %v, want %v", err, want)
	}
}

// over returns the runner of a program with a store of its own.
func (f *fixture) over(s store.Store) *runner.Runner {
	return &runner.Runner{Kinds: kinds.All(), Model: f.model, Store: s, Now: f.now, Alone: true, Catalog: catalog.New(f.model, s, f.now, catalog.Options{})}
}

// forget deletes what expires.
func (f *fixture) forget() {
	for _, row := range f.rows(owntable.TableName) {
		partition, gone := row.Get(owntable.Partition).Text(), row.Has(owntable.Expiry)
		if gone || strings.HasPrefix(partition, "tomb|") {
			ref := owntable.Ref(partition, row.Get(owntable.Sort).Text())
			_, err := f.Store.Write(f.Context(), []store.Write{{Ref: ref, Delete: true}})
			f.ok(err)
		}
	}
}

func (f *fixture) copies() (n int) {
	for _, row := range f.rows(f.table) {
		if row.Get(owntable.Version).Kind() == value.Binary {
			n++
		}
	}
	return n
}

// leftNothing expects that nothing is derived of rows that are gone.
func (f *fixture) leftNothing() {
	f.Helper()
	for key, row := range f.rows(f.table) {
		if !strings.Contains(key, "LOG#") && !strings.Contains(key, "TOLD#") {
			f.Errorf("%s is left: %v", key, row)
		}
	}
	f.subscribed(0)
	f.verified()
}

// TestFloorsOfKinds: records that were applied before a build, and are delivered again without
// those that followed, do not count in the build.
func TestFloorsOfKinds(t *testing.T) {
	f := open(t, load(t, mixed))
	f.write("PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "a", "owner", "o", "team", "1", "tag", "x", "status", "open")
	f.catchUp()
	late := f.delayed()
	f.write(lateRows[1]...)
	f.write(lateRows[5]...)
	f.write("PK", "TASK#2", "SK", "METADATA", "type", "Task", "name", "a", "owner", "o", "team", "1", "tag", "y", "status", "open")
	f.write("PK", "TASK#2", "SK", "METADATA")
	f.write(lateRows[1][:4]...)
	f.write(lateRows[5][:4]...)
	f.catchUp()
	late.took(undeleted)
	f.announced(mixedNames...)
	f.write(lateRows[3]...)
	f.catchUp()
	late.goesOn()
	f.build(owntable.BuildLive, mixedNames...)
	f.catchUp()
	f.compareMixed()
}

// TestLateFromBeforeGap: the deletions of rows, and of a copy by the application, are lost in a
// gap, so neither a row nor a tombstone tells of them. After a build, a worker that was delayed
// applies the insertions again. The build is right before its audit too.
func TestLateFromBeforeGap(t *testing.T) {
	m := load(t, mixed)
	for _, numbered := range []bool{true, false} {
		t.Run(fmt.Sprint("all changes are numbered ", numbered), func(t *testing.T) { lateFromBeforeGap(t, m, numbered) })
	}
}

func lateFromBeforeGap(t *testing.T, m *model.Model, numbered bool) {
	f := open(t, m)
	if !numbered {
		var err error
		f.System, err = system.Over(t.Context(), &approximate{Store: f.Store}, "", []*model.Model{m}, system.Options{Now: f.now, NoSearch: true})
		f.ok(err)
	}
	f.write(lateRows[3]...)
	f.catchUp()
	late := f.delayed()
	f.write(lateRows[4]...) // which the copy of a later task follows
	f.write("PK", "TASK#2", "SK", "METADATA", "type", "Task", "name", "a", "owner", "p", "team", "1", "tag", "y", "status", "open")
	f.catchUp()
	late.took(undeleted)
	if f.copies() != 1 {
		t.Fatalf("%d copies", f.copies())
	}
	for _, row := range f.rows(f.table) {
		if row.Get(owntable.Version).Kind() == value.Binary {
			f.write("PK", row.Get("PK").Text(), "SK", row.Get("SK").Text())
		}
	}
	f.write("PK", "TASK#2", "SK", "METADATA")
	f.write(lateRows[4][:4]...)
	f.write(lateRows[0]...)
	f.unread()
	f.announced(mixedNames...)
	f.catchUp()
	f.build(owntable.BuildLive, mixedNames...)
	f.compareMixed()
	late.goesOn()
	f.catchUp()
	f.compareMixed()
	f.verified()
}

// TestAuditOfKinds: what a build has that no row tells any more, because records were lost, is
// put right by its audit.
func TestAuditOfKinds(t *testing.T) {
	f, _ := lateFixture(t, nil)
	f.build(owntable.BuildLive, mixedNames...)
	f.catchUp()
	f.compareMixed()
	f.write("PK", "TASK#2", "SK", "METADATA", "type", "Task", "name", "b", "owner", "o", "team", "1", "tag", "y", "status", "open")
	f.write("PK", "TASK#2", "SK", "VOTE#1", "type", "Vote", "up", "yes", "points", 1)
	f.write("PK", "TASK#1", "SK", "VOTE#1")
	f.write("PK", "TASK#1", "SK", "SIGN#1", "type", "Sign", "at", "tomorrow")
	f.write("PK", "OWNER#o", "SK", "PERSON", "type", "Person", "name", "q")
	f.write("PK", "USER#1", "SK", "WATCH#1", "type", "Watch", "as", "v")
	f.unread()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, mixedNames...)
	f.catchUp()
	f.compareMixed()
	f.deleteSources()
	f.write("PK", "TASK#2", "SK", "METADATA")
	f.write("PK", "TASK#2", "SK", "VOTE#1")
	f.unread()
	f.build(owntable.BuildLive, mixedNames...) // another one
	f.catchUp()
	f.leftNothing()
}

// TestFunctionBesideKinds: a function is invoked before a build is shown, and goes on after it.
// Nothing delivers its records again.
func TestFunctionBesideKinds(t *testing.T) {
	for kind, puts := range map[string]func(*store.Write) bool{
		"status": ownPut("fact|mixed#"), "set": ownPut("set|mixed#"), "tally": ownPut("ledger|mixed#"),
	} {
		t.Run(kind, func(t *testing.T) {
			f, late := lateFixture(t, puts)
			f.readByFunction()
			before := map[string]bool{}
			for _, r := range f.records() {
				before[string(r)] = true
			}
			f.write("PK", "TASK#1", "SK", "VOTE#2", "type", "Vote", "up", "yes", "points", 3)
			f.write("PK", "TASK#1", "SK", "SIGN#1", "type", "Sign", "at", "tomorrow")
			f.write("PK", "TASK#2", "SK", "METADATA", "type", "Task", "name", "b", "owner", "o", "team", "1", "tag", "y", "status", "open")
			late.act = func() { f.build(owntable.BuildLive, mixedNames...) }
			r := *f.runner()
			r.Store = writesPaused{late}
			if ok, why := f.invoke(f.function(&r), slices.DeleteFunc(f.records(), func(r json.RawMessage) bool { return before[string(r)] })...); !ok {
				t.Fatal(why)
			}
			if late.act != nil {
				t.Fatal("nothing was put")
			}
			f.compareMixed()
		})
	}
}

// writesPaused also pauses before single writes.
type writesPaused struct{ *paused }

func (p writesPaused) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if p.act != nil && slices.ContainsFunc(ws, func(w store.Write) bool { return p.puts(&w) }) {
		act := p.act
		p.act = nil
		act()
	}
	return p.Store.Write(ctx, ws)
}
