package system_test

import (
	"context"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// silent is a store that counts the calls made to it for rows of weir's own.
type silent struct {
	store.Store
	reads, writes int
}

func (s *silent) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if slices.ContainsFunc(refs, func(r store.Ref) bool { return r.Table == owntable.TableName }) {
		s.reads++
	}
	return s.Store.Get(ctx, refs)
}

func (s *silent) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	s.writes++
	return s.Store.Write(ctx, ws)
}

// TestFunctionOpensSilently: a system that answers no queries and has no index reads and writes nothing until its first
// batch; one that answers queries reads the secret of cursors.
func TestFunctionOpensSilently(t *testing.T) {
	for _, none := range []bool{true, false} {
		m, err := model.Load("gallery")
		failtest.On(t, err)
		tables, err := system.Tables([]*model.Model{m})
		failtest.On(t, err)
		db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
		failtest.On(t, err)
		watched := &silent{Store: db}
		s, err := system.Over(t.Context(), watched, "", []*model.Model{m}, system.Options{NoSearch: true, NoQueries: none})
		failtest.On(t, err)
		if quiet := watched.reads+watched.writes == 0; quiet != none {
			t.Errorf("without queries %v: %d reads and %d writes", none, watched.reads, watched.writes)
		}
		if answers := s.Models[0].Query != nil; answers == none {
			t.Errorf("without queries %v: it answers queries: %v", none, answers)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
