// Package dynamodbtest opens stores on a DynamoDB Local for tests. "make conform"
// starts one. Without it such tests are skipped.
package dynamodbtest

import (
	"context"
	"crypto/rand"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
	"weir/internal/store/dynamodb"
)

// Endpoint is the environment variable with the URL of the DynamoDB Local to test
// against.
const Endpoint = "WEIR_TEST_DYNAMODB"

// found is the pattern of names by which make conform selects tests.
var found = regexp.MustCompile(`^TestContract\b|^Test.*On(DynamoDB|AWS|Services)\b`)

// Config is a configuration with an access key of its own: DynamoDB Local keeps
// separate tables for each access key. It skips the test if there is no DynamoDB Local.
func Config(t testing.TB) aws.Config {
	t.Helper()
	if !found.MatchString(t.Name()) {
		t.Fatalf("make conform would not run %s: end its name in OnDynamoDB, OnAWS or OnServices", t.Name())
	}
	endpoint := os.Getenv(Endpoint)
	if endpoint == "" {
		t.Skipf("needs DynamoDB Local: make conform starts one, or set %s to its URL", Endpoint)
	}
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider(rand.Text(), "x", ""),
	}
}

// Open makes the tables and returns a store with them. It deletes them when the test
// ends.
func Open(t testing.TB, cfg aws.Config, tables []store.Table, o dynamodb.Options) *dynamodb.Store {
	t.Helper()
	if o.ReadInterval == 0 {
		o.ReadInterval = -1
	}
	if o.Lag == 0 {
		o.Lag = 300 * time.Millisecond
	}
	s := dynamodb.Open(cfg, tables, o)
	for i := range tables {
		if _, err := s.Deploy(t.Context(), tables[i].Name, false); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.Close()
		db := sdk.NewFromConfig(cfg)
		for i := range tables {
			if _, err := db.DeleteTable(context.Background(), &sdk.DeleteTableInput{TableName: &tables[i].Name}); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// MakeTable makes a table as programs other than weir do. Its key is the strings PK and SK, and
// it has no stream. change, if not nil, changes what is asked for.
func MakeTable(t testing.TB, db *sdk.Client, name string, change func(*sdk.CreateTableInput)) {
	t.Helper()
	text := types.ScalarAttributeTypeS
	in := &sdk.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("SK"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: text}, {AttributeName: aws.String("SK"), AttributeType: text}},
	}
	if change != nil {
		change(in)
	}
	if _, err := db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// SwitchStream switches a table's stream off, if it is on, and on. The stream is newer than
// the table.
func SwitchStream(t testing.TB, db *sdk.Client, name string, images types.StreamViewType) {
	t.Helper()
	for _, spec := range []*types.StreamSpecification{{StreamEnabled: aws.Bool(false)}, {StreamEnabled: aws.Bool(true), StreamViewType: images}} {
		time.Sleep(20 * time.Millisecond) // two of the same moment would have one name
		_, err := db.UpdateTable(t.Context(), &sdk.UpdateTableInput{TableName: &name, StreamSpecification: spec})
		if err != nil && *spec.StreamEnabled {
			t.Fatal(err)
		}
	}
}
