package system

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"weir/internal/owntable"
	"weir/internal/store"
)

// Pruned is the fate of a search generation that is not the model's own.
type Pruned struct {
	Generation string
	Indexes    map[string]string // by index, where it is
	Why        string            // why it stays, "" if it is removed
}

// Prune removes the search generations of a model that readers do not keep: their
// indexes, their pending documents, and their rows. It leaves the model's own, one that a program fills, and those of another
// kind of index. report is called for each generation, after it was removed. A removal that fails ends the call: those that were reported
// before are done, and the next call goes on with the rest. After a crash too: the row goes last.
func (s *System) Prune(ctx context.Context, p *Part, report func(Pruned)) error {
	own := s.generationOf(p.Model)
	if own == nil {
		return nil
	}
	kept, err := p.Runner.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	var all []Pruned
	rows := map[string]owntable.GenerationRow{}
	err = s.rowsOf(ctx, p.Model, func(hash string, row owntable.GenerationRow) error {
		if hash == own.hash {
			return nil
		}
		is := Pruned{Generation: hash, Indexes: map[string]string{}}
		for name, ix := range row.Indexes {
			is.Indexes[name] = ix.Place
		}
		switch {
		case row.Driver != own.driver:
			is.Why = fmt.Sprintf("it is of another kind of index, %s", row.Driver)
		case kept.Search == hash:
			is.Why = "programs with its definitions keep it"
		case s.now().Before(row.Until) && s.shared:
			is.Why = "a program fills it"
		}
		all, rows[hash] = append(all, is), row
		return nil
	})
	if err != nil {
		return err
	}
	for _, is := range all {
		if is.Why == "" {
			if err := s.removeGeneration(ctx, p, is, rows[is.Generation]); err != nil {
				return fmt.Errorf("removing search generation %s of model %s: %w", is.Generation, p.Model.Name, err)
			}
		}
		report(is)
	}
	return nil
}

// removeGeneration removes a generation. A program that begins to fill it meanwhile has changed the
// row, and finds that its indexes are gone: it stops, and fills them when it starts again.
func (s *System) removeGeneration(ctx context.Context, p *Part, is Pruned, row owntable.GenerationRow) error {
	row, err := s.writeGeneration(ctx, owntable.Generation(p.Model.Name, is.Generation), row, owntable.GenerationRow{Driver: row.Driver, Indexes: row.Indexes, Base: noteNone + rand.Text()})
	if err != nil {
		return err
	}
	for _, place := range is.Indexes {
		if err := s.Index.Drop(ctx, place); err != nil {
			return err
		}
	}
	for _, partition := range owntable.Pending(p.Model.Name, is.Generation) {
		for note, err := range store.EachRow(ctx, p.Runner.Store, owntable.RowsOf(partition)) {
			if err != nil {
				return err
			}
			is, err := owntable.DecodePending(note)
			if err == nil {
				_, err = p.Runner.Write(ctx, []store.Write{is.Drop(is.At)}) // one that was raised meanwhile stays
			}
			if err != nil {
				return err
			}
		}
	}
	_, err = store.WriteRow(ctx, s.Store, row.Drop(owntable.Generation(p.Model.Name, is.Generation)))
	if errors.Is(err, store.ErrCondition) {
		return fmt.Errorf("a program has begun to fill it: %w", err)
	}
	return err
}
