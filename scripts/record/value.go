package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A row is what the application wrote: attribute names to string, num, bool, nil, bin, strs, nums, bins, []any or
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

// clone copies a row all the way down.
func clone(r row) row {
	if r == nil {
		return nil
	}
	out := make(row, len(r))
	for k, v := range r {
		out[k] = normal(v)
	}
	return out
}

// normal copies a value and sorts its sets.
func normal(v any) any {
	switch v := v.(type) {
	case int:
		return n(v)
	case row:
		return clone(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normal(e)
		}
		return out
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

// list makes a list value of strings.
func list(in ...string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// attributes gives a row to the SDK.
func attributes(r row) (map[string]types.AttributeValue, error) {
	out := make(map[string]types.AttributeValue, len(r))
	for k, v := range r {
		av, err := attribute(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = av
	}
	return out, nil
}

func attribute(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}, nil
	case num:
		return &types.AttributeValueMemberN{Value: string(v)}, nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case bin:
		return &types.AttributeValueMemberB{Value: []byte(v)}, nil
	case strs:
		return &types.AttributeValueMemberSS{Value: v}, nil
	case nums:
		set := make([]string, len(v))
		for i, e := range v {
			set[i] = string(e)
		}
		return &types.AttributeValueMemberNS{Value: set}, nil
	case bins:
		set := make([][]byte, len(v))
		for i, e := range v {
			set[i] = []byte(e)
		}
		return &types.AttributeValueMemberBS{Value: set}, nil
	case []any:
		items := make([]types.AttributeValue, len(v))
		for i, e := range v {
			av, err := attribute(e)
			if err != nil {
				return nil, err
			}
			items[i] = av
		}
		return &types.AttributeValueMemberL{Value: items}, nil
	case row:
		m, err := attributes(v)
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberM{Value: m}, nil
	}
	return nil, fmt.Errorf("no DynamoDB value for a %T", v)
}

// rowOf takes a row from the SDK.
func rowOf(in map[string]types.AttributeValue) row {
	out := make(row, len(in))
	for k, v := range in {
		out[k] = valueOf(v)
	}
	return out
}

func valueOf(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return num(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberB:
		return bin(v.Value)
	case *types.AttributeValueMemberSS:
		return normal(strs(v.Value))
	case *types.AttributeValueMemberNS:
		var set nums
		for _, e := range v.Value {
			set = append(set, num(e))
		}
		return normal(set)
	case *types.AttributeValueMemberBS:
		var set bins
		for _, e := range v.Value {
			set = append(set, bin(e))
		}
		return normal(set)
	case *types.AttributeValueMemberL:
		out := make([]any, len(v.Value))
		for i, e := range v.Value {
			out[i] = valueOf(e)
		}
		return out
	case *types.AttributeValueMemberM:
		return rowOf(v.Value)
	}
	return nil // NULL
}

// wireRow reads a row as the service writes it in JSON: {"name": {"S": "value"}, …}.
func wireRow(raw map[string]json.RawMessage) (row, error) {
	if raw == nil {
		return nil, nil
	}
	out := make(row, len(raw))
	for k, v := range raw {
		value, err := wireValue(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = value
	}
	return out, nil
}

func wireValue(raw json.RawMessage) (any, error) {
	var w struct {
		S    *string
		N    *string
		BOOL *bool
		NULL *bool
		B    *[]byte
		SS   strs
		NS   nums
		BS   [][]byte
		L    *[]json.RawMessage
		M    *map[string]json.RawMessage
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return nil, err
	}
	switch {
	case w.S != nil:
		return *w.S, nil
	case w.N != nil:
		return num(*w.N), nil
	case w.BOOL != nil:
		return *w.BOOL, nil
	case w.NULL != nil:
		return nil, nil
	case w.B != nil:
		return bin(*w.B), nil
	case w.SS != nil:
		return normal(w.SS), nil
	case w.NS != nil:
		return normal(w.NS), nil
	case w.BS != nil:
		var set bins
		for _, e := range w.BS {
			set = append(set, bin(e))
		}
		return normal(set), nil
	case w.L != nil:
		out := make([]any, len(*w.L))
		for i, e := range *w.L {
			v, err := wireValue(e)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case w.M != nil:
		return wireRow(*w.M)
	}
	return nil, fmt.Errorf("not a DynamoDB value: %s", raw)
}

// plain gives a value as it looks to people: what encoding/json is to write.
func plain(v any) any {
	switch v := v.(type) {
	case num:
		return json.Number(v)
	case bin:
		return base64.StdEncoding.EncodeToString([]byte(v))
	case strs:
		return []string(v)
	case nums:
		out := make([]json.Number, len(v))
		for i, e := range v {
			out[i] = json.Number(e)
		}
		return out
	case bins:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = base64.StdEncoding.EncodeToString([]byte(e))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case row:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	}
	return v
}

// same tells whether two rows are equal; nil is no row.
func same(a, b row) bool {
	return (a == nil) == (b == nil) && (a == nil || reflect.DeepEqual(a, b))
}

// text is a string attribute of a row, empty where it is absent or no string.
func text(r row, name string) string {
	s, _ := r[name].(string)
	return s
}
