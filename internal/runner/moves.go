package runner

import (
	"context"
	"errors"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
)

// Mover moves rows of older forms for a model's migrations (internal/ingest). The runner
// gets one from its caller, because moving a row follows the rules of commands, on which
// this package does not depend.
type Mover interface {
	// Started reports which of the model's migrations are on.
	Started(ctx context.Context) (map[*model.Migration]bool, error)
	// Follow moves rows of migrations that are on, and returns for each why it cannot be moved as it is, or "".
	// After an error, call it again with all rows.
	Follow(ctx context.Context, rows []projections.OldRow) (refused []string, err error)
}

// errNoMover reports a mistake in the program that created the runner: without a mover,
// old rows would stay where they are without any error.
var errNoMover = errors.New("the model has migrations, and the runner was made without a Mover")

// FollowedTables returns the tables whose streams the runner must follow: the model's own tables,
// and the tables from which a migration that is on moves rows. Such an old table must
// exist only while its migration is on.
func (r *Runner) FollowedTables(ctx context.Context) ([]*model.Table, error) {
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
	return on, store.Wrap(err, "looking for migrations")
}

// moveOldRows has old rows moved that changed while their migration is on. It reads whether a
// migration is on after the change was read; a migration records that it is on before its
// scan reads the first row. So no changed row is missed.
func (w *Work) moveOldRows(ctx context.Context) error {
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
	return w.moveRows(ctx, rows[:n], of)
}

// moveRows moves rows, and keeps dead letters for those that cannot be moved.
// An error of the mover fails the batch. A refusal is of one row, and becomes a dead letter.
func (w *Work) moveRows(ctx context.Context, rows []projections.OldRow, of []int) error {
	refused, err := w.Mover.Follow(ctx, rows)
	if err != nil {
		return err
	}
	var ds []deadletter.Letter
	for i, reason := range refused {
		w.Touched[of[i]] = true // no derivation: a migration moves rows
		if reason == "" {
			continue
		}
		w.CountKept(of[i])
		c := &w.Changes[of[i]]
		ds = append(ds, deadletter.Unusable(c, w.ShardKey, "migration "+rows[i].Migration.Name, reason))
	}
	return w.Letters().KeepAll(ctx, ds)
}
