package dynamodb

import (
	"testing"

	"weir/internal/store"
	"weir/internal/store/storetest"
)

func TestContract(t *testing.T) {
	cfg := local(t)
	storetest.Run(t, func(t *testing.T, tables []store.Table) store.Store {
		return open(t, cfg, tables, Options{})
	})
}
