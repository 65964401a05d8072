package projectorcli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/failtest"
)

// starts runs the program in this process, until it fails or the time is over, and returns
// its exit code and what it said.
func starts(t *testing.T, env []string, patience time.Duration, args ...string) (code int, said string) {
	t.Helper()
	setEnv(t, env)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, talk bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &talk)
	return code, out.String() + talk.String()
}

// TestTablesOfOthersOnDynamoDB: on a table whose stream was switched on later nothing begins,
// unless an operator says that nothing is missing. A table that was made together with its
// stream is right from the beginning, whoever made it.
func TestTablesOfOthersOnDynamoDB(t *testing.T) {
	cfg, env := localAWS(t)
	if code, said := starts(t, env, time.Minute, "deploy", "tables", "gallery", "--aws"); code != exitGood {
		t.Fatalf("%d %s", code, said)
	}
	db := sdk.NewFromConfig(cfg)
	made, err := db.DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: aws.String("gallery")})
	failtest.On(t, err)
	if _, err := db.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: aws.String("gallery")}); err != nil {
		t.Fatal(err)
	}
	in := &sdk.CreateTableInput{
		TableName: aws.String("gallery"), KeySchema: made.Table.KeySchema, AttributeDefinitions: made.Table.AttributeDefinitions,
		BillingMode: types.BillingModePayPerRequest,
	}
	for _, ix := range made.Table.GlobalSecondaryIndexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: ix.IndexName, KeySchema: ix.KeySchema, Projection: ix.Projection})
	}
	create := func() {
		time.Sleep(20 * time.Millisecond)
		if _, err := db.CreateTable(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	create()
	row := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "ALBUM#1"}, "SK": &types.AttributeValueMemberS{Value: "MEDIA#1"}}
	if _, err := db.PutItem(t.Context(), &sdk.PutItemInput{TableName: aws.String("gallery"), Item: row}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.UpdateTable(t.Context(), &sdk.UpdateTableInput{TableName: aws.String("gallery"), StreamSpecification: made.Table.StreamSpecification}); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "gallery", "--build=never", "--aws", "--addr", "127.0.0.1:0", "--data", t.TempDir()}
	code, said := starts(t, env, time.Minute, args...)
	if code != exitUsage || !strings.Contains(said, "Album.mediaCount cannot begin on table gallery") || !strings.Contains(said, "--assume-complete") {
		t.Errorf("%d %s", code, said)
	}
	if _, said := starts(t, env, time.Minute, "status", "gallery", "--aws"); !strings.Contains(said, "not known to be complete") || !strings.Contains(said, "Album.mediaCount: unbuilt") {
		t.Error(said)
	}
	if _, said := starts(t, env, 5*time.Second, append(args, "--assume-complete")...); strings.Contains(said, "cannot begin") {
		t.Error(said)
	}
	if _, said := starts(t, env, time.Minute, "status", "gallery", "--aws"); !strings.Contains(said, "assumed complete 20") || !strings.Contains(said, "Album.mediaCount: live") {
		t.Error(said)
	}

	env = append(env, "WEIR_STAGE=other", "WEIR_TABLES=gallery=gallery-2")
	in.TableName, in.StreamSpecification = aws.String("gallery-2"), made.Table.StreamSpecification
	create()
	// It makes the own table. The model's table is there, and only lacks a TTL.
	if _, said := starts(t, env, time.Minute, "deploy", "tables", "gallery", "--aws"); !strings.Contains(said, "weir (weir-other): created") {
		t.Fatal(said)
	}
	if _, said := starts(t, env, 5*time.Second, args...); strings.Contains(said, "cannot begin") {
		t.Error(said)
	}
	if _, said := starts(t, env, time.Minute, "status", "gallery", "--aws"); !strings.Contains(said, "made with its stream") || !strings.Contains(said, "Album.mediaCount: live") {
		t.Error(said)
	}
}
