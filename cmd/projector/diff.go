package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/cli"
	"weir/internal/model"
)

type diffCommand struct {
	output
	Old string `arg:"" help:"Name of a built-in model or path of a model file, as it is deployed."`
	New string `arg:"" help:"The same model, as it will be."`
}

func (diffCommand) Help() string {
	return `Says what a changed model will do before it is deployed. It reads two files and no
tables. Each derivation that is added, changed, removed or renamed has a line, with the
parts of the file that change it and what becomes of its values; then come the builds
that it takes, and the parts that change nothing which is derived.

What a build costs depends on the rows: projector build NEW --dry-run.

  projector diff deployed/gallery.yaml gallery.yaml
  projector diff deployed/gallery.yaml gallery.yaml -o json`
}

// modelChange is a difference as results show it.
type modelChange struct {
	Model       string        `json:"model"`
	Was         string        `json:"was,omitempty"` // the model's name, where it is another
	Derivations []differing   `json:"derivations"`
	Builds      []announced   `json:"builds"`
	Tables      []imaged      `json:"tables"`
	Parts       []changedPart `json:"parts"`
}

type differing struct {
	Name string   `json:"name"`
	Kind string   `json:"kind"`
	What string   `json:"what"`
	Was  string   `json:"was,omitempty"` // of a renamed one
	Hash string   `json:"hash,omitempty"`
	By   []string `json:"by,omitempty"` // parts of the file, but for its own
	Then string   `json:"then"`         // what becomes of its values
}

// announced is a build that the new model takes.
type announced struct {
	Build string   `json:"build"`
	Of    []string `json:"of"`             // what is new or changed
	With  []string `json:"with,omitempty"` // what is built with it, and stays live
}

type imaged struct {
	Table  string `json:"table"`
	Was    string `json:"was,omitempty"`
	Images string `json:"images"`
}

type changedPart struct {
	Path    string   `json:"path"`
	What    string   `json:"what"`
	Changes []string `json:"changes"` // derivations
	Alone   bool     `json:"alone"`   // false: it cannot be changed alone, and what it changes is not known
}

func (c *diffCommand) Run(p *program) error {
	was, err := cli.LoadModel(p.ctx, c.Old)
	if err != nil {
		return err
	}
	is, err := cli.LoadModel(p.ctx, c.New)
	if err != nil {
		return err
	}
	d := modelChangeOf(model.DiffOf(was, is), is, c.New)
	if c.Output != "text" {
		return json.NewEncoder(p.stdout).Encode(d)
	}
	d.text(p)
	if len(d.Builds) > 0 {
		fmt.Fprintf(p.stderr, "projector build %s --dry-run says what the builds cost\n", c.New)
	}
	return nil
}

// modelChangeOf returns what a difference comes to. file is the argument that names the new model.
func modelChangeOf(d *model.Diff, is *model.Model, file string) *modelChange {
	out := &modelChange{Model: d.Name, Derivations: []differing{}, Builds: []announced{}, Tables: []imaged{}, Parts: []changedPart{}}
	if d.Was != d.Name {
		out.Was = d.Was
	}
	builds := map[string]*announced{}
	for _, x := range d.Derivations {
		one := differing{Name: x.Name, Kind: x.Kind, What: x.What, Was: x.Was, Then: then(x, file)}
		if x.What != model.Removed {
			one.Hash = x.Hash
		}
		for _, part := range d.Parts {
			if slices.Contains(part.Derivations, x.Name) && !isOwn(part.Path, x) {
				one.By = append(one.By, part.Path)
			}
		}
		out.Derivations = append(out.Derivations, one)
		if x.Build != "" {
			if builds[x.Build] == nil {
				builds[x.Build] = &announced{Build: x.Build}
			}
			builds[x.Build].Of = append(builds[x.Build].Of, x.Name)
		}
	}
	of := is.Builds()
	for _, name := range slices.Sorted(maps.Keys(builds)) {
		b := builds[name]
		for _, with := range slices.Sorted(maps.Keys(of)) {
			if of[with] == name && !slices.Contains(b.Of, with) {
				b.With = append(b.With, with)
			}
		}
		out.Builds = append(out.Builds, *b)
	}
	for _, t := range d.Tables {
		out.Tables = append(out.Tables, imaged{t.Table, t.Was, t.Images})
	}
	for _, x := range d.Parts {
		out.Parts = append(out.Parts, changedPart{x.Path, x.What, append([]string{}, x.Derivations...), x.Alone})
	}
	return out
}

// isOwn reports whether a part of a file is where a derivation is declared.
func isOwn(path string, x model.DerivationDiff) bool {
	for _, name := range []string{x.Name, x.Was} {
		rule, _, _ := strings.Cut(name, ".")
		if path == "derive."+name || path == "derive."+rule || "search/"+strings.TrimPrefix(path, "search.") == name {
			return true
		}
	}
	return false
}

// then says what becomes of a derivation's values. file is the new model, as commands name it.
func then(x model.DerivationDiff, file string) string {
	entity, _, _ := strings.Cut(x.Name, ".")
	stays := func(name string) string {
		return fmt.Sprintf("what %s derived stays in the rows, and nothing updates it; programs are refused until projector retire %s %s", name, file, name)
	}
	switch {
	case x.Kind == "search":
		return "all search indexes of the model are filled from the rows, beside the old ones"
	case x.What == model.Removed:
		return stays(x.Name)
	}
	out := ""
	switch {
	case x.History && x.Build == "" && x.What == model.Changed:
		out = "entries are made by the new definition from the first program that has it; those before stay"
	case x.History && x.Build == "":
		out = "history, which no row tells; it is complete from the first program that has it"
	case x.Kind == "feed":
		out = "nothing is sent by it until its build is live"
	case x.Kind == "status":
		out = fmt.Sprintf("no status of %s moves until its build is live", entity)
	case (x.Kind == "copy" || x.Kind == "follow") && x.What == model.Changed:
		out = "rows are compared with their sources and corrected one by one; copies at keys that it no longer gives stay"
	case x.Kind == "copy" || x.Kind == "follow":
		out = "rows get it one by one"
	case x.What == model.Changed:
		out = "rows show the old value, which nothing updates, until its build is live"
	default:
		out = "absent until its build is live"
	}
	if x.What == model.Renamed {
		out += "; " + stays(x.Was)
	}
	return out
}

func (d *modelChange) text(p *program) {
	say := func(format string, args ...any) { fmt.Fprintf(p.stdout, format+"\n", args...) }
	if d.Was != "" {
		say("model %s: another model than %s to weir, so all of it is new; what was derived for %s stays in the rows", d.Model, d.Was, d.Was)
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
	var nothing, unknown []string
	for _, x := range d.Parts {
		switch {
		case !x.Alone:
			unknown = append(unknown, x.Path)
		case len(x.Changes) == 0:
			nothing = append(nothing, x.Path)
		}
	}
	if len(unknown) > 0 {
		say("not known what it changes, since it cannot be changed alone: %s", strings.Join(unknown, ", "))
	}
	if len(nothing) > 0 {
		say("changes nothing that is derived: %s", strings.Join(nothing, ", "))
	}
	if len(d.Derivations)+len(d.Parts)+len(d.Tables) == 0 {
		say("no difference")
	}
}
