package set

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A set is repaired leaf by leaf. Each leaf is written only if it has not changed since
// it was noted. A leaf that becomes too large is split as usual.

// ErrDamaged says that nodes of a set are missing or cannot be reached from its root.
var ErrDamaged error = runner.Unfixable("its nodes are damaged")

// Nodes reads all nodes of a set, by path. partition is the partition that holds them.
func Nodes(ctx context.Context, r *runner.Runner, partition string) (map[string]*Node, error) {
	nodes := map[string]*Node{}
	q := store.Query{Table: book.TableName, Partition: value.OfString(partition)}
	for {
		page, err := r.Store.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Rows {
			path := book.PathOf(row)
			nodes[path] = NodeFrom(path, row)
		}
		if q.After = page.Next; q.After == nil {
			return nodes, nil
		}
	}
}

// sound reports whether every node and every member can be reached from the root.
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

func sameVersions(a, b map[string]*Node) bool {
	return maps.EqualFunc(a, b, func(x, y *Node) bool { return value.Equal(x.Version, y.Version) })
}

// Repair makes the nodes of a set count exactly the members in want, each as often as
// want says. e is nil if no row shows the set. done is false if a node has changed since
// it was noted; leaves that were repaired before that stay repaired.
func Repair(ctx context.Context, r *runner.Runner, e *model.Entity, root store.Ref, partition string, nodes map[string]*Node, want map[string]value.Value, places []runner.Place) (done, differs bool, err error) {
	s := &setRepair{work: work{Work: &runner.Work{Runner: r}}, partition: partition, nodes: nodes, want: want, places: places, shows: e != nil}
	s.of = &setWork{Target: &projections.Target{Row: root, Entity: e}}
	todo := s.wrong()
	switch {
	case len(todo) == 0:
		return true, false, nil
	case !sound(nodes): // or it was split while it was noted, between two pages
		now, err := Nodes(ctx, r, partition)
		if err == nil && sameVersions(nodes, now) {
			err = ErrDamaged
		}
		return false, true, err
	}
	for len(todo) > 0 {
		leaf := s.leafOf(todo[0])
		var some, rest []string
		for _, m := range todo {
			if s.leafOf(m) == leaf && len(some) < leafMarked {
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

type setRepair struct {
	work
	of        *setWork
	partition string
	nodes     map[string]*Node
	want      map[string]value.Value
	places    []runner.Place
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
	for _, p := range s.places {
		n.Pass(runner.Lane(p.Table, p.Shard), p.At)
	}
	if n.Full() && s.shows {
		ws, below := s.splitWrites(s.of, n, before)
		for _, c := range below {
			s.nodes[c.Path] = c
		}
		return runner.Transacted(s.Store.Transact(ctx, ws))
	}
	n.Version = s.above(before)
	ref := book.Ref(s.partition, path)
	if done, err = s.Did(ctx, store.Write{Ref: ref, Put: n.Row(ref), If: unchanged(before)}); !done || err != nil || !s.shows {
		return done, err
	}
	// A failed condition means that it shows that already.
	_, err = s.Did(ctx, leafWrite(s.of.Entity, s.of.Row, n))
	return true, err
}

// RepairLeaf makes a row show its node.
func RepairLeaf(ctx context.Context, r *runner.Runner, e *model.Entity, row, root store.Ref, path string) (done, differs bool, err error) {
	out, _, err := showLeaf(ctx, r, []Leaf{{Row: row, Entity: e, Root: root, Path: path}})
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
