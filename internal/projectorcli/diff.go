package projectorcli

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/cli"
	"weir/internal/model"
	"weir/internal/projections/kinds"
)

// diffCommand compares two versions of a model. It opens no store, so it may run anywhere, such as in CI.
type diffCommand struct {
	output
	Old string `arg:"" help:"Name of a built-in model or path of a model file, as it is deployed."`
	New string `arg:"" help:"The same model, as it will be."`
}

func (diffCommand) Help() string {
	return `Says what a changed model will do before it is deployed. It reads two files and no
tables. Each derivation that is added, changed, removed or renamed has a line, with the
parts of the file that change it and what becomes of its values; then come the builds
that are needed, and the parts that change nothing derived.

What a build costs depends on the rows: projector build NEW --dry-run.

  projector diff deployed/gallery.yaml gallery.yaml
  projector diff deployed/gallery.yaml gallery.yaml -o json`
}

// Run compares two model files and asks no store, so it does not know which derivations were built. That the
// models differ is no error: the exit code is 0.
func (c *diffCommand) Run(p *program) error {
	was, err := cli.LoadModel(p.ctx, c.Old)
	if err != nil {
		return err
	}
	is, err := cli.LoadModel(p.ctx, c.New)
	if err != nil {
		return err
	}
	d := model.DiffOf(was, is)
	kinds.ExplainDiff(d, is)
	if c.Output != "text" {
		return json.NewEncoder(p.stdout).Encode(d)
	}
	diffText(p, d)
	if len(d.Builds) > 0 {
		fmt.Fprintf(p.stderr, "%s says what the builds cost\n", is.Command("build", "--dry-run"))
	}
	return nil
}

// diffText prints a difference for people, one line for each thing. Scripts use the JSON.
// Its wording may change; every line has one derivation, build, table or part of the file.
func diffText(p *program, d *model.Diff) {
	say := func(format string, args ...any) { fmt.Fprintf(p.stdout, format+"\n", args...) }
	if d.Was != "" {
		say("model %s: another model than %s to weir, so all of it is new; what was derived for %s stays in the rows", d.Name, d.Was, d.Was)
	}
	for _, x := range d.Derivations {
		line := fmt.Sprintf("%s: %s", x.Name, x.What)
		if x.Was != "" {
			line += " from " + x.Was
		}
		line += fmt.Sprintf(" (%s)", x.Kind)
		if len(x.By) > 0 {
			line += " by " + strings.Join(x.By, ", ")
		}
		say("%s; %s", line, x.Then)
	}
	for _, b := range d.Builds {
		line := fmt.Sprintf("build of %s: %s", b.Build, strings.Join(b.Of, ", "))
		if len(b.With) > 0 {
			line += "; with " + strings.Join(b.With, ", ") + ", live meanwhile"
		}
		say("%s", line)
	}
	for _, t := range d.Tables {
		line := fmt.Sprintf("table %s: the stream must have %s", t.Table, t.Images)
		if t.Was != "" {
			line += ", and had " + t.Was
		}
		say("%s", line)
	}
	var nothing, together, change []string
	for _, x := range d.Parts {
		switch {
		case !x.Alone:
			together, change = append(together, x.Path), x.Derivations
		case len(x.Derivations) == 0:
			nothing = append(nothing, x.Path)
		}
	}
	switch {
	case len(together) > 0 && len(change) == 0:
		say("changes nothing that is derived, together: %s", strings.Join(together, ", "))
	case len(together) > 0:
		say("can only be changed together: %s; they change %s", strings.Join(together, ", "), strings.Join(change, ", "))
	}
	if len(nothing) > 0 {
		say("changes nothing that is derived: %s", strings.Join(nothing, ", "))
	}
	if len(d.Derivations)+len(d.Parts)+len(d.Tables) == 0 {
		say("no difference")
	}
}
