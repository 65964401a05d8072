package projectorcli

import (
	"errors"
	"fmt"
	"io"

	"weir/internal/cli"
	"weir/internal/model"
)

// lintCommand checks models with the code that run uses. All files are checked, also after one with problems.
type lintCommand struct {
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	output
	Strict bool `help:"Warnings fail too."`
}

func (lintCommand) Help() string {
	return `Prints one problem a line as FILE:LINE:COLUMN: MESSAGE (HINT) and exits with 1
when there are any. A warning is about something that is legal and probably not meant, such
as a count on rows that nothing writes. It goes to stderr and fails only with
--strict. With -o json, both are on stdout, each with its severity.

  projector lint gallery
  projector lint models/mine.yaml --strict`
}

// Run goes on after a file with problems. A file that cannot be read ends it at once. Warnings are
// exit code 1 with --strict alone.
func (c *lintCommand) Run(p *program) error {
	bad, out := false, c.to(p.stdout)
	out.enc.SetEscapeHTML(false)
	for _, name := range c.Models {
		m, err := cli.LoadModel(p.ctx, name)
		var problems *model.Problems
		var list []model.Problem
		switch {
		case errors.As(err, &problems):
			bad, list = true, problems.List
		case err != nil:
			return err
		default:
			list = m.Warnings
			bad = bad || c.Strict && len(list) > 0
		}
		for _, is := range list {
			out.add(is, func() { fmt.Fprintln(p.talk(is.Severity), is) })
		}
		if c.Output == "text" && len(list) == 0 {
			fmt.Fprintf(p.stderr, "%s: good\n", name)
		}
	}
	if out.end(); bad {
		return failed(exitCheck)
	}
	return nil
}

// talk returns where a problem is printed: a warning is no result.
func (p *program) talk(s model.Severity) io.Writer {
	if s == model.Warning {
		return p.stderr
	}
	return p.stdout
}

// schemaCommand prints the JSON Schema of model files, which is the one in models/schema.json.
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
