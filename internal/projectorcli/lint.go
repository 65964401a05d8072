package projectorcli

import (
	"errors"
	"fmt"
	"io"
	"slices"

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
--strict. A note is about a cost, such as a query that reads rows which it does
not answer. It goes to stderr, too, and never fails. With -o json, all are on
stdout, each with its severity.

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
			bad = bad || c.Strict && warned(list)
		}
		for _, is := range list {
			out.printResult(is, func() { fmt.Fprintln(p.talk(is.Severity), is) })
		}
		if c.Output == "text" && problems == nil && !warned(list) {
			fmt.Fprintf(p.stderr, "%s: good\n", name)
		}
	}
	if out.printEnd(); bad {
		return failed(exitCheck)
	}
	return nil
}

// warned reports whether a list has more than notes.
func warned(list []model.Problem) bool {
	return slices.ContainsFunc(list, func(p model.Problem) bool { return p.Severity != model.Note })
}

// talk returns where a problem is printed: warnings and notes are no results.
func (p *program) talk(s model.Severity) io.Writer {
	if s != model.Error {
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
