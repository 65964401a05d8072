package dynamodb

import (
	"context"
	"crypto/rand"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"weir/internal/store"
)

// localEndpoint is the variable that names a DynamoDB Local to test against;
// make conform starts one and sets it.
const localEndpoint = "WEIR_TEST_DYNAMODB"

// local is a configuration for DynamoDB Local. Each access key has a world of its
// own there.
func local(t testing.TB) aws.Config {
	t.Helper()
	endpoint := os.Getenv(localEndpoint)
	if endpoint == "" {
		t.Skipf("needs DynamoDB Local: make conform starts one, or set %s to its URL", localEndpoint)
	}
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider(rand.Text(), "x", ""),
	}
}

// open gives a store on a DynamoDB Local of its own, with the tables made.
func open(t testing.TB, cfg aws.Config, tables []store.Table, o Options) *Store {
	t.Helper()
	o.ReadInterval = -1
	s := Open(cfg, tables, o)
	for i := range tables {
		if _, err := s.Deploy(t.Context(), tables[i].Name, false); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.closed.Store(false) // the suite may have closed it
		for i := range tables {
			if err := s.drop(context.Background(), tables[i].Name); err != nil {
				t.Error(err)
			}
		}
		s.Close()
	})
	return s
}
