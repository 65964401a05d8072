package projectorcli

import (
	"cmp"
	"errors"
	"fmt"

	"weir/internal/cli"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/survey"
	"weir/internal/system"
)

// deployCommands prepare AWS for a model. Neither deletes or changes anything that exists.
type deployCommands struct {
	Tables    deployTables    `cmd:"" help:"Make the tables, with indexes, streams and TTL."`
	Template  deployTemplate  `cmd:"" help:"Print a template of everything that a model needs on AWS."`
	Dashboard deployDashboard `cmd:"" help:"Print a dashboard for Grafana, or alarms for Prometheus, of processes."`
	Role      deployRole      `cmd:"" help:"Print the role of OpenSearch's fine-grained access control that weir needs."`
}

// deployTables creates tables in DynamoDB. It may run at any time, also beside running processes.
type deployTables struct {
	output
	cli.StageFlags
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	DryRun bool     `env:"-" help:"Say what would be created, and what differs; change nothing."`
	AWS    bool     `name:"aws" required:"" help:"In DynamoDB, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest."`
}

func (deployTables) Help() string {
	return `Creates the tables that do not exist: the models' and weir's own. One that exists
is left as it is. If one differs from the model, the differences are printed, and the exit
code is 1, also if only the TTL differs: verify would miss copies that TTL deleted, or
rows would stay that should expire. Running it again changes nothing. With --stage and
--tables the tables get the names of that stage.

--dry-run says what would be done, and needs permission only to describe tables.

  projector deploy tables gallery wardrobe --aws
  projector deploy tables gallery --aws --stage prod --tables gallery=gallery-prod`
}

// Run prints each table, also those before an error. A table that differs from the model is exit code 1.
func (c *deployTables) Run(p *program) error {
	models, err := cli.Load(p.ctx, c.Models)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(p, models)
	}
	db, names, err := cli.Deployer(p.ctx, system.Place{AWS: c.AWS, Stage: c.Deployment()}, models)
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := system.DeployTables(p.ctx, db, models)
	differs := c.print(p, &names, found)
	if err == nil && differs {
		return failed(exitCheck)
	}
	return err
}

// dryRun prints the steps that Run would take. A table that could not be described is an error.
// It needs no permission but those to describe. A table that cannot be described does not keep the
// others from being printed.
func (c *deployTables) dryRun(p *program, models []*model.Model) error {
	if _, err := system.Tables(models); err != nil {
		return usage("%v", err)
	}
	tables, names, err := survey.Tables(p.ctx, system.Place{AWS: c.AWS, Stage: c.Deployment()}, models)
	if errors.Is(err, system.ErrConfig) {
		return usage("%v", err)
	}
	var found []store.Deployed
	for i := range tables {
		t := &tables[i]
		if t.Unknown != "" || t.TTL.Unknown != "" {
			err = errors.Join(err, fmt.Errorf("table %s: this needs %s", t.Want.Name, cmp.Or(t.Unknown, t.TTL.Unknown)))
			continue
		}
		d := store.Deployed{Table: cmp.Or(t.Model, owntable.TableName), Created: t.Missing}
		if !t.Missing {
			for _, x := range t.Differences() {
				d.Differs = append(d.Differs, x.Text)
			}
		}
		found = append(found, d)
	}
	if names != nil && c.print(p, names, found) && err == nil {
		return failed(exitCheck)
	}
	return err
}

// deployed is a table as results show it.
type deployed struct {
	Table   string `json:"table"`
	Name    string `json:"name"`    // in the store
	Created bool   `json:"created"` // in a dry run, that it would be
	// Differs is empty, and not null, for a table that is as the model says.
	Differs []string `json:"differs"`
	dry     bool
}

// print prints the tables in the order of found, and reports whether one differs from its model.
// In the form json it is one array, printed when the last table is known; the other forms are
// printed table by table.
func (c *deployTables) print(p *program, names *stage.Names, found []store.Deployed) (differs bool) {
	out := c.to(p.stdout)
	for _, f := range found {
		d := deployed{Table: f.Table, Name: names.Real(f.Table), Created: f.Created, Differs: append([]string{}, f.Differs...), dry: c.DryRun}
		differs = differs || len(d.Differs) > 0
		out.printResult(d, func() { d.printText(p, names.Shown(f.Table)) })
	}
	out.printEnd()
	return differs
}

// printText prints one table, and a line for each difference. shown is its name with the name in the store.
func (d deployed) printText(p *program, shown string) {
	switch {
	case d.Created && d.dry:
		fmt.Fprintf(p.stdout, "%s: would be created\n", shown)
	case d.Created:
		fmt.Fprintf(p.stdout, "%s: created\n", shown)
	case len(d.Differs) == 0:
		fmt.Fprintf(p.stdout, "%s: exists\n", shown)
	default:
		fmt.Fprintf(p.stdout, "%s: exists, and differs\n", shown)
	}
	for _, x := range d.Differs {
		fmt.Fprintf(p.stdout, "  %s\n", x)
	}
}
