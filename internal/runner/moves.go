package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Mover moves rows of older forms for a model's migrations (internal/migrate). The runner
// gets one from its caller, because moving a row follows the rules of commands, on which
// this package does not depend.
type Mover interface {
	// Started reports which of the model's migrations are on.
	Started(ctx context.Context) (map[*model.Migration]bool, error)
	// Follow moves rows of migrations that are on. It touches no table for which out has an error: a row that
	// needs one waits. After an error, call it again with all rows.
	Follow(ctx context.Context, rows []projections.OldRow, out func(table string) error) ([]Followed, error)
}

// Followed is what became of an old row: it was moved as far as it has to be, or one of these is set.
type Followed struct {
	Refused string // why the row cannot be moved as it is
	Waits   string // the table that it waits for
}

// errNoMover reports a mistake in the program that created the runner: without a mover,
// old rows would stay where they are without any error.
var errNoMover = errors.New("the model has migrations, and the runner was made without a Mover")

// Tables returns the tables whose streams the runner must follow: the model's own tables,
// and the tables from which a migration that is on moves rows. Such an old table must
// exist only while its migration is on.
func (r *Runner) Tables(ctx context.Context) ([]*model.Table, error) {
	if len(r.Model.Old) == 0 {
		return r.Model.Tables, nil
	}
	on, err := r.migrationsOn(ctx)
	if err != nil {
		return nil, err
	}
	out := r.Model.Tables[:len(r.Model.Tables):len(r.Model.Tables)]
	for _, g := range r.Model.Migrations {
		if t := g.From.Table; on[g] && g.From.Open() {
			out = append(out, t)
		}
	}
	return out, nil
}

// migrationsOn asks the Mover which migrations are on.
func (r *Runner) migrationsOn(ctx context.Context) (map[*model.Migration]bool, error) {
	if r.Mover == nil {
		return nil, errNoMover
	}
	on, err := r.Mover.Started(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for migrations: %w", err)
	}
	return on, nil
}

// moves has old rows moved that changed while their migration is on. It reads whether a
// migration is on after the change was read; a migration records that it is on before its
// scan reads the first row. So no changed row is missed.
func (w *Work) moves(ctx context.Context) error {
	var rows []projections.OldRow
	var of []int
	at := map[string]int{}
	for i := range w.Changes {
		for _, r := range projections.OldRows(&w.Changes[i]) {
			name := r.Migration.Name + "|" + owntable.RowText(r.Row)
			if j, ok := at[name]; ok {
				rows[j].Was = append(rows[j].Was, r.Was...)
				of[j] = i
				continue
			}
			at[name] = len(rows)
			rows, of = append(rows, r), append(of, i)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	on, err := w.migrationsOn(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i, r := range rows {
		if on[r.Migration] {
			rows[n], of[n] = r, of[i]
			n++
		}
	}
	return w.move(ctx, rows[:n], of)
}

// move moves rows, and keeps dead letters for those that cannot be moved. Those that wait for a table are owed.
// An error of the mover fails the batch, and has the tables looked at. A refusal is of one row, and becomes a dead letter.
func (w *Work) move(ctx context.Context, rows []projections.OldRow, of []int) error {
	became, err := w.Mover.Follow(ctx, rows, w.IsOut)
	if err != nil {
		return errors.Join(err, w.tryTables(ctx, rows, err))
	}
	if w.outages != nil {
		w.outages.works(callMove, tables(rows, func(o *projections.OldRow) string { return o.Row.Table }), nil)
	}
	var ds []Dead
	var owed []Owed
	for i, f := range became {
		w.Touched[of[i]] = true // no derivation: a migration moves rows
		c := &w.Changes[of[i]]
		switch {
		case f.Waits != "":
			owed = append(owed, w.owingMove(f.Waits, &rows[i], w.ShardOf(c), c.Position)...)
		case f.Refused != "":
			w.Kept(of[i])
			d := unmoved(rows[i].Migration, c.Row, f.Refused)
			d.ShardKey, d.Position, d.Record, d.Time = w.ShardOf(c), c.Position, RecordOf(c), c.Time
			ds = append(ds, d)
		}
	}
	if err := w.OweSmall(ctx, owed...); err != nil {
		return err
	}
	return w.KeepAll(ctx, ds)
}

// unmoved returns the dead letter of an old row that cannot be moved.
func unmoved(g *model.Migration, row store.Ref, reason string) Dead {
	return Dead{Kind: DeadImage, Target: "migration " + g.Name, Reason: reason, Row: row}
}

// tryTables finds out why rows could not be moved. The transactions that move them have several tables, and do not say
// which of them failed, so each is tried by itself (outlasting). If all do what is tried, as where a policy denies only
// puts, it is noted of the table of the old rows: these then wait for it.
func (w *Work) tryTables(ctx context.Context, rows []projections.OldRow, why error) error {
	if w.outages == nil {
		return nil
	}
	var errs []error
	tried, from := map[string]bool{}, map[string]bool{}
	try := func(t *model.Table) {
		if !tried[t.Name] {
			tried[t.Name] = true
			errs = append(errs, w.probe(ctx, Owed{Row: anyRow(t)}))
		}
	}
	for _, r := range rows {
		from[r.Migration.From.Table.Name] = true
		try(r.Migration.From.Table)
		for _, mk := range r.Migration.Makes {
			try(mk.Into.Table)
		}
	}
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(from)) {
		errs = append(errs, w.fails(ctx, table, callMove, why))
	}
	return errors.Join(errs...)
}

// owingMove returns what is owed for an old row that waits for a table: that it is looked at again and, for each row
// that earlier states of it became, that this one may have to go. Neither order nor number of such requests matters.
func (r *Runner) owingMove(table string, old *projections.OldRow, shardKey string, at events.Position) (owed []Owed) {
	o := Owed{Row: anyRow(r.Model.Table(table)), OwedRow: owntable.OwedRow{
		Kind: owntable.OwedMove, Rule: old.Migration.Name, Source: projections.Keyed(r.Model, old.Row), ShardKey: shardKey, Position: at,
	}}
	for _, was := range old.Was {
		o := o
		o.Made, o.Attr = projections.Keyed(r.Model, was.Row), was.Into.Name
		owed = append(owed, o)
	}
	return append(owed, o)
}

// anyRow refers to a row that need not exist, to try a table by.
func anyRow(t *model.Table) store.Ref {
	of := func(a store.KeyAttr) value.Value {
		switch {
		case a.Name == "":
			return value.Value{}
		case a.Type == value.Number:
			return value.OfInt(0)
		case a.Type == value.Binary:
			return value.OfBinary("weir")
		}
		return value.OfString("weir")
	}
	return store.Ref{Table: t.Name, Key: store.Key{Partition: of(t.Key.Partition), Sort: of(t.Key.Sort)}}
}

// settleMove moves an old row as it is now, if its migration is still on. One that cannot be moved becomes a dead letter.
func (r *Runner) settleMove(ctx context.Context, o *Owed) error {
	g := r.Model.Migration(o.Rule)
	if g == nil || g.From.Table.Name != o.Source.Table {
		return nil
	}
	on, err := r.migrationsOn(ctx)
	row, ok := projections.RowOf(r.Model, o.Source)
	if err != nil || !ok || !on[g] {
		return err
	}
	old := projections.OldRow{Migration: g, Row: row}
	for _, mk := range g.Makes {
		if made, ok := projections.RowOf(r.Model, o.Made); ok && mk.Into.Name == o.Attr && mk.Into.Table.Name == made.Table {
			old.Was = append(old.Was, projections.Moved{Making: mk, Row: made})
		}
	}
	became, err := r.Mover.Follow(ctx, []projections.OldRow{old}, nil)
	if err != nil || became[0].Refused == "" {
		return err
	}
	is, err := r.GetRow(ctx, old.Row)
	if err != nil {
		return err
	}
	d := unmoved(g, old.Row, became[0].Refused)
	d.ShardKey, d.Position, d.Record = o.ShardKey, o.Position, owntable.RecordItem(&events.Record{Table: old.Row.Table, Keys: o.Source.Key, New: is})
	_, err = r.KeepDead(ctx, d)
	return err
}
