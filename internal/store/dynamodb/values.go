package dynamodb

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"weir/internal/store"
	"weir/internal/value"
)

// attributes is a row, or a part of one, in the SDK's form.
type attributes = map[string]types.AttributeValue

// toSDK is the value in the SDK's form. ErrRefused says that a string is not UTF-8; the
// SDK would change it.
func toSDK(v value.Value) (types.AttributeValue, error) {
	switch v.Kind() {
	case value.Null:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case value.Bool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool()}, nil
	case value.Number:
		return &types.AttributeValueMemberN{Value: v.Text()}, nil
	case value.String:
		return &types.AttributeValueMemberS{Value: v.Text()}, checkUTF8(v.Text())
	case value.Binary:
		return &types.AttributeValueMemberB{Value: []byte(v.Text())}, nil
	case value.StringSet:
		return &types.AttributeValueMemberSS{Value: texts(v)}, checkUTF8(texts(v)...)
	case value.NumberSet:
		return &types.AttributeValueMemberNS{Value: texts(v)}, nil
	case value.BinarySet:
		out := make([][]byte, v.Len())
		for i := range out {
			out[i] = []byte(v.At(i).Text())
		}
		return &types.AttributeValueMemberBS{Value: out}, nil
	case value.List:
		out := make([]types.AttributeValue, v.Len())
		for i := range out {
			var err error
			if out[i], err = toSDK(v.At(i)); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: out}, nil
	case value.Map:
		m, err := toSDKItem(v.Item())
		return &types.AttributeValueMemberM{Value: m}, err
	}
	return nil, fmt.Errorf("%w: a value is missing", store.ErrRefused)
}

// toSDKItem is toSDK for all attributes. The error names the one that cannot be sent.
func toSDKItem(it value.Item) (attributes, error) {
	out := make(attributes, len(it))
	for _, a := range it {
		v, err := toSDK(a.Value)
		if err == nil {
			err = checkUTF8(a.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("attribute %.100q: %w", a.Name, err)
		}
		out[a.Name] = v
	}
	return out, nil
}

// texts are the texts of a set's members.
func texts(v value.Value) []string {
	out := make([]string, v.Len())
	for i := range out {
		out[i] = v.At(i).Text()
	}
	return out
}

// checkUTF8 returns ErrRefused if a string is not UTF-8.
func checkUTF8(ss ...string) error {
	for _, s := range ss {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: a string is not UTF-8", store.ErrRefused)
		}
	}
	return nil
}

// fromSDK reads a value that DynamoDB returned. An error means a value that DynamoDB
// never returns.
func fromSDK(v types.AttributeValue) (value.Value, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberNULL:
		return value.OfNull(), nil
	case *types.AttributeValueMemberBOOL:
		return value.OfBool(v.Value), nil
	case *types.AttributeValueMemberN:
		return value.ParseNumber(v.Value)
	case *types.AttributeValueMemberS:
		return value.OfString(v.Value), nil
	case *types.AttributeValueMemberB:
		return value.OfBinary(string(v.Value)), nil
	case *types.AttributeValueMemberSS:
		return setOf(value.StringSet, v.Value)
	case *types.AttributeValueMemberNS:
		return setOf(value.NumberSet, v.Value)
	case *types.AttributeValueMemberBS:
		return setOf(value.BinarySet, v.Value)
	case *types.AttributeValueMemberL:
		return listOf(v.Value, fromSDK)
	case *types.AttributeValueMemberM:
		it, err := itemOf(v.Value, fromSDK)
		return value.OfMap(it), err
	}
	return value.Value{}, fmt.Errorf("an attribute value of type %T", v)
}

// fromStream is fromSDK for the types of the streams' client.
// It is an error for a type that DynamoDB may have one day and weir does not know: a value is never dropped.
func fromStream(v streams.AttributeValue) (value.Value, error) {
	switch v := v.(type) {
	case *streams.AttributeValueMemberNULL:
		return value.OfNull(), nil
	case *streams.AttributeValueMemberBOOL:
		return value.OfBool(v.Value), nil
	case *streams.AttributeValueMemberN:
		return value.ParseNumber(v.Value)
	case *streams.AttributeValueMemberS:
		return value.OfString(v.Value), nil
	case *streams.AttributeValueMemberB:
		return value.OfBinary(string(v.Value)), nil
	case *streams.AttributeValueMemberSS:
		return setOf(value.StringSet, v.Value)
	case *streams.AttributeValueMemberNS:
		return setOf(value.NumberSet, v.Value)
	case *streams.AttributeValueMemberBS:
		return setOf(value.BinarySet, v.Value)
	case *streams.AttributeValueMemberL:
		return listOf(v.Value, fromStream)
	case *streams.AttributeValueMemberM:
		it, err := itemOf(v.Value, fromStream)
		return value.OfMap(it), err
	}
	return value.Value{}, fmt.Errorf("an attribute value of type %T", v)
}

// setOf makes a set of the service's members. They are in order afterwards.
// The service orders members in a way of its own.
func setOf[T string | []byte](k value.Kind, elems []T) (value.Value, error) {
	out := make([]value.Attr, len(elems))
	for i, e := range elems {
		switch k {
		case value.NumberSet:
			n, err := value.ParseNumber(string(e))
			if err != nil {
				return value.Value{}, err
			}
			out[i].Value = n
		case value.BinarySet:
			out[i].Value = value.OfBinary(string(e))
		default:
			out[i].Value = value.OfString(string(e))
		}
	}
	v, ok := value.OfElements(k, out)
	if !ok {
		return v, fmt.Errorf("a set with an element twice")
	}
	return v, nil
}

// listOf makes a list; from converts each element.
func listOf[T any](elems []T, from func(T) (value.Value, error)) (value.Value, error) {
	out := make([]value.Attr, len(elems))
	for i, e := range elems {
		var err error
		if out[i].Value, err = from(e); err != nil {
			return value.Value{}, err
		}
	}
	list, _ := value.OfElements(value.List, out)
	return list, nil
}

// itemOf is nil for nil, which means that there is no row.
// Attributes are in the order of their names, as value.Item has them.
func itemOf[T any](m map[string]T, from func(T) (value.Value, error)) (value.Item, error) {
	if m == nil {
		return nil, nil
	}
	out := make(value.Item, 0, len(m))
	for name, e := range m {
		v, err := from(e)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		out = append(out, value.Attr{Name: name, Value: v})
	}
	slices.SortFunc(out, func(a, b value.Attr) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// rowOf is a row in the form that callers see.
func rowOf(m attributes) (value.Item, error) {
	delete(m, originAttr)
	delete(m, removedAttr)
	return itemOf(m, fromSDK)
}

// keyOf is a row's key in the SDK's form.
func keyOf(t *store.Table, k store.Key) (attributes, error) { return toSDKItem(t.Item(k)) }

// boundTo returns the names and values of a request's placeholders, in the SDK's form. ErrRefused says that one of them
// cannot be sent.
func boundTo(p *store.Placeholders) (names map[string]string, values attributes, err error) {
	for i, name := range p.Names {
		if err := checkUTF8(name); err != nil {
			return nil, nil, err
		}
		if names == nil {
			names = map[string]string{}
		}
		names["#"+strconv.Itoa(i)] = name
	}
	for i, v := range p.Values {
		if values == nil {
			values = attributes{}
		}
		if values[":"+strconv.Itoa(i)], err = toSDK(v); err != nil {
			return nil, nil, err
		}
	}
	return names, values, nil
}

// textOf is the text of an expression, nil for none.
func textOf(x store.Expression) *string {
	if x.Text == "" {
		return nil
	}
	return &x.Text
}
