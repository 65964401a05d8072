package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Parking adds to a ledger: how many effects wait, and a position. A ledger that is full
// has no room for these, so some of its amounts move into a dead letter, which stands at
// the front of the target's queue and which a retry adds back. What the ledger and the
// queue hold together stays the same.
const (
	parkRoom = 1 << 10 // more than one parking adds
	moveMost = 60      // amounts at once: a retry adds them in one update
)

// makeRoom makes room in the ledger of a target where parking was refused. made says
// that parking is to be tried again: not so where it was not refused, the ledger has
// room, or nothing in it can go.
func (r *Runner) makeRoom(ctx context.Context, target store.Ref, lane string, refused error) (made bool, err error) {
	if !errors.Is(refused, store.ErrRefused) {
		return false, nil
	}
	ref := book.Of(r.Model.Name, target)
	rows, err := r.get(ctx, []store.Ref{ref})
	if err != nil {
		return false, err
	}
	out := roomier{ledger: rows[0], need: rows[0].Size() + parkRoom - store.MaxItemBytes}
	if err := out.lanes(ctx, r, lane); err != nil {
		return false, err
	}
	out.amounts()
	if len(out.ops) == 0 {
		return false, nil
	}
	version := rows[0].Get(book.Count)
	ws := []store.Write{}
	if len(out.moved) > 0 {
		adds := make([]projections.Add, len(out.moved))
		for i, a := range out.moved {
			adds[i] = projections.Add{Target: target, Field: a.Name, Amount: a.Value}
		}
		letters, err := r.keeping(ctx, []Dead{{
			Kind: DeadParked, Target: r.describe(target), Row: target, Adds: adds, Source: "its ledger, version " + version.Text(),
			Reason: "the ledger was full, and these amounts left it to make room; a retry adds them back, and a discard loses them until a repair",
		}})
		if err != nil {
			return false, err
		}
		ws = letters[0]
		out.ops = append(out.ops, store.Op{Kind: store.Add, Attr: book.Parked, Value: value.OfInt(1)})
	}
	out.ops = append(out.ops, store.Op{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1), From: value.OfInt(r.Now().UnixMicro())})
	out.cond = append(out.cond, []store.Test{store.AsRead(book.Count, version)})
	err = r.Store.Transact(ctx, append(ws, store.Write{Ref: ref, Ops: out.ops, If: out.cond}))
	if err != nil && !errors.Is(err, store.ErrCondition) { // a condition: another writer changed it
		return false, fmt.Errorf("making room in the ledger of %s: %w", r.describe(target), err)
	}
	return true, nil
}

// roomier collects what leaves a ledger until it has as much room as is needed.
type roomier struct {
	ledger value.Item
	need   int
	ops    []store.Op
	cond   store.Cond
	moved  []value.Attr // amounts that are not 0
}

func (g *roomier) enough() bool { return g.need <= 0 || len(g.ops) >= moveMost }

func (g *roomier) leaves(a value.Attr) {
	g.ops = append(g.ops, store.Op{Kind: store.Remove, Attr: a.Name})
	g.need -= value.Item{a}.Size()
}

// lanes are the positions of lanes that nothing comes from any more, as in prune.
func (g *roomier) lanes(ctx context.Context, r *Runner, lane string) error {
	w := work{Runner: r}
	w.Lane = lane
	retired, err := w.retired(ctx, g.ledger)
	for _, lane := range retired {
		name := book.Lane(lane)
		if g.enough() {
			break
		}
		g.leaves(value.Attr{Name: name, Value: g.ledger.Get(name)})
		g.cond = append(g.cond, []store.Test{store.AsRead(name, g.ledger.Get(name))})
	}
	return err
}

// amounts are accumulators: first those that hold 0, as if they were not there, then the
// largest.
func (g *roomier) amounts() {
	sums := slices.DeleteFunc(slices.Clone(g.ledger), func(a value.Attr) bool { return !book.IsSum(a.Name) || a.Value.Kind() != value.Number })
	zero := func(a value.Attr) int {
		if a.Value.Sign() == 0 {
			return 0
		}
		return 1
	}
	slices.SortFunc(sums, func(a, b value.Attr) int {
		return cmp.Or(zero(a)-zero(b), value.Item{b}.Size()-value.Item{a}.Size(), strings.Compare(a.Name, b.Name))
	})
	for _, a := range sums {
		if g.enough() {
			return
		}
		if g.leaves(a); a.Value.Sign() != 0 {
			g.moved = append(g.moved, a)
		}
	}
}
