package embedded

import (
	"testing"

	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/search/searchtest"
)

func openTest(t *testing.T, dir string, o Options, schemas ...search.Schema) *Index {
	t.Helper()
	ix, err := Open(dir, schemas, o)
	failtest.On(t, err)
	t.Cleanup(func() { ix.Close() })
	return ix
}

func TestContract(t *testing.T) {
	searchtest.Run(t, func(t *testing.T, schemas []search.Schema) search.Index {
		return openTest(t, t.TempDir(), Options{}, schemas...)
	})
}

func TestDefinitionsContract(t *testing.T) {
	searchtest.RunDefinitions(t, func(t *testing.T) func([]search.Schema) search.Index {
		dir := t.TempDir()
		return func(schemas []search.Schema) search.Index { return openTest(t, dir, Options{}, schemas...) }
	})
}

func TestContractInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the same code but for waiting")
	}
	searchtest.Run(t, func(t *testing.T, schemas []search.Schema) search.Index {
		return openTest(t, "", Options{}, schemas...)
	})
}
