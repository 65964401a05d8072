package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/cli"
	"weir/internal/progress"
	"weir/internal/system"
)

type buildCommand struct {
	data
	output
	Prune    bool          `help:"Remove the search indexes of other definitions that no program applies any more, instead of building."`
	HandOver time.Duration `name:"hand-over" placeholder:"DURATION" help:"Follow the streams until a function with this definition has taken over from an earlier one, whose invocations may last this long after that. 16m is right for every function."`
	Model    string        `arg:"" help:"Name of a built-in model or path of a model file."`
}

func (buildCommand) Help() string {
	return `Fills the search indexes of the model's definitions from the rows, and applies what
is in the streams. Each set of definitions has indexes and checkpoints of its own:
programs with other definitions are not disturbed, and may run at the same time.
Stopped or killed, it goes on where it was when it is run again.

A function never fills an index. Where functions read the streams, build with
--hand-over before the function with the new definition is deployed, and let it run:
it ends when the function has taken over. Going back is the same command with the
earlier model.

With --prune, the indexes, checkpoints and notes of other definitions are removed, but
for those that a program has applied within the hour or that functions apply.

  projector build gallery --aws --opensearch https://search-x.eu-west-1.es.amazonaws.com
  projector build gallery.yaml --aws --opensearch URL --hand-over 16m
  projector build gallery --aws --opensearch URL --prune`
}

func (c *buildCommand) Run(p *program) error {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	part := s.Models[0]
	switch {
	case len(part.Model.Searches) == 0:
		return usage("model %s has no search index", part.Model.Name)
	case s.Index == nil:
		return usage("it is not said where the search indexes are: --opensearch URL")
	case c.HandOver < 0 || c.HandOver > 0 && !c.shared():
		return usage("--hand-over is for functions on AWS")
	case c.Prune:
		return c.prune(p, s, part)
	}
	return c.build(p, s, part)
}

func (c *buildCommand) build(p *program, s *system.System, part *system.Part) error {
	reading := progress.New(p.stderr, "rows read")
	defer reading.End()
	rows, again := 0, false
	filling := func(f system.Filling) {
		if f.Again && !again {
			again = true
			fmt.Fprintf(reading, "going on after %d rows\n", f.Rows)
		}
		rows, reading.Total = f.Rows, int64(f.Total)
		reading.Set(int64(f.Rows), int64(f.Rows))
	}
	err := s.Build(p.ctx, part, c.HandOver, filling, func(b system.Building) {
		fmt.Fprintln(reading, map[system.Building]string{
			system.Follows:   "the indexes are filled, and the streams followed; deploy the function with this model now",
			system.TakesOver: "the function has begun; following on while an earlier one may be running",
			system.Settled:   "the function has taken over",
		}[b])
	})
	if err != nil {
		return cli.Partly(err, rows > 0)
	}
	reading.End()
	fmt.Fprintf(p.stderr, "the search indexes of %s are built\n", part.Model.Name)
	return nil
}

// pruned is a search generation as results show it.
type pruned struct {
	Generation string            `json:"generation"`
	Indexes    map[string]string `json:"indexes"`
	Removed    bool              `json:"removed"`
	Why        string            `json:"why,omitempty"`
}

func (c *buildCommand) prune(p *program, s *system.System, part *system.Part) error {
	all := []pruned{}
	enc := json.NewEncoder(p.stdout)
	err := s.Prune(p.ctx, part, func(f system.Pruned) {
		is := pruned{f.Generation, f.Indexes, f.Why == "", f.Why}
		switch c.Output {
		case "text":
			said := "removed"
			if !is.Removed {
				said = "stays: " + is.Why
			}
			fmt.Fprintf(p.stdout, "%s %q: %s\n", is.Generation, slices.Sorted(maps.Values(is.Indexes)), said)
		case "jsonl":
			enc.Encode(is)
		}
		all = append(all, is)
	})
	if c.Output == "json" {
		enc.Encode(all)
	}
	return err
}
