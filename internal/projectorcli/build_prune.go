package projectorcli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/build"
	"weir/internal/cli"
	"weir/internal/system"
)

// pruned is a generation, of ledgers or of search indexes, or the values of a retired derivation, as results show it.
// Generation is a number of a build, or the hash of a search generation. Why says why something
// stays; it is empty if it was removed. Of values there is no generation, but how many rows had them, some of these, and
// how many rows stay because another program wrote them.
type pruned struct {
	Entity     string            `json:"entity,omitempty"` // of ledgers
	Generation string            `json:"generation,omitempty"`
	Derivation string            `json:"derivation,omitempty"`
	Rows       int64             `json:"rows,omitempty"`
	Some       []string          `json:"some,omitempty"`
	Others     int64             `json:"others,omitempty"`
	Indexes    map[string]string `json:"indexes,omitempty"` // of a search generation
	Removed    bool              `json:"removed"`
	Why        string            `json:"why,omitempty"`
}

// pruneRetired removes values that no program derives any more: those of retired derivations, then ledgers, then search indexes. With
// names, or in a dry run, it looks at values alone. Interrupted, the same command goes on. Values that were removed before an error are
// printed too.
func (c *buildCommand) pruneRetired(p *program, s *system.System) (err error) {
	part, out := s.Models[0], c.to(p.stdout)
	add := func(is pruned, name, text string) {
		is.Removed = is.Why == "" && !c.DryRun
		if is.Why != "" {
			text = "stays: " + is.Why
		}
		out.printResult(is, func() { fmt.Fprintf(p.stdout, "%s: %s\n", name, text) })
	}
	defer func() {
		if err == nil || len(out.all) > 0 {
			out.printEnd()
		}
	}()
	b := part.Builder()
	b.Segments, b.Budget = c.Segments, c.WriteBudget
	each, err := c.remove(p, b)
	if err != nil {
		return err
	}
	for _, r := range each {
		add(pruned{Derivation: r.Derivation, Rows: r.Rows, Some: r.Some, Others: r.Others, Why: r.Why}, r.Derivation, removedText(r, c.DryRun))
	}
	if c.DryRun || len(c.Derivations) > 0 {
		return nil
	}
	ledgers, rows, err := b.Prune(p.ctx)
	for _, g := range ledgers {
		add(pruned{Entity: g.Entity, Generation: fmt.Sprint(g.Generation), Why: g.Why}, fmt.Sprintf("ledgers of %s, generation %d", g.Entity, g.Generation), "removed")
	}
	if err == nil && s.Index != nil && len(part.Model.Searches) > 0 {
		err = s.Prune(p.ctx, part, func(f system.Pruned) {
			add(pruned{Generation: f.Generation, Indexes: f.Indexes, Why: f.Why}, fmt.Sprintf("%s %q", f.Generation, slices.Sorted(maps.Values(f.Indexes))), "removed")
		})
	}
	if rows > 0 {
		fmt.Fprintf(p.stderr, "%d rows of weir's own table are removed\n", rows)
	}
	return err
}

// remove removes the values of retired derivations, or counts them in a dry run.
func (c *buildCommand) remove(p *program, b *build.Builder) ([]*build.Removed, error) {
	x := &build.Removal{Builder: b, Only: c.Derivations, Dry: c.DryRun}
	each, err := x.Begin(p.ctx)
	if errors.Is(err, build.ErrEarlier) {
		return nil, usage("%v", err)
	}
	if err != nil {
		return nil, err
	}
	reading := cli.New(p.stderr, "rows read")
	b.Report = func(d build.Progress) { reading.Set(d.Rows, 0) }
	err = x.Run(p.ctx)
	reading.End()
	b.Report = nil
	d := b.Done()
	if errors.Is(err, build.ErrDerived) {
		return nil, usage("%v", err)
	}
	if err != nil {
		return nil, cli.Partly(err, d.Targets > 0)
	}
	if d.Rows > 0 {
		fmt.Fprintf(p.stderr, "%d rows read, %d rows %s, %d write units and %d read units, $%.4f on demand\n", d.Rows, d.Targets,
			map[bool]string{true: "would change", false: "changed"}[c.DryRun], d.Units, d.ReadUnits(), d.Price())
	}
	return each, nil
}

// removedText is the fate of the values of a derivation, for people. Its wording may change;
// scripts use the JSON.
func removedText(r *build.Removed, dry bool) string {
	did := map[bool]string{true: "would be removed", false: "removed"}[dry]
	text := fmt.Sprintf("%s from %d rows", did, r.Rows)
	if r.Made {
		text = fmt.Sprintf("%d rows %s", r.Rows, did)
	}
	if len(r.Some) > 0 {
		text += ", such as " + strings.Join(r.Some, ", ")
	}
	if r.Others > 0 {
		text += fmt.Sprintf("; %d rows stay, because another program wrote them", r.Others)
	}
	return text
}
