package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
)

// retireCommand notes that derivations are gone from a model, or all of it. It changes no row.
type retireCommand struct {
	data
	Model       string   `arg:"" help:"Name of a built-in model or path of a model file, without the derivations; or the name of a model whose file is gone."`
	Derivations []string `arg:"" optional:"" name:"derivation" help:"Names as projector status prints them. Without any, all of a model whose file is gone."`
	All         bool     `env:"-" help:"Retire all that the model derived, whatever its file says."`
}

func (retireCommand) Help() string {
	return `A derivation that is taken out of a model stays in the catalog, and programs whose
model does not have it are refused, since they could be older ones. This notes that it
is gone: from then on, programs that still have it are refused instead. What it
derived stays in the rows, and nothing updates it; projector build MODEL --prune
--retired EARLIER removes it. Dead letters that only said that it cannot be shown
are deleted. A month later the note goes too.

A whole model is retired by its name, also if its file is gone: then all programs that
derive it are refused, its builds end, and other models may show values on its rows.
What is left that only a model file tells is printed. An hour later
projector build MODEL --prune removes its ledgers from weir's own table.

  projector retire gallery.yaml Album.sum --data ./data
  projector retire stats --data ./data
  projector retire gallery --all --data ./data`
}

// Run changes the catalog, and deletes dead letters that no longer say anything. Names that the model still has are
// refused, unless all of it is retired.
func (c *retireCommand) Run(p *program) error {
	if c.All && len(c.Derivations) > 0 {
		return usage("--all retires all of a model: name no derivations")
	}
	s, gone, err := p.named(c.data, c.Model, system.Options{Writes: true})
	if err != nil {
		return err
	}
	defer s.Close()
	of := s.Models[0].Runner.Catalog
	switch {
	case len(c.Derivations) > 0:
		if err := of.Retire(p.ctx, c.Derivations); err != nil {
			return err
		}
		fmt.Fprintf(p.stderr, "retired: %s\n", strings.Join(c.Derivations, ", "))
		return c.letters(p, s.Models[0].Runner)
	case !gone && !c.All:
		return usage("say which derivations model %s no longer has; --all retires all that it derived", s.Models[0].Model.Name)
	}
	retired, err := of.RetireAll(p.ctx)
	if err != nil {
		return err
	}
	if len(retired) == 0 {
		fmt.Fprintf(p.stderr, "nothing to retire: all of model %s is retired already\n", s.Models[0].Model.Name)
	} else {
		fmt.Fprintf(p.stderr, "retired: %s\n", strings.Join(retired, ", "))
	}
	return c.left(p, s, of)
}

// letters deletes the dead letters that only said that what is retired cannot be shown.
func (c *retireCommand) letters(p *program, r *runner.Runner) error {
	ids, err := r.Unshown(p.ctx, func(at store.Ref) bool {
		return slices.ContainsFunc(c.Derivations, func(name string) bool {
			of, _, _ := strings.Cut(name, ".")
			e := r.Model.Entity(of)
			return e == nil || e.CanBe(at)
		})
	})
	if err != nil {
		return err
	}
	return r.RetryUnshown(p.ctx, ids, func() error { return nil })
}

// left says what a model that is retired leaves behind: what the catalog tells of it, and what only the model's file
// tells. It writes nothing.
func (c *retireCommand) left(p *program, s *system.System, of *catalog.Catalog) error {
	name := s.Models[0].Model.Name
	row, err := of.Row(p.ctx)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, t := range slices.Sorted(maps.Keys(row.Tables)) {
		shapes, err := of.ShownBy(p.ctx, t)
		if err != nil {
			return err
		}
		for _, shape := range shapes {
			fmt.Fprintf(p.stderr, "stays: the values of %s, on rows of table %s with keys as %s\n", strings.Join(shape.Of, ", "), t, shape.Key())
			for _, d := range shape.Of {
				shown[d] = true
			}
		}
	}
	var others []string
	for _, d := range slices.Sorted(maps.Keys(row.Derivations)) {
		if is := row.Derivations[d]; !shown[d] && is.State == owntable.Retired {
			others = append(others, d)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(p.stderr, "stays: what %s made or showed, of which the catalog does not tell the rows\n", strings.Join(others, ", "))
	}
	gs, err := s.SearchGenerations(p.ctx, s.Models[0])
	if err != nil {
		return err
	}
	for _, g := range gs {
		for _, ix := range g.Indexes {
			fmt.Fprintf(p.stderr, "stays: the search index %s, at %s %s\n", ix.Name, g.Kind, ix.Place)
		}
	}
	fmt.Fprintf(p.stderr, "To remove these, or to derive them again, the model's file is needed, since only it tells which attributes and rows they are: "+
		"the file with model: %s whose definitions are those that projector status %s prints. With it, projector build %s --prune --retired FILE removes them.\n", name, name, name)
	fmt.Fprintf(p.stderr, "An hour from now, projector build %s --prune removes the ledgers from weir's own table, which needs no file.\n", name)
	return nil
}
