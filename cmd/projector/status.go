package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/status"
	"weir/internal/system"
)

// statusCommand prints the catalog. It only reads, and may run beside any process.
type statusCommand struct {
	data
	output
	Model string `arg:"" help:"Name of a built-in model or path of a model file."`
}

func (statusCommand) Help() string {
	return `Prints the tables of the model as weir knows them, who reads their streams, and
every derivation with its state, generation, definition and the time since when.
For search indexes, it lists every definition that has one.
If this program and model would be refused, it says why, and exits with 1.

  projector status gallery --data ./data
  projector status gallery --aws -o json`
}

// A program that would be refused still prints the status, and then ends with exit code 1.
func (c *statusCommand) Run(p *program) error {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	st, err := status.Of(p.ctx, s, s.Models[0])
	if err != nil {
		return err
	}
	if c.Output != "text" {
		json.NewEncoder(p.stdout).Encode(st)
	} else if st.Write(p.stdout); st.Refused != "" {
		fmt.Fprintf(p.stderr, "would be refused: %s\n", st.Refused)
	}
	if st.Refused != "" {
		return failed(exitCheck)
	}
	return nil
}

// retireCommand notes that derivations are gone from a model. It changes the catalog alone, no row.
type retireCommand struct {
	data
	Model       string   `arg:"" help:"Name of a built-in model or path of a model file, without the derivations."`
	Derivations []string `arg:"" name:"derivation" help:"Names as projector status prints them."`
}

func (retireCommand) Help() string {
	return `A derivation that is taken out of a model stays in the catalog, and programs whose
model does not have it are refused, since they could be older ones. This notes that it
is gone: from then on, programs that still have it are refused instead. What it
derived stays in the rows, and nothing updates it. A month later the note goes too.

  projector retire gallery.yaml Album.sum --data ./data`
}

// Run changes the catalog alone. Names that the model still has are refused.
func (c *retireCommand) Run(p *program) error {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{Writes: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Models[0].Runner.Catalog.Retire(p.ctx, c.Derivations); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "retired: %s\n", strings.Join(c.Derivations, ", "))
	return nil
}
