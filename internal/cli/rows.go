package cli

import (
	"context"
	"errors"
	"slices"

	"weir/internal/interrupt"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/system"
)

// LoadModel loads a model, a built-in one or a file, unless ctx is done before: a file
// may be a pipe, or take long to check.
func LoadModel(ctx context.Context, name string) (*model.Model, error) {
	return interrupt.Do(ctx, func() (*model.Model, error) { return model.Load(name) })
}

// Load loads models, built-in ones or files.
func Load(ctx context.Context, names []string) (models []*model.Model, err error) {
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, Usage("the model %s is named twice", n)
		}
		m, err := LoadModel(ctx, n)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// DynamoDB is the store of the models' tables in DynamoDB, by the SDK's own
// environment.
func DynamoDB(ctx context.Context, models []*model.Model) (*dynamodb.Store, error) {
	cfg, err := dynamodb.Config(ctx)
	if err != nil {
		return nil, Usage("%v", err)
	}
	tables, err := system.Tables(models)
	if err != nil {
		return nil, Usage("%v", err)
	}
	return dynamodb.Open(cfg, tables, dynamodb.Options{}), nil
}

// Open loads models and opens their rows: in DynamoDB, or in the embedded store of a
// directory.
func Open(ctx context.Context, dir string, aws bool, names []string, o system.Options) (*system.System, error) {
	models, err := Load(ctx, names)
	if err != nil {
		return nil, err
	}
	if _, err := system.Tables(models); err != nil {
		return nil, Usage("%v", err)
	}
	if !aws {
		return system.Open(ctx, dir, models, o)
	}
	db, err := DynamoDB(ctx, models)
	if err != nil {
		return nil, err
	}
	s, err := system.Over(ctx, db, "", models, o)
	if errors.Is(err, store.ErrNoTable) {
		return nil, Usage("%v; projector deploy tables %s --aws makes what is missing", err, names[0])
	}
	return s, err
}
