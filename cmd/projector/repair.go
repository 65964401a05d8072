package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/cli"
	"weir/internal/owntable"
	"weir/internal/progress"
	"weir/internal/repair"
	"weir/internal/runner"
	"weir/internal/system"
	"weir/internal/verify"
	"weir/internal/why"
)

// repairCommand corrects derived values. Each correction is conditional on what was read, so applications and
// other processes may write meanwhile; what they change first is left for the next run.
type repairCommand struct {
	data
	output
	Model   string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Targets []string `arg:"" optional:"" name:"target" help:"Only what is derived on these rows: an entity and its key, Album:id=a1 or Album:a1, or a row as verify prints it."`
	DryRun  bool     `env:"-" help:"Print what would be put right, and change nothing."`
}

func (repairCommand) Help() string {
	return `Corrects what verify finds, from the source rows: after a gap in a stream, after something
was discarded, or when an application overwrote derived values. Prints a line for each
value that it corrects. Applications may go on writing. After an interruption, the same
command continues. When verify finds nothing more, repair discards the gaps that were
reported before it began from the list of dead letters.

History of lost records (activities, notifications, audit) stays lost. Dead letters with
amounts of a value that it corrects go. Exits with 1 if something is
left that the same command would leave again, if a value cannot be computed or derived
from the rows, or if a dry run found something; with 4 if all that is left was written as
fast as it was recounted.

On AWS, where processes go on reading the streams, repair corrects rows, copies, followed
values, statuses and documents. It leaves counts, sums, means and sets, and says so: a
stream on AWS may show a write late, so it is not known when all writes are counted.

  projector repair gallery --data ./data
  projector repair gallery --dry-run
  projector repair gallery Album:id=a1
  projector repair gallery 'gallery {"PK":"ALBUM#a1","SK":"METADATA"}' -o jsonl`
}

// Corrections are printed as they are made: those before an error, or before an interruption, are done.
func (c *repairCommand) Run(p *program) error {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{Writes: !c.DryRun})
	if err != nil {
		return err
	}
	defer s.Close()
	part := s.Models[0]
	only, err := rowsOnly(p, s, c.Targets)
	if err != nil {
		return err
	}
	if err := s.Start(p.ctx); err != nil {
		return err
	}
	if !c.shared() { // there others apply
		if err := p.settle(s); err != nil {
			return err
		}
	}
	found := []verify.Difference{}
	v := s.Verify(part)
	reading := progress.New(p.stderr, "rows read")
	v.Progress = func(rows int) { reading.Set(int64(rows), 0) }
	r := &repair.Repair{
		Verify: v, Runner: part.Runner, Only: only, Dry: c.DryRun, NoCounts: c.shared(), Passed: func(context.Context) error { return p.settle(s) },
		Yield: func(d verify.Difference) {
			d = d.Shown(part.Model)
			found = append(found, d)
			switch c.Output {
			case "text":
				fmt.Fprintf(p.stdout, "%s of %s: was %s, is %s\n", d.Derivation, d.Row, d.Have, d.Want)
			case "jsonl":
				json.NewEncoder(p.stdout).Encode(d)
			}
		},
	}
	left, gaps, err := r.Run(p.ctx)
	reading.End()
	if c.Output == "json" && err == nil {
		json.NewEncoder(p.stdout).Encode(found)
	}
	if err != nil {
		return err
	}
	cannot := slices.DeleteFunc(v.Unshown, func(u verify.Unshown) bool { return only != nil && !only(&verify.Difference{Row: u.Row}) })
	return c.say(p, part, found, left, cannot, len(gaps))
}

// rowsOnly chooses the differences of the rows that a person names, nil where they name
// none. A place that verify prints and that is no row is named as it is printed.
// It reads the store to find rows whose key parts were escaped in another way. Of a target that could be several
// rows, all count.
func rowsOnly(p *program, s *system.System, targets []string) (func(*verify.Difference) bool, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	m, rows := s.Models[0].Model, map[string]bool{}
	for _, t := range targets {
		rows[t] = true
		all, err := why.Parse(m, t)
		if err != nil && (strings.HasPrefix(t, "#") || strings.Contains(t, "|") || strings.HasPrefix(t, "[") || strings.HasPrefix(t, "{")) {
			continue
		}
		if err != nil {
			return nil, usage("%v", err)
		}
		known, err := why.Known(p.ctx, s.Store, all)
		if err != nil {
			return nil, err
		}
		for _, row := range known {
			rows[runner.RowText(m, row)] = true
			rows[owntable.RowText(row)] = true // as a ledger is named whose row counts nothing
		}
	}
	return func(d *verify.Difference) bool { return rows[d.Row] }, nil
}

// say says what came of it, and chooses the exit code.
// Nothing left is 0; something that needs a person is 1; values that only changed too fast are 4.
func (c *repairCommand) say(p *program, part *system.Part, found []verify.Difference, left []repair.Left, cannot []verify.Unshown, gaps int) error {
	done := "put right"
	if c.DryRun {
		done = "would be put right"
	}
	fmt.Fprintf(p.stderr, "%d derived values %s, %d left\n", len(found), done, len(left))
	for _, l := range left {
		l.Difference = l.Shown(part.Model)
		fmt.Fprintf(p.stderr, "left: %s of %s is %s, should be %s: %v\n", l.Derivation, l.Row, l.Have, l.Want, l.Why)
	}
	for _, u := range cannot {
		fmt.Fprintf(p.stderr, "correct its rows: %s of %s %s\n", u.Derivation, u.Row, u.Why)
	}
	if gaps > 0 {
		fmt.Fprintf(p.stderr, "%d gaps discarded: all that can be recounted is right\n", gaps)
		if names := repair.History(part.Model); len(names) > 0 {
			fmt.Fprintf(p.stderr, "not recounted, since what is past is in no row: %s\n", strings.Join(names, ", "))
		}
	}
	if code := repaired(left, len(cannot) > 0 || c.DryRun && len(found) > 0); code != exitGood {
		return failed(code)
	}
	return nil
}

// repaired is the exit code: the same command again does what was only busy, and nothing
// about anything else that is left, that a dry run found, or that cannot be derived.
func repaired(left []repair.Left, undone bool) int {
	busy := func(l repair.Left) bool { return errors.Is(l.Why, repair.ErrBusy) }
	switch n := len(slices.DeleteFunc(slices.Clone(left), busy)); {
	case n > 0 || undone:
		return exitCheck
	case len(left) > 0:
		return cli.Part
	}
	return exitGood
}
