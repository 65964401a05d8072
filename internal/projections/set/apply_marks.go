package set

import (
	"context"
	"maps"
	"slices"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// Without shards, a leaf's positions say nothing. So each row that contributes a member
// to a set has a deduplication mark beside the set, for that member, as it would have
// beside a ledger (marks.go). Leaf and marks change in one transaction, so each change
// counts once, whichever leaf holds the member by then.

// leafMarked is how many steps a leaf counts at a time. With their marks, and with
// everything that a split writes, they fit into one transaction.
const leafMarked = 60

// readMarks reads the marks before any leaf is read. So a leaf that is read later has
// counted everything that the marks say, and may be shown.
func (w *work) readMarks(ctx context.Context, pending []*setWork) (err error) {
	for _, s := range pending {
		if !w.ByItem {
			return nil
		}
		if s.marks, err = w.memberMarks(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// markLeaves is writeLeaves with deduplication marks.
// At most leafMarked steps of a leaf are in one transaction with their marks; the others come in
// the next round.
func (w *work) markLeaves(ctx context.Context, pending []*setWork) error {
	for _, s := range pending {
		s.steps = nil
		for _, path := range slices.Sorted(maps.Keys(s.todo)) {
			n := s.nodes[path]
			left := slices.DeleteFunc(s.todo[path], func(m Member) bool {
				return m.Position.Compare(s.marks[w.memberMark(s, m).Key.Sort.Text()]) <= 0
			})
			if len(left) == 0 {
				s.done = append(s.done, n)
				continue
			}
			done, err := w.countLeaf(ctx, s, n, left[:min(leafMarked, len(left))])
			if err != nil {
				return w.setError(s, err)
			}
			if done {
				left = left[min(leafMarked, len(left)):]
			}
			if len(left) == 0 {
				s.done = append(s.done, n)
			}
			s.steps = append(s.steps, left...)
		}
		s.inOrder()
	}
	return nil
}

// memberMark is the deduplication mark of a source row for one member of a set: a row may add one
// member and take another away.
func (w *work) memberMark(s *setWork, m Member) store.Ref {
	return owntable.MemberMark(w.Model.Name, s.Row, w.Changes[m.Change].Row, m.Value)
}

// memberMarks reads, for each row and member, the position up to which steps were
// counted.
func (w *work) memberMarks(ctx context.Context, s *setWork) (map[string]events.Position, error) {
	at := map[string]events.Position{}
	var refs []store.Ref
	for _, m := range s.steps {
		ref := w.memberMark(s, m)
		if _, asked := at[ref.Key.Sort.Text()]; !asked {
			at[ref.Key.Sort.Text()] = events.Position{}
			refs = append(refs, ref)
		}
	}
	rows, err := w.Get(ctx, refs)
	for i, row := range rows {
		at[refs[i].Key.Sort.Text()] = owntable.MarkFrom(row)
	}
	return at, err
}

// countLeaf counts steps in a leaf. done is false if the leaf or a mark has changed since
// it was read.
func (w *work) countLeaf(ctx context.Context, s *setWork, n *Node, steps []Member) (done bool, err error) {
	before := n.Version
	if n.Path != "" && before.IsMissing() {
		return false, nil
	}
	var ws []store.Write
	at := map[string]int{}
	for _, m := range steps {
		if err := n.Add(m); err != nil {
			return false, err
		}
		mark := owntable.MoveMark(w.memberMark(s, m), m.Position, w.Expiry())
		name := mark.Ref.Key.Sort.Text()
		if i, ok := at[name]; ok {
			ws[i].Ops = mark.Ops // the condition stays that of the first step
			continue
		}
		at[name] = len(ws)
		ws = append(ws, mark)
	}
	if n.Full() {
		split, _, err := w.splitWrites(ctx, s, n, before)
		if err != nil {
			return false, err
		}
		ws = append(ws, split...)
	} else {
		ws = append(ws, w.nodeWrite(s.Row, n, before))
	}
	return runner.Transacted(w.Store.Transact(ctx, ws))
}
