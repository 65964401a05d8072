// Command points is weir with a model in it, and with two Go functions that the model names:
//
//	points lint points
//	points dev points
package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"weir"
)

//go:embed shop.yaml
var shop []byte

// points gives the customer a point for each 10 of an order's total, and twice as many above 1,000. The customer stands in the
// key of the order, so that To is not needed.
func points(order weir.Row) []weir.Add {
	total, err := order["total"].(json.Number).Float64()
	if err != nil || total < 10 {
		return nil
	}
	n := int(total) / 10
	if total > 1000 {
		n *= 2
	}
	return []weir.Add{{Amount: json.Number(strconv.Itoa(n))}}
}

// sold adds the quantity of each item to its product.
func sold(order weir.Row) (adds []weir.Add) {
	for _, item := range order["items"].([]any) {
		of := item.(map[string]any)
		adds = append(adds, weir.Add{To: map[string]string{"product": of["product"].(string)}, Amount: of["quantity"].(json.Number)})
	}
	return adds
}

func init() {
	weir.Register("points", 1, points)
	weir.Register("sold", 1, sold)
}

func main() {
	m, err := weir.Parse("shop.yaml", shop)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	weir.Main(m)
}
