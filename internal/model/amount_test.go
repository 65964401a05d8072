package model

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/failtest"
	"weir/internal/value"
)

func cartModel(t testing.TB, amount string) *Model {
	m, err := Parse("carts.yaml", []byte(`model: carts
tables: {carts: {key: [PK, SK]}}
entities:
  Cart: {where: {t: Cart}, key: {PK: "CART#{id}", SK: CART}, attributes: {name: string}}
  Line: {where: {t: Line}, key: {PK: "CART#{id}", SK: "LINE#{nr}"}, attributes: {a: number, b: number, c: number, b-c: number}}
derive:
  Cart.total: {sum: `+amount+`}
`))
	failtest.On(t, err)
	return m
}

// TestAmount holds amounts of random rows against fractions: the value is exact, or there is an
// error and no sum can take it.
func TestAmount(t *testing.T) {
	texts := []string{
		"Line.a", "Line.a * Line.b", "Line.a - Line.b", "Line.a + Line.b * Line.c", "Line.a * Line.b - Line.c * 0.5", "-1 * Line.a",
		"2 - Line.a", "Line.a * Line.a * Line.a * Line.b * Line.b * Line.c * Line.c * Line.c", "Line.a - Line.b - Line.c", "Line.b-c * Line.a",
	}
	models := map[string]*Model{}
	for _, text := range texts {
		models[text] = cartModel(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(texts).Draw(t, "amount")
		of := models[text].Tallies[0].Sources[0].Amount
		var row value.Item
		rats := map[string]*big.Rat{}
		lacks, wrong := false, false
		for _, name := range []string{"a", "b", "c", "b-c"} {
			n := rapid.SampledFrom([]string{"0", "1", "-3", "0.005", "99999999999999999999999999999999999999", "-9.9E+125", "1E-130", "1E+20", "-999999999999", "0.00000000000000001", "", "NULL", "text"}).Draw(t, name)
			used := strings.Contains(" "+text+" ", "Line."+name+" ")
			v := value.OfString(n)
			switch n {
			case "":
				lacks = lacks || used
				continue
			case "NULL":
				v, lacks = value.OfNull(), lacks || used
			case "text":
				wrong = wrong || used
			default:
				v = value.MustNumber(n)
				rats[name], _ = new(big.Rat).SetString(n)
			}
			row = row.With(value.Attr{Name: name, Value: v})
		}
		got, unfit, beyond := of.Of(row)
		if lacks || wrong && of.Computed() {
			if !lacks != (unfit != nil) || beyond != nil || lacks && !got.IsMissing() {
				t.Fatalf("%s of %v is %v, %v, %v", text, row, got, unfit, beyond)
			}
			return
		}
		if wrong {
			return // what a single field holds is the tally's to judge
		}
		want := byHand(text, rats)
		n, err := value.ParseNumber(want.FloatString(1500))
		if of.Computed() && (new(big.Rat).Abs(want).Cmp(big.NewRat(1e12, 1)) >= 0 || !new(big.Rat).Mul(want, big.NewRat(1e17, 1)).IsInt()) {
			err = value.ErrNumber
		}
		switch {
		case unfit != nil, (err != nil) != (beyond != nil):
			t.Fatalf("%s of %v is %v, %v, %v, want %v, %v", text, row, got, unfit, beyond, n, err)
		case err == nil && !value.Equal(got, n):
			t.Fatalf("%s of %v is %v, want %v", text, row, got, n)
		}
	})
}

// byHand computes an amount in fractions.
func byHand(text string, of map[string]*big.Rat) *big.Rat {
	sum := new(big.Rat)
	for _, term := range strings.Split(strings.ReplaceAll(text, " - ", " + -1 * "), " + ") {
		product := big.NewRat(1, 1)
		for _, factor := range strings.Split(term, " * ") {
			n := of[strings.TrimPrefix(factor, "Line.")]
			if n == nil {
				n, _ = new(big.Rat).SetString(factor)
			}
			product.Mul(product, n)
		}
		sum.Add(sum, product)
	}
	return sum
}

// TestAmountDefinition: another amount is another definition, another spelling of the same is not.
func TestAmountDefinition(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"Line.a", "Line.a * Line.b", "Line.a + Line.b", "Line.a - Line.b", "Line.b - Line.a", "Line.a * 2", "Line.a * 3", "Line.a + 2",
		"Line.a * Line.b + Line.c", "Line.a + Line.b * Line.c", "Line.a - Line.b * Line.c", "Line.b-c * Line.a", "Line.b - Line.c * Line.a",
	} {
		hash := hashesOf(cartModel(t, text))["Cart.total"]
		if was, met := seen[hash]; met {
			t.Errorf("%s has the definition of %s", text, was)
		}
		seen[hash] = text
	}
	for _, same := range []string{"'Line.a  *  Line.b'", "Line.a * 2.0"} {
		if hash := hashesOf(cartModel(t, same))["Cart.total"]; seen[hash] == "" {
			t.Errorf("%s has another definition than %v", same, fmt.Sprint(seen))
		}
	}
}
