package copies

import (
	"context"
	"errors"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// The table of a row that a rule makes may take no writes for long (runner/outage.go). Then the row is
// owed, at the position of the newest change that asks for it. A copy is made from its source row, as
// that is when the table takes writes again, or deleted if there is no such copy any more. It gets the
// position that is owed, so a change up to there that comes late loses; one that is still to
// come is above it and wins. An entry of a history cannot be told from rows, so what is owed holds its change.

// outlast returns the rows whose tables take writes, and notes that the others are owed.
func (w *work) outlast(ctx context.Context, puts []*projections.Put) (rest []*projections.Put, err error) {
	var owed []runner.Owed
	var of []*projections.Put
	for _, p := range puts {
		if w.IsOut(p.Row.Table) == nil {
			rest = append(rest, p)
		} else {
			owed, of = append(owed, w.owing(p)), append(of, p)
		}
	}
	if len(owed) == 0 {
		return puts, nil
	}
	refused, err := w.OweAll(ctx, owed)
	if err != nil {
		return nil, err
	}
	for i, e := range refused {
		if e != nil {
			if err := w.parkRow(ctx, of[i], of[i].ShardKey, of[i].Position, "its table takes no writes, and its change cannot be kept until it does: "+e.Error()); err != nil {
				return nil, err
			}
		}
	}
	return rest, nil
}

// owing returns what is owed for a row that a change asks for.
func (w *work) owing(p *projections.Put) runner.Owed {
	o := runner.Owed{Row: p.Row, OwedRow: owntable.OwedRow{Kind: owntable.OwedCopy, Position: p.Position, Gone: p.Image == nil, Rule: p.Rule.Name}}
	if len(p.Rule.Keep) == 0 {
		o.Source = projections.Keyed(w.Model, p.Source)
		return o
	}
	c := w.changeOf(p)
	o.Kind, o.ShardKey, o.Time, o.Record = owntable.OwedEntry, w.ShardOf(c), c.Time, runner.RecordOf(c)
	return o
}

// changeOf returns the change that asks for a row.
func (w *work) changeOf(p *projections.Put) *projections.Change {
	i := slices.IndexFunc(w.Changes, func(c projections.Change) bool {
		return c.ShardKey == p.ShardKey && c.Position == p.Position && projections.SameRow(c.Row, p.Source)
	})
	return &w.Changes[i]
}

// oweMend notes that a copy which another writer touched is owed: its source tells what it should be.
func (w *work) oweMend(ctx context.Context, m *Mend) error {
	o := runner.Owed{Row: m.Change.Row, OwedRow: owntable.OwedRow{Kind: owntable.OwedCopy, Position: m.Ours}}
	image := m.Change.New
	if image == nil {
		image = m.Change.Old
	}
	for _, rule := range m.Entity.MadeBy {
		if source, ok := SourceOf(rule, image); ok && len(rule.Keep) == 0 {
			o.Rule, o.Source = rule.Name, projections.Keyed(w.Model, source)
			return w.OweSmall(ctx, o)
		}
	}
	return nil
}

// oweSource notes that a copy which another writer touched is to be looked at once its source can be read.
func (w *work) oweSource(ctx context.Context, m *Mend, source store.Ref, rule *model.RowRule) error {
	return w.OweSmall(ctx, runner.Owed{Row: source, OwedRow: owntable.OwedRow{
		Kind: owntable.OwedSource, Position: m.Ours, Rule: rule.Name, Source: projections.Keyed(w.Model, source), Made: projections.Keyed(w.Model, m.Change.Row),
	}})
}

// Settle makes a copy or an entry that is owed. What the model no longer makes is left alone.
func (Kind) Settle(ctx context.Context, r *runner.Runner, o runner.Owed) (mine, done bool, err error) {
	switch o.Kind {
	case owntable.OwedCopy:
		done, err = settleCopy(ctx, r, &o)
		return true, done, err
	case owntable.OwedSource:
		var ok bool
		if o.Row, ok = projections.RowOf(r.Model, o.Made); !ok {
			return true, true, nil
		}
		done, err = settleCopy(ctx, r, &o)
		return true, done, err
	case owntable.OwedEntry:
		return true, true, settleEntry(ctx, r, &o)
	}
	return false, false, nil
}

// settleEntry makes an entry from its change. One that its table refuses becomes a dead letter.
func settleEntry(ctx context.Context, r *runner.Runner, o *runner.Owed) error {
	d := runner.Dead{ShardKey: o.ShardKey, Position: o.Position, Time: o.Time, Record: o.Record}
	c, err := r.ChangeOf(&d)
	if errors.Is(err, runner.ErrNoRetry) {
		return nil
	}
	if err != nil {
		return err
	}
	c.ShardKey = o.ShardKey
	g := projections.NewGathered(1)
	p := newPart(g)
	p.fold(0, &c)
	history, _ := p.split()
	p.puts = slices.DeleteFunc(history, func(put projections.Put) bool {
		return put.Rule.Name != o.Rule || !projections.SameRow(put.Row, o.Row)
	})
	p.gathered.follow.Values, p.gathered.follow.Left = nil, nil
	w := runner.NewWork(r, runner.Batch{ShardKey: o.ShardKey, Changes: []projections.Change{c}}, g)
	return p.Apply(ctx, w)
}

// settleCopy makes a copy from its source row, or deletes it. done is false if the copy has changed meanwhile.
func settleCopy(ctx context.Context, r *runner.Runner, o *runner.Owed) (done bool, err error) {
	is, err := r.GetRow(ctx, o.Row)
	if err != nil {
		return false, err
	}
	var rule *model.RowRule
	var source store.Ref
	for _, one := range r.Model.Rows {
		if one.Name != o.Rule || one.Source.Table.Name != o.Source.Table {
			continue
		}
		key, ok := one.Source.Table.KeyOf(o.Source.Key)
		if source = (store.Ref{Table: o.Source.Table, Key: key}); !ok {
			continue
		}
		row, err := r.GetRow(ctx, source)
		if err != nil {
			return false, err
		}
		if rule == nil {
			rule = one
		}
		if p, made := Make(one, row); made && one.Source.Table.Classify(row) == one.Source && projections.SameRow(p.Row, o.Row) {
			if is == nil && r.Model.Table(o.Row.Table).Expired(p.Image, r.Moment()) {
				return true, nil // TTL may have deleted it
			}
			return fixed(ctx, r, &RowFix{Row: o.Row, Source: source, Rule: one, Always: true}, o.Position, row)
		}
	}
	if rule == nil {
		return true, nil
	}
	if o.Gone { // also what another program wrote there: the key belongs to the copy
		if _, err := r.Did(ctx, removeUpTo(o.Row, o.Position)); err != nil {
			return false, err
		}
	}
	return fixed(ctx, r, &RowFix{Row: o.Row, Source: source, Rule: rule, Always: true}, o.Position, nil)
}

// fixed corrects a copy, at a position or the one that it has, if that is higher. A copy that its table
// refuses becomes a dead letter with its source row. A row that weir did not write stays.
func fixed(ctx context.Context, r *runner.Runner, f *RowFix, at events.Position, source value.Item) (done bool, err error) {
	done, _, err = f.Correct(ctx, r, &runner.Recounted{Floor: at})
	switch {
	case errors.Is(err, runner.ErrNotOurs):
		return true, nil
	case errors.Is(err, store.ErrRefused):
		_, err = r.KeepDead(ctx, runner.Dead{
			Kind: runner.DeadRow, Target: f.Rule.Name + " " + r.Describe(f.Row), Row: f.Row, Reason: err.Error(), Position: at,
			Record: owntable.RecordItem(&events.Record{Table: f.Source.Table, Keys: r.Model.Table(f.Source.Table).Item(f.Source.Key), New: source}),
		})
		return err == nil, err
	}
	return done, err
}
