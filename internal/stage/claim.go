package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
)

// ErrTaken means that a table belongs to another stage.
var ErrTaken = errors.New("the table belongs to another stage")

// Registry is the table with the rows that say which stage each table belongs to. It is
// the own table of the default stage, since every stage knows its name.
func Registry() store.Table { return owntable.Table() }

// Claim makes sure that no table of the names belongs to another stage (ErrTaken): two
// stages that derive on the same rows overwrite each other's values without end. With
// take, the tables belong to this stage from then on; one of two stages that claim a table
// at the same time gets it. The store has the real names, and the table Registry. Claims
// last for a year after the last call with take. A crash leaves some of the tables
// claimed, and the next call claims the rest.
func Claim(ctx context.Context, s store.Store, n *Names, now time.Time, take bool) error {
	refs := make([]store.Ref, len(n.tables), len(n.tables)+1)
	for i, t := range n.tables {
		refs[i] = owntable.StageOf(n.real[t])
	}
	if take { // the own table exists, so the name of the stage is no slip
		own := owntable.Secret()
		own.Table = n.Own()
		refs = append(refs, own)
	}
	rows, err := s.Get(ctx, refs)
	if errors.Is(err, store.ErrNoTable) && !take {
		return nil // nothing is claimed yet; those that need a missing table say so
	}
	if err != nil {
		return fmt.Errorf("reading which stage the tables belong to: %w", err)
	}
	var ws []store.Write
	var of []string
	for i, t := range n.tables {
		has, fresh, err := owntable.DecodeStage(rows[i], now)
		if err == nil {
			err = n.taken(t, has)
		}
		if err != nil {
			return err
		}
		if !fresh && take {
			ws, of = append(ws, owntable.SetStage(refs[i], n.stage.name(), now)), append(of, t)
		}
	}
	if len(ws) == 0 {
		return nil
	}
	out, err := s.Write(ctx, ws)
	for i := range out {
		switch {
		case err != nil:
		case errors.Is(out[i].Err, store.ErrCondition):
			var has string
			if has, _, err = owntable.DecodeStage(out[i].Row, now); err == nil {
				err = n.taken(of[i], has)
			}
		default:
			err = out[i].Err
		}
	}
	if err != nil && !errors.Is(err, ErrTaken) {
		err = fmt.Errorf("noting which stage the tables belong to: %w", err)
	}
	return err
}

// taken is the error for a table that belongs to the stage has, nil if that is this one
// or none.
func (n *Names) taken(table, has string) error {
	if has == "" || has == n.stage.name() {
		return nil
	}
	at := owntable.StageOf(n.real[table])
	return fmt.Errorf("%w: %s belongs to the stage %s, and this is the stage %s; choose that stage, or map the model's table to another one (--stage, --tables). If that stage no longer exists, delete the row %q of the table %s",
		ErrTaken, n.Shown(table), has, n.stage.name(), at.Key.Partition.Text(), at.Table)
}
