package projectorcli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/failtest"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
)

// recipeModel has a count, a sum, copies, and a value that they follow.
var recipeModel = strings.Replace(lifeModel, "search:", "  Slip: {where: {kind: slip}, key: {PK: \"SLIP#{customer}\", SK: \"{id}\"}, attributes: {total: number, name: string}}\nsearch:", 1) +
	lifeCount + lifeSum + "  Slip: {row: Order, set: {id: id, customer: customer, total: total, name: {follow: Customer.name, by: {id: customer}}}}\n"

// TestRestoredOnDynamoDB follows the recipe of docs/guide/operations.md for a restored table. Its
// rows are those of an earlier moment, with what was derived then, and with the versions and
// positions of ledgers and streams that belong to the table that was backed up. What was derived of
// some of them is of another moment, as when a batch was half written.
func TestRestoredOnDynamoDB(t *testing.T) {
	cfg, env := localAWS(t)
	setEnv(t, env)
	l := &life{T: t, at: system.Place{AWS: true, Data: t.TempDir()}, db: sdk.NewFromConfig(cfg), env: env}
	l.flags = []string{"--aws", "--data", l.at.Data}
	m := l.model(recipeModel)
	l.deploys(m)
	l.write(4)
	for range 3 { // so that versions are above those with which a new ledger begins
		l.write(3)
		l.runs(m, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	}
	was := l.rows()
	dynamodbtest.MakeTable(t, l.db, "shop-restored", nil)
	put := func(item map[string]types.AttributeValue) {
		t.Helper()
		if _, err := l.db.PutItem(t.Context(), &sdk.PutItemInput{TableName: aws.String("shop-restored"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	orders, total := 0, 0
	for i, item := range was {
		text := func(name string) string {
			s, _ := item[name].(*types.AttributeValueMemberS)
			if s == nil {
				return ""
			}
			return s.Value
		}
		if text("kind") == "order" {
			if orders == 3 {
				continue // written, and applied, after the moment
			}
			orders++
			total += l.orders[text("id")]
		}
		if text("kind") == "slip" && i%2 == 0 {
			item["total"] = &types.AttributeValueMemberN{Value: "1"}
		}
		for _, v := range item { // the stream that its rows come from counted higher than the new one will
			if position, is := v.(*types.AttributeValueMemberB); is {
				position.Value[0] = 0x0f
			}
		}
		put(item)
	}
	_, err := l.db.UpdateTable(t.Context(), &sdk.UpdateTableInput{TableName: aws.String("shop-restored"),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}})
	failtest.On(t, err)

	l.flags = []string{"--aws", "--stage", "restored", "--tables", "Shop=shop-restored"}
	l.ends(exitGood, []string{"deploy", "tables", m}, "Shop (shop-restored): exists")
	l.flags = append(l.flags, "--data", t.TempDir())
	l.ends(exitUsage, []string{"run", m, "--build=never", "--addr", "127.0.0.1:0"}, "cannot begin on table Shop", "projector build "+m)
	l.ends(exitGood, []string{"build", m, "--dry-run"}, "write units")
	l.ends(exitGood, []string{"build", m}, "Customer: live", "search indexes are not built")
	l.exact(m)
	l.runs(m, map[string]int{"orders": orders, "total": total})
	l.exact(m)
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	put(map[string]types.AttributeValue{"PK": text("C#1"), "SK": text("ORDER#999"), "kind": text("order"), "customer": text("1"), "id": text("999"), "total": &types.AttributeValueMemberN{Value: "5"}})
	put(map[string]types.AttributeValue{"PK": text("C#1"), "SK": text("METADATA"), "kind": text("customer"), "id": text("1"), "name": text("Ada"), "city": text("Genoa")})
	l.runs(m, map[string]int{"orders": orders + 1, "total": total + 5})
	l.exact(m)
	for i, item := range l.rowsOf("shop-restored") {
		switch kind, _ := item["kind"].(*types.AttributeValueMemberS); {
		case kind != nil && kind.Value == "customer":
			item["name"] = text("Grace")
		case kind == nil || kind.Value != "order":
			continue
		default:
			n, _ := strconv.Atoi(item["total"].(*types.AttributeValueMemberN).Value)
			if i%3 == 0 {
				if _, err := l.db.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: aws.String("shop-restored"),
					Key: map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]}}); err != nil {
					t.Fatal(err)
				}
				orders, total = orders-1, total-n
				continue
			}
			item["total"] = &types.AttributeValueMemberN{Value: strconv.Itoa(n + 1)}
			total++
		}
		put(item)
	}
	l.runs(m, map[string]int{"orders": orders + 1, "total": total + 5})
	l.exact(m)
}

// TestExportedOnDynamoDB follows the recipe for new tables: a full export of the table that has
// rows is replayed into tables that the model's copy names, under another model name.
func TestExportedOnDynamoDB(t *testing.T) {
	cfg, env := localAWS(t)
	setEnv(t, env)
	l := &life{T: t, at: system.Place{AWS: true, Data: t.TempDir()}, db: sdk.NewFromConfig(cfg), env: env}
	l.deploys(l.model(recipeModel))
	l.write(7)
	l.write(2)
	folder := exported(t, l.rows())
	copied := strings.NewReplacer("model: shop", "model: shop-2", "  Shop: {", "  Shop-2: {").Replace(recipeModel)
	m := l.model(copied)
	l.flags = []string{"--aws"}
	l.ends(exitGood, []string{"replay", m, folder, "--no-search"}, "9 records")
	l.flags = []string{"--aws", "--data", t.TempDir()}
	l.exact(m)
	l.ends(exitGood, []string{"query", m, "customer", "id=1"}, `"orders":8`, fmt.Sprintf(`"total":%d`, l.want()["total"]))
	l.ends(exitGood, []string{"replay", m, folder, "--no-search"}, "0 applied, 9 skipped")
}

// exported writes rows as DynamoDB's full export to S3 does, and returns the folder.
func exported(t *testing.T, rows []map[string]types.AttributeValue) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "01700000000000-0123abcd")
	write := func(name, text string) {
		t.Helper()
		failtest.On(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)))
	}
	var data bytes.Buffer
	to := gzip.NewWriter(&data)
	for _, row := range rows {
		item := map[string]map[string]string{}
		for name, v := range row {
			switch v := v.(type) {
			case *types.AttributeValueMemberS:
				item[name] = map[string]string{"S": v.Value}
			case *types.AttributeValueMemberN:
				item[name] = map[string]string{"N": v.Value}
			default:
				t.Fatalf("%s is %T", name, v)
			}
		}
		failtest.On(t, json.NewEncoder(to).Encode(map[string]any{"Item": item}))
	}
	failtest.On(t, to.Close())
	write("data/a.json.gz", data.String())
	write("manifest-files.json", fmt.Sprintf(`{"itemCount":%d,"etag":"x-1","dataFileS3Key":"AWSDynamoDB/01700000000000-0123abcd/data/a.json.gz"}`+"\n", len(rows)))
	write("manifest-summary.json", fmt.Sprintf(
		`{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:eu-west-1:1:table/Shop/export/01700000000000-0123abcd","manifestFilesS3Key":"AWSDynamoDB/01700000000000-0123abcd/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON"}`, len(rows)))
	return root
}
