package main

import (
	"fmt"

	"weir/internal/cli"
	"weir/internal/drivers"
	"weir/internal/system"
)

// prepareReplay makes the tables that a replay writes into, where opening does not.
func (p *program) prepareReplay(at drivers.Place, name string) error {
	if !at.Store().Deploys() {
		return nil
	}
	models, err := cli.Load(p.ctx, []string{name})
	if err != nil {
		return err
	}
	db, names, err := cli.Deployer(p.ctx, at, models)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := system.PrepareReplay(p.ctx, db, &names, models[0]); err != nil {
		return fmt.Errorf("preparing the replay: %w", err)
	}
	return nil
}
