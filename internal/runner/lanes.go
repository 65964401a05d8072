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
// would tell an older one for a repetition may be pruned.
const batchLife = 15 * time.Minute

// errOld says that a batch is to be read again.
var errOld = errors.New("the batch was read too long ago")

func (w *work) fresh() error {
	if !w.Read.IsZero() && time.Since(w.Read) > batchLife {
		return errOld
	}
	return nil
}

// prune takes the positions of lanes that nothing comes from any more out of books
// that are at hand anyway: a stream makes new shards for ever, and a book that kept
// a position for each would grow, and its price with it. A parked book keeps them:
// what waits there has its positions in them.
func (w *work) prune(ctx context.Context, books map[*projections.Target]value.Item) error {
	if w.Retired == nil {
		return nil
	}
	var ws []store.Write
	for t, row := range books {
		if isParked(row) {
			continue
		}
		wr := store.Write{Ref: book.Of(w.Model.Name, t.Row), If: store.Cond{open()}}
		for _, a := range row {
			lane, is := strings.CutPrefix(a.Name, book.Lane(""))
			if is && lane != w.Lane && w.Retired(lane) {
				wr.Ops = append(wr.Ops, store.Op{Kind: store.Remove, Attr: a.Name})
				wr.If = append(wr.If, []store.Test{{Attr: a.Name, Is: store.Eq, Value: a.Value}})
			}
		}
		if len(wr.Ops) > 0 {
			ws = append(ws, wr)
		}
	}
	_, err := w.write(ctx, ws)
	return err
}
