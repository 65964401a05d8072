package projectorcli

import (
	"fmt"

	"weir/internal/cli"
	"weir/internal/system"
)

// prepareReplay makes the tables that a replay writes into, where opening does not.
// It does nothing for a store that makes its tables when it is opened. A table that exists is left as it is; one
// that no replay made is an error, so that a replay never writes into the table of an application.
func (p *program) prepareReplay(at system.Place, name string) error {
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
