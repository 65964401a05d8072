package system

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"

	"weir/internal/drivers"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/search"
	"weir/internal/store"
)

// For each index, the store records which instance of it was filled and therefore has every
// change since. A system may use one instance today and another one tomorrow; an instance that
// was not used for a while has missed changes and must be filled again.

// noteNone is the beginning of the note that is written while changes are applied without any
// index. What follows it makes every such note different from all earlier ones.
const noteNone = "none "

// openIndex opens the indexes of the place. The store must be open.
func (s *System) openIndex(ctx context.Context, at drivers.Place, models []*model.Model, secret []byte, o Options) (err error) {
	schemas := schemasOf(models)
	if len(schemas) == 0 {
		return nil
	}
	d := at.Index()
	if s.schemas = schemas; o.NoSearch || d == nil {
		return nil
	}
	noted, err := s.notes(ctx, schemas)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(append([]byte("positions of "), secret...))
	ix, err := d.Open(ctx, at, schemas, drivers.IndexOptions{Now: o.Now, InMemory: o.InMemory, Noted: noted, Source: hex.EncodeToString(sum[:8])})
	if err != nil {
		return err
	}
	need := d.Files(len(schemas))
	s.Index, s.need.Indexes, s.need.Calls = ix, need.Indexes, max(s.need.Calls, need.Calls)
	return nil
}

// notes returns the recorded instances, by index. An index whose note cannot be decoded counts
// as incomplete, like one without a note.
func (s *System) notes(ctx context.Context, schemas []search.Schema) (map[string]string, error) {
	refs := make([]store.Ref, len(schemas))
	for i, sc := range schemas {
		refs[i] = owntable.IndexNote(sc.Name)
	}
	rows, err := s.Store.Get(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("read which search index is complete: %w", err)
	}
	noted := map[string]string{}
	for i, row := range rows {
		instance, err := owntable.DecodeIndexNote(row)
		if err != nil {
			slog.Warn("search index is filled again, for its note cannot be read", "index", schemas[i].Name, "error", err)
		}
		noted[schemas[i].Name] = instance
	}
	return noted, nil
}

// note records that an instance is complete.
func (s *System) note(ctx context.Context, name, instance string) error {
	out, err := s.Store.Write(ctx, []store.Write{owntable.SetIndexNote(owntable.IndexNote(name), instance)})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return fmt.Errorf("note that search index %s is complete: %w", name, err)
	}
	return s.Store.Sync(ctx)
}

// forget marks every index as incomplete, because changes from now on reach none of them.
func (s *System) forget(ctx context.Context) error {
	if len(s.schemas) == 0 {
		return nil
	}
	noted, err := s.notes(ctx, s.schemas)
	if err != nil {
		return err
	}
	for name, instance := range noted {
		if strings.HasPrefix(instance, noteNone) {
			continue
		}
		if err := s.note(ctx, name, noteNone+rand.Text()); err != nil {
			return err
		}
	}
	return nil
}
