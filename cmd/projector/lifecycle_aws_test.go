package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store/dynamodb/dynamodbtest"
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

// TestLifecycleOnDynamoDB: what is refused on tables in DynamoDB, and what it says. Each
// begins with tables that weir made and a function has read.
func TestLifecycleOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	bin := built(t)
	w := newLambdaWorld(t, bin)
	env := w.env
	w.runInWindows()
	dir := t.TempDir()
	program := func(patience time.Duration, args ...string) (int, string) {
		t.Helper()
		return starts(t, env, patience, append(args, "--aws", "--data", filepath.Join(dir, "spool"))...)
	}
	refused := func(what string, code int, said string, words ...string) {
		t.Helper()
		if code != exitUsage {
			t.Errorf("%s: exit code %d: %s", what, code, said)
		}
		for _, s := range words {
			if !strings.Contains(said, s) {
				t.Errorf("%s: %s\ndoes not say %q", what, said, s)
			}
		}
	}

	// A process beside the function: it starts, and its first batch is refused.
	beside := []string{"run", "gallery", "--addr", "127.0.0.1:0"}
	if url := os.Getenv(opensearchtest.Endpoint); url != "" {
		beside = append(beside, "--opensearch", url) // the index of the function
	}
	_, said := program(8*time.Second, beside...)
	if !strings.Contains(said, "the stream of gallery is read by a function since") || !strings.Contains(said, "--drained shard") {
		t.Errorf("a process beside the function: %s", said)
	}
	w.verify() // and has counted nothing

	status := func() string {
		_, said := program(time.Minute, "status", "gallery")
		return said
	}
	if said := status(); !strings.Contains(said, "made with its stream") || !strings.Contains(said, "read by a function") {
		t.Error(said)
	}

	model, err := os.ReadFile("../../models/gallery.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := func(name, old, new string) string {
		text := strings.Replace(string(model), old, new, 1)
		if text == string(model) {
			t.Fatalf("%s: nothing is replaced", name)
		}
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const likes = "  Media.likeCount: {count: UserInteraction, where: {interactionType: like}, to: {id: mediaId}}\n"
	added := changed("added", likes, likes+"  Media.allCount: {count: UserInteraction, to: {id: mediaId}}\n")
	code, said := program(time.Minute, "run", added, "--build=never", "--addr", "127.0.0.1:0")
	refused("a derivation that is added", code, said, "Media.allCount is new", "projector build "+added+" derives it")
	other := changed("other", "interactionType: like", "interactionType: love")
	code, said = program(time.Minute, "run", other, "--build=never", "--addr", "127.0.0.1:0")
	refused("another definition", code, said, "the values of Media.likeCount are of another definition")

	// A function with another model: its event fails, and nothing of it is acknowledged.
	for path, say := range map[string]string{added: "Media.allCount is new", other: "Media.likeCount are of another definition"} {
		w.f.Start("WEIR_MODEL=" + path)
		if a := w.f.Invoke(payload(t, windowed("shardId-1", w.seen[:3], nil)), time.Minute); a.Kind != "error" || !strings.Contains(a.Body, say) {
			t.Errorf("a function with %s: %s %s", path, a.Kind, a.Body)
		}
		w.f.Kill()
	}
	w.verify()

	// Another stream: a gap, which is said once. Then one without old images.
	db := sdk.NewFromConfig(w.cfg)
	stream := func(images types.StreamViewType) { dynamodbtest.SwitchStream(t, db, "gallery", images) }
	stream(types.StreamViewTypeNewAndOldImages)
	for range 2 {
		w.f.Start()
		if a := w.f.Invoke(payload(t, windowed("shardId-1", w.seen[:3], nil)), time.Minute); a.Kind != "response" {
			t.Errorf("after another stream: %s %s", a.Kind, a.Body)
		}
		w.f.Kill()
	}
	_, said = program(time.Minute, "dead", "list", "gallery")
	if strings.Count(said, "was switched off and on again") != 1 {
		t.Errorf("the gap is not said once: %s", said)
	}
	stream(types.StreamViewTypeNewImage)
	code, said = program(time.Minute, "run", "gallery", "--addr", "127.0.0.1:0")
	refused("a stream without old images", code, said, "the stream of gallery has NEW_IMAGE", "NEW_AND_OLD_IMAGES")

	// Another table under the same name.
	if _, err := db.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: aws.String("gallery")}); err != nil {
		t.Fatal(err)
	}
	code, said = program(time.Minute, "run", "gallery", "--addr", "127.0.0.1:0")
	refused("no table", code, said, "there is no table gallery", "deploy tables")
	if code, said := starts(t, env, time.Minute, "deploy", "tables", "gallery", "--aws"); code != exitGood {
		t.Fatalf("%d %s", code, said)
	}
	code, said = program(time.Minute, "run", "gallery", "--addr", "127.0.0.1:0")
	refused("another table", code, said, "table gallery is another one", "--stage")
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
	if err != nil {
		t.Fatal(err)
	}
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
