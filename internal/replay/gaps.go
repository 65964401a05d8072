package replay

import (
	"context"
	"crypto/sha256"
	"errors"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/seq"
	"weir/internal/store"
)

// keepGap keeps a dead letter about records of a row that are missing before an entry. It stands until the row has no
// hole any more (Gaps), or an operator discards it.
func (r *Replay) keepGap(ctx context.Context, row store.Ref, e *events.Entry, reason string) error {
	_, err := r.Runner.Letters().Keep(ctx, deadletter.Letter{
		Kind: deadletter.Gap, Target: r.Runner.DescribeRow(row), Row: row, Reason: reason, Source: e.Location.String(),
		Time: e.Record.Time, Position: e.Record.Position,
	})
	return err
}

// sayGap counts a gap, and tells the caller.
func (r *Replay) sayGap(row store.Ref, at events.Location, reason string) {
	if r.Summary.Gaps++; r.Gap != nil {
		r.Gap(Gap{Where: at, Row: row, Reason: reason})
	}
}

// Gaps calls open with each letter about records that are missing now, of this replay and those before it, and deletes those
// about records that came after all. Call it when everything is written.
func (r *Replay) Gaps(ctx context.Context, open func(deadletter.Letter)) error {
	var some []deadletter.Letter
	err := r.Runner.EachDeadLetter(ctx, func(d deadletter.Letter) (err error) {
		if d.Kind == deadletter.Gap && d.Row.Table != "" {
			if some = append(some, d); len(some) == batchEntries {
				err, some = r.stillMissing(ctx, some, open), some[:0]
			}
		} else if r.isWindow(&d) {
			open(d)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.stillMissing(ctx, some, open)
}

// stillMissing is Gaps for letters about rows.
func (r *Replay) stillMissing(ctx context.Context, some []deadletter.Letter, open func(deadletter.Letter)) error {
	rows := seq.Map(some, func(d deadletter.Letter) *row { return &row{ref: d.Row, table: r.Model.Table(d.Row.Table)} })
	if err := r.loadRows(ctx, rows); err != nil {
		return err
	}
	for i := range some {
		if rows[i].isMissing() {
			open(some[i])
		} else if err := r.Runner.Letters().Forget(ctx, &some[i]); err != nil {
			return err
		}
	}
	return nil
}

// putHistories puts the entries of histories that come from records which changed no row: they came late, or an export had the row that
// they made. An entry that is there stays, so telling twice changes nothing.
func (r *Replay) putHistories(ctx context.Context, told []*entry) error {
	var changes []projections.Change
	for _, e := range told {
		old, image := e.images()
		if at := positionOf(&e.Record); !at.IsZero() && (keepsHistory(old.entity) || keepsHistory(image.entity)) {
			changes = append(changes, projections.Change{
				Table: e.table, Row: e.ref, Was: old.entity, Is: image.entity, Old: old.row, New: image.row,
				Position: at, Origin: at, Time: e.Record.Time, Record: &e.Record,
			})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	var unusable []deadletter.Letter
	rules := seq.Where(r.Model.Rows, func(rule *model.RowRule) bool { return len(rule.Keep) > 0 })
	entries := copies.HistoryEntries(changes, rules, func(i int, f projections.Fault) {
		unusable = append(unusable, deadletter.Unusable(&changes[i], "", f.Derivation, f.Reason))
	})
	entered, err := copies.PutEntries(ctx, r.Runner, entries, false, func(int) error { return nil })
	for i := range entered {
		if entered[i].Err != nil {
			e, c := &entries[i], &changes[entries[i].Change]
			unusable = append(unusable, deadletter.Letter{
				Kind: deadletter.Row, Target: e.Rule.Name + " " + r.Runner.DescribeRow(e.Row), Row: e.Row, Reason: entered[i].Err.Error(),
				Position: c.Position, Record: deadletter.RecordOf(c), Time: c.Time,
			})
		}
	}
	return errors.Join(err, r.keepUnusable(ctx, unusable))
}

// keepUnusable keeps dead letters about records of which no entry of a history can be made or written. A row, derivation and reason
// of which there is a letter gets no second one: the record was applied before, or comes again.
func (r *Replay) keepUnusable(ctx context.Context, ds []deadletter.Letter) error {
	if len(ds) == 0 {
		return nil
	}
	name := func(d *deadletter.Letter) [sha256.Size]byte {
		return sha256.Sum256([]byte(string(d.Kind) + "|" + d.Target + "|" + d.Reason + "|" + owntable.RowText(d.Row)))
	}
	if r.unusable == nil {
		r.unusable = map[[sha256.Size]byte]bool{}
		err := r.Runner.EachDeadLetter(ctx, func(d deadletter.Letter) error {
			if d.Kind == deadletter.Image || d.Kind == deadletter.Row {
				r.unusable[name(&d)] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, d := range ds {
		if n := name(&d); !r.unusable[n] {
			if _, err := r.Runner.Letters().Keep(ctx, d); err != nil {
				return err
			}
			r.unusable[n] = true
		}
	}
	return nil
}
