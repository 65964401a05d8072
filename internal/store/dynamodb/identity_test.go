package dynamodb_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// TestIdentityOnDynamoDB: a table that is dropped and made again is another table, a stream
// that was off is another stream, and its images are said.
func TestIdentityOnDynamoDB(t *testing.T) {
	cfg := dynamodbtest.Config(t)
	def := store.Table{Name: "identities", Stream: true, Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}}
	s := dynamodbtest.Open(t, cfg, []store.Table{def}, dynamodb.Options{})
	is := func() store.Identity {
		t.Helper()
		id, err := s.Identity(t.Context(), def.Name)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := is()
	if first.ARN == "" || first.Images != store.NewAndOldImages || first.Whole || time.Since(first.Made).Abs() > time.Hour {
		t.Errorf("%+v", first)
	}
	t.Logf("made %v, stream %s", first.Made.Format(time.RFC3339Nano), first.Stream)
	db := sdk.NewFromConfig(cfg)
	stream := func(spec *types.StreamSpecification) {
		t.Helper()
		if _, err := db.UpdateTable(t.Context(), &sdk.UpdateTableInput{TableName: &def.Name, StreamSpecification: spec}); err != nil {
			t.Fatal(err)
		}
	}
	stream(&types.StreamSpecification{StreamEnabled: aws.Bool(false)})
	if off := is(); off.Stream != "" || off.Images != "" || off.ID != first.ID {
		t.Errorf("with its stream off it is %+v", off)
	}
	time.Sleep(10 * time.Millisecond) // labels have milliseconds
	stream(&types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage})
	if on := is(); on.Stream <= first.Stream || on.Images != store.NewImage || on.ID != first.ID {
		t.Errorf("with another stream it is %+v, before %+v", on, first)
	}
	if _, err := db.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: &def.Name}); err != nil {
		t.Fatal(err)
	}
	if gone := is(); gone != (store.Identity{}) {
		t.Errorf("a table that is gone is %+v", gone)
	}
	if _, err := s.Deploy(t.Context(), def.Name, false); err != nil {
		t.Fatal(err)
	}
	if again := is(); again.ID == first.ID || again.ID == "" {
		t.Errorf("made again it is %+v, before %+v", again, first)
	}
}
