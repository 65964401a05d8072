package main

import (
	"errors"
	"fmt"

	"weir/internal/cli"
	"weir/internal/model"
)

type lintCommand struct {
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
}

func (lintCommand) Help() string {
	return `Prints one problem a line as FILE:LINE:COLUMN: MESSAGE (HINT) and exits with 1
when there are any.

  projector lint gallery
  projector lint models/mine.yaml`
}

func (c *lintCommand) Run(p *program) error {
	bad := false
	for _, name := range c.Models {
		_, err := cli.LoadModel(p.ctx, name)
		var problems *model.Problems
		switch {
		case errors.As(err, &problems):
			bad = true
			fmt.Fprintln(p.stdout, problems)
		case err != nil:
			return err
		default:
			fmt.Fprintf(p.stderr, "%s: good\n", name)
		}
	}
	if bad {
		return failed(exitCheck)
	}
	return nil
}

type schemaCommand struct{}

func (schemaCommand) Help() string {
	return `Editors with a YAML language server complete and check model files by it:

  projector schema > weir.schema.json
  # yaml-language-server: $schema=weir.schema.json   (first line of the model file)`
}

func (schemaCommand) Run(p *program) error {
	_, err := p.stdout.Write(model.Schema())
	return err
}
