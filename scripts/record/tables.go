package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (a *app) createTable(t tableSpec) error {
	_, err := a.db.DeleteTable(a.ctx, &dynamodb.DeleteTableInput{TableName: &t.name}) // what a broken run left
	if missing := (*types.ResourceNotFoundException)(nil); err != nil && !errors.As(err, &missing) {
		return err
	}
	in := &dynamodb.CreateTableInput{
		TableName:   &t.name,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keySchema(t.hash, t.rng),
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
	in.AttributeDefinitions = t.definitions()
	for _, i := range t.gsis {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(i.name), KeySchema: keySchema(i.hash, i.rng), Projection: i.projection()})
	}
	for _, i := range t.lsis {
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
			IndexName: aws.String(i.name), KeySchema: keySchema(i.hash, i.rng), Projection: i.projection()})
	}
	_, err = a.db.CreateTable(a.ctx, in)
	return err
}

// enableTTL lets the service sweep a table, from here on.
func (a *app) enableTTL(t tableSpec) error {
	_, err := a.db.UpdateTimeToLive(a.ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &t.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.ttl, Enabled: aws.Bool(true)},
	})
	return err
}

func (i indexSpec) projection() *types.Projection {
	if i.keysOnly {
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeAll}
}

func keySchema(hash, rng string) []types.KeySchemaElement {
	out := []types.KeySchemaElement{{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash}}
	if rng != "" {
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(rng), KeyType: types.KeyTypeRange})
	}
	return out
}

func (a *app) dropTables() {
	for _, t := range a.model.tables {
		// Best effort: the next run drops what is left.
		_, _ = a.db.DeleteTable(context.WithoutCancel(a.ctx), &dynamodb.DeleteTableInput{TableName: &t.name})
	}
}

// definitions names the type of every attribute that is part of a key.
func (t tableSpec) definitions() []types.AttributeDefinition {
	names := []string{t.hash, t.rng}
	for _, i := range slices.Concat(t.gsis, t.lsis) {
		names = append(names, i.hash, i.rng)
	}
	slices.Sort(names)
	var out []types.AttributeDefinition
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue
		}
		kind := types.ScalarAttributeTypeS
		if slices.Contains(t.numbers, name) {
			kind = types.ScalarAttributeTypeN
		}
		out = append(out, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind})
	}
	return out
}

// dropIndexes takes the global indexes off a table. It must not name their attributes any more: DynamoDB Local then
// never sweeps the table.
func (a *app) dropIndexes(t tableSpec) error {
	for _, i := range t.gsis {
		err := a.changeIndex(&dynamodb.UpdateTableInput{TableName: &t.name,
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
				Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &i.name}}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// addIndexes puts them back.
func (a *app) addIndexes(t tableSpec) error {
	for _, i := range t.gsis {
		err := a.changeIndex(&dynamodb.UpdateTableInput{TableName: &t.name, AttributeDefinitions: t.definitions(),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
				Create: &types.CreateGlobalSecondaryIndexAction{
					IndexName: &i.name, KeySchema: keySchema(i.hash, i.rng), Projection: i.projection()}}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// changeIndex does one change, since a table takes one at a time, and waits until it is done.
func (a *app) changeIndex(in *dynamodb.UpdateTableInput) error {
	if _, err := a.db.UpdateTable(a.ctx, in); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, err := a.db.DescribeTable(a.ctx, &dynamodb.DescribeTableInput{TableName: in.TableName})
		if err != nil {
			return err
		}
		busy := func(i types.GlobalSecondaryIndexDescription) bool { return i.IndexStatus != types.IndexStatusActive }
		if out.Table.TableStatus == types.TableStatusActive && !slices.ContainsFunc(out.Table.GlobalSecondaryIndexes, busy) {
			return nil
		}
	}
	return errors.New("still busy after a minute")
}
