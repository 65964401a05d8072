package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"weir/internal/build"
	"weir/internal/cli"
	"weir/internal/progress"
	"weir/internal/system"
)

// retired removes what retired derivations have left in the rows, and then what --prune removes
// alone. Interrupted, the same command goes on.
func (c *buildCommand) retired(p *program) error {
	if c.Again || c.HandOver > 0 || len(c.From) > 0 {
		return usage("--retired goes with --prune, --dry-run and --write-budget only")
	}
	earlier, err := cli.LoadModel(p.ctx, c.Retired)
	if err != nil {
		return err
	}
	s, err := p.existing(c.data, []string{c.Model}, system.Options{NoSearch: c.DryRun, Writes: !c.DryRun})
	if err != nil {
		return err
	}
	defer s.Close()
	b := s.Models[0].Builder()
	b.Segments, b.Budget, b.Names = c.Segments, c.WriteBudget, nil
	x := &build.Removal{Builder: b, Earlier: earlier, Only: c.Derivations, Dry: c.DryRun}
	each, err := x.Begin(p.ctx)
	if errors.Is(err, build.ErrEarlier) {
		return usage("%v", err)
	}
	if err != nil {
		return err
	}
	if of := x.Entries(); len(of) > 0 {
		fmt.Fprintf(p.stderr, "each row that changes is a change that %s keep, or notify of: the application no longer has an attribute there\n", strings.Join(of, ", "))
	}
	reading := progress.New(p.stderr, "rows read")
	b.Report = func(d build.Progress) { reading.Set(d.Rows, 0) }
	err = x.Run(p.ctx)
	reading.End()
	b.Report = nil
	d := b.Done()
	if errors.Is(err, build.ErrDerived) {
		return usage("%v", err)
	}
	if err != nil {
		return cli.Partly(err, d.Targets > 0)
	}
	values := c.removed(p, each)
	fmt.Fprintf(p.stderr, "%d rows read, %d rows %s, %d write units and %d read units, $%.4f on demand\n", d.Rows, d.Targets,
		map[bool]string{true: "would change", false: "changed"}[c.DryRun], d.Units, d.ReadUnits(), d.Price())
	if c.DryRun {
		if c.Output == "json" {
			json.NewEncoder(p.stdout).Encode(values)
		}
		return nil
	}
	names, search, err := buildable(s.Models[0].Model, nil)
	if err != nil {
		return err
	}
	b.Names = names
	return c.prune(p, s, b, search && s.Index != nil, values)
}

// removed prints what became of the values of each derivation, but in JSON, which it returns: the
// document is one list, and has what --prune removes alone behind it.
func (c *buildCommand) removed(p *program, each []*build.Removed) []pruned {
	values := []pruned{}
	if len(each) == 0 {
		fmt.Fprintf(p.stderr, "nothing that %s derives is retired\n", c.Retired)
	}
	for _, r := range each {
		is := pruned{Derivation: r.Derivation, Rows: r.Rows, Others: r.Others, Why: r.Why, Removed: r.Why == "" && !c.DryRun}
		values = append(values, is)
		switch c.Output {
		case "jsonl":
			json.NewEncoder(p.stdout).Encode(is)
		case "text":
			fmt.Fprintf(p.stdout, "%s: %s\n", r.Derivation, removedText(r, c.DryRun))
		}
	}
	return values
}

// removedText says what became of the values of a derivation, for people. Its wording may change;
// scripts use the JSON.
func removedText(r *build.Removed, dry bool) string {
	if r.Why != "" {
		return "stays: " + r.Why
	}
	did := map[bool]string{true: "would be removed", false: "removed"}[dry]
	text := fmt.Sprintf("%s from %d rows", did, r.Rows)
	if r.Made {
		text = fmt.Sprintf("%d rows %s", r.Rows, did)
	}
	if r.Others > 0 {
		text += fmt.Sprintf("; %d rows stay, because another program wrote them", r.Others)
	}
	return text
}
