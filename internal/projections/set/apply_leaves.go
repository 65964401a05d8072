package set

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A set of any length is a tree of nodes in our own table, ordered by the hashes of its
// members. Each node is shown by a row of its own. However long the set is, a step costs
// one read of the path to a leaf, one write of the leaf, and one write of the row that
// shows the leaf. A leaf is written as a whole, if it still has the version that was
// read. A worker that comes too late reads the path again. A leaf that has grown too
// large is split into sixteen, and sixteen small leaves are joined into one, in a
// transaction with the rows that show them. So no crash leaves half of a split or a join.

// setWork is a set with steps that must be counted.
type setWork struct {
	*projections.Target
	steps []Member
	nodes map[string]*Node // the nodes of the tree that were read, by path
	todo  map[string][]Member
	done  []*Node // leaves that have counted their steps and must be shown
}

// countSteps adds each set's steps to the leaves that they belong to, and then shows the values that the
// leaves hold.
// After a crash, leaves may have counted and not be shown: the batch comes again, counts nothing there and shows them.
func (w *work) countSteps(ctx context.Context) error {
	var pending []*setWork
	for _, t := range w.sets {
		if len(t.Steps) > 0 {
			pending = append(pending, &setWork{Target: t, steps: splitMembers(t)})
		}
	}
	for round := 0; len(pending) > 0; round++ {
		if round == store.MaxRounds {
			return fmt.Errorf("%s of %s: its tree still changes after %d readings", pending[0].Entity.SetOf().Name, w.DescribeRow(pending[0].Row), round)
		}
		if err := w.readWays(ctx, pending); err != nil {
			return err
		}
		if err := w.CheckAge(); err != nil {
			return err
		}
		if err := w.writeLeaves(ctx, pending); err != nil {
			return err
		}
		if err := w.showLeaves(ctx, pending); err != nil {
			return err
		}
		for _, s := range pending {
			if err := w.joinSparse(ctx, s); err != nil {
				return err
			}
		}
		pending = slices.DeleteFunc(pending, func(s *setWork) bool { return len(s.steps) == 0 })
	}
	return w.showTouched(ctx)
}

// levels is how many levels of a path are read at once after the first node turned out to
// be split: enough for a quarter of a million members.
const levels = 3

// readWays reads the nodes on the path to each step's leaf.
// It reads one level of the trees at a time, all sets of the batch together, so a batch takes as
// many reads as its deepest tree has levels.
func (w *work) readWays(ctx context.Context, pending []*setWork) error {
	for _, s := range pending {
		s.nodes, s.todo, s.done = map[string]*Node{}, map[string][]Member{}, nil
	}
	for {
		var refs []store.Ref
		var of []*setWork
		var at []string
		for _, s := range pending {
			for _, path := range s.missingPaths() {
				refs, of, at = append(refs, owntable.Node(w.Model.Name, s.Row, path)), append(of, s), append(at, path)
			}
		}
		if len(refs) == 0 {
			return nil
		}
		rows, err := w.Get(ctx, refs)
		if err != nil {
			return err
		}
		for i, row := range rows {
			of[i].nodes[at[i]] = NodeFrom(at[i], row)
		}
	}
}

// missingPaths returns the paths that must still be read to find each step's leaf. It records
// the leaves that it finds in todo.
func (s *setWork) missingPaths() []string {
	clear(s.todo)
	want := map[string]bool{}
	for _, m := range s.steps {
		path := ""
		for s.nodes[path] != nil && s.nodes[path].Inner {
			path = m.Hash[:len(path)+1]
		}
		if s.nodes[path] != nil {
			s.todo[path] = append(s.todo[path], m)
			continue
		}
		for n := len(path); n <= len(path)+levels && (path != "" || n == 0); n++ {
			want[m.Hash[:n]] = true
		}
	}
	out := make([]string, 0, len(want))
	for path := range want {
		if s.nodes[path] == nil {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// writeLeaves counts the steps in their leaves. Steps whose leaf has changed since it was
// read stay in steps.
func (w *work) writeLeaves(ctx context.Context, pending []*setWork) error {
	frontier, err := w.frontierOf(ctx, pending)
	if err != nil {
		return err
	}
	redundant, err := w.redundantShards(ctx, pending)
	if err != nil {
		return err
	}
	var ws []store.Write
	var then []func(done bool)
	for _, s := range pending {
		s.steps = nil
		for _, path := range slices.Sorted(maps.Keys(s.todo)) {
			n, steps := s.nodes[path], s.todo[path]
			before := n.Version
			changed, err := n.TakeSteps(w.ShardKey, steps, frontier)
			if err != nil {
				return w.setError(s, err)
			}
			for _, shardKey := range redundant[n] {
				n.Forget(shardKey)
			}
			again := func(done bool) {
				if done {
					s.done = append(s.done, n)
				} else {
					s.steps = append(s.steps, steps...)
				}
			}
			switch {
			case path != "" && before.IsMissing():
				// Its parent was split when it was read, and is not split any more or not
				// yet.
				again(false)
			case !changed:
				again(true)
			case n.IsFull():
				done, err := w.splitLeaf(ctx, s, n, before)
				if err != nil {
					return err
				}
				if !done {
					again(false)
				}
			default:
				ws = append(ws, w.nodeWrite(s.Row, n, before))
				then = append(then, again)
			}
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			return out[i].Err
		}
		then[i](out[i].Err == nil)
	}
	for _, s := range pending {
		slices.SortStableFunc(s.steps, func(a, b Member) int { return a.Position.Compare(b.Position) }) // in stream order
	}
	return nil
}

// setError says which set an error is about.
func (w *work) setError(s *setWork, err error) error {
	return fmt.Errorf("%s of %s: %w", s.Entity.SetOf().Name, w.DescribeRow(s.Row), err)
}

// nodeWrite returns the write of a node with the next version, if the node has not
// changed since it was read.
func (w *work) nodeWrite(root store.Ref, n *Node, before value.Value) store.Write {
	w.advanceNode(n, before)
	return w.WithSource(n.Put(owntable.Node(w.Model.Name, root, n.Path), before), root)
}

// advanceNode gives a node the version after another. If it is the root and has no members, TTL
// deletes it when no record can come again that it has counted.
func (w *work) advanceNode(n *Node, version value.Value) {
	n.Version, n.Ends = w.nextVersion(version), w.PositionsExpiry()
}

// nextVersion returns the next version. The first version comes from the clock, so if weir
// begins to keep a set again, its versions are above those that rows still show.
func (w *work) nextVersion(version value.Value) value.Value {
	if version.Kind() != value.Number {
		version = w.FirstVersion()
	}
	next, _ := value.AddNumbers(version, value.OfInt(1))
	return next
}

// splitLeaf replaces a leaf that is too large by sixteen, together with the rows that show
// them. done is false if the leaf has changed since it was read.
func (w *work) splitLeaf(ctx context.Context, s *setWork, n *Node, before value.Value) (done bool, err error) {
	ws, _, err := w.splitWrites(ctx, s, n, before)
	if err != nil {
		return false, err
	}
	return runner.TransactionOutcome(w.Store.Transact(ctx, ws))
}

// splitWrites returns the writes, for one transaction, that split a leaf, and the new
// leaves.
func (w *work) splitWrites(ctx context.Context, s *setWork, n *Node, before value.Value) (ws []store.Write, below []*Node, err error) {
	w.advanceNode(n, before)
	below = n.SplitLeaf()
	for _, c := range append(below, n) {
		was := value.Value{}
		if c == n {
			was = before
		}
		ws = append(ws, w.WithSource(c.Put(owntable.Node(w.Model.Name, s.Row, c.Path), was), s.Row))
	}
	rows, err := w.leafPuts(ctx, s, append(below, n), 0)
	return append(ws, rows...), below, err
}

// leafPuts returns the writes that make the rows that show nodes, and delete those of the
// first nodes, which are gone. Each is on condition that the row shows the version that it
// shows now: one of this tree, or one that weir never gave it, but none of a later build.
func (w *work) leafPuts(ctx context.Context, s *setWork, nodes []*Node, gone int) (ws []store.Write, err error) {
	if w.hidden {
		return nil, nil
	}
	refs := make([]store.Ref, len(nodes))
	for i, n := range nodes {
		row, attrs, there := LeafRow(s.Entity, s.Row, n)
		there = there && i >= gone
		wr := store.Write{Ref: row, Delete: !there}
		if there {
			wr.Put = value.NewItem(append(attrs, s.Entity.Table.Item(row.Key)...)...)
		}
		refs[i], ws = row, append(ws, wr)
	}
	have, err := w.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	odd := false
	for i, n := range nodes {
		odd = odd || isForeign(have[i], n)
		ws[i].If = store.Cond{{store.AsRead(owntable.Version, have[i].Get(owntable.Version))}}
	}
	if odd {
		err = w.StillShows(ctx, s.Entity)
	}
	return ws, err
}

// showLeaves writes the rows that show the leaves that were read, unless they show
// something newer. A row that a delayed worker brought back is mended when its record
// arrives.
func (w *work) showLeaves(ctx context.Context, pending []*setWork) error {
	var ws []store.Write
	var of []*setWork
	var nodes []*Node
	for _, s := range pending {
		for _, n := range s.done {
			wr := leafWrite(s.Entity, s.Row, n)
			wr.Return = true
			ws, of, nodes = append(ws, wr), append(of, s), append(nodes, n)
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i, s := range of {
		switch {
		case errors.Is(out[i].Err, store.ErrRefused):
			changes := seq.Map(s.Steps, func(step projections.Step) int { return step.Change })
			if err := w.keepSet(ctx, s.Entity, ws[i].Ref, changes, out[i].Err.Error()); err != nil {
				return err
			}
		case out[i].Err != nil && isForeign(out[i].Row, nodes[i]):
			w.leaves = append(w.leaves, Leaf{Row: ws[i].Ref, Entity: s.Entity, Root: s.Row, Path: nodes[i].Path, Changes: []int{s.Steps[0].Change}})
		}
	}
	return nil
}

// isForeign reports whether a row may show a version that weir never gave it.
func isForeign(row value.Item, n *Node) bool {
	v := row.Get(owntable.Version)
	return !v.IsMissing() && (v.Kind() != value.Number || value.Compare(v, n.Version) > 0)
}

// keepSet keeps a dead letter for a row of a set that cannot show the values of its node.
// The node has counted everything. The next change of the node or of the row, or a retry,
// shows it.
func (w *work) keepSet(ctx context.Context, e *model.Entity, row store.Ref, changes []int, reason string) error {
	for _, i := range changes {
		w.CountKept(i, e.SetOf().Name)
	}
	c := &w.Changes[changes[0]]
	_, err := w.Letters().Keep(ctx, deadletter.Letter{
		Kind: deadletter.Set, Target: e.SetOf().Name + " of " + w.DescribeRow(row), Row: row, Reason: reason,
		Record: deadletter.RecordOf(c), Time: c.Time,
	})
	return err
}

// Retry makes a row show its part of a set.
// It takes the part of the set as it is now, not as it was when it was refused.
func (Kind) Retry(ctx context.Context, r *runner.Runner, d *deadletter.Letter) (kept bool, err error) {
	for _, e := range r.Model.Entities {
		if e.SetOf() == nil || e.Table.Name != d.Row.Table {
			continue
		}
		root, path, ok := e.LeafPath(d.Row.Key)
		if !ok {
			continue
		}
		out, _, err := showLeaf(ctx, r, []Leaf{{Row: d.Row, Entity: e, Root: store.Ref{Table: d.Row.Table, Key: root}, Path: path}})
		if err == nil && len(out) > 0 {
			err = out[0].Err
		}
		// A failed condition: another writer changed the row, so it is checked again
		// anyway.
		if err != nil && !errors.Is(err, store.ErrCondition) {
			return false, fmt.Errorf("%s: %w", d.Target, err)
		}
		return false, nil
	}
	return false, fmt.Errorf("%s: it is a row of none of the model's sets any more: %w", d.ID, deadletter.ErrNoRetry)
}

// leafWrite returns the write that makes a row show its node, unless the row shows
// something newer.
func leafWrite(e *model.Entity, root store.Ref, n *Node) store.Write {
	row, attrs, there := LeafRow(e, root, n)
	notNewer := []store.Test{{Attr: owntable.Version, Is: store.Absent}, {Attr: owntable.Version, Is: store.Le, Value: n.Version}}
	if !there {
		return store.Write{Ref: row, Delete: true, If: store.Cond{notNewer}}
	}
	wr := store.Write{Ref: row}
	var differs []store.Test
	for _, a := range attrs {
		wr.Ops = append(wr.Ops, store.Assign(a.Name, a.Value))
		if a.Value.IsMissing() {
			differs = append(differs, store.Test{Attr: a.Name, Is: store.Exists})
		} else {
			differs = append(differs, store.Test{Attr: a.Name, Is: store.Ne, Value: a.Value})
		}
	}
	wr.If = store.Cond{notNewer, differs}
	return wr
}

// joinSparse joins sixteen leaves that are small together into one. It checks only where a
// leaf has become sparse. If other workers write there meanwhile, their next step checks
// again.
// Joining is only for economy: a set with sparse leaves shows the same members.
func (w *work) joinSparse(ctx context.Context, s *setWork) error {
	looked := map[string]bool{}
	for _, n := range s.done {
		if n.Path == "" || len(n.Counts) > Sparse || looked[n.Path[:len(n.Path)-1]] {
			continue
		}
		looked[n.Path[:len(n.Path)-1]] = true
		if err := w.joinLeaves(ctx, s, n.Path[:len(n.Path)-1]); err != nil {
			return err
		}
	}
	return nil
}

// joinLeaves joins the leaves below a path, and then continues one level up, as long as
// the leaves are few enough.
func (w *work) joinLeaves(ctx context.Context, s *setWork, path string) error {
	for {
		refs := []store.Ref{owntable.Node(w.Model.Name, s.Row, path)}
		refs = append(refs, seq.Map(PathsBelow(path), func(p string) store.Ref { return owntable.Node(w.Model.Name, s.Row, p) })...)
		rows, err := w.Get(ctx, refs)
		if err != nil {
			return err
		}
		parent := NodeFrom(path, rows[0])
		var below []*Node
		for i, p := range PathsBelow(path) {
			below = append(below, NodeFrom(p, rows[i+1]))
		}
		if !parent.Inner || !FewEnough(below) {
			return nil
		}
		ws, err := w.joinWrites(ctx, s, parent, below)
		if err != nil {
			return err
		}
		done, err := runner.TransactionOutcome(w.Store.Transact(ctx, ws))
		if err != nil || !done || path == "" || len(parent.Counts) > Sparse {
			return err
		}
		path = path[:len(path)-1]
	}
}

// joinWrites returns the writes, for one transaction, that join the leaves below a node
// into it.
func (w *work) joinWrites(ctx context.Context, s *setWork, parent *Node, below []*Node) (ws []store.Write, err error) {
	before := parent.Version
	parent.JoinLeaves(below)
	w.advanceNode(parent, parent.Version)
	for _, c := range below {
		ws = append(ws, owntable.DropNode(owntable.Node(w.Model.Name, s.Row, c.Path), c.Version))
	}
	ws = append(ws, w.WithSource(parent.Put(owntable.Node(w.Model.Name, s.Row, parent.Path), before), s.Row))
	rows, err := w.leafPuts(ctx, s, append(below, parent), len(below))
	return append(ws, rows...), err
}

// showTouched checks rows of sets that another writer may have touched.
func (w *work) showTouched(ctx context.Context) error {
	out, of, err := showLeaf(ctx, w.Runner, w.leaves)
	for i, l := range of {
		if err == nil && errors.Is(out[i].Err, store.ErrRefused) {
			err = w.keepSet(ctx, l.Entity, l.Row, l.Changes, out[i].Err.Error())
		}
	}
	return err
}

// showLeaf makes rows show their nodes, where they do not. It returns the outcomes of the
// writes that it did. It reads each row before its node, so a version on the row that the
// node has not reached was never written by weir.
// out and of have the same length. Rows that show their node already have no outcome.
func showLeaf(ctx context.Context, r *runner.Runner, leaves []Leaf) (out []store.Outcome, of []Leaf, err error) {
	rows := make([]store.Ref, len(leaves))
	nodes := make([]store.Ref, len(leaves))
	for i, l := range leaves {
		rows[i], nodes[i] = l.Row, owntable.Node(r.Model.Name, l.Root, l.Path)
	}
	have, err := r.Get(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	kept, err := r.Get(ctx, nodes)
	if err != nil {
		return nil, nil, err
	}
	var ws []store.Write
	for i, l := range leaves {
		n := NodeFrom(l.Path, kept[i])
		if isForeign(have[i], n) {
			if err := r.StillShows(ctx, l.Entity); err != nil { // the version may be of a build's node
				return nil, nil, err
			}
		}
		wr := leafWrite(l.Entity, l.Root, n)
		if wr.Delete && have[i] == nil || !wr.Delete && runner.AlreadyShows(have[i], &wr) {
			continue
		}
		wr.If = store.Cond{{store.AsRead(owntable.Version, have[i].Get(owntable.Version))}}
		ws, of = append(ws, wr), append(of, l)
	}
	out, err = r.Write(ctx, ws)
	return out, of, err
}

// frontierOf reads the frontier of the batch's shard, if a leaf asks for it, after the leaves.
func (w *work) frontierOf(ctx context.Context, pending []*setWork) (at events.Position, err error) {
	for _, s := range pending {
		for path, steps := range s.todo {
			if s.nodes[path].AsksFrontier(w.ShardKey, steps) {
				return w.ReadFrontier(ctx)
			}
		}
	}
	return at, nil
}

// redundantShards returns the shards whose positions may be removed from leaves that are about to be
// written anyway.
func (w *work) redundantShards(ctx context.Context, pending []*setWork) (map[*Node][]string, error) {
	var of []*Node
	var positions [][]owntable.Applied
	for _, s := range pending {
		for _, path := range slices.Sorted(maps.Keys(s.todo)) {
			of, positions = append(of, s.nodes[path]), append(positions, s.nodes[path].Positions())
		}
	}
	keys, err := w.RedundantShards(ctx, positions)
	if err != nil {
		return nil, err
	}
	out := map[*Node][]string{}
	for i, n := range of {
		out[n] = keys[i]
	}
	return out, nil
}
