package replay

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
)

// flight is the writes of a batch on their way to the store. Removals are sent
// separately: after the writes before them, and before any write that must not overtake
// them.
//
// The mark that a removal leaves is sent before the removal itself. A crash between the
// two leaves a row whose own mark is still older than the removal. The removal then
// happens when the batch is replayed again.
//
// Writes that are sent together happen in any order, unless the store says otherwise (Replay.InOrder). So a
// change of followers and a change that is sent to followers are sent separately.
type flight struct {
	*Replay
	writes sending
	marks  sending // of removals
	leaves sending
	gaps   []*entry
	waits  bool // one of these removals must stay in order with changes of other rows
	order  runner.Orders
}

// sending is writes and the entries that they belong to.
type sending struct {
	writes []store.Write
	of     []*entry
}

// queueWrite queues a write of an entry. Writes of one row keep their order.
func (s *sending) queueWrite(w store.Write, e *entry) {
	s.writes = append(s.writes, w)
	s.of = append(s.of, e)
}

// dropRefused takes out the decisions on a row of which the store rejected an earlier
// write. The mark of a removal would say that everything before it had happened.
func (s *sending) dropRefused() {
	kept := sending{s.writes[:0], s.of[:0]}
	for i, e := range s.of {
		if e.stale {
			e.again, e.leaves = true, false
		} else {
			kept.queueWrite(s.writes[i], e)
		}
	}
	*s = kept
}

// addEntry decides the write of an entry.
func (f *flight) addEntry(ctx context.Context, e *entry) error {
	if e.Bad != nil {
		return nil
	}
	old, image := e.images()
	inOrder := f.order.ConcernsOrder(old.entity, image.entity)
	follows := inOrder && !f.InOrder && f.mustFollow(e)
	if e.leaves || follows || inOrder && f.waits {
		if err := f.sendAll(ctx); err != nil {
			return err
		}
	}
	unsure := e.checkForgotten(markFrom(&e.Record))
	p := e.planEntry(old, image)
	if inOrder {
		if err := f.checkFeedOrder(e); err != nil {
			return err
		}
	}
	if e.gap != "" {
		f.gaps = append(f.gaps, e)
	}
	switch {
	case (p.removes || p.writes) && unsure != nil:
		return fmt.Errorf("%s: %w", e.Location, unsure)
	case p.removes:
		if p.before != nil {
			f.writes.queueWrite(*p.before, e)
		}
		f.marks.queueWrite(p.mark, e)
		if e.applied {
			f.leaves.queueWrite(p.write, e)
		}
		e.leaves, f.waits = true, f.waits || inOrder
	case p.writes:
		f.writes.queueWrite(p.write, e)
	}
	return nil
}

// mustFollow reports whether the effect of an entry must come after something in flight.
func (f *flight) mustFollow(e *entry) bool {
	c, ok := projections.NewChange(e.table, &e.Record)
	return ok && f.order.BeginsPhase(&c)
}

// sendAll sends everything, and before it the letters about gaps, which a row that has its new mark does not show any more.
func (f *flight) sendAll(ctx context.Context) error {
	f.waits = false
	for _, e := range f.gaps {
		if err := f.keepGap(ctx, e.ref, e.Entry, e.gap); err != nil {
			return err
		}
	}
	f.gaps = nil
	for _, s := range []*sending{&f.writes, &f.marks, &f.leaves} {
		if err := f.sendWrites(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// sendWrites writes the rows that are due and notes for each entry whether it was. A refused
// condition means that the row has seen this record, or a newer one. After an error the caller
// stops; records that were written are skipped when the file is replayed again.
func (f *flight) sendWrites(ctx context.Context, s *sending) error {
	s.dropRefused()
	if len(s.writes) == 0 {
		return nil
	}
	out, err := f.Store.Write(ctx, s.writes)
	if err != nil {
		return fmt.Errorf("writing the rows of a batch: %w", err)
	}
	for i, e := range s.of {
		e.leaves = false
		switch err := out[i].Err; {
		case err == nil:
		case s == &f.marks && errors.Is(err, store.ErrCondition): // a newer removal has its mark
		case errors.Is(err, store.ErrCondition):
			e.again, e.stale = true, true
		case errors.Is(err, store.ErrRefused):
			e.Bad, e.stale, e.gap = &events.Bad{Err: err}, true, ""
		default:
			return err
		}
	}
	s.writes, s.of = s.writes[:0], s.of[:0]
	return nil
}
