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

// TestContractOfUnknownOutcomesOnDynamoDB: a request that is dropped, or answered with 500 or
// 503, before or after it happened.
func TestContractOfUnknownOutcomesOnDynamoDB(t *testing.T) {
	for name, as := range map[string][2]dynamodbtest.Fault{
		"dropped":  {dynamodbtest.DroppedAfter, dynamodbtest.DroppedBefore},
		"answered": {dynamodbtest.BrokenAfter, dynamodbtest.UnavailableBefore},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunUnknown(t, func(t *testing.T, tables []store.Table) (store.Store, func(...storetest.Loss)) {
				cfg := dynamodbtest.Config(t)
				dynamodbtest.Open(t, cfg, tables, dynamodb.Options{}) // makes the tables
				proxy := dynamodbtest.NewFaulty(*cfg.BaseEndpoint, 1)
				t.Cleanup(proxy.Close)
				cfg.BaseEndpoint = &proxy.URL
				s := dynamodb.Open(cfg, tables, dynamodb.Options{})
				t.Cleanup(func() { s.Close() })
				return s, func(losses ...storetest.Loss) {
					var next []dynamodbtest.Fault
					for _, l := range losses {
						next = append(next, as[l])
					}
					proxy.Next(next...)
				}
			})
		})
	}
}
