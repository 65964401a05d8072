package set

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/aggregate"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// tree is a set's nodes, kept as rows as the runner does.
type tree struct {
	t         *rapid.T
	nodes     map[string]value.Item
	frontiers map[string]events.Position
}

func (tr *tree) node(path string) *Node { return NodeFrom(path, tr.nodes[path]) }

func (tr *tree) put(n *Node) {
	n.Version = value.OfInt(1)
	ref := store.Ref{Table: owntable.TableName, Key: store.Key{Partition: value.OfString("k"), Sort: value.OfString("s")}}
	tr.nodes[n.Path] = n.Put(ref, value.Value{}).Put
}

// deliver counts a batch's steps in the leaves that they belong to, in only some of
// them when it crashes.
func (tr *tree) deliver(shardKey string, steps []Member, crash bool) {
	leaves := map[string][]Member{}
	for _, m := range steps {
		path := ""
		for tr.node(path).Inner {
			path = m.Hash[:len(path)+1]
		}
		leaves[path] = append(leaves[path], m)
	}
	for _, path := range slices.Sorted(maps.Keys(leaves)) {
		if crash && rapid.Bool().Draw(tr.t, "left out") {
			continue
		}
		n := tr.node(path)
		var frontier events.Position
		if n.AsksFrontier(shardKey, leaves[path]) {
			frontier = tr.frontiers[shardKey]
		}
		if _, err := n.TakeSteps(shardKey, leaves[path], frontier); err != nil {
			tr.t.Fatal(err)
		}
		if n.IsFull() {
			for _, c := range n.SplitLeaf() {
				tr.put(c)
			}
		}
		tr.put(n)
	}
}

// prune removes positions up to the frontiers.
func (tr *tree) prune() {
	for _, path := range slices.Sorted(maps.Keys(tr.nodes)) {
		n := tr.node(path)
		for _, p := range n.Positions() {
			if p.At.Compare(tr.frontiers[p.Key]) <= 0 && rapid.Bool().Draw(tr.t, "pruned") {
				n.Forget(p.Key)
				tr.put(n)
			}
		}
	}
}

// gather makes one of the leaves below an inner node, where they are few enough.
func (tr *tree) gather() {
	for _, path := range slices.Sorted(maps.Keys(tr.nodes)) {
		n := tr.node(path)
		var below []*Node
		for _, p := range PathsBelow(path) {
			below = append(below, tr.node(p))
		}
		if !n.Inner || !FewEnough(below) || !rapid.Bool().Draw(tr.t, "gathered") {
			continue
		}
		n.JoinLeaves(below)
		for _, p := range PathsBelow(path) {
			delete(tr.nodes, p)
		}
		tr.put(n)
	}
}

// TestTree delivers the steps of several shards whole, in part and again, while leaves
// are split and gathered, and lose positions: each counts once.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := &tree{t: t, nodes: map[string]value.Item{}, frontiers: map[string]events.Position{}}
		want := map[string]int{}
		holds := map[string]int{} // of each shard's rows, whether they say the member
		past := map[string][][]Member{}
		position := uint64(0)
		rounds := rapid.IntRange(1, 30).Draw(t, "rounds")
		for range rounds {
			shardKey := rapid.SampledFrom([]string{"shard-A-1234", "shard-B-1234"}).Draw(t, "shardKey")
			shrink := rapid.Bool().Draw(t, "shrink")
			var steps []Member
			for range rapid.IntRange(1, 120).Draw(t, "steps") {
				m := fmt.Sprint(rapid.IntRange(0, 150).Draw(t, "member"))
				key := shardKey + m
				if shrink == (holds[key] == 0) {
					continue
				}
				amount := 1 - 2*holds[key]
				holds[key] += amount
				want[m] += amount
				position++
				steps = append(steps, Member{Value: m, Hash: MemberHash(m), Position: events.PositionOf(position), Amount: value.OfInt(int64(amount))})
			}
			if steps == nil {
				continue
			}
			past[shardKey] = append(past[shardKey], steps)
			for rapid.Bool().Draw(t, "crashes") {
				tr.deliver(shardKey, steps, true)
				tr.gather()
				other := map[string]string{"shard-A-1234": "shard-B-1234", "shard-B-1234": "shard-A-1234"}[shardKey]
				if n := len(past[other]); n > 0 { // what came before comes once more, and changes nothing
					tr.deliver(other, past[other][rapid.IntRange(0, n-1).Draw(t, "again")], false)
				}
			}
			tr.deliver(shardKey, steps, false)
			tr.frontiers[shardKey] = steps[len(steps)-1].Position
			tr.prune()
			tr.gather()
			again := past[shardKey][rapid.IntRange(0, len(past[shardKey])-1).Draw(t, "again")]
			tr.deliver(shardKey, again[rapid.IntRange(0, len(again)-1).Draw(t, "from"):], false)
		}
		have := map[string]int{}
		for path := range tr.nodes {
			for m, c := range tr.node(path).Counts {
				n, _ := c.Int64()
				have[m] += int(n)
				if !strings.HasPrefix(MemberHash(m), path) {
					t.Fatalf("%s is in leaf %s", m, path)
				}
			}
		}
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(want, have) {
			t.Fatalf("have %v\nwant %v", have, want)
		}
	})
}

// TestNumbersAlone: a number set shows its numbers, whatever else a node has counted, each once.
func TestNumbersAlone(t *testing.T) {
	number := &model.Tally{Kind: aggregate.Set, Sources: []*model.Source{{Amount: &model.Amount{Fields: []*model.Field{&model.Field{Type: model.TypeNumber}}}}}}
	text := &model.Tally{Kind: aggregate.Set, Sources: []*model.Source{{Amount: &model.Amount{Fields: []*model.Field{&model.Field{Type: model.TypeString}}}}}}
	for _, c := range []struct {
		of      *model.Tally
		members []string
		want    string
	}{
		{number, []string{"5", "abc", "5.0", "-7", "true", "1e3"}, "-7 5"},
		{number, []string{"abc", "05"}, ""},
		{text, []string{"5", "abc", "5.0"}, "5 5.0 abc"},
	} {
		var have []string
		shown := ShownValue(c.of, c.members)
		for _, e := range shown.Elements() {
			have = append(have, e.Value.Text())
		}
		if got := strings.Join(have, " "); got != c.want || got != "" && shown.Kind() != ValueKind(c.of) {
			t.Errorf("%q: shows the %v %q, want %q", c.members, shown.Kind(), got, c.want)
		}
	}
}
