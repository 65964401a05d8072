package projectorcli

import (
	"cmp"
	"crypto/rand"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/failtest"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
)

// otherDynamoDB is the environment variable with the URL of a second DynamoDB Local. Without it, the first has both regions, whose
// tables it keeps apart.
const otherDynamoDB = "WEIR_TEST_DYNAMODB_OTHER"

// region is a region with a replica of the table Shop.
type region struct {
	name string
	db   *sdk.Client
	env  []string
}

// regions are two regions, and a life in the first. Nothing is replicated between them but by replicate.
func regions(t *testing.T) (l *life, here, there *region) {
	cfg := dynamodbtest.Config(t)
	l = &life{T: t, at: system.Place{AWS: true}}
	at := func(name, other, endpoint string) *region {
		key := rand.Text()
		front := l.replica(endpoint, name, other)
		cfg.Credentials, cfg.BaseEndpoint, cfg.Region = credentials.NewStaticCredentialsProvider(key, "x", ""), &endpoint, name
		return &region{name, sdk.NewFromConfig(cfg), []string{"AWS_REGION=" + name, "AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=x",
			"AWS_ENDPOINT_URL_DYNAMODB=" + front, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + endpoint}}
	}
	first := os.Getenv(dynamodbtest.Endpoint)
	return l, at("eu-west-1", "us-east-1", first), at("us-east-1", "eu-west-1", cmp.Or(os.Getenv(otherDynamoDB), first))
}

// in has what follows happen in a region.
func (l *life) in(r *region) {
	l.Helper()
	setEnv(l.T, r.env)
	l.db = r.db
	l.at.Data = l.TempDir()
	l.flags = []string{"--aws", "--data", l.at.Data, "--derive-in", r.name}
}

// replicate makes the table Shop of a region what it is in another one.
func (l *life) replicate(from, to *region) {
	l.Helper()
	key := func(item map[string]types.AttributeValue) string {
		return item["PK"].(*types.AttributeValueMemberS).Value + "|" + item["SK"].(*types.AttributeValueMemberS).Value
	}
	was := map[string]map[string]types.AttributeValue{}
	l.db = to.db
	for _, item := range l.rows() {
		was[key(item)] = item
	}
	l.db = from.db
	for _, item := range l.rows() {
		if !reflect.DeepEqual(was[key(item)], item) {
			_, err := to.db.PutItem(l.Context(), &sdk.PutItemInput{TableName: aws.String("Shop"), Item: item})
			failtest.On(l, err)
		}
		delete(was, key(item))
	}
	for _, item := range was {
		_, err := to.db.DeleteItem(l.Context(), &sdk.DeleteItemInput{TableName: aws.String("Shop"), Key: map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]}})
		failtest.On(l, err)
	}
}

// holds is an attribute of the row in the table Shop that has it, "" for none.
func (l *life) holds(attr string) string {
	l.Helper()
	for _, item := range l.rows() {
		switch v := item[attr].(type) {
		case *types.AttributeValueMemberS:
			return v.Value
		case *types.AttributeValueMemberN:
			return v.Value
		}
	}
	return ""
}

// TestRegionMovedOnDynamoDB follows the drill of a region that is moved: all programs of the first end, the second takes over, and
// the first refuses from then on. Then it is moved back.
func TestRegionMovedOnDynamoDB(t *testing.T) {
	l, here, there := regions(t)
	m := l.model(lifeModel + lifeCount + lifeSum)
	l.in(here)
	l.deploys(m)
	l.write(4)
	for range 3 {
		l.write(3)
		l.runs(m, map[string]int{"orders": len(l.orders)})
	}
	l.exact(m)
	l.write(3) // what the first region has not derived
	l.in(there)
	l.deploys(m)
	l.replicate(here, there)
	l.in(there)
	l.ends(exitUsage, []string{"run", m, "--addr", "127.0.0.1:0"}, `table Shop is derived in eu-west-1, as its row "weir.region" says (number 1), and this is us-east-1`, "--take-over")
	l.ends(exitUsage, []string{"build", m}, "is derived in eu-west-1")
	l.ends(exitCheck, []string{"status", m}, "is derived in eu-west-1")
	l.ends(exitGood, []string{"build", m, "--take-over"}, "us-east-1 derives from now on", "Customer: live")
	l.exact(m)
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.exact(m)

	l.replicate(there, here)
	l.in(here)
	l.refused(m, "is derived in us-east-1", "(number 2)", "--take-over")
	l.ends(exitUsage, []string{"build", m, "--again"}, "is derived in us-east-1")
	l.ends(exitGood, []string{"build", m, "--take-over"}, "eu-west-1 derives from now on", "Customer: live")
	if region, n := l.holds("weir.region"), l.holds("weir.count"); region != here.name || n != "3" {
		t.Errorf("%s, number %s", region, n)
	}
	l.exact(m)
	l.write(3)
	l.runs(m, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.exact(m)
}

// TestRegionLostOnDynamoDB follows the drill of a region that is lost: another takes over, while a process of the first still runs,
// cut off. When replication comes back, that process ends by itself, and so does what starts there with the value of before.
func TestRegionLostOnDynamoDB(t *testing.T) {
	l, here, there := regions(t)
	m := l.model(lifeModel + lifeCount + lifeSum)
	l.in(here)
	l.deploys(m)
	l.write(4)
	var said buffer
	ended := make(chan int, 1)
	args := append([]string{"run", m, "--addr", "127.0.0.1:0"}, l.flags...)
	go func() { ended <- run(t.Context(), args, strings.NewReader(""), &said, &said) }()
	for deadline := time.Now().Add(time.Minute); l.holds("orders") != strconv.Itoa(len(l.orders)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(said.text())
		}
	}
	l.in(there)
	l.deploys(m)
	l.replicate(here, there)
	l.in(there)
	l.ends(exitGood, []string{"build", m, "--take-over"}, "us-east-1 derives from now on")
	l.write(3)
	l.runs(m, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.exact(m)
	l.replicate(there, here)
	select {
	case code := <-ended:
		if code != exitUsage || !strings.Contains(said.text(), "table Shop is derived in us-east-1") {
			t.Fatalf("exit code %d: %s", code, said.text())
		}
	case <-time.After(time.Minute):
		t.Fatalf("it goes on deriving: %s", said.text())
	}
	l.replicate(here, there) // what it wrote before it saw the fence
	l.in(here)
	l.refused(m, "is derived in us-east-1")
	l.in(there)
	l.runs(m, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.exact(m)
}
