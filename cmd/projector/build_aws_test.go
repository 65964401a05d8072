package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/lambda/lambdatest"
	"weir/internal/store/dynamodb/dynamodbtest"
)

const shopOf = `model: shop
tables:
  Shop: {key: [PK, SK]}
entities:
  Customer: {where: {kind: customer}, key: {PK: "C#{id}", SK: METADATA}, attributes: {name: string}}
  Order: {where: {kind: order}, key: {PK: "C#{customer}", SK: "ORDER#{id}"}, attributes: {total: number}}
derive:
  Customer.orderCount: {count: Order, to: {id: customer}}
`

// shop is a table of an application that weir did not make.
type shop struct {
	*testing.T
	db     *sdk.Client
	env    []string
	orders map[string]int // the totals that there are
}

func (w *shop) key(customer, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "C#" + customer}, "SK": &types.AttributeValueMemberS{Value: sk},
	}
}

func (w *shop) order(customer string, id, total int) types.WriteRequest {
	row := w.key(customer, fmt.Sprintf("ORDER#%03d", id))
	row["kind"], row["total"] = &types.AttributeValueMemberS{Value: "order"}, &types.AttributeValueMemberN{Value: fmt.Sprint(total)}
	w.orders[fmt.Sprintf("%s %03d", customer, id)] = total
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: row}}
}

func (w *shop) gone(customer string, id int) types.WriteRequest {
	delete(w.orders, fmt.Sprintf("%s %03d", customer, id))
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: w.key(customer, fmt.Sprintf("ORDER#%03d", id))}}
}

func (w *shop) write(rs ...types.WriteRequest) {
	w.Helper()
	for len(rs) > 0 {
		n := min(len(rs), 25)
		if _, err := w.db.BatchWriteItem(w.Context(), &sdk.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"Shop": rs[:n]}}); err != nil {
			w.Fatal(err)
		}
		rs = rs[n:]
	}
}

// background runs the program in this process, and returns what stops it.
func (w *shop) background(args ...string) (stop func() string) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan string)
	go func() {
		var out, talk bytes.Buffer
		code := run(ctx, append(args, "--aws"), strings.NewReader(""), &out, &talk)
		done <- fmt.Sprintf("exit code %d: %s%s", code, out.String(), talk.String())
	}()
	return func() string {
		cancel()
		return <-done
	}
}

// announcesNothing: a process that cannot run, since its directory or its address is taken,
// announces no build, which would stop the program that runs.
func (w *shop) announcesNothing(changed, dir string) {
	w.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	defer taken.Close()
	for addr, data := range map[string]string{"127.0.0.1:0": dir, taken.Addr().String(): w.TempDir()} {
		if code, said := starts(w.T, w.env, time.Minute, "run", changed, "--aws", "--addr", addr, "--data", data); code != exitUsage || strings.Contains(said, "building") {
			w.Errorf("at %s, %s: %d %s", addr, data, code, said)
		}
	}
	if _, said := starts(w.T, w.env, time.Minute, "status", changed, "--aws"); !strings.Contains(said, "Customer.total: new") {
		w.Error(said)
	}
}

// shows waits until all customers show what their orders are, by a client that weir has no
// part in.
func (w *shop) shows(sum bool) (wrong string) {
	w.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if wrong = w.differs(sum); wrong == "" || time.Now().After(deadline) {
			return wrong
		}
	}
}

func (w *shop) differs(sum bool) string {
	w.Helper()
	counts, totals := map[string]int{}, map[string]int{}
	for order, total := range w.orders {
		customer, _, _ := strings.Cut(order, " ")
		counts[customer]++
		totals[customer] += total
	}
	n := 0
	pages := sdk.NewScanPaginator(w.db, &sdk.ScanInput{TableName: aws.String("Shop"), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, row := range page.Items {
			if kind, _ := row["kind"].(*types.AttributeValueMemberS); kind == nil || kind.Value != "customer" {
				continue
			}
			n++
			customer := strings.TrimPrefix(row["PK"].(*types.AttributeValueMemberS).Value, "C#")
			want := map[string]int{"orderCount": counts[customer]}
			if sum {
				want["total"] = totals[customer]
			}
			for attr, v := range want {
				if is, _ := row[attr].(*types.AttributeValueMemberN); is == nil || is.Value != fmt.Sprint(v) {
					return fmt.Sprintf("%s of %s is %v, want %d", attr, customer, row[attr], v)
				}
			}
		}
	}
	if n != 20 {
		return fmt.Sprintf("%d customers", n)
	}
	return ""
}

// TestBuildsOnDynamoDB: a table of 1,020 rows whose stream is switched on later. run builds
// its counts while orders come and go, and then a sum that is added to the live model.
func TestBuildsOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	cfg, env := localAWS(t)
	setEnv(t, env)
	w := &shop{T: t, db: sdk.NewFromConfig(cfg), env: env, orders: map[string]int{}}
	dynamodbtest.MakeTable(t, w.db, "Shop", nil)
	var rows []types.WriteRequest
	for c := range 20 {
		row := w.key(fmt.Sprint(c), "METADATA")
		row["kind"] = &types.AttributeValueMemberS{Value: "customer"}
		rows = append(rows, types.WriteRequest{PutRequest: &types.PutRequest{Item: row}})
		for o := range 50 {
			rows = append(rows, w.order(fmt.Sprint(c), o, c+o))
		}
	}
	w.write(rows...)
	dynamodbtest.SwitchStream(t, w.db, "Shop", types.StreamViewTypeNewAndOldImages)
	dir := t.TempDir()
	model := func(name, text string) string {
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	counted := model("shop", shopOf)
	summed := model("summed", shopOf+"  Customer.total: {sum: Order.total, to: {id: customer}}\n")
	if code, said := starts(t, env, time.Minute, "deploy", "tables", counted, "--aws"); code != exitGood {
		t.Fatalf("%d %s", code, said)
	}
	program := func(model string) func() string {
		return w.background("run", model, "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "spool"))
	}

	if code, said := starts(t, env, time.Minute, "run", counted, "--build=never", "--aws", "--addr", "127.0.0.1:0", "--data", dir); code != exitUsage || !strings.Contains(said, "projector build "+counted) {
		t.Errorf("%d %s", code, said)
	}
	stop := program(counted)
	edit := func(from int) {
		t.Helper()
		for i := range 40 {
			c := fmt.Sprint((from + i) % 20)
			w.write(w.order(c, 100+from+i, i), w.gone(c, (from+i)%50))
			time.Sleep(10 * time.Millisecond)
		}
		w.write(w.order("1", 900+from, 7), w.order("1", 901+from, 8))
	}
	edit(0)
	wrong := w.shows(false)
	w.announcesNothing(summed, filepath.Join(dir, "spool"))
	if said := stop(); wrong != "" || !strings.Contains(said, "building Customer of shop from the rows") {
		t.Fatalf("%s: %s", wrong, said)
	}
	if code, said := starts(t, env, time.Minute, "verify", counted, "--aws"); code != exitGood {
		t.Errorf("%d %s", code, said)
	}

	stop = program(summed)
	edit(7)
	wrong = w.shows(true)
	_, status := starts(t, env, time.Minute, "status", summed, "--aws")
	if said := stop(); wrong != "" {
		t.Fatalf("%s: %s\n%s", wrong, said, status)
	}
	for _, args := range [][]string{{"verify", summed}, {"build", summed}} {
		if code, said := starts(t, env, time.Minute, append(args, "--aws")...); code != exitGood {
			t.Errorf("%v: %d %s", args, code, said)
		}
	}
	_, said := starts(t, env, time.Minute, "status", summed, "--aws")
	if !strings.Contains(said, "Customer.total: live since") || !strings.Contains(said, "build of Customer: live since") || !strings.Contains(said, "not yet audited") {
		t.Error(said)
	}
}

// TestFunctionsBesideABuildOnDynamoDB: functions get the records of a live table late, twice
// and in halves while its values are built again by a process that is killed ten times. Then
// a process takes the stream over.
func TestFunctionsBesideABuildOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	bin := built(t)
	deliver := func(f *lambdatest.Function, shard string, records []json.RawMessage) {
		for len(records) > 0 {
			n := min(len(records), 100)
			answerTo(t, f, payload(t, windowed(shard, records[:n], nil)))
			answerTo(t, f, payload(t, windowed(shard, records[:n], nil)))
			records = records[n:]
		}
	}
	w := newLambdaWorld(t, bin)
	for _, e := range w.env {
		name, v, _ := strings.Cut(e, "=")
		t.Setenv(name, v)
	}
	build := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), bin, "build", "gallery", "Album", "Media", "--again", "--aws", "--write-budget", "400")
		cmd.Env = append(os.Environ(), w.env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	calls, builds := 0, []*exec.Cmd{}
	w.run(func(f *lambdatest.Function, _ *mathrand.Rand, shard string, records []json.RawMessage) {
		if calls++; calls > 1 && len(builds) < 11 {
			if len(builds) > 0 {
				time.Sleep(50 * time.Millisecond)
				builds[len(builds)-1].Process.Kill()
			}
			builds = append(builds, build())
		}
		deliver(f, shard, records)
	})
	for len(builds) < 11 {
		time.Sleep(50 * time.Millisecond)
		builds[len(builds)-1].Process.Kill()
		builds = append(builds, build())
	}
	for i, b := range builds {
		if err := b.Wait(); err != nil && i == len(builds)-1 {
			t.Fatal(err)
		}
	}
	w.f.Start()
	for range 3 { // what the build wrote
		for shard, records := range w.read() {
			deliver(w.f, shard, records)
		}
	}
	w.f.Kill()
	w.verify()
	if _, said := starts(t, w.env, time.Minute, "status", "gallery", "--aws"); !strings.Contains(said, "build of Album: live since") {
		t.Error(said)
	}

	process := &shop{T: t, db: sdk.NewFromConfig(w.cfg), env: w.env}
	stop := process.background("run", "gallery", "--drained", drained("shard"), "--addr", "127.0.0.1:0", "--data", t.TempDir())
	rng := mathrand.New(mathrand.NewPCG(5, 8))
	for range 200 {
		if err := deed(t.Context(), process.db, "gallery", "", rng); err != nil {
			t.Fatal(err)
		}
	}
	code, said := exitCheck, ""
	for deadline := time.Now().Add(time.Minute); code != exitGood && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		code, said = starts(t, w.env, time.Minute, "verify", "gallery", "--aws")
	}
	if talk := stop(); code != exitGood {
		t.Errorf("after the process took over: %s\n%s", said, talk)
	}
}
