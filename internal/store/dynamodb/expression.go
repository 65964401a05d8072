package dynamodb

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
	"weir/internal/value"
)

// expression collects the names and values that the placeholders of one request's
// expressions stand for. No name and no value is ever part of an expression's text.
// The first name or value that cannot be sent is kept in err, which the caller looks at once at the end. The zero
// expression is ready to use.
type expression struct {
	names  map[string]string
	values attributes
	byName map[string]string
	err    error
}

// name is the placeholder of an attribute's name.
// Names are always placeholders, since many words are reserved (DynamoDB, reserved words). A name
// that is not UTF-8 makes the whole expression an error.
func (x *expression) name(n string) string {
	if p := x.byName[n]; p != "" {
		return p
	}
	if x.names == nil {
		x.names, x.byName = map[string]string{}, map[string]string{}
	}
	p := "#" + strconv.Itoa(len(x.names))
	x.names[p], x.byName[n] = n, p
	if err := checkUTF8(n); err != nil {
		x.err = err
	}
	return p
}

// value is the placeholder of a value.
// Equal values have a placeholder each.
func (x *expression) value(v value.Value) string {
	sdk, err := toSDK(v)
	if err != nil {
		x.err = err
	}
	if x.values == nil {
		x.values = attributes{}
	}
	p := ":" + strconv.Itoa(len(x.values))
	x.values[p] = sdk
	return p
}

// update is the UpdateExpression of ops.
// Each attribute may occur in ops once only: DynamoDB refuses two paths to one attribute.
func (x *expression) update(ops []store.Op) *string {
	var sets, adds, removes []string
	for i := range ops {
		op := &ops[i]
		name := x.name(op.Attr)
		switch op.Kind {
		case store.Set:
			sets = append(sets, name+"="+x.value(op.Value))
		case store.Add:
			if op.From.IsMissing() {
				adds = append(adds, name+" "+x.value(op.Value))
				continue
			}
			sets = append(sets, name+"=if_not_exists("+name+","+x.value(op.From)+")+"+x.value(op.Value))
		case store.Remove:
			removes = append(removes, name)
		}
	}
	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ","))
	}
	if len(adds) > 0 {
		parts = append(parts, "ADD "+strings.Join(adds, ","))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ","))
	}
	return aws.String(strings.Join(parts, " "))
}

// condition is the ConditionExpression, nil for none. An inner list without tests never
// holds; it becomes a test that never holds.
func (x *expression) condition(t *store.Table, c store.Cond) *string {
	if len(c) == 0 {
		return nil
	}
	clauses := make([]string, len(c))
	for i, clause := range c {
		if len(clause) == 0 {
			pk := x.name(t.Key.Partition.Name)
			clauses[i] = "(attribute_exists(" + pk + ") AND attribute_not_exists(" + pk + "))"
			continue
		}
		tests := make([]string, len(clause))
		for j := range clause {
			tests[j] = x.test(&clause[j])
		}
		clauses[i] = "(" + strings.Join(tests, " OR ") + ")"
	}
	return aws.String(strings.Join(clauses, " AND "))
}

// test is one of several tests that are joined by OR. DynamoDB refuses redundant
// parentheses.
func (x *expression) test(t *store.Test) string {
	name := x.name(t.Attr)
	switch t.Is {
	case store.Exists:
		return "attribute_exists(" + name + ")"
	case store.Absent:
		return "attribute_not_exists(" + name + ")"
	case store.Ne:
		return "attribute_not_exists(" + name + ") OR " + name + "<>" + x.value(t.Value)
	}
	return name + map[store.Comparison]string{store.Eq: "=", store.Lt: "<", store.Le: "<="}[t.Is] + x.value(t.Value)
}

// returnOnFailure asks for the row for which a condition failed.
func returnOnFailure(w *store.Write) types.ReturnValuesOnConditionCheckFailure {
	if w.Return {
		return types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.ReturnValuesOnConditionCheckFailureNone
}
