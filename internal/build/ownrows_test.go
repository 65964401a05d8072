package build_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// ownRows is a model with targets of keys of all types, and of derived attributes whose names have every sign that separates
// parts of a key of the own table.
const ownRows = `model: own
tables:
  texts: {key: [PK, SK]}
  bytes: {key: [{id: binary}, {nr: number}]}
  numbers: {key: [{id: number}]}
entities:
  Task:
    table: texts
    where: {type: Task}
    key: {PK: "TASK#{task}", SK: METADATA}
    attributes: {name: string, status: {type: string, enum: [open, done], forward: true}}
  Bug: {table: texts, where: {type: Bug}, key: {PK: "BUG#{bug}", SK: METADATA}, attributes: {name: string}}
  Blob: {table: bytes, key: {id: "{id}", nr: "{nr}"}, attributes: {name: string}}
  Num: {table: numbers, key: {id: "{id}"}, attributes: {name: string}}
  Vote:
    table: texts
    where: {type: Vote}
    key: {PK: "VOTE#{nr}", SK: VOTE}
    attributes: {task: string, bug: string, blob: binary, blobNr: number, num: number, up: string, points: number}
`

const ownRowsGone = `  Tags: {table: texts, key: {PK: "TASK#{task}", SK: "TAGS[#{leaf}]"}}
  Seen: {table: texts, where: {type: Seen}, key: {PK: "TASK#{task}", SK: "SEEN#{nr}"}, attributes: {name: string, "n|ame": string}}
`

const ownRowsDerive = `derive:
  Bug.count: {count: Vote, to: {bug: bug}}
  Bug.first|up: {latest: Vote.points, by: nr, to: {bug: bug}}
`

const ownRowsRetired = `  Task.vo|tes:b%: {count: Vote, to: {task: task}}
  Task.ups: {distinct: Vote.up, to: {task: task}}
  Task.la|st: {latest: Vote.points, by: nr, to: {task: task}}
  Task.la: {earliest: Vote.points, by: nr, to: {task: task}}
  Task.status: {steps: {done: {when: Vote, to: {task: task}, where: {up: "yes"}}}}
  Tags.tags: {set: Vote.up, to: {task: task}}
  Seen: {row: Vote, set: {task: task, nr: nr, "n|ame": {follow: Task.name, by: {task: task}}}}
  Blob.votes: {count: Vote, to: {id: blob, nr: blobNr}}
  Blob.ups: {distinct: Vote.up, to: {id: blob, nr: blobNr}}
  Num.last: {latest: Vote.points, by: nr, to: {id: num}}
  Num.votes: {count: Vote, to: {id: num}}
  Bug.kinds: {distinct: Vote.up, to: {bug: bug}}
  Bug.first: {earliest: Vote.points, by: nr, to: {bug: bug}}
`

// votesOn are names of targets: short ones, ones with every separator, and ones of which the own table has only a hash.
var votesOn = []string{"1", "a|b:c%d#METADATA", "é\x00/", "|" + strings.Repeat("x", 900), strings.Repeat("|", 900) + "#METADATA", strings.Repeat("é", 450), "BUG#" + strings.Repeat("y", 900)}

// put writes a row of any types, or with a key alone deletes it.
func (f *fixture) put(table string, attrs ...any) {
	f.Helper()
	var it value.Item
	for i := 0; i < len(attrs); i += 2 {
		v := value.Value{}
		switch x := attrs[i+1].(type) {
		case string:
			v = value.OfString(x)
		case []byte:
			v = value.OfBinary(string(x))
		case int:
			v = value.OfInt(int64(x))
		}
		it = append(it, value.Attr{Name: attrs[i].(string), Value: v})
	}
	it = value.NewItem(it...)
	t := f.model.Table(table)
	key, _ := t.KeyOf(it)
	w := store.Write{Ref: store.Ref{Table: table, Key: key}, Put: it}
	if len(t.Item(key)) == len(it) {
		w.Put, w.Delete = nil, true
	}
	out, err := f.Store.Write(f.Context(), []store.Write{w})
	f.ok(err)
	f.ok(out[0].Err)
}

// edit lets the application write a target, or a vote, or delete one.
func (f *fixture) edit(d *rand.Rand) {
	n := d.IntN(len(votesOn))
	on, there := votesOn[n], d.IntN(3) > 0
	row := func(table string, key []any, attrs ...any) {
		if there {
			key = append(key, attrs...)
		}
		f.put(table, key...)
	}
	switch d.IntN(5) {
	case 0:
		row("texts", []any{"PK", "TASK#" + on, "SK", "METADATA"}, "type", "Task", "name", fmt.Sprint(d.IntN(9)), "status", "open")
	case 1:
		row("texts", []any{"PK", "BUG#" + on, "SK", "METADATA"}, "type", "Bug", "name", "n")
	case 2:
		row("bytes", []any{"id", []byte(on), "nr", n}, "name", "n")
	case 3:
		row("numbers", []any{"id", n}, "name", "n")
	case 4:
		f.vote(d.IntN(30), n, d)
	}
}

func (f *fixture) vote(nr, on int, d *rand.Rand) {
	if d.IntN(5) == 0 {
		f.put("texts", "PK", fmt.Sprint("VOTE#", nr), "SK", "VOTE")
		return
	}
	f.put("texts", "PK", fmt.Sprint("VOTE#", nr), "SK", "VOTE", "type", "Vote", "task", votesOn[on], "bug", votesOn[on], "blob", []byte(votesOn[on]), "blobNr", on,
		"num", on, "up", []string{"yes", "no", "per|haps"}[d.IntN(3)], "points", d.IntN(9))
}

var errDied = errors.New("it dies")

// dying is a store whose user dies at a call, before or after it was done.
type dying struct {
	store.Store
	left   int
	after  bool
	beside func()
}

func (s *dying) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	s.beside()
	if s.left--; s.left > 0 {
		return s.Store.Write(ctx, ws)
	}
	if s.after {
		if _, err := s.Store.Write(ctx, ws[:(len(ws)+1)/2]); err != nil {
			return nil, err
		}
	}
	return nil, errDied
}

// TestRemovedOwnRows: of what is retired nothing is left in the own table, whatever the keys of its targets are and
// whether these exist, though the removal dies again and again, and the application writes beside it. What is derived
// today keeps all that it has.
func TestRemovedOwnRows(t *testing.T) {
	soaktest.Calm(t)
	for seed := range uint64(3) {
		removedOwnRows(open(t, load(t, ownRows+ownRowsGone+ownRowsDerive+ownRowsRetired)), rand.New(rand.NewPCG(seed, 0)))
	}
}

// TestRemovedOwnRowsOnDynamoDB is the same on DynamoDB Local.
func TestRemovedOwnRowsOnDynamoDB(t *testing.T) {
	removedOwnRows(openOnDynamoDB(t, load(t, ownRows+ownRowsGone+ownRowsDerive+ownRowsRetired)), rand.New(rand.NewPCG(1, 0)))
}

func removedOwnRows(f *fixture, d *rand.Rand) {
	t, earlier := f.TB, f.model
	for n := range votesOn {
		for i := range 4 {
			f.vote(4*n+i, n, d)
		}
	}
	for range 100 {
		f.edit(d)
	}
	f.catchUp()
	f.verified()
	had := f.ownKinds(earlier)
	for _, kind := range []string{"ledger", "long ledger", "value", "long value", "set", "long set", "fact", "long fact", "follow", "long follow"} {
		if had[kind] == 0 {
			t.Errorf("no %s of what is retired: %v", kind, had)
		}
	}
	f.retires(load(t, ownRows+ownRowsDerive))
	f.clock.Add(2)
	deaths := 0
	for {
		x, _ := f.removal(false)
		x.Segments = 1
		s := &dying{Store: f.Store, left: 1 + d.IntN(2+deaths/2), after: d.IntN(2) == 0, beside: func() { f.edit(d) }}
		r := *f.runner()
		r.Store = s
		x.Builder.Runner = &r
		err := x.Run(t.Context())
		f.catchUp()
		if err == nil {
			break
		}
		if deaths++; !errors.Is(err, errDied) || deaths > 100 {
			t.Fatal(err)
		}
	}
	if deaths < 3 {
		t.Errorf("it died %d times", deaths)
	}
	for kind, n := range f.ownKinds(f.model) {
		if n > 0 {
			t.Errorf("%d of kind %s are left", n, kind)
		}
	}
	for _, table := range f.model.Tables {
		for name, row := range f.rows(table.Name) {
			if bug := strings.HasPrefix(row.Get("PK").Text(), "BUG#"); row.Has("weir") != (bug && row.Has("count")) || strings.HasPrefix(row.Get("SK").Text(), "TAGS") {
				t.Errorf("left: %s %v", name, row)
			}
		}
	}
	if t.Failed() {
		return
	}
	for range 30 {
		f.edit(d)
	}
	f.catchUp()
	f.verified()
}

// ownKinds counts the own rows of the model of what ownRowsRetired derives, by kind.
func (f *fixture) ownKinds(m *model.Model) map[string]int {
	f.Helper()
	n := map[string]int{}
	for _, row := range f.rows(owntable.TableName) {
		kind, rest, _ := strings.Cut(row.Get(owntable.Partition).Text(), "|")
		rest, ours := strings.CutPrefix(rest, m.Name+"|")
		if !ours || kind == owntable.KindFact && strings.HasPrefix(rest, "Bug.first%7Cup|") || kind == owntable.KindLedger && (strings.HasPrefix(rest, "texts|BUG#") || strings.HasPrefix(rest, "#") && strings.Contains(rest, "|texts|BUG#")) {
			continue
		}
		switch kind {
		case owntable.KindLedger, owntable.KindSet, owntable.KindValue, owntable.KindFact, owntable.KindFollow, owntable.KindSubscribers:
			if strings.Contains("|"+rest, "|#") {
				kind = "long " + kind
			}
			n[kind]++
		}
	}
	return n
}

// TestEndsOfOwnRows: the own rows of a long key stay while a row of what is derived today can have a key with such ends; what
// the key tells apart goes.
func TestEndsOfOwnRows(t *testing.T) {
	const text = `model: ends
tables:
  ends: {key: [PK, SK]}
entities:
  Bug: {where: {type: Bug}, key: {PK: "ORG#{org}#BUG#{bug}", SK: METADATA}, attributes: {name: string}}
  Task: {where: {type: Task}, key: {PK: "ORG#{org}#TASK#{task}", SK: METADATA}, attributes: {name: string}}
  Vote: {where: {type: Vote}, key: {PK: "VOTE#{nr}", SK: VOTE}, attributes: {org: string, id: string}}
derive:
  Bug.total: {count: Vote, to: {org: org, bug: id}}
`
	f := open(t, load(t, text+"  Task.votes: {count: Vote, to: {org: org, task: id}}\n"))
	for i, org := range []string{"1", strings.Repeat("x", 900)} {
		f.write("PK", fmt.Sprint("VOTE#", i), "SK", "VOTE", "type", "Vote", "org", org, "id", "1")
		f.write("PK", "ORG#"+org+"#BUG#1", "SK", "METADATA", "type", "Bug", "name", "n")
	}
	f.catchUp()
	prune := func() {
		f.clock.Add(2)
		_, _, err := f.builder("Bug").Prune(t.Context())
		f.ok(err)
		f.verified()
	}
	f.build(owntable.BuildLive, "Bug")
	prune()
	f.retires(load(t, text))
	f.clock.Add(2)
	x, _ := f.removal(false)
	f.ok(x.Run(t.Context()))
	f.verified()
	var left []string
	for _, row := range f.rows(owntable.TableName) {
		if p := row.Get(owntable.Partition).Text(); owntable.Kind(p) == owntable.KindLedger {
			left = append(left, p)
		}
	}
	for _, p := range left {
		if strings.Contains(p, "ORG#1#TASK") {
			t.Errorf("%s is left", p)
		}
	}
	if len(left) != 4 { // of both bugs, of a build, and the first ones of the long bug and the long task
		t.Errorf("left: %v", left)
	}
	// Once nothing counts in first ledgers, none is left.
	prune()
	for name, row := range f.rows(owntable.TableName) {
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), owntable.Ledgers(f.model.Name)) {
			t.Errorf("%s is left", name)
		}
	}
}
