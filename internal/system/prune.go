package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// inUse is how long after the last sign of it a program may apply a generation.
const inUse = time.Hour

// Pruned says what became of a search generation that is not the model's own.
type Pruned struct {
	Generation string
	Indexes    map[string]string // by index, where it is
	Why        string            // why it stays, "" if it is removed
}

// Prune removes the search generations of a model that no program applies any more: their
// indexes, checkpoints and rows. It leaves the model's own, those that a program has applied
// within the hour, and those of another kind of index. After a crash the next Prune goes on:
// the row goes last.
func (s *System) Prune(ctx context.Context, p *Part, report func(Pruned)) error {
	return s.prune(ctx, p.Model, report)
}

// prune is Prune for a model. report is called for each generation, after it was removed.
// What may still be applied stays, and its report says why. A removal that fails ends the call: those that were reported
// before are done, and the next call goes on with the rest.
func (s *System) prune(ctx context.Context, m *model.Model, report func(Pruned)) error {
	own := s.generationOf(m)
	if own == nil {
		return nil
	}
	_, by, err := s.read(ctx, own)
	if err != nil {
		return err
	}
	var all []Pruned
	rows := map[string]owntable.GenerationRow{}
	err = s.others(ctx, m, func(hash string, row owntable.GenerationRow) error {
		p := Pruned{Generation: hash, Indexes: map[string]string{}}
		for name, ix := range row.Indexes {
			p.Indexes[name] = ix.Place
		}
		switch now := s.now(); {
		case row.Driver != own.driver:
			p.Why = fmt.Sprintf("it is of another kind of index, %s", row.Driver)
		case !s.shared:
		case by.Hash == hash:
			p.Why = "a function applies it"
		case now.Before(row.Until), now.Sub(row.Kept) < inUse:
			p.Why = "a program has applied it within the hour"
		}
		all, rows[hash] = append(all, p), row
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Why == "" {
			if err := s.remove(ctx, m, p, rows[p.Generation]); err != nil {
				return fmt.Errorf("removing search generation %s of model %s: %w", p.Generation, m.Name, err)
			}
		}
		report(p)
	}
	return nil
}

// remove removes a generation. A program that begins to apply it meanwhile has changed the
// row, and finds that its indexes are gone: it stops, and fills them when it starts again.
func (s *System) remove(ctx context.Context, m *model.Model, p Pruned, row owntable.GenerationRow) error {
	for _, place := range p.Indexes {
		if err := s.Index.Drop(ctx, place); err != nil {
			return err
		}
	}
	if err := s.dropCheckpoints(ctx, m, p.Generation); err != nil {
		return err
	}
	out, err := s.Store.Write(ctx, []store.Write{row.Drop(owntable.Generation(m.Name, p.Generation))})
	if err == nil {
		err = out[0].Err
	}
	if errors.Is(err, store.ErrCondition) {
		return fmt.Errorf("a program has begun to apply it: %w", err)
	}
	return err
}

// dropCheckpoints deletes the checkpoints of a generation's group, their counts, and which of its documents are pending: a scan is to
// read all rows, or its indexes are gone.
// It may be called again after a crash: what is gone already is deleted once more. No program may follow with the group.
func (s *System) dropCheckpoints(ctx context.Context, m *model.Model, hash string) error {
	group := runner.SearchGroup(hash)
	ws := []store.Write{{Ref: owntable.Past(m.Name, group), Delete: true}}
	for _, partition := range append(owntable.Pending(m.Name, hash), owntable.Checkpoints(m.Name, group)) {
		for rows, err := range store.Pages(ctx, s.Store, store.Query{Table: owntable.TableName, Partition: value.OfString(partition)}) {
			if err != nil {
				return err
			}
			for _, row := range rows {
				ws = append(ws, store.Write{Ref: owntable.Ref(partition, row.Get(owntable.Sort).Text()), Delete: true})
			}
			out, err := s.Store.Write(ctx, ws)
			if err != nil {
				return err
			}
			for i := range out {
				if out[i].Err != nil {
					return out[i].Err
				}
			}
			ws = nil
		}
	}
	return nil
}
