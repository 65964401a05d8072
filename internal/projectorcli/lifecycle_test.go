package projectorcli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/catalog"
	"weir/internal/cli"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// way is what a line of docs/guide/lifecycle.md says that a user does.
type way struct {
	line  string
	where string // "" for both stores; otherwise why the other one cannot be in this state
	on    string // "embedded" or "DynamoDB", if where is given
	way   func(*life)
}

// ways are the lines of the table and of the list below it in docs/guide/lifecycle.md, by how each begins. A line must end in
// right numbers, or in a refusal that names what to do.
var ways = []way{
	{line: "start on tables that were made together with their streams", way: (*life).madeTogether},
	{line: "start on an empty or new `--data` directory", way: (*life).newDirectory, on: "embedded", where: "rows are not in the directory"},
	{line: "start on tables whose stream was switched on later", way: (*life).streamLater, on: "DynamoDB", where: "a table has its stream from the beginning"},
	{line: "use a directory or an own table that a newer weir wrote", way: (*life).newerFormat},
	{line: "delete the row of the catalog", way: (*life).noCatalog},
	{line: "add a derivation", way: (*life).added},
	{line: "change a derivation", way: (*life).changed},
	{line: "rename a derived attribute", way: (*life).renamed},
	{line: "remove a derivation", way: (*life).removed},
	{line: "remove what a retired derivation left in the rows", way: (*life).removedValues},
	{line: "take a change back", way: (*life).rolledBack},
	{line: "change a search index", way: (*life).searchChanged},
	{line: "change queries, rules of the write side", way: (*life).nothingChanged},
	{line: "run an older program beside a newer one", way: (*life).olderBeside},
	{line: "use a second model file of the same name", way: (*life).otherFile, on: "embedded", where: "its table is missing"},
	{line: "drop a table and make it again", way: (*life).otherTable, on: "DynamoDB", where: "all tables of a directory are made with it"},
	{line: "build, and then give the name to another table", way: (*life).builtAndReplaced, on: "DynamoDB", where: "all tables of a directory are made with it"},
	{line: "build, and then switch the stream off and on", way: (*life).builtAndSwitched, on: "DynamoDB", where: "a stream cannot be switched off"},
	{line: "restore weir's own table from a backup", way: (*life).ownRestored, on: "DynamoDB", where: "the directory has both"},
	{line: "delete weir's own table while a program runs", way: (*life).ownDeleted, on: "DynamoDB", where: "a table of an open directory cannot be deleted"},
	{line: "replace a table or its stream while a function is warm", way: (*life).warm, on: "DynamoDB", where: "all tables of a directory are made with it"},
	{line: "retire what was built, and derive it again", way: (*life).thereAgain},
	{line: "switch a stream off", way: (*life).streamOff, on: "DynamoDB", where: "a stream cannot be switched off"},
	{line: "switch a stream off and on", way: (*life).streamOffAndOn, on: "DynamoDB", where: "a stream cannot be switched off"},
	{line: "begin with a new own table after that", way: (*life).anew, on: "DynamoDB", where: "a stream cannot be switched off"},
	{line: "derive from a table that is replicated", way: (*life).replicated, on: "DynamoDB", where: "there are no replicas"},
	{line: "use a stream with `NEW_IMAGE`", way: (*life).newImages, on: "DynamoDB", where: "a stream always has both images"},
	{line: "run a process and a function", way: (*life).twoReaders},
	{line: "run an older version of weir beside a newer one", way: (*life).twoVersions},
	{line: "copy a `--data` directory", way: (*life).copied, on: "embedded", where: "rows are not in the directory"},
	{line: "move the machine's clock by days", way: (*life).clockMoved},
	{line: "let TTL delete rows while a build runs", way: (*life).expiring},
	{line: "change the key of the rows that are counted", way: (*life).keyChanged},
	{line: "run `weir build --prune` beside", way: (*life).pruned},
	{line: "change a definition again while its build runs", way: (*life).changedTwice},
	{line: "have a second model derive from a table", way: (*life).otherModel},
}

// TestLifecycleTable does what each line of the table says, on the embedded store.
func TestLifecycleTable(t *testing.T) {
	soaktest.Calm(t)
	lines := lifecycleLines(t)
	for _, w := range ways {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, w.line) }) {
			t.Errorf("docs/guide/lifecycle.md has no line %q", w.line)
		}
	}
	for _, line := range lines {
		if !slices.ContainsFunc(ways, func(w way) bool { return strings.HasPrefix(line, w.line) }) {
			t.Errorf("nothing tests %q", line)
		}
	}
	for _, w := range ways {
		if w.on != "DynamoDB" {
			t.Run(w.line, func(t *testing.T) {
				l := &life{T: t, at: system.Place{Data: filepath.Join(t.TempDir(), "data")}}
				l.flags = []string{"--data", l.at.Data}
				w.way(l)
			})
		}
	}
}

// TestLifecycleTableOnDynamoDB does the same on tables in DynamoDB, in short only the uses that need DynamoDB.
func TestLifecycleTableOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	for _, w := range ways {
		if w.on == "DynamoDB" || w.on == "" && !testing.Short() {
			t.Run(w.line, func(t *testing.T) {
				cfg, env := localAWS(t)
				setEnv(t, env)
				l := &life{T: t, at: system.Place{AWS: true, Data: t.TempDir()}, db: sdk.NewFromConfig(cfg), env: env}
				l.flags = []string{"--aws", "--data", l.at.Data}
				w.way(l)
			})
		}
	}
}

// lifecycleLines returns the first cells of the table, and the list of what needs nothing more.
func lifecycleLines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/lifecycle.md")
	failtest.On(t, err)
	_, section, _ := strings.Cut(string(text), "| what you do | what happens |\n|---|---|\n")
	section, _, _ = strings.Cut(section, "\n\n**")
	for _, m := range regexp.MustCompile(`(?m)^(?:\| (.*?) \| |- (.*))`).FindAllStringSubmatch(section, -1) {
		lines = append(lines, m[1]+m[2])
	}
	return lines
}

// life is a deployment of a shop whose only customer has orders.
type life struct {
	*testing.T
	at      system.Place
	flags   []string
	db      *sdk.Client // nil on the embedded store
	env     []string
	orders  map[string]int // the totals of the customer's orders
	next    int
	to      store.Store   // the store, if it is open
	serves  string        // the name of the model, "" for shop
	command string        // "" for run
	says    func(*buffer) // is given what begins says as it says it
}

const (
	lifeModel = `model: shop
tables:
  Shop: {key: [PK, SK]}
entities:
  Customer: {where: {kind: customer}, key: {PK: "C#{id}", SK: METADATA}, attributes: {id: string!, name: string, city: string}}
  Order: {where: {kind: order}, key: {PK: "C#{customer}", SK: "ORDER#{id}"}, attributes: {customer: string!, id: string!, total: number, size: string}}
search:
  customers: {of: Customer, text: [name]}
queries:
  customer: {get: Customer, with: [id]}
  find: {search: customers}
derive:
`
	lifeCount = "  Customer.orders: {count: Order, to: {id: customer}}\n"
	lifeSum   = "  Customer.total: {sum: Order.total, to: {id: customer}}\n"
	lifeLarge = "  Customer.orders: {count: Order, where: {size: large}, to: {id: customer}}\n"
)

// model writes a model file.
func (l *life) model(text string) (path string) {
	l.Helper()
	path = filepath.Join(l.TempDir(), "shop.yaml")
	failtest.On(l, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// store opens the store as the application does, until the test is done with it.
func (l *life) store(do func(store.Store)) {
	l.Helper()
	if l.to != nil {
		do(l.to)
		return
	}
	m, err := model.Parse("shop.yaml", []byte(lifeModel+lifeCount))
	failtest.On(l, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(l, err)
	db, _, err := l.at.Open(l.Context(), tables, time.Now, true)
	failtest.On(l, err)
	do(db)
	failtest.On(l, db.Close())
}

func customer(sk string) store.Key {
	return store.Key{Partition: value.OfString("C#1"), Sort: value.OfString(sk)}
}

// write adds orders as the application does, and deletes the oldest one. The first of them
// comes with the customer.
func (l *life) write(n int) {
	l.Helper()
	l.store(func(db store.Store) {
		var ws []store.Write
		set := func(sk string, attrs ...any) {
			w := store.Write{Ref: store.Ref{Table: "Shop", Key: customer(sk)}}
			for i := 0; i < len(attrs); i += 2 {
				w.Ops = append(w.Ops, store.Assign(attrs[i].(string), attrs[i+1].(value.Value)))
			}
			ws = append(ws, w)
		}
		if l.orders == nil {
			l.orders = map[string]int{}
			set("METADATA", "kind", value.OfString("customer"), "id", value.OfString("1"), "name", value.OfString("Ida"), "city", value.OfString("Genoa"))
		} else {
			oldest := slices.Min(keysOf(l.orders))
			delete(l.orders, oldest)
			ws = append(ws, store.Write{Ref: store.Ref{Table: "Shop", Key: customer("ORDER#" + oldest)}, Delete: true})
		}
		for range n {
			id := fmt.Sprintf("%03d", l.next)
			l.next++
			l.orders[id] = 10 + l.next
			size := "small"
			if l.next%3 == 0 {
				size = "large"
			}
			set("ORDER#"+id, "kind", value.OfString("order"), "customer", value.OfString("1"), "id", value.OfString(id),
				"total", value.OfInt(int64(l.orders[id])), "size", value.OfString(size))
		}
		out, err := db.Write(l.Context(), ws)
		failtest.On(l, err)
		for i := range out {
			if out[i].Err != nil {
				l.Fatal(out[i].Err)
			}
		}
	})
}

func keysOf(m map[string]int) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// want is what the customer's row should show.
func (l *life) want() map[string]int {
	out := map[string]int{"orders": len(l.orders), "total": 0, "large": 0}
	for id, total := range l.orders {
		out["total"] += total
		if n, err := strconv.Atoi(id); err == nil && (n+1)%3 == 0 { // Sscan would take 010 for 8
			out["large"]++
		}
	}
	return out
}

// runs starts the program with a model until the customer's row shows attributes with the
// values wanted, and returns what it said.
func (l *life) runs(model string, shows map[string]int, more ...string) string {
	l.Helper()
	until, stop := l.begins(model, more...)
	until(shows)
	return stop()
}

// begins starts the program with a model. until waits until the customer's row shows attributes
// with the values wanted; stop ends the program and returns what it said.
func (l *life) begins(model string, more ...string) (until func(shows map[string]int), stop func() string) {
	args := slices.Concat([]string{cmp.Or(l.command, "run"), model, "--addr", "127.0.0.1:0"}, l.flags, more)
	ctx, end := context.WithCancelCause(l.Context())
	var said buffer
	if l.says != nil {
		l.says(&said)
	}
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, strings.NewReader(""), io.Discard, &said) }()
	serves := regexp.MustCompile(`http://\S+/v1`)
	until = func(shows map[string]int) {
		l.Helper()
		wrong := "it does not serve"
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if base := serves.FindString(said.text()); base != "" {
				if wrong = l.differs(base, shows); wrong == "" {
					return
				}
			}
			select {
			case code := <-ended:
				l.Fatalf("%s: it ends with %d: %s", strings.Join(args, " "), code, said.text())
			default:
			}
		}
		end(errTerminated)
		l.Fatalf("%s: exit code %d, %s: %s", strings.Join(args, " "), <-ended, wrong, said.text())
	}
	stop = func() string {
		l.Helper()
		end(errTerminated)
		if code := <-ended; code != exitGood {
			l.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), code, said.text())
		}
		return said.text()
	}
	return until, stop
}

func (l *life) differs(base string, shows map[string]int) string {
	res, err := http.Get(base + "/" + cmp.Or(l.serves, "shop") + "/customer?id=1")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	var page struct{ Items []map[string]any }
	if err := json.Unmarshal(body, &page); err != nil || len(page.Items) != 1 {
		return fmt.Sprintf("the answer is %s", body)
	}
	for name, n := range shows {
		if is, _ := page.Items[0][name].(float64); page.Items[0][name] == nil || int(is) != n {
			return fmt.Sprintf("%s is %v, should be %d", name, page.Items[0][name], n)
		}
	}
	return ""
}

// ends runs a command, which must end with the code and say the words.
func (l *life) ends(code int, args []string, words ...string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	var said bytes.Buffer
	if got := run(ctx, slices.Concat(args, l.flags), strings.NewReader(""), &said, &said); got != code {
		l.Errorf("projector %s: exit code %d, want %d: %s", strings.Join(args, " "), got, code, &said)
	}
	for _, w := range words {
		if !strings.Contains(said.String(), w) {
			l.Errorf("projector %s does not say %q: %s", strings.Join(args, " "), w, &said)
		}
	}
}

// refused is a program that must not begin.
func (l *life) refused(model string, words ...string) {
	l.Helper()
	l.ends(exitUsage, []string{"run", model, "--build=never", "--addr", "127.0.0.1:0"}, words...)
}

// exact recounts the application's rows.
func (l *life) exact(model string) {
	l.Helper()
	l.ends(exitGood, []string{"verify", model}, "0 differ")
}

// begun is a deployment that has run since its first row.
func (l *life) begun() (model string) {
	l.Helper()
	model = l.model(lifeModel + lifeCount)
	l.deploys(model)
	l.write(4)
	l.runs(model, map[string]int{"orders": len(l.orders)})
	l.write(3)
	return model
}

func (l *life) deploys(model string) {
	l.Helper()
	if l.db != nil {
		t := *l
		t.flags = []string{"--aws"}
		t.ends(exitGood, []string{"deploy", "tables", model})
	}
}

func (l *life) madeTogether() {
	m := l.model(lifeModel + lifeCount)
	l.deploys(m)
	l.write(5)
	// Before anything was read: after a day, rows may have left the stream.
	parsed, err := model.Load(m)
	failtest.On(l, err)
	if l.db != nil {
		l.store(func(db store.Store) {
			late := func() time.Time { return time.Now().Add(25 * time.Hour) }
			c := catalog.New(parsed, db, late, catalog.Options{})
			err := c.Start(l.Context(), func(context.Context, catalog.Switch) error { return nil })
			if !errors.Is(err, catalog.ErrRefused) || !strings.Contains(err.Error(), "--assume-complete") {
				l.Errorf("a day later: %v", err)
			}
		})
	}
	l.runs(m, map[string]int{"orders": 5}, "--build=never")
	l.write(2)
	l.runs(m, map[string]int{"orders": 6}, "--build=never")
	l.exact(m)
}

func (l *life) newDirectory() {
	m := l.model(lifeModel + lifeCount + lifeSum)
	l.write(5)
	l.runs(m, map[string]int{"orders": 5, "total": l.want()["total"]}, "--build=never")
	l.exact(m)
}

// create makes the table Shop as another program would.
func (l *life) create(images types.StreamViewType) {
	l.Helper()
	dynamodbtest.MakeTable(l, l.db, "Shop", func(in *sdk.CreateTableInput) {
		if images != "" {
			in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: images}
		}
	})
}

func (l *life) stream(images types.StreamViewType) {
	l.Helper()
	dynamodbtest.SwitchStream(l, l.db, "Shop", images)
}

func (l *life) drop() {
	l.Helper()
	if _, err := l.db.DeleteTable(l.Context(), &sdk.DeleteTableInput{TableName: aws.String("Shop")}); err != nil {
		l.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
}

// rows are the application's, as a client reads them that weir has no part in.
func (l *life) rows() (items []map[string]types.AttributeValue) { return l.rowsOf("Shop") }

func (l *life) rowsOf(table string) (items []map[string]types.AttributeValue) {
	l.Helper()
	out, err := l.db.Scan(l.Context(), &sdk.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	failtest.On(l, err)
	return out.Items
}

func (l *life) restore(items []map[string]types.AttributeValue) {
	l.Helper()
	for _, item := range items {
		if _, err := l.db.PutItem(l.Context(), &sdk.PutItemInput{TableName: aws.String("Shop"), Item: item}); err != nil {
			l.Fatal(err)
		}
	}
}

func (l *life) streamLater() {
	m := l.model(lifeModel + lifeCount)
	l.create("")
	t := *l
	t.flags = []string{"--aws"}
	t.ends(exitCheck, []string{"deploy", "tables", m}, "it has no stream, should have one with NEW_AND_OLD_IMAGES")
	l.write(6)
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.write(3) // deletes a row that the stream has never shown
	l.refused(m, "Customer.orders cannot begin on table Shop", "--assume-complete", "projector build "+m)
	if said := l.runs(m, map[string]int{"orders": 8}); !strings.Contains(said, "building Customer of shop from the rows") {
		l.Error(said)
	}
	l.exact(m)

	// A restored table has rows, and its stream is switched on afterwards.
	rows := l.rows()
	l.drop()
	l.create("")
	l.restore(rows)
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.refused(m, "table Shop is another one")
	t.flags = []string{"--aws", "--stage", "restored"}
	t.ends(exitUsage, []string{"deploy", "tables", m}, "belongs to")
}

// catalogRow writes to the row of the catalog by hand.
func (l *life) catalogRow(w store.Write) {
	l.Helper()
	l.store(func(db store.Store) {
		w.Ref = owntable.Catalog("shop")
		out, err := db.Write(l.Context(), []store.Write{w})
		if err != nil || out[0].Err != nil {
			l.Error(err, out)
		}
	})
}

func (l *life) newerFormat() {
	m := l.begun()
	l.catalogRow(store.Write{Ops: []store.Op{store.Assign("f", value.OfInt(99))}})
	l.refused(m, "a newer weir wrote it")
}

func (l *life) noCatalog() {
	m := l.begun()
	l.catalogRow(store.Write{Delete: true})
	l.refused(l.model(lifeModel+lifeCount+lifeSum), "--assume-complete")
	l.refused(m, "--assume-complete")
	l.runs(m, map[string]int{"orders": 6}, "--assume-complete", "--build=never")
	l.exact(m)
	l.write(2)
	l.runs(m, map[string]int{"orders": 7})
	l.exact(m)
}

func (l *life) added() {
	l.begun()
	m := l.model(lifeModel + lifeCount + lifeSum)
	l.refused(m, "Customer.total is new", "projector build "+m+" "+strings.Join(l.flags, " ")+" derives it")
	l.runs(m, map[string]int{"orders": 6, "total": l.want()["total"]})
	l.write(2)
	l.runs(m, map[string]int{"orders": 7, "total": l.want()["total"]}, "--build=never")
	l.exact(m)
}

func (l *life) changed() {
	l.begun()
	m := l.model(lifeModel + lifeLarge)
	l.refused(m, "the values of Customer.orders are of another definition", "projector build "+m+" "+strings.Join(l.flags, " ")+" derives it")
	where := l.model(strings.Replace(lifeModel, "{kind: order}", "{kind: [order, return]}", 1) + lifeCount)
	l.refused(where, "the values of Customer.orders are of another definition")
	l.runs(m, map[string]int{"orders": l.want()["large"]})
	l.write(4)
	l.runs(m, map[string]int{"orders": l.want()["large"]}, "--build=never")
	l.exact(m)
}

func (l *life) renamed() {
	l.begun()
	m := l.model(lifeModel + strings.Replace(lifeCount, "orders", "orderCount", 1))
	l.refused(m, "Customer.orderCount is new", "projector build "+m+" "+strings.Join(l.flags, " ")+" derives it")
	l.runs(m, map[string]int{"orderCount": 6})
	l.write(2)
	l.runs(m, map[string]int{"orderCount": 7})
	l.exact(m)
}

func (l *life) removed() {
	l.begun()
	both := l.model(lifeModel + lifeCount + lifeSum)
	l.runs(both, map[string]int{"total": l.want()["total"]})
	m := l.model(lifeModel + lifeCount)
	l.refused(m, "Customer.total is derived since", "projector build "+m+" "+strings.Join(l.flags, " ")+", which retires it")
	l.ends(exitGood, []string{"build", m}, "retired, since the model no longer has it: Customer.total; ", " --prune\n")
	was := l.want()["total"]
	l.write(2)
	l.runs(m, map[string]int{"orders": 7, "total": was}) // stays, and nothing updates it
	l.refused(both, "Customer.total is retired since")
	l.exact(m)
}

func (l *life) rolledBack() {
	older := l.begun()
	newer := l.model(lifeModel + lifeLarge + lifeSum)
	l.runs(newer, map[string]int{"orders": l.want()["large"], "total": l.want()["total"]})
	l.refused(older, "the values of Customer.orders are of another definition", "projector build "+older+" "+strings.Join(l.flags, " ")+" derives it")
	l.ends(exitUsage, []string{"build", older, "Customer.orders"}, "Customer.total is derived since")
	l.write(3)
	l.ends(exitGood, []string{"build", older}, "retired, since the model no longer has it: Customer.total", "Customer: live")
	l.refused(newer, "Customer.orders are of another definition")
	l.write(2)
	l.runs(older, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(older)
	l.ends(exitGood, []string{"build", older}, "Customer: live")
	l.runs(newer, map[string]int{"orders": l.want()["large"], "total": l.want()["total"]})
	l.exact(newer)
}

func (l *life) searchChanged() {
	if l.db != nil {
		url := os.Getenv(opensearchtest.Endpoint)
		if url == "" {
			l.Skip("no OpenSearch")
		}
		l.flags = append(l.flags, "--opensearch", url)
	}
	was := l.begun()
	finds := func(m, q string, n int) {
		l.Helper()
		var out, said bytes.Buffer
		for tries := 20; ; tries-- { // it ends when the counts are right: the index may have to be filled on
			l.runs(m, map[string]int{"orders": len(l.orders)})
			said.Reset()
			code := run(l.Context(), slices.Concat([]string{"query", m, "find", "q=" + q}, l.flags), strings.NewReader(""), &out, &said)
			if code == exitGood {
				break
			}
			if tries == 0 || !strings.Contains(said.String(), system.ErrNotBuilt.Error()) {
				l.Fatalf("exit code %d: %s", code, &said)
			}
		}
		if got := strings.Count(out.String(), "\n"); got != n {
			l.Errorf("%d rows for %s, want %d: %s", got, q, n, &out)
		}
	}
	finds(was, "Ida", 1)
	finds(was, "Genoa", 0)
	m := l.model(strings.Replace(lifeModel, "text: [name]", "text: [city]", 1) + lifeCount)
	l.ends(exitUsage, []string{"run", m, "--addr", "127.0.0.1:0", "--build=never"}, "the search indexes of model shop are those of another definition")
	finds(m, "Genoa", 1)
	finds(was, "Ida", 1) // and back
	l.exact(was)
}

func (l *life) nothingChanged() {
	l.begun()
	m := l.model("# The same shop.\n" + strings.NewReplacer("  find:", "  again: {get: Customer, with: [id]}\n  find:", "name: string", "name: {type: string, max: 50}").Replace(lifeModel) +
		"  Customer.orders: {to: {id: customer}, count: Order}\n")
	l.runs(m, map[string]int{"orders": 6}, "--build=never")
	l.exact(m)
}

// otherFile has a second file of the same name with another table.
func (l *life) otherFile() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": len(l.orders)})
	other := l.model(strings.ReplaceAll(lifeModel, "Shop", "Store") + lifeCount)
	says := "model shop derives from Shop in this stage, and this file of the same name has Store instead"
	l.refused(other, says, "--stage")
	l.ends(exitUsage, []string{"build", other}, says)
	l.ends(exitUsage, []string{"run", other, "--addr", "127.0.0.1:0"}, says)
	l.ends(exitCheck, []string{"status", other}, says)
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(m)
}

func (l *life) olderBeside() {
	older := l.begun()
	l.runs(older, map[string]int{"orders": 6})
	newer := l.model(lifeModel + lifeCount + lifeSum)
	next, err := model.Load(newer)
	failtest.On(l, err)
	s, err := cli.Open(l.Context(), l.at, []string{older}, system.Options{NoSearch: true, Writes: true})
	failtest.On(l, err)
	applies := func() error {
		f, done := reader.Follower{Runner: s.Models[0].Runner}, make(chan struct{})
		close(done)
		return f.CatchUp(l.Context(), done)
	}
	failtest.On(l, errors.Join(s.Start(l.Context()), applies()))
	r := &runner.Runner{Kinds: kinds.All(), Model: next, Store: s.Store, Now: time.Now}
	r.Catalog = catalog.New(next, s.Store, time.Now, catalog.Options{})
	if _, err := (&system.Part{Model: next, Runner: r}).Builder().Announce(l.Context()); err != nil {
		l.Fatal(err)
	}
	l.to = s.Store
	l.write(2)
	l.to = nil
	if err := applies(); !errors.Is(err, catalog.ErrRefused) || !strings.Contains(err.Error(), "Customer.total") {
		l.Errorf("the next batch of the older program: %v", err)
	}
	failtest.On(l, s.Close())
	unfinished := "not derived yet on these rows, by another definition, or from a stream that is off: Customer.total"
	asks := []string{"query", newer, "customer", "id=1"}
	l.ends(exitGood, asks, unfinished)
	l.refused(older, "Customer.total")
	l.runs(newer, map[string]int{"orders": 7, "total": l.want()["total"]})
	l.exact(newer)
	var out, said bytes.Buffer
	if code := run(l.Context(), slices.Concat(asks, l.flags), strings.NewReader(""), &out, &said); code != exitGood || said.Len() > 0 {
		l.Errorf("exit code %d: %s", code, &said)
	}
}

func (l *life) otherTable() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": 6})
	rows := l.rows()
	l.drop()
	l.refused(m, "there is no table Shop", "deploy tables")
	l.create(types.StreamViewTypeNewAndOldImages)
	l.restore(rows)
	l.refused(m, "table Shop is another one", "--stage")
}

func (l *life) streamOff() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": 6})
	if _, err := l.db.UpdateTable(l.Context(), &sdk.UpdateTableInput{TableName: aws.String("Shop"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}}); err != nil {
		l.Fatal(err)
	}
	l.write(3)
	helps := []string{"the stream of table Shop is off", "aws dynamodb update-table --table-name Shop", "projector build " + m + " " + strings.Join(l.flags, " ") + " --again"}
	l.refused(m, helps...)
	l.ends(exitUsage, []string{"run", m, "--addr", "127.0.0.1:0"}, helps...)
	l.ends(exitUsage, []string{"build", m, "--again"}, helps...)
	l.ends(exitCheck, []string{"status", m}, append(helps, "would be refused", "it stands still, the stream of Shop is off", "  lag unknown: its stream is off")...)
	l.ends(exitGood, []string{"query", m, "customer", "id=1"}, "from a stream that is off: Customer.orders", `"orders":6`)
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.runs(m, map[string]int{}) // says the gap
	l.ends(exitGood, []string{"build", m, "--again"})
	l.ends(exitGood, []string{"status", m})
	l.runs(m, map[string]int{"orders": 8})
	l.exact(m)
}

func (l *life) streamOffAndOn() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": 6})
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.write(3)
	l.runs(m, map[string]int{}) // says the gap
	l.ends(exitGood, []string{"dead", "list", m}, "was switched off and on again")
	l.ends(exitGood, []string{"build", m, "--again"})
	l.runs(m, map[string]int{"orders": 8})
	l.exact(m)
}

// replicas puts a front before DynamoDB that says that tables are replicated, since DynamoDB Local has no global tables.
func (l *life) replicas() {
	l.Helper()
	l.Setenv("AWS_ENDPOINT_URL_DYNAMODB", l.replica(os.Getenv(dynamodbtest.Endpoint), "ddblocal", "us-east-1"))
}

// replica is such a front, of a region whose tables are replicated to another.
func (l *life) replica(endpoint, region, other string) (at string) {
	l.Helper()
	to, err := url.Parse(endpoint)
	failtest.On(l, err)
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".DescribeTable") {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = bytes.Replace(body, []byte(`{"Table":{`), []byte(`{"Table":{"Replicas":[{"RegionName":"`+other+`","ReplicaStatus":"ACTIVE"}],`), 1)
			body = bytes.Replace(body, []byte(`"TableArn":"arn:aws:dynamodb:ddblocal:`), []byte(`"TableArn":"arn:aws:dynamodb:`+region+`:`), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Del("X-Amz-Crc32")
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		},
	})
	l.Cleanup(front.Close)
	return front.URL
}

func (l *life) replicated() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": 6})
	l.replicas()
	l.refused(m, "Shop", "--derive-in")
	l.ends(exitUsage, []string{"run", m, "--addr", "127.0.0.1:0", "--derive-in", "us-east-1"}, "us-east-1")
	l.write(2)
	l.runs(m, map[string]int{"orders": 7}, "--derive-in", "ddblocal")
	l.exact(m)
}

func (l *life) newImages() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": 6})
	l.stream(types.StreamViewTypeNewImage)
	l.refused(m, "the stream of Shop has NEW_IMAGE", "NEW_AND_OLD_IMAGES")
	l.stream(types.StreamViewTypeNewAndOldImages)
	l.runs(m, map[string]int{})
}

// twoReaders has a function beside a process.
func (l *life) twoReaders() {
	m, at := l.begun(), places{}
	l.runs(m, map[string]int{"orders": 6})
	l.ends(exitGood, []string{"status", m}, "read by a process since")
	l.write(3)
	l.applies(m, at)
	l.ends(exitGood, []string{"status", m}, "read by a function since")
	l.exact(m)
	l.write(3)
	l.runs(m, map[string]int{"orders": 10})
	l.applies(m, at)
	l.exact(m)
}
