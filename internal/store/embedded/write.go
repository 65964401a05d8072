package embedded

import (
	"context"
	"fmt"

	"weir/internal/store"
)

const (
	// chunk is the maximum of writes in a batch. A Write call is executed in chunks, so
	// that it does not block too many rows for too long.
	chunk = 1024
	// chunkBytes limits the reads of a chunk of several writes, and the size of a commit.
	chunkBytes = 4 << 20
)

// Write executes each write by itself, in order, and returns an outcome for each. A
// crash in the middle of a call leaves the first writes done. An error is the context's
// or the disk's: writes without an outcome were then not tried, or may have happened.
func (s *Store) Write(ctx context.Context, ws []store.Write) (_ []store.Outcome, err error) {
	out := make([]store.Outcome, len(ws))
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsWrite, Of: ws, Out: out})
	defer func() { end(err) }()
	for at := 0; at < len(ws); at += chunk {
		end := min(at+chunk, len(ws))
		if err := s.writeChunk(ctx, ws[at:end], out[at:end]); err != nil {
			return out, fmt.Errorf("write: %w", err)
		}
	}
	return out, nil
}

// writeChunk executes a chunk in one batch or, if its rows are large, in halves.
func (s *Store) writeChunk(ctx context.Context, ws []store.Write, out []store.Outcome) error {
	fits, err := s.tryChunk(ctx, ws, out)
	if err != nil || fits {
		return err
	}
	half := len(ws) / 2
	if err := s.writeChunk(ctx, ws[:half], out[:half]); err != nil {
		return err
	}
	return s.writeChunk(ctx, ws[half:], out[half:])
}

// tryChunk executes a chunk in one batch. fits is false, and nothing was written, if
// the chunk's rows are too large for one batch.
func (s *Store) tryChunk(ctx context.Context, ws []store.Write, out []store.Outcome) (fits bool, err error) {
	if err := s.beginOperation(ctx); err != nil {
		return true, err
	}
	defer s.gate.RUnlock()
	b := newBatch(s, len(ws))
	defer b.releaseMemory()
	for i := range ws {
		if err := b.addWrite(&ws[i]); err != nil {
			out[i].Err = ws[i].Failed(err)
		}
	}
	switch err := b.lockAndRead(len(ws) > 1); {
	case err == errTooMuch:
		return false, nil
	case err != nil:
		return true, err
	}
	defer b.unlockRows()
	for i := range ws {
		if out[i].Err != nil {
			continue
		}
		b.applyStep(i, &out[i])
		if b.commitSize() > chunkBytes {
			if err := b.commitSteps(); err != nil {
				return true, err
			}
		}
	}
	if err := b.commitSteps(); err != nil {
		return true, err
	}
	s.learnKeys(len(ws))
	return true, nil
}

// Transact executes all the writes in one batch, or nothing. Transactions and writes
// wait for each other's rows, so there is never an ErrConflict.
func (s *Store) Transact(ctx context.Context, ws []store.Write) (err error) {
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsTransact, Of: ws})
	defer func() { end(err) }()
	return store.Wrap(s.applyTransaction(ctx, ws), "transact")
}

// applyTransaction applies all writes or none, in one commit. When it returns, the commit is in the log;
// Sync makes it durable.
func (s *Store) applyTransaction(ctx context.Context, ws []store.Write) error {
	if len(ws) > store.MaxTransact {
		return fmt.Errorf("%w: %d writes, the limit is %d", store.ErrRefused, len(ws), store.MaxTransact)
	}
	if err := s.beginOperation(ctx); err != nil {
		return err
	}
	defer s.gate.RUnlock()
	b := newBatch(s, len(ws))
	defer b.releaseMemory()
	b.checks = true
	for i := range ws {
		if err := b.addWrite(&ws[i]); err != nil {
			return ws[i].Failed(err)
		}
	}
	if err := b.lockAndRead(false); err != nil {
		return err
	}
	defer b.unlockRows()
	if len(b.slots) < len(ws) {
		return fmt.Errorf("%w: a key occurs twice", store.ErrRefused)
	}
	size := 0
	for i := range ws {
		var out store.Outcome
		old := b.slotOf[i].nowItem
		if b.applyStep(i, &out); out.Err != nil {
			return out.Err
		}
		size += max(old.Size(), b.slotOf[i].nowItem.Size())
		if err := store.CheckTransact(size); err != nil {
			return err
		}
	}
	return b.commitSteps()
}
