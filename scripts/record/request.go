package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// single does one op in a request of its own.
func (a *app) single(o op) error {
	r, err := attributes(o.row)
	if err != nil {
		return err
	}
	switch o.kind {
	case "put":
		_, err = a.db.PutItem(a.ctx, &dynamodb.PutItemInput{TableName: &o.table, Item: r})
	case "delete":
		_, err = a.db.DeleteItem(a.ctx, &dynamodb.DeleteItemInput{TableName: &o.table, Key: r})
	case "update":
		expr, names, values, uerr := updateExpression(o)
		if uerr != nil {
			return uerr
		}
		_, err = a.db.UpdateItem(a.ctx, &dynamodb.UpdateItemInput{TableName: &o.table, Key: r,
			UpdateExpression: &expr, ExpressionAttributeNames: names, ExpressionAttributeValues: values})
	}
	return err
}

func (a *app) transactItem(o op) (types.TransactWriteItem, error) {
	var item types.TransactWriteItem
	r, err := attributes(o.row)
	if err != nil {
		return item, err
	}
	switch o.kind {
	case "put":
		item.Put = &types.Put{TableName: &o.table, Item: r}
	case "delete":
		item.Delete = &types.Delete{TableName: &o.table, Key: r}
	case "update":
		expr, names, values, err := updateExpression(o)
		if err != nil {
			return item, err
		}
		item.Update = &types.Update{TableName: &o.table, Key: r,
			UpdateExpression: &expr, ExpressionAttributeNames: names, ExpressionAttributeValues: values}
	}
	return item, nil
}

func (a *app) batchWrite(ops []op) error {
	requests := make(map[string][]types.WriteRequest)
	for _, o := range ops {
		r, err := attributes(o.row)
		if err != nil {
			return err
		}
		w := types.WriteRequest{PutRequest: &types.PutRequest{Item: r}}
		if o.kind == "delete" {
			w = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: r}}
		}
		requests[o.table] = append(requests[o.table], w)
	}
	out, err := a.db.BatchWriteItem(a.ctx, &dynamodb.BatchWriteItemInput{RequestItems: requests})
	if err == nil && len(out.UnprocessedItems) > 0 {
		err = fmt.Errorf("the service left items of a batch unprocessed")
	}
	return err
}

// updateExpression writes SET and REMOVE with placeholders for every name and value.
func updateExpression(o op) (string, map[string]string, map[string]types.AttributeValue, error) {
	var sets, removes []string
	names := make(map[string]string)
	values := make(map[string]types.AttributeValue)
	for _, k := range sortedKeys(o.set) {
		av, err := attribute(o.set[k])
		if err != nil {
			return "", nil, nil, fmt.Errorf("%s: %w", k, err)
		}
		name, value := fmt.Sprintf("#s%d", len(sets)), fmt.Sprintf(":s%d", len(sets))
		names[name], values[value] = k, av
		sets = append(sets, name+" = "+value)
	}
	for i, k := range o.remove {
		name := fmt.Sprintf("#r%d", i)
		names[name] = k
		removes = append(removes, name)
	}
	var parts []string
	if sets != nil {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if removes != nil {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	if len(values) == 0 {
		values = nil
	}
	return strings.Join(parts, " "), names, values, nil
}

// get reads one row, strongly; nil where there is none.
func (a *app) get(table string, key row) (row, error) {
	k, err := attributes(a.tables[table].key(key))
	if err != nil {
		return nil, err
	}
	out, err := a.db.GetItem(a.ctx, &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		return nil, err
	}
	return rowOf(out.Item), nil
}

// An access is an access pattern of a document: a query of a table or an index. With no range condition it takes
// the whole partition; with table and key alone it is a GetItem.
type access struct {
	table, index string
	hash         string
	value        any
	rng          string
	op           string // "=", "<" or "begins"
	arg          any
	desc         bool
	keep         func(row) bool // what the application filters afterwards; nil keeps all
}

// read does an access pattern through all its pages.
func (a *app) read(by access) ([]row, error) {
	in := &dynamodb.QueryInput{TableName: &by.table, ScanIndexForward: aws.Bool(!by.desc),
		KeyConditionExpression:    aws.String("#h = :h"),
		ExpressionAttributeNames:  map[string]string{"#h": by.hash},
		ExpressionAttributeValues: map[string]types.AttributeValue{},
	}
	if by.index != "" {
		in.IndexName = &by.index
	}
	var err error
	if in.ExpressionAttributeValues[":h"], err = attribute(by.value); err != nil {
		return nil, err
	}
	if by.op != "" {
		cond := fmt.Sprintf("#r %s :r", by.op)
		if by.op == "begins" {
			cond = "begins_with(#r, :r)"
		}
		in.KeyConditionExpression = aws.String("#h = :h AND " + cond)
		in.ExpressionAttributeNames["#r"] = by.rng
		if in.ExpressionAttributeValues[":r"], err = attribute(by.arg); err != nil {
			return nil, err
		}
	}
	var out []row
	pages := dynamodb.NewQueryPaginator(a.db, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if r := rowOf(item); by.keep == nil || by.keep(r) {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// scan reads a whole table.
func (a *app) scan(table string) ([]row, error) {
	var out []row
	pages := dynamodb.NewScanPaginator(a.db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			out = append(out, rowOf(item))
		}
	}
	return out, nil
}
