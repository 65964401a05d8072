package main

import (
	"errors"
	"fmt"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/system"
)

// dynamodb is the store of the models' tables in DynamoDB, by the SDK's own
// environment.
func (p *program) dynamodb(models []*model.Model) (*dynamodb.Store, error) {
	cfg, err := dynamodb.Config(p.ctx)
	if err != nil {
		return nil, usage("%v", err)
	}
	tables, err := system.Tables(models)
	if err != nil {
		return nil, usage("%v", err)
	}
	return dynamodb.Open(cfg, tables, dynamodb.Options{}), nil
}

// openAWS puts the models together over DynamoDB.
func (p *program) openAWS(db *dynamodb.Store, models []*model.Model, o system.Options) (*system.System, error) {
	s, err := system.Over(p.ctx, db, "", models, o)
	if errors.Is(err, store.ErrNoTable) {
		return nil, usage("%v; projector deploy tables %s --aws makes what is missing", err, models[0].Name)
	}
	return s, err
}

// prepareReplay makes the tables that a replay writes into.
func (p *program) prepareReplay(name string) error {
	models, err := load([]string{name})
	if err != nil {
		return err
	}
	db, err := p.dynamodb(models)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := system.PrepareReplay(p.ctx, db, models[0]); err != nil {
		return fmt.Errorf("preparing the replay: %w", err)
	}
	return nil
}
