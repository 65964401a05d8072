package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A ledger, a node of a set and the counter of a list keep a position for each shard of which they
// have counted records, so that a record counts once. A stream has very many shards, and makes new
// ones for ever, so positions are removed that are redundant: those at or before the frontier of
// their shard. The row remembers that it was pruned. From then on, a missing position says nothing,
// and a worker takes the frontier for it, which it must read after the row:
//
//   - A record that was counted, and whose position was removed before the row was read, is at or
//     before this frontier, and is left out.
//   - If the position is removed after the row was read, the worker's write fails: a ledger begins
//     its next epoch, and the other rows have a version.
//
// So no clock and no lease is needed against a worker that sleeps between any two steps
// (TestFrontierInterleaved in package lambda).

// Frontier is how far a shard is done for good: no record at or before At will be counted any more.
type Frontier struct {
	At events.Position
	// Gone says that nothing is known of the shard any more. If it was known when the position that
	// a row holds was written, then the stream has no record at or before this position any more.
	Gone bool
	Err  error // why At cannot be read, or nil
}

// prunedLedgers remembers the ledgers that were found pruned. To read such a ledger first costs less
// than a write that fails. It is no more than a guess. The zero prunedLedgers is empty. It may be used by
// several goroutines.
type prunedLedgers struct {
	mu    sync.Mutex
	known map[string]bool
}

// mostPruned is how many ledgers prunedLedgers remembers; then it begins again.
const mostPruned = 10_000

// add remembers that a ledger was found pruned. When it knows mostPruned it forgets all of
// them; then a write fails once more before the ledger is read first again.
func (p *prunedLedgers) add(ref store.Ref) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= mostPruned {
		p.known = map[string]bool{}
	}
	p.known[ref.Key.Partition.Text()] = true
}

// has reports whether this process knows that positions were removed from the ledger. A nil
// receiver knows of none.
func (p *prunedLedgers) has(ref store.Ref) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[ref.Key.Partition.Text()]
}

// batchLife is how long after it was read a batch may be applied. A row may have lost
// the position by which it would recognise an older batch as repeated, and the frontier of its
// shard may be gone. The age is
// measured by two clocks and the larger age counts: the monotonic clock may stand still
// while a machine sleeps.
const batchLife = 15 * time.Minute

// ErrOld says that a batch is too old and must be read again.
var ErrOld = errors.New("the batch was read too long ago")

// CheckAge returns ErrOld if the batch was read too long ago to be applied.
func (w *Work) CheckAge() error {
	now := w.MonotonicNow()
	if !w.Read.IsZero() && max(now.Sub(w.Read), now.Round(0).Sub(w.Read)) > batchLife {
		return ErrOld
	}
	return nil
}

// mostPositions is how many positions of shards a row keeps before redundant ones are removed: a
// ledger with one sum stays below 1 KB.
const mostPositions = 16

// pruneEvery spreads the work: of the batches that each add a position to a row, every third
// removes some, and each where there are many.
const pruneEvery = 3

// pruneAtOnce keeps the expressions of a write below their limits; the next batch prunes
// more.
const pruneAtOnce = 60

// epoch returns the epoch of a ledger as this batch knows it.
func (w *Work) epoch(ledger store.Ref) value.Value { return w.epochs[ledger.Key.Partition.Text()] }

// noteEpoch notes the epoch of a ledger that was read, or whose condition failed.
func (w *Work) noteEpoch(ledger store.Ref, row value.Item) {
	epoch := owntable.LedgerRow(row).Epoch()
	if owntable.IsUnlogged(w.ShardKey) || value.Equal(epoch, w.epoch(ledger)) {
		return
	}
	w.noteEpochRead(ledger, epoch)
	w.Runner.Pruned.add(ledger)
	w.looked = true
}

// noteEpochRead notes the epoch that a ledger had when it was read, for the write that follows.
func (w *Work) noteEpochRead(ledger store.Ref, epoch value.Value) {
	if w.epochs == nil {
		w.epochs = map[string]value.Value{}
	}
	w.epochs[ledger.Key.Partition.Text()] = epoch
}

// readFrontier reads the frontier of the batch's shard, if an epoch was met since it was read last.
func (w *Work) readFrontier(ctx context.Context) error {
	if !w.looked {
		return nil
	}
	_, err := w.ReadFrontier(ctx)
	return err
}

// Looked is the state of ledgers before the frontier of a shard was read. The zero Looked is
// of no ledger.
type Looked struct {
	// Idle says that the changes ask for nothing, so that to apply them does nothing.
	Idle bool
	// Frontier is that of the batch's shard. The caller of ReadPrunedLedgers reads it after the call.
	Frontier events.Position
	rows     map[string]value.Item // by partition key
}

// ReadPrunedLedgers reads the ledgers that changes count in and that are probably pruned. A caller that reads the
// frontier of the shard anyway calls it before, and so saves a second reading.
func (r *Runner) ReadPrunedLedgers(ctx context.Context, changes []projections.Change) (Looked, error) {
	if r.Pruned == nil {
		return Looked{}, nil
	}
	g, _ := Fold(r.Kinds, r.Model, changes)
	var refs []store.Ref
	for _, t := range g.Targets {
		if ref := owntable.Ledger(r.Model.Name, t.Row); len(t.Steps) > 0 && r.Pruned.has(ref) {
			refs = append(refs, ref)
		}
	}
	rows, err := r.Get(ctx, refs)
	out := Looked{Idle: r.asksNothing(changes, g), rows: make(map[string]value.Item, len(rows))}
	for i, row := range rows {
		out.rows[refs[i].Key.Partition.Text()] = row
	}
	return out, err
}

// lookFirst looks at those ledgers of targets that are probably pruned, and leaves out amounts that they
// have counted. It returns the targets that have steps left.
func (w *Work) lookFirst(ctx context.Context, targets []*projections.Target, ledgers map[*projections.Target]value.Item) (left []*projections.Target, err error) {
	var refs []store.Ref
	var of []*projections.Target
	for _, t := range targets {
		ref := owntable.Ledger(w.Model.Name, t.Row)
		row, looked := w.Looked.rows[ref.Key.Partition.Text()]
		switch {
		case looked:
			if w.Looked.Frontier.Compare(w.frontier) > 0 {
				w.frontier = w.Looked.Frontier
			}
			w.noteEpochRead(ref, owntable.LedgerRow(row).Epoch())
			left = w.counted(t, row, ledgers, left)
		case w.Runner.Pruned.has(ref):
			refs, of = append(refs, ref), append(of, t)
		default:
			left = append(left, t)
		}
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		w.noteEpoch(refs[i], row)
	}
	if err := w.readFrontier(ctx); err != nil {
		return nil, err
	}
	for i, t := range of {
		left = w.counted(t, rows[i], ledgers, left)
	}
	return left, nil
}

// errNoFrontier says that the row with a shard's frontier is gone while a batch is applied.
var errNoFrontier = errors.New("the row that says how far its shard is applied was deleted meanwhile")

// ReadFrontier reads the frontier of the batch's shard. No record up to it may be counted. Call it
// after reading a row that was pruned, and before a write on condition that the row has not
// changed.
func (w *Work) ReadFrontier(ctx context.Context) (events.Position, error) {
	is, err := w.Frontiers(ctx, []string{w.ShardKey})
	if err == nil && is[0].Gone {
		err = errNoFrontier
	}
	if err == nil {
		err = is[0].Err
	}
	if err != nil {
		return events.Position{}, err
	}
	w.frontier, w.looked = is[0].At, false
	return w.frontier, nil
}

// seenPosition returns the position up to which a ledger includes the records of the batch's shard.
func (w *Work) seenPosition(ledger value.Item) events.Position {
	at := owntable.LedgerRow(ledger).PositionIn(w.ShardKey)
	if w.frontier.Compare(at) > 0 {
		return w.frontier
	}
	return at
}

// prunePositions removes redundant positions from ledgers that the batch has read
// anyway.
func (w *Work) prunePositions(ctx context.Context, ledgers map[*projections.Target]value.Item) error {
	var rows [][]owntable.Applied
	var of []*projections.Target
	for _, t := range w.Targets {
		if row, have := ledgers[t]; have {
			rows, of = append(rows, owntable.Positions(row)), append(of, t)
		}
	}
	redundant, err := w.RedundantShards(ctx, rows)
	if err != nil {
		return err
	}
	var ws []store.Write
	for i, t := range of {
		if len(redundant[i]) > 0 {
			ws = append(ws, owntable.LedgerRow(ledgers[t]).Forget(owntable.Ledger(w.Model.Name, t.Row), redundant[i]))
		}
	}
	_, err = w.Write(ctx, ws)
	return err
}

// RedundantShards returns which shards' positions may be removed from rows that were read, given
// the positions that each of them holds. It returns none for a row with few positions.
func (w *Work) RedundantShards(ctx context.Context, rows [][]owntable.Applied) ([][]string, error) {
	most := w.MostPositions
	if most == 0 {
		most = mostPositions
	}
	full, out := make([][]owntable.Applied, len(rows)), make([][]string, len(rows))
	for i, positions := range rows {
		if over := len(positions) - most; over > most || over > 0 && over%pruneEvery == 1 {
			full[i] = positions
		}
	}
	var keys []string
	for _, positions := range full {
		for _, p := range positions {
			if p.Key != w.ShardKey {
				keys = append(keys, p.Key)
			}
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	is, err := w.frontiersOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, positions := range full {
		for _, p := range positions {
			at, found := slices.BinarySearch(keys, p.Key)
			if found && len(out[i]) < pruneAtOnce && is[at].Err == nil && (is[at].Gone || p.At.Compare(is[at].At) <= 0) {
				out[i] = append(out[i], p.Key)
			}
		}
	}
	return out, nil
}

// frontiersOf reads the frontiers of shards. A frontier that cannot be read has Err, and its shard's position is kept.
func (w *Work) frontiersOf(ctx context.Context, keys []string) ([]Frontier, error) {
	if len(keys) == 0 || w.Frontiers == nil {
		return make([]Frontier, len(keys)), nil
	}
	return w.Frontiers(ctx, keys)
}

// ForStreams returns a runner of records of streams: the frontiers of shards are their checkpoints.
func (r *Runner) ForStreams() *Runner {
	in := *r
	in.Frontiers, in.Pruned = r.readCheckpoints, &prunedLedgers{}
	return &in
}

// readCheckpoints reads how far shards are applied, by their checkpoints.
func (r *Runner) readCheckpoints(ctx context.Context, shardKeys []string) ([]Frontier, error) {
	refs := make([]store.Ref, len(shardKeys))
	for i, key := range shardKeys {
		refs[i] = owntable.CheckpointOf(r.Model.Name, key)
	}
	rows, err := r.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	out := make([]Frontier, len(rows))
	for i, row := range rows {
		is, err := owntable.DecodeCheckpoint(row)
		out[i] = Frontier{At: is.At, Gone: row == nil, Err: err}
	}
	return out, nil
}
