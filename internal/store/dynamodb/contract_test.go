package dynamodb_test

import (
	"testing"

	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/storetest"
)

func TestContract(t *testing.T) {
	dynamodbtest.Config(t)
	storetest.Run(t, func(t *testing.T, tables []store.Table) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	})
}
