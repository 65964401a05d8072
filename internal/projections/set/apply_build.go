package set

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/contribution"
	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/tally"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// In a generation that was built, a set's nodes count by contribution, as ledgers do: the
// mark of a source row says which members it has added. Leaves and marks change in one
// transaction. Until the generation is shown, nodes have no rows.

// buildAtOnce is how many contributions are counted in a set at a time: with their marks,
// their leaves and one split they fit into a transaction.
const buildAtOnce = 10

// built counts in the sets of a generation.
type built struct {
	*work
	entity  *model.Entity
	touched map[string]*Leaf // the nodes that were written, by the text of their rows
}

// newBuilt returns the generation that counts in an entity's sets. With hidden, no rows are written.
func newBuilt(w *runner.Work, e *model.Entity, hidden bool) *built {
	return &built{&work{Work: w, gathered: &gathered{}, hidden: hidden}, e, map[string]*Leaf{}}
}

// rootInto returns the generation that counts steps in the set that begins with a row.
func (b *built) rootInto(root store.Ref) (runner.Into, int) {
	return func(ctx context.Context, steps []contribution.Step) ([]store.Write, error) {
		return b.stepWrites(ctx, root, steps)
	}, buildAtOnce
}

// stepWrites returns the writes that count steps in a set: its leaves as they were read.
// At most one leaf is split in one transaction, so that its writes stay within DynamoDB's limit.
func (b *built) stepWrites(ctx context.Context, root store.Ref, steps []contribution.Step) (ws []store.Write, err error) {
	s := &setWork{Target: &projections.Target{Row: root, Entity: b.entity}}
	begins := owntable.Values(b.entity.SetOf().Attr)
	for i := range steps {
		for _, a := range steps[i].Delta {
			m := strings.TrimPrefix(a.Name, begins)
			s.steps = append(s.steps, Member{Value: m, Hash: MemberHash(m), Amount: a.Value})
		}
	}
	if err := b.readWays(ctx, []*setWork{s}); err != nil {
		return nil, err
	}
	split := false
	for _, path := range slices.Sorted(maps.Keys(s.todo)) {
		n := s.nodes[path]
		before := n.Version
		if path != "" && before.IsMissing() { // its parent was joined or split meanwhile
			return []store.Write{{Ref: owntable.Node(b.Model.Name, root, path), Check: true, If: never}}, nil
		}
		for _, m := range s.todo[path] {
			if err := n.AddStep(m); err != nil {
				return nil, b.setError(s, err)
			}
		}
		b.touchNode(root, path)
		if n.IsFull() && !split { // another one is split when it is written again
			split = true
			more, below, err := b.splitWrites(ctx, s, n, before)
			if err != nil {
				return nil, err
			}
			ws = append(ws, more...)
			for _, c := range below {
				b.touchNode(root, c.Path)
			}
			continue
		}
		ws = append(ws, b.nodeWrite(root, n, before))
	}
	return ws, nil
}

// never is a condition that fails for any row, so that the transaction is tried again.
var never = store.Cond{{{Attr: owntable.Partition, Is: store.Exists}}, {{Attr: owntable.Partition, Is: store.Absent}}}

// touchNode notes a node that was written, whose row has to be shown.
func (b *built) touchNode(root store.Ref, path string) {
	l := &Leaf{Row: store.Ref{Table: root.Table, Key: b.entity.LeafKey(root.Key, path)}, Entity: b.entity, Root: root, Path: path}
	b.touched[owntable.RowText(l.Row)] = l
}

// countBuilds counts the batch in the generations of its view that are of sets, and takes
// away from the first generation the work that rows no longer show.
func (w *work) countBuilds(ctx context.Context) error {
	gs, err := w.Generations()
	if err != nil {
		return err
	}
	for _, g := range gs {
		if g.Entity == nil || g.Entity.SetOf() == nil {
			continue
		}
		b := newBuilt(g.Work, g.Entity, !g.Build.State.IsShown())
		offers := tally.OffersOf(g.Tallies(), g.Changes, g.CountsByMark)
		if err := g.CountOffers(ctx, offers, b.rootInto); err != nil {
			return err
		}
		shown, err := g.IsShown(ctx, len(offers) > 0)
		if err != nil {
			return err
		}
		if !shown || g.IsPending(g.Entity.SetOf().Name) {
			if g.View.IsPending(g.Entity.SetOf().Name) { // rows keep their values
				w.takeSets(g.Entity)
			}
			continue
		}
		for _, o := range offers { // they may have been counted before, and not shown
			if err := b.touchOffered(ctx, o, g.Build.State != owntable.BuildVerified); err != nil {
				return err
			}
		}
		b.hidden = false
		b.sets, b.leaves = w.takeSets(g.Entity)
		if placed := g.KeepPositioned(b.sets); placed || !g.Build.HandOver.Passed.IsZero() {
			if err := b.countSteps(ctx); err != nil {
				return err
			}
			if len(offers) == 0 {
				continue
			}
		}
		if err := b.showNodes(ctx); err != nil {
			return err
		}
	}
	return nil
}

// touchOffered touches the leaves to which the members belong that a batch was offered. before says
// that the batch may have been counted before the generation was shown, and may have split
// nodes without showing them.
func (b *built) touchOffered(ctx context.Context, o projections.Offered, before bool) error {
	s := &setWork{Target: &projections.Target{Row: o.Target, Entity: b.entity}}
	begins := owntable.Values(b.entity.SetOf().Attr)
	for _, of := range o.Offers {
		for _, row := range []projections.Change{{New: b.Changes[of.Change].New, Is: b.Changes[of.Change].Is}, {New: b.Changes[of.Change].Old, Is: b.Changes[of.Change].Was}} {
			for _, a := range Fold(&row, nil) {
				if m, is := strings.CutPrefix(a.Field, begins); is && projections.SameRow(a.Target, o.Target) {
					s.steps = append(s.steps, Member{Value: m, Hash: MemberHash(m)})
				}
			}
		}
	}
	if err := b.readWays(ctx, []*setWork{s}); err != nil {
		return err
	}
	for path := range s.todo {
		b.touchNode(o.Target, path)
		for n := 0; before && n < len(path); n++ {
			b.touchNode(o.Target, path[:n])
			for _, below := range PathsBelow(path[:n]) {
				b.touchNode(o.Target, below)
			}
		}
	}
	return nil
}

// showNodes makes the rows of all touched nodes show them, unless they show something newer, and
// then joins leaves that have become sparse.
func (b *built) showNodes(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(b.touched))
	refs := make([]store.Ref, len(names))
	for i, name := range names {
		refs[i] = owntable.Node(b.Model.Name, b.touched[name].Root, b.touched[name].Path)
	}
	rows, err := b.Get(ctx, refs)
	if err != nil {
		return err
	}
	sets := map[string]*setWork{}
	for i, name := range names {
		if l := b.touched[name]; rows[i] != nil {
			of := owntable.RowText(l.Root)
			if sets[of] == nil {
				sets[of] = &setWork{Target: &projections.Target{Row: l.Root, Entity: b.entity, Steps: []projections.Step{{}}}}
			}
			sets[of].done = append(sets[of].done, NodeFrom(l.Path, rows[i]))
		}
	}
	all := seq.Map(slices.Sorted(maps.Keys(sets)), func(of string) *setWork { return sets[of] })
	if err := b.showLeaves(ctx, all); err != nil {
		return err
	}
	if err := b.showTouched(ctx); err != nil {
		return err
	}
	for _, s := range all {
		s.done = slices.DeleteFunc(s.done, func(n *Node) bool { return n.Inner })
		if err := b.joinSparse(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// takeSets removes the work of a batch on the sets of an entity, and returns it with the rows that
// another writer may have touched.
func (w *work) takeSets(e *model.Entity) (sets []*projections.Target, leaves []Leaf) {
	w.sets = slices.DeleteFunc(w.sets, func(t *projections.Target) bool {
		if t.Entity == e {
			sets = append(sets, t)
		}
		return t.Entity == e
	})
	w.leaves = slices.DeleteFunc(w.leaves, func(l Leaf) bool {
		if l.Entity == e {
			leaves = append(leaves, l)
		}
		return l.Entity == e
	})
	return sets, leaves
}

// PutRows counts rows that a builder has read in the sets of a generation, whose runner r is.
// The writes are in transactions with guard, so a builder that has lost its segment changes nothing.
func PutRows(ctx context.Context, r *runner.Runner, e *model.Entity, root store.Ref, rows []runner.ReadRow, guard ...store.Write) error {
	w := runner.NewWork(r, runner.Batch{}, projections.NewGathered(0))
	return r.PutRowsInto(ctx, root, rows, newBuilt(w, e, true).rootInto, guard...)
}

// ShowNode makes the row of a node of a generation, whose runner r is, show the node, or
// deletes it if there is no such node.
func ShowNode(ctx context.Context, r *runner.Runner, e *model.Entity, row store.Ref) error {
	root, path, ok := e.LeafPath(row.Key)
	if !ok {
		return nil
	}
	leaf := Leaf{Row: row, Entity: e, Root: store.Ref{Table: row.Table, Key: root}, Path: path}
	for range store.MaxRounds {
		out, _, err := showLeaf(ctx, r, []Leaf{leaf})
		if err != nil || len(out) == 0 || out[0].Err == nil {
			return err
		}
		if errors.Is(out[0].Err, store.ErrRefused) {
			_, err := r.Letters().Keep(ctx, deadletter.Letter{Kind: deadletter.Set, Target: e.SetOf().Name + " of " + r.DescribeRow(row), Row: row, Reason: out[0].Err.Error()})
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", r.DescribeRow(row))
}

// ShowNodeRow is ShowNode for a node's row of our own table. It does nothing for other rows.
// A node that names no row of a table is damage, and names the remedy.
func ShowNodeRow(ctx context.Context, r *runner.Runner, e *model.Entity, node value.Item) error {
	if !strings.HasPrefix(node.Get(owntable.Partition).Text(), owntable.Nodes(r.Model.Name)) {
		return nil
	}
	table, item := owntable.SourceOf(node)
	t := r.Model.Table(table)
	var root store.Key
	ok := t != nil
	if ok {
		root, ok = t.KeyOf(item)
	}
	if !ok {
		return fmt.Errorf("a node of %s names no row; run projector build MODEL --abort, and then projector build MODEL", e.SetOf().Name)
	}
	return ShowNode(ctx, r, e, store.Ref{Table: table, Key: e.LeafKey(root, owntable.PathOf(node))})
}
