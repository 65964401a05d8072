package runner

import (
	"context"
	"errors"
	"strings"
	"time"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// batchLife is how long a batch may be applied after it was read. The position that
// would tell an older one for a repetition may be pruned. Of two clocks the one that
// went further counts: one that nobody sets may stand still while a machine sleeps.
const batchLife = 15 * time.Minute

// errOld says that a batch is to be read again.
var errOld = errors.New("the batch was read too long ago")

func (w *work) fresh() error {
	now := w.Moment()
	if !w.Read.IsZero() && max(now.Sub(w.Read), now.Round(0).Sub(w.Read)) > batchLife {
		return errOld
	}
	return nil
}

// prune takes the positions of lanes that nothing comes from any more out of books
// that are at hand anyway: a stream makes new shards for ever, and a book that kept
// a position for each would grow, and its price with it. A parked book keeps them:
// what waits there has its positions in them.
func (w *work) prune(ctx context.Context, books map[*projections.Target]value.Item) error {
	var ws []store.Write
	for _, t := range w.Targets {
		row, have := books[t]
		if !have || isParked(row) {
			continue
		}
		lanes, err := w.retired(ctx, row)
		if err != nil {
			return err
		}
		if len(lanes) == 0 {
			continue
		}
		wr := store.Write{Ref: book.Of(w.Model.Name, t.Row), If: store.Cond{open()}}
		for _, lane := range lanes {
			name := book.Lane(lane)
			wr.Ops = append(wr.Ops, store.Op{Kind: store.Remove, Attr: name})
			wr.If = append(wr.If, []store.Test{store.AsRead(name, row.Get(name))})
		}
		ws = append(ws, wr)
	}
	_, err := w.write(ctx, ws)
	return err
}

// retired are the lanes that a row of our table has a position of and that nothing
// comes from any more.
func (w *work) retired(ctx context.Context, row value.Item) (out []string, err error) {
	for _, a := range row {
		lane, is := strings.CutPrefix(a.Name, book.Lane(""))
		if !is {
			continue
		}
		over, err := w.over(ctx, lane)
		if err != nil {
			return nil, err
		}
		if over {
			out = append(out, lane)
		}
	}
	return out, nil
}

// over reports whether nothing comes from a lane any more, other than the one at
// hand.
func (w *work) over(ctx context.Context, lane string) (bool, error) {
	if w.Retired == nil || lane == w.Lane {
		return false, nil
	}
	return w.Retired(ctx, lane)
}

// forgetLanes prunes a leaf that is written anyway.
func (w *work) forgetLanes(ctx context.Context, n *projections.Node) error {
	for _, lane := range n.Lanes() {
		over, err := w.over(ctx, lane)
		if err != nil {
			return err
		}
		if over {
			n.Forget(lane)
		}
	}
	return nil
}
