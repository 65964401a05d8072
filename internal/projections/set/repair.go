package set

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A set is repaired leaf by leaf. Each leaf is written only if it has not changed since
// it was noted. A leaf that becomes too large is split as usual.

// leafAtOnce is how many members of a leaf one transaction corrects, with all that a split writes.
const leafAtOnce = 60

// errDamaged says that nodes of a set are missing or cannot be reached from its root.
var errDamaged error = runner.Unfixable("its nodes are damaged")

// readNodes reads all nodes of a set, by path. partition is the partition that holds them.
// Reads are strong, page by page, so two pages may be of different moments; sound and the versions
// tell.
func readNodes(ctx context.Context, r *runner.Runner, partition string) (map[string]*Node, error) {
	nodes := map[string]*Node{}
	return nodes, r.EachOwn(ctx, partition, func(row value.Item) error {
		path := owntable.PathOf(row)
		nodes[path] = NodeFrom(path, row)
		return nil
	})
}

// sound reports whether every node and every member can be reached from the root.
// A damaged tree is not repaired: members may be where no step would find them.
func sound(nodes map[string]*Node) bool {
	for path, n := range nodes {
		for i := range path {
			if up := nodes[path[:i]]; up == nil || !up.Inner {
				return false
			}
		}
		for _, below := range Below(path) {
			if n.Inner && nodes[below] == nil {
				return false
			}
		}
		for m := range n.Counts {
			if !strings.HasPrefix(MemberHash(m), path) {
				return false
			}
		}
	}
	return true
}

// sameVersions reports whether no node was written, split or merged between two reads.
func sameVersions(a, b map[string]*Node) bool {
	return maps.EqualFunc(a, b, func(x, y *Node) bool { return value.Equal(x.Version, y.Version) })
}

// NodesFix makes the nodes of a set count its members.
type NodesFix struct {
	runner.UsualUnits
	Name   string        // the text of the set's first row
	Row    store.Ref     // the set's first row
	Entity *model.Entity // nil if no row shows the set
	noted  map[string]*Node
}

// Thing returns the set's name.
func (f *NodesFix) Thing() string { return f.Name }

// Stage returns StageCounts.
func (*NodesFix) Stage() runner.Stage { return runner.StageCounts }

// partition is the partition of the own table that has all nodes of the set.
func (f *NodesFix) partition(r *runner.Runner) string { return owntable.Nodes(r.Model.Name) + f.Name }

// Note reads the nodes.
func (f *NodesFix) Note(ctx context.Context, r *runner.Runner) (err error) {
	f.noted, err = readNodes(ctx, r, f.partition(r))
	return err
}

// Correct makes the nodes count the recounted members. Leaves that were corrected before a
// node turns out to have changed stay corrected.
func (f *NodesFix) Correct(ctx context.Context, r *runner.Runner, now *runner.Recounted) (done, differs bool, err error) {
	var want map[string]value.Value
	if s := runner.RecountOf[*recount](now.Recounts).sets[f.Name]; s != nil {
		want = maps.Clone(s.want)
		maps.DeleteFunc(want, func(_ string, n value.Value) bool { return n.Sign() == 0 })
	}
	s := &setRepair{work: work{Work: &runner.Work{Runner: r}}, partition: f.partition(r), nodes: f.noted, want: want, applied: now.Applied, shows: f.Entity != nil}
	s.of = &setWork{Target: &projections.Target{Row: f.Row, Entity: f.Entity}}
	todo := s.wrong()
	switch {
	case len(todo) == 0:
		return true, false, nil
	case !sound(f.noted): // or it was split while it was noted, between two pages
		now, err := readNodes(ctx, r, s.partition)
		if err == nil && sameVersions(f.noted, now) {
			err = errDamaged
		}
		return false, true, err
	}
	for len(todo) > 0 {
		leaf := s.leafOf(todo[0])
		var some, rest []string
		for _, m := range todo {
			if s.leafOf(m) == leaf && len(some) < leafAtOnce {
				some = append(some, m)
			} else {
				rest = append(rest, m)
			}
		}
		if done, err := s.write(ctx, leaf, some); !done || err != nil {
			return false, true, err
		}
		todo = rest
	}
	return true, true, nil
}

// setRepair puts one tree of a set right: nodes is what the own table has, want what the rows
// come to.
type setRepair struct {
	work
	of        *setWork
	partition string
	nodes     map[string]*Node
	want      map[string]value.Value
	applied   []owntable.Applied
	shows     bool
}

// wrong returns the members that are not counted as they should be.
func (s *setRepair) wrong() []string {
	out := map[string]bool{}
	have := map[string]bool{}
	for _, n := range s.nodes {
		for m, c := range n.Counts {
			have[m] = true
			if !value.Equal(c, s.want[m]) {
				out[m] = true
			}
		}
	}
	for m := range s.want {
		if !have[m] {
			out[m] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// leafOf returns the path of the leaf that a member belongs to.
func (s *setRepair) leafOf(member string) string {
	hash, path := MemberHash(member), ""
	for s.nodes[path] != nil && s.nodes[path].Inner {
		path = hash[:len(path)+1]
	}
	return path
}

// write corrects members in one leaf, and shows the leaf. done is false if the leaf has
// changed since it was noted.
func (s *setRepair) write(ctx context.Context, path string, members []string) (done bool, err error) {
	n := s.nodes[path]
	if n == nil {
		n = NodeFrom(path, nil)
		s.nodes[path] = n
	}
	before := n.Version
	for _, m := range members {
		if delete(n.Counts, m); !s.want[m].IsMissing() {
			n.Counts[m] = s.want[m]
		}
	}
	for _, p := range s.applied {
		n.Pass(p.Key, p.At)
	}
	if n.Full() && s.shows {
		ws, below, err := s.splitWrites(ctx, s.of, n, before)
		if err != nil {
			return false, err
		}
		for _, c := range below {
			s.nodes[c.Path] = c
		}
		return runner.Transacted(s.Store.Transact(ctx, ws))
	}
	s.next(n, before)
	if done, err = s.Did(ctx, n.Put(owntable.NodeAt(s.partition, path), before)); !done || err != nil || !s.shows {
		return done, err
	}
	// A failed condition means that it shows that already.
	_, err = s.Did(ctx, leafWrite(s.of.Entity, s.of.Row, n))
	return true, err
}

// LeafFix makes a row show its node of a set.
type LeafFix struct {
	runner.BaseFix
	Row    store.Ref
	Entity *model.Entity
	Root   store.Ref // the set's first row
	Path   string    // of the node
}

// Thing returns the row.
func (f *LeafFix) Thing() string { return owntable.RowText(f.Row) }

// Stage returns StageParts.
func (*LeafFix) Stage() runner.Stage { return runner.StageParts }

// Correct shows the node.
// A row that others changed meanwhile is not done, and the next round tries again.
func (f *LeafFix) Correct(ctx context.Context, r *runner.Runner, _ *runner.Recounted) (done, differs bool, err error) {
	out, _, err := showLeaf(ctx, r, []Leaf{{Row: f.Row, Entity: f.Entity, Root: f.Root, Path: f.Path}})
	switch {
	case err != nil:
		return false, false, err
	case len(out) == 0:
		return true, false, nil
	case out[0].Err == nil:
		return true, true, nil
	case errors.Is(out[0].Err, store.ErrRefused):
		return false, true, out[0].Err
	}
	return false, true, nil
}
