package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A row is a row of the application: attribute names to string, num, bool, nil, bin, strs, nums, bins, []any or
// row. Numbers and sets stand in their canonical form (see num and normal), so that rows compare with reflect.DeepEqual.
type row = map[string]any

type (
	num  string   // a decimal as DynamoDB gives it back: no exponent, no needless zeros
	bin  string   // bytes
	strs []string // a set of strings, sorted
	nums []num    // a set of numbers, sorted by value
	bins []bin    // a set of byte strings, sorted
)

// n is the number of an integer.
func n[I int | int64](i I) num { return num(strconv.FormatInt(int64(i), 10)) }

// cloneRow copies a row all the way down.
func cloneRow(r row) row {
	if r == nil {
		return nil
	}
	return mapRow(r, normalValue)
}

// normalValue copies a value and sorts its sets.
func normalValue(v any) any {
	switch v := v.(type) {
	case int:
		return n(v)
	case row:
		return cloneRow(v)
	case []any:
		return mapEach[[]any](v, normalValue)
	case strs:
		return strs(slices.Sorted(slices.Values(v)))
	case nums:
		return nums(slices.SortedFunc(slices.Values(v), compareNums))
	case bins:
		return bins(slices.Sorted(slices.Values(v)))
	}
	return v
}

func compareNums(a, b num) int {
	x, _ := new(big.Rat).SetString(string(a))
	y, _ := new(big.Rat).SetString(string(b))
	if x == nil || y == nil { // not numbers: no place in a set of numbers, and the service will say so
		return strings.Compare(string(a), string(b))
	}
	return x.Cmp(y)
}

// listValue makes a list value of strings.
func listValue(in ...string) []any {
	return mapEach[[]any](in, func(s string) any { return s })
}

// wireForm gives a row as the service reads it in JSON: {"name": {"S": "value"}, …}.
func wireForm(r row) obj { return mapRow(r, func(v any) any { return wireValue(v) }) }

func wireValue(v any) obj {
	switch v := v.(type) {
	case string:
		return obj{"S": v}
	case num:
		return obj{"N": v}
	case bool:
		return obj{"BOOL": v}
	case nil:
		return obj{"NULL": true}
	case bin, strs, nums, bins:
		return obj{map[string]string{"bin": "B", "strs": "SS", "nums": "NS", "bins": "BS"}[reflect.TypeOf(v).Name()]: plainSet(v)}
	case []any:
		return obj{"L": mapEach[[]obj](v, wireValue)}
	case row:
		return obj{"M": wireForm(v)}
	}
	panic(fmt.Sprintf("no DynamoDB value for a %T", v)) // a mistake in a workload
}

// rowOf reads a row as the service writes it; nil is none.
func rowOf(in obj) (row, error) {
	if in == nil {
		return nil, nil
	}
	out := make(row, len(in))
	for k, v := range in {
		value, err := valueOf(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = value
	}
	return out, nil
}

func valueOf(in any) (any, error) {
	w, _ := in.(obj)
	for kind, v := range w {
		var set []string
		list, _ := v.([]any)
		for _, e := range list {
			text, _ := e.(string)
			set = append(set, text)
		}
		switch text, _ := v.(string); kind {
		case "S":
			return text, nil
		case "N":
			return num(text), nil
		case "BOOL":
			return v, nil
		case "NULL":
			return nil, nil
		case "B":
			b, err := base64.StdEncoding.DecodeString(text)
			return bin(b), err
		case "SS":
			return normalValue(strs(set)), nil
		case "NS":
			return normalValue(mapEach[nums](set, func(s string) num { return num(s) })), nil
		case "BS":
			var err error
			out := mapEach[bins](set, func(s string) bin {
				b, e := base64.StdEncoding.DecodeString(s)
				err = errors.Join(err, e)
				return bin(b)
			})
			return normalValue(out), err
		case "L":
			out := make([]any, len(list))
			for i, e := range list {
				value, err := valueOf(e)
				if err != nil {
					return nil, err
				}
				out[i] = value
			}
			return out, nil
		case "M":
			m, _ := v.(obj)
			return rowOf(m)
		}
	}
	return nil, fmt.Errorf("not a DynamoDB value: %v", in)
}

func mapEach[L ~[]T, F, T any](from []F, do func(F) T) L {
	out := make(L, len(from))
	for i, v := range from {
		out[i] = do(v)
	}
	return out
}

// mapRow returns a row with the values that do makes of the values of a row.
func mapRow(r row, do func(any) any) row {
	out := make(row, len(r))
	for k, v := range r {
		out[k] = do(v)
	}
	return out
}

// plainValue gives a value in the form that encoding/json is to write.
func plainValue(v any) any {
	switch v := v.(type) {
	case num:
		return json.Number(v)
	case nums:
		return mapEach[[]json.Number](v, func(n num) json.Number { return json.Number(n) })
	case []any:
		return mapEach[[]any](v, plainValue)
	case row:
		return mapRow(v, plainValue)
	}
	return plainSet(v)
}

// plainSet gives bytes and sets as JSON has them: bytes as base64.
func plainSet(v any) any {
	switch v := v.(type) {
	case bin:
		return base64.StdEncoding.EncodeToString([]byte(v))
	case bins:
		return mapEach[[]any](v, func(b bin) any { return plainSet(b) })
	}
	return v
}

// equalRows tells whether two rows are equal; nil is no row.
func equalRows(a, b row) bool {
	return (a == nil) == (b == nil) && (a == nil || reflect.DeepEqual(a, b))
}

// rowText is a string attribute of a row, empty where it is absent or no string.
func rowText(r row, name string) string {
	s, _ := r[name].(string)
	return s
}

// mergeRows gives a row with the attributes of all these, the last ones first.
func mergeRows(rows ...row) row {
	out := row{}
	for _, r := range rows {
		maps.Copy(out, r)
	}
	return out
}

// roundedMean is the mean, rounded half up to two decimals.
func roundedMean(of []num) num {
	sum := new(big.Rat)
	for _, v := range of {
		r, _ := new(big.Rat).SetString(string(v))
		sum.Add(sum, r)
	}
	sum.Quo(sum, big.NewRat(int64(len(of)), 1))
	// Half up to hundredths: the floor of a hundredfold and a half.
	sum.Add(sum.Mul(sum, big.NewRat(100, 1)), big.NewRat(1, 2))
	whole := new(big.Int).Div(sum.Num(), sum.Denom())
	out := new(big.Rat).SetFrac(whole, big.NewInt(100)).FloatString(2)
	return num(strings.TrimSuffix(strings.TrimRight(out, "0"), "."))
}
