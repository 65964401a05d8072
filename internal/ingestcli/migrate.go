package ingestcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"weir/internal/cli"
	"weir/internal/ingest"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// migrateCommand moves old rows, switches a migration on, or ends it.
type migrateCommand struct {
	data
	output
	DryRun bool   `env:"-" help:"Write nothing: count what would become of old rows."`
	End    bool   `env:"-" help:"End the migration: nothing follows old rows any more."`
	Model  string `arg:"" help:"Name of a built-in model or path of a model file."`
	Name   string `arg:"" help:"Name of a migration of the model."`
}

func (migrateCommand) Help() string {
	return `Makes old rows into rows of the model, as a migration in the model file says, while
applications go on writing both. From the first run on the migration is on: this
command moves the rows that exist, and projector run those that are added or change.
Each row is moved in one transaction. After an interruption, run the command again.

weir keeps a migrated row in sync with its old row until an application modifies or
deletes it. An old row in a table of its own stays. If it is deleted, the migrated row is
deleted too, so end the migration (--end) before you clear the old table.

A migrated row claims its unique values. If another row has one of them, the old row is
refused and nothing is changed; it is moved when the value is free.

It prints the number of old rows by outcome: moved, followed (moved before, and changed
since), there (nothing to do), kept (the application has changed or deleted the migrated
row), refused (with the reason, as a JSON object on stderr). If a row was refused, the exit code is 1;
correct the old row, and it is moved.

  ingest migrate gallery v1 --dry-run
  ingest migrate gallery v1
  ingest migrate gallery v1 --end`
}

// Run prints the counts of all runs of the migration's scan. A refused row is printed as it is found, so it is
// complete up to an interruption.
func (c *migrateCommand) Run(p *program) (err error) {
	s, err := p.openTables(c.data, []string{c.Model})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m := s.Models[0].Model
	g := m.Migration(c.Name)
	if g == nil {
		return noMigration(m, c.Name)
	}
	mover := &ingest.Mover{Model: m, Store: s.Store}
	if c.End {
		return c.end(p, mover, g)
	}
	shown := cli.New(p.stderr, "rows read")
	pages := 0
	scan := ingest.Scan{Mover: mover, Migration: g, DryRun: c.DryRun, Page: func(rows int) { pages++; shown.Add(int64(rows)) }}
	if c.DryRun {
		taken, close, err := scratch(c.Memory)
		if err != nil {
			return err
		}
		defer close()
		scan.Taken = taken
	}
	var unsaid error // of the refused rows
	scan.Each = func(row store.Ref, _ value.Item, r ingest.MigrationResult) {
		if r.Outcome == ingest.Refused {
			enc := json.NewEncoder(shown)
			enc.SetEscapeHTML(false)
			unsaid = errors.Join(unsaid, enc.Encode(refusedRow{row.Table, rowText(m, row), m.ShownText(r.Reason)}))
		}
	}
	counts, err := scan.Run(p.ctx)
	shown.End()
	if err == nil {
		err = unsaid
	}
	if serr := s.Store.Sync(p.ctx); err == nil {
		err = serr
	}
	if err != nil {
		return cli.Partly(err, pages > 0 && !c.DryRun)
	}
	c.print(p, counts)
	if n := counts[ingest.Refused]; n > 0 {
		fmt.Fprintf(p.stderr, "%s: %d refused\n", cli.Called("ingest"), n)
		return cli.Failed(cli.Check)
	}
	return nil
}

// scratch is a store that is gone with the command.
// A dry run notes there which unique values it would have taken.
func scratch(size memory.Size) (_ store.Store, close func(), err error) {
	dir, err := os.MkdirTemp("", "weir-migrate-")
	if err != nil {
		return nil, nil, err
	}
	db, err := system.Beside(dir, []store.Table{owntable.Table()}, size)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	return db, func() { db.Close(); os.RemoveAll(dir) }, nil
}

// refusedRow is an old row that cannot be moved, as it is printed.
type refusedRow struct {
	Table  string          `json:"table"`
	Row    json.RawMessage `json:"row"`
	Reason string          `json:"reason"`
}

// end ends the migration, and leaves all rows as they are.
// It is durable when end returns without an error.
func (c *migrateCommand) end(p *program, mover *ingest.Mover, g *model.Migration) error {
	if c.DryRun {
		return cli.Usage("--dry-run and --end do not go together")
	}
	if err := mover.End(p.ctx, g); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "%s of %s is over: nothing follows old rows any more\n", c.Name, c.Model)
	return mover.Store.Sync(p.ctx)
}

// noMigration is the usage error for a migration that the model does not have, with those that it has.
func noMigration(m *model.Model, name string) error {
	names := seq.Map(m.Migrations, func(g *model.Migration) string { return g.Name })
	if len(names) == 0 {
		return cli.Usage("%s has no migrations", m.Name)
	}
	return cli.Usage("%s has no migration %q; there is %s", m.Name, name, strings.Join(names, ", "))
}

// results are printed in this order.
var results = []ingest.Outcome{ingest.Moved, ingest.Followed, ingest.There, ingest.Kept, ingest.Refused}

// print prints the counts in one line, or as one object that has every outcome.
// Outcomes that did not happen are left out of the text, and are 0 in the JSON.
func (c *migrateCommand) print(p *program, counts ingest.Counts) {
	if c.Output == "json" {
		out := map[string]any{"model": c.Model, "migration": c.Name, "dryRun": c.DryRun}
		for _, o := range results {
			out[string(o)] = counts[o]
		}
		_ = json.NewEncoder(p.stdout).Encode(out)
		return
	}
	var parts []string
	for _, o := range results {
		if n := counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(parts) == 0 {
		parts = []string{"there are no old rows"}
	}
	fmt.Fprintln(p.stdout, strings.Join(parts, ", "))
}
