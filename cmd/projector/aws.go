package main

import (
	"fmt"

	"weir/internal/cli"
	"weir/internal/system"
)

// prepareReplay makes the tables that a replay writes into.
func (p *program) prepareReplay(name string) error {
	models, err := cli.Load(p.ctx, []string{name})
	if err != nil {
		return err
	}
	db, err := cli.DynamoDB(p.ctx, models)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := system.PrepareReplay(p.ctx, db, models[0]); err != nil {
		return fmt.Errorf("preparing the replay: %w", err)
	}
	return nil
}
