package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"weir/internal/build"
	"weir/internal/cli"
	"weir/internal/progress"
	"weir/internal/system"
)

// search fills the search indexes of the model's definitions.
// It returns when the indexes are complete, or with --hand-over when the function has taken over. Interrupted, the
// next call goes on after the rows that were read.
func (c *buildCommand) search(p *program, s *system.System, part *system.Part) error {
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

// pruned is a generation, of ledgers or of search indexes, as results show it.
// Why says why a generation stays; Removed is true exactly where it is empty.
// Generation is a number of a build, or the hash of a search generation. Why says why something
// stays; it is empty if it was removed.
// Of values of a retired derivation there is no generation, but how many rows had them, and how many
// rows stay because another program wrote them.
type pruned struct {
	Entity     string            `json:"entity,omitempty"` // of ledgers
	Generation string            `json:"generation,omitempty"`
	Derivation string            `json:"derivation,omitempty"`
	Rows       int64             `json:"rows,omitempty"`
	Others     int64             `json:"others,omitempty"`
	Indexes    map[string]string `json:"indexes,omitempty"` // of a search generation
	Removed    bool              `json:"removed"`
	Why        string            `json:"why,omitempty"`
}

// prune removes what no program applies any more.
// What was removed before an error is printed too. Indexes are left alone unless search is true.
// values says what became of values of retired derivations.
func (c *buildCommand) prune(p *program, s *system.System, b *build.Builder, search bool, values []pruned) error {
	all := append([]pruned{}, values...)
	enc := json.NewEncoder(p.stdout)
	add := func(is pruned, name string) {
		is.Removed = is.Why == ""
		switch c.Output {
		case "text":
			said := "removed"
			if !is.Removed {
				said = "stays: " + is.Why
			}
			fmt.Fprintf(p.stdout, "%s: %s\n", name, said)
		case "jsonl":
			enc.Encode(is)
		}
		all = append(all, is)
	}
	ledgers, rows, err := b.Prune(p.ctx)
	for _, g := range ledgers {
		add(pruned{Entity: g.Entity, Generation: fmt.Sprint(g.Generation), Why: g.Why}, fmt.Sprintf("ledgers of %s, generation %d", g.Entity, g.Generation))
	}
	if err == nil && search {
		err = s.Prune(p.ctx, s.Models[0], func(f system.Pruned) {
			add(pruned{Generation: f.Generation, Indexes: f.Indexes, Why: f.Why}, fmt.Sprintf("%s %q", f.Generation, slices.Sorted(maps.Values(f.Indexes))))
		})
	}
	if c.Output == "json" {
		enc.Encode(all)
	}
	if rows > 0 {
		fmt.Fprintf(p.stderr, "%d rows of weir's own table are removed\n", rows)
	}
	return err
}
