package systemtest

import (
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/store"
)

// Made notes in the model's catalog that weir made the tables, as deploy tables does, for
// tests that make them by other means just before.
func Made(t testing.TB, db store.Store, m *model.Model) {
	t.Helper()
	for _, table := range m.Tables {
		failtest.On(t, catalog.New(m, db, time.Now, catalog.Options{}).NoteTableMade(t.Context(), table.Name))
	}
}
