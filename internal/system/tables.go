package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/stage"
	"weir/internal/store"
)

// DeployTables creates those tables that do not exist, first the own table and then the
// models' tables, and returns the state of each. It does not change existing tables.
func DeployTables(ctx context.Context, db store.Deployer, models []*model.Model) ([]store.Deployed, error) {
	out := make([]store.Deployed, 0, 1+len(models))
	d, err := db.Deploy(ctx, owntable.TableName, true)
	for _, m := range models {
		for _, t := range m.Tables {
			if err == nil {
				out = append(out, d)
				d, err = deployTable(ctx, db, m, t.Name)
			}
		}
	}
	if err != nil {
		return out, err
	}
	return append(out, d), nil
}

// deployTable makes a table of the model if it does not exist. The model's catalog then knows
// that weir made it, and that its stream has every change. A crash before leaves a table of
// which that is not known.
func deployTable(ctx context.Context, db store.Deployer, m *model.Model, table string) (store.Deployed, error) {
	d, err := db.Deploy(ctx, table, false)
	if err == nil && d.Created {
		err = catalog.New(m, db, store.Clock(time.Now, db), catalog.Options{}).NoteTableMade(ctx, table)
	}
	return d, err
}

// ErrNotReplayed means that a table exists that no replay made.
var ErrNotReplayed = errors.New("a replay writes only into tables that a replay made")

// elsewhere is the remedy then. It never is to drop a table, which may be an application's.
const elsewhere = "to derive from the rows that it has: projector build MODEL; to replay, name tables that do not exist yet, in a stage of their own: --stage NAME --tables TABLE=NEW (docs/guide/operations.md)"

// PrepareReplay creates the model's tables and records that a replay made them. A replay
// overwrites rows, so PrepareReplay refuses existing tables that no replay made
// (ErrNotReplayed). Its errors name the tables as people find them. After a crash the
// next PrepareReplay finishes the work.
func PrepareReplay(ctx context.Context, db store.Deployer, names *stage.Names, m *model.Model) error {
	if _, err := db.Deploy(ctx, owntable.TableName, true); err != nil {
		return err
	}
	for _, t := range m.Tables {
		if err := prepareTable(ctx, db, names, m, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// prepareTable makes one table of a replay, or finds it as a replay made it. The own table notes first
// that a replay makes the table, then its id once the table exists: so a crash in between leaves a note
// without an id, and the next call goes on. A table that stands without a note is an application's
// and is refused, as is another one than the note's.
func prepareTable(ctx context.Context, db store.Deployer, names *stage.Names, m *model.Model, table string) error {
	is, err := db.Identity(ctx, table)
	if err != nil {
		return fmt.Errorf("looking for table %s: %w", table, err)
	}
	id := is.ID
	mark, err := store.GetRow(ctx, db, owntable.MadeTable(table))
	if err != nil {
		return err
	}
	made, err := owntable.DecodeMade(mark)
	if err != nil {
		return err
	}
	switch {
	case made != "" && id == made:
		return nil
	case made != "":
		return fmt.Errorf("table %s is not the one that a replay made and table %s keeps the ledgers of: %w; %s", names.Shown(table), names.Own(), ErrNotReplayed, elsewhere)
	case id != "" && mark == nil:
		return fmt.Errorf("table %s is there already: %w; %s", names.Shown(table), ErrNotReplayed, elsewhere)
	case mark == nil:
		if err := noteTable(ctx, db, table, ""); err != nil {
			return err
		}
	}
	d, err := db.Deploy(ctx, table, true)
	if err == nil { // that a replay makes it was noted before, so it did, now or before a crash
		err = catalog.New(m, db, store.Clock(time.Now, db), catalog.Options{}).NoteTableMade(ctx, table)
	}
	if err != nil {
		return err
	}
	return noteTable(ctx, db, table, d.ID)
}

// noteTable notes the id of a table that a replay made; an empty id says that it is about to.
func noteTable(ctx context.Context, db store.Deployer, table, id string) error {
	_, err := store.WriteRow(ctx, db, owntable.SetMade(owntable.MadeTable(table), id))
	return err
}
