package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Parking adds to a ledger: the number of waiting effects, and a position. A full ledger
// has no room for these. Some of its amounts then move into a dead letter at the front of
// the target's queue, and a retry adds them back. The total of ledger and queue stays the
// same.
const (
	parkRoom = 1 << 10 // more than one parking adds, in bytes
	moveMost = 60      // the most amounts to move at once: a retry adds them in one update
)

// whatHelps says how to empty the queue of a target whose ledger is full.
const whatHelps = "delete rows that it counts, above all those with values of a distinct that no other row has, then retry; a discard loses amounts until a repair"

// fullLedger says of a refusal that the ledger has no room, and what helps.
func fullLedger(refused error) error {
	return fmt.Errorf("the ledger has no room: %w; %s", refused, whatHelps)
}

// makeRoom makes room in the ledger of a target for which parking was refused. made says
// that the caller should try to park again. It is false if refused is no refusal, or if
// nothing can be removed from the ledger.
func (r *Runner) makeRoom(ctx context.Context, target store.Ref, shardKey string, refused error) (made bool, err error) {
	if !errors.Is(refused, store.ErrRefused) {
		return false, nil
	}
	ref := owntable.Ledger(r.Model.Name, target)
	row, err := r.GetRow(ctx, ref)
	if err != nil {
		return false, err
	}
	ledger := owntable.LedgerRow(row)
	out := roomier{ledger: ledger, need: row.Size() + parkRoom - store.MaxItemBytes}
	if err := out.shardKeys(ctx, r, shardKey); err != nil {
		return false, err
	}
	out.zeros()
	out.amounts()
	if len(out.gone) == 0 {
		return false, nil
	}
	ws, waits := []store.Write{}, 0
	if len(out.moved) > 0 {
		adds := make([]projections.Add, len(out.moved))
		for i, a := range out.moved {
			adds[i] = projections.Add{Target: target, Field: a.Name, Amount: a.Value}
		}
		letters, err := r.keeping(ctx, []Dead{{
			Kind: DeadParked, Target: r.Describe(target), Row: target, Adds: adds, Source: "its ledger, version " + ledger.Version().Text(),
			Reason: "the ledger was full, and these amounts left it to make room; " + whatHelps,
		}})
		if err != nil {
			return false, err
		}
		ws, waits = letters[0], 1
	}
	err = r.Store.Transact(ctx, append(ws, ledger.Without(ref, out.gone, waits, r.First())))
	// A failed condition means that another writer changed it.
	if err != nil && !errors.Is(err, store.ErrCondition) {
		return false, fmt.Errorf("making room in the ledger of %s: %w", r.Describe(target), err)
	}
	return true, nil
}

// roomier collects what leaves a ledger, until the ledger has as much room as it needs.
type roomier struct {
	ledger owntable.LedgerRow
	need   int
	gone   []value.Attr
	moved  []value.Attr // those of gone that are amounts other than 0
}

// enough reports whether the ledger has the room that is needed, or one write takes no more.
func (g *roomier) enough() bool { return g.need <= 0 || len(g.gone) >= moveMost }

// leaves notes that an attribute leaves the ledger, which gets its bytes.
func (g *roomier) leaves(a value.Attr) {
	g.gone = append(g.gone, a)
	g.need -= value.Item{a}.Size()
}

// shardKeys removes redundant positions of shards, as prune does.
func (g *roomier) shardKeys(ctx context.Context, r *Runner, shardKey string) error {
	w := Work{Runner: r}
	w.ShardKey = shardKey
	redundant, err := w.redundant(ctx, [][]owntable.Applied{owntable.Positions(value.Item(g.ledger))})
	if err != nil {
		return err
	}
	for _, a := range g.ledger.Positions(redundant[0]) {
		if g.enough() {
			break
		}
		g.leaves(a)
	}
	return nil
}

// zeros removes accumulators that hold 0, which count as absent.
func (g *roomier) zeros() {
	for _, a := range g.sums(func(a value.Attr) bool { return a.Value.Sign() == 0 }) {
		if g.enough() {
			return
		}
		g.leaves(a)
	}
}

// amounts removes accumulators that do not hold 0.
func (g *roomier) amounts() {
	for _, a := range g.sums(func(a value.Attr) bool { return a.Value.Sign() != 0 }) {
		if g.enough() {
			return
		}
		g.leaves(a)
		g.moved = append(g.moved, a)
	}
}

// sums returns the ledger's accumulators of which is is true, the largest first.
func (g *roomier) sums(is func(value.Attr) bool) []value.Attr {
	sums := slices.DeleteFunc(g.ledger.Sums(), func(a value.Attr) bool { return !is(a) })
	slices.SortFunc(sums, func(a, b value.Attr) int {
		return cmp.Or(value.Item{b}.Size()-value.Item{a}.Size(), strings.Compare(a.Name, b.Name))
	})
	return sums
}
