package weir_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"weir"
)

// sales adds orders up by the customer, in a row that weir makes.
const sales = `
model: sales
tables: {orders: {key: [PK, SK]}}
entities:
  Order: {where: {type: order}, key: {PK: "CUSTOMER#{customer}", SK: "ORDER#{order}"}, attributes: {total: number!}}
  Sales: {key: {PK: "CUSTOMER#{customer}", SK: SALES}, attributes: {orders: number, spent: number}}
derive:
  Sales: {group: Order, set: {orders: count, spent: {sum: total}}}
queries:
  sales: {get: Sales, with: [customer]}
`

func ExampleParse() {
	_, err := weir.Parse("sales.yaml", []byte(strings.Replace(sales, "sum: total", "sum: totals", 1)))
	fmt.Println(err)
	// Output: sales.yaml:8:59: Order has no field "totals" (did you mean "total"?)
}

func ExampleLoad() {
	_, err := weir.Load("gallery")
	fmt.Println(err)
	// Output: <nil>
}

// A function that derives from the records of its table beside what else it does with them. In Lambda, events come from the
// stream: lambda.Start(handle).
func ExampleHandler() {
	ctx := context.Background()
	data := inDirectory() // without this line, the rows are in DynamoDB
	defer os.RemoveAll(data)
	m, err := weir.Parse("sales.yaml", []byte(sales))
	if err != nil {
		panic(err)
	}
	event := orderEvent(ctx, data, `{"customer":"c1","order":"o1","total":12.5}`, `{"customer":"c1","order":"o2","total":30}`)

	h, err := weir.NewHandler(ctx, m, io.Discard) // in Lambda, os.Stdout
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, event []byte) ([]byte, error) {
		fmt.Println("send a mail") // what the function does, too
		return h.Invoke(ctx, event)
	}
	for range 2 { // Lambda may deliver an event again
		answer, err := handle(ctx, event)
		fmt.Println(string(answer), err)
	}
	h.Close()

	db, err := weir.Open(ctx, m, weir.Place{Data: data})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	for row, err := range db.Query(ctx, "sales", map[string]string{"customer": "c1"}) {
		fmt.Println(row["orders"], row["spent"], err)
	}
	// Output:
	// send a mail
	// {"batchItemFailures":[],"state":{}} <nil>
	// send a mail
	// {"batchItemFailures":[],"state":{}} <nil>
	// 2 42.5 <nil>
}

// The whole program, with the commands of weir: sales run sales --aws. The program finds the model by its name, without a file.
func ExampleMain() {
	m, err := weir.Parse("sales.yaml", []byte(sales))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	weir.Main(m)
}
