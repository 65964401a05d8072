package ingestcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/internal/cli"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// backfillCommand adds missing attributes of rows. It never changes an attribute that a row has.
type backfillCommand struct {
	data
	output
	DryRun bool   `env:"-" help:"Write nothing: count what rows miss, and show some."`
	Model  string `arg:"" help:"Name of a built-in model or path of a model file."`
}

func (backfillCommand) Help() string {
	return `Gives rows what the model did not yet declare when they were written: defaults, and the
keys of an index that was added later. It changes no attribute that a row has, so it may
run beside applications, and again. After an interruption, the same command continues.

It prints how many rows got which attribute, and how many have an index key that the
model would not make: those are left alone. Unique values get their claims; if two rows
have one value, both stay and the second is reported. The exit code is then 1, as it is
if a row could not be given what it lacks.

  ingest backfill gallery --dry-run
  ingest backfill gallery --aws -o json`
}

// maxSamples is how many rows a dry run shows of each attribute.
const maxSamples = 3

// sample is a row that a dry run shows.
type sample struct {
	Entity string          `json:"entity"`
	Row    json.RawMessage `json:"row"`
	Gets   json.RawMessage `json:"gets"`
}

// Run prints the counts of all runs that belong together, also of those that were interrupted. An error after the
// first page is exit code 4, refusals are 1.
func (c *backfillCommand) Run(p *program) (err error) {
	s, err := p.openTables(c.data, []string{c.Model})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m := s.Models[0].Model
	shown := cli.New(p.stderr, "rows read")
	samples, seen := []sample{}, map[string]int{}
	pages := 0
	b := ingest.Backfill{Model: m, Store: s.Store, DryRun: c.DryRun, Page: func(rows int) { pages++; shown.Add(int64(rows)) }}
	b.Each = func(f ingest.Filling) {
		switch {
		case f.Reason != "":
			fmt.Fprintf(shown, "%s: refused: %s %s: %s\n", cli.Called("ingest"), f.Entity.Name, rowText(m, f.Row), f.Reason)
		case c.DryRun && len(f.Gets) > 0 && noteSeen(seen, f):
			samples = append(samples, sample{f.Entity.Name, rowText(m, f.Row), value.AppendPlainItem(nil, m.Shown(f.Entity, value.NewItem(f.Gets...)))})
		}
	}
	filled, err := b.Run(p.ctx)
	shown.End()
	if serr := s.Store.Sync(p.ctx); err == nil {
		err = serr
	}
	if err != nil {
		return cli.Partly(err, pages > 0 && !c.DryRun)
	}
	c.printFilled(p, filled, samples)
	if filled.Refused > 0 || filled.Shared > 0 {
		return cli.Failed(cli.Check)
	}
	return nil
}

// noteSeen counts the attributes of a filling, and reports whether it has one of which not enough was shown.
// seen counts by Entity.attribute how often each was met, and is changed.
func noteSeen(seen map[string]int, f ingest.Filling) bool {
	show := false
	for _, a := range f.Gets {
		name := f.Entity.Name + "." + a.Name
		seen[name]++
		show = show || seen[name] <= maxSamples
	}
	return show
}

// printFilled prints the totals, and in a dry run some rows with the attributes that they would get.
// The names of the JSON are a format that scripts rely on. Errors of writing end the command later,
// through the program's output.
func (c *backfillCommand) printFilled(p *program, f ingest.Filled, samples []sample) {
	if c.Output == "json" {
		out := map[string]any{"model": c.Model, "dryRun": c.DryRun, "read": f.Read, "rows": f.Rows, "refused": f.Refused, "claims": f.Claims, "shared": f.Shared, "gets": f.Gets, "other": f.Other}
		if c.DryRun {
			out["samples"] = samples
		}
		enc := json.NewEncoder(p.stdout)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out)
		return
	}
	verb := "filled"
	if c.DryRun {
		verb = "would be filled"
	}
	fmt.Fprintf(p.stdout, "%d rows read, %d %s, %d refused\n", f.Read, f.Rows, verb, f.Refused)
	if f.Claims+f.Shared > 0 {
		fmt.Fprintf(p.stdout, "  unique values: %d claimed, %d in two rows\n", f.Claims, f.Shared)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Gets)) {
		fmt.Fprintf(p.stdout, "  %s: %d\n", name, f.Gets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Other)) {
		fmt.Fprintf(p.stdout, "  %s: %d have another value than the model makes, and keep it\n", name, f.Other[name])
	}
	for _, s := range samples {
		fmt.Fprintf(p.stdout, "  %s %s gets %s\n", s.Entity, s.Row, s.Gets)
	}
}

// rowText is a row's key as JSON.
func rowText(m *model.Model, r store.Ref) json.RawMessage {
	return value.AppendPlainItem(nil, m.Table(r.Table).Item(r.Key))
}
