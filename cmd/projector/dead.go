package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"weir/internal/runner"
	"weir/internal/system"
	"weir/internal/value"
)

type deadCommands struct {
	List    deadList    `cmd:"" help:"List what could not be applied."`
	Show    deadShow    `cmd:"" help:"Show one, with its record."`
	Retry   deadRetry   `cmd:"" help:"Do it again; of a parked target, the whole queue in order."`
	Discard deadDiscard `cmd:"" help:"Give it up."`
}

type deadTarget struct {
	data
	Model string `arg:"" help:"Name of a built-in model or path of a model file."`
}

type deadList struct {
	deadTarget
	output
}

func (deadList) Help() string {
	return `  projector dead list gallery
  projector dead show gallery ID
  projector dead retry gallery ID
  projector dead discard gallery ID`
}

// shown is a kept thing as people read it.
type shown struct {
	ID       string          `json:"id"`
	Kind     runner.DeadKind `json:"kind"`
	Target   string          `json:"target"`
	Reason   string          `json:"reason"`
	Source   string          `json:"source,omitempty"`
	Position string          `json:"position,omitempty"`
	Time     string          `json:"time,omitempty"`
	Adds     []string        `json:"adds,omitempty"`
	Record   json.RawMessage `json:"record,omitempty"`
	Raw      string          `json:"raw,omitempty"`
}

func show(d runner.Dead) shown {
	s := shown{ID: d.ID, Kind: d.Kind, Target: d.Target, Reason: d.Reason, Source: d.Source, Raw: d.Raw}
	for _, a := range d.Adds {
		s.Adds = append(s.Adds, a.Field+" "+a.Amount.Text())
	}
	if !d.Position.IsZero() {
		s.Position = d.Position.String()
	}
	if !d.Time.IsZero() && d.Time.Unix() != 0 {
		s.Time = d.Time.Format("2006-01-02T15:04:05Z")
	}
	if len(d.Record) > 0 {
		s.Record = value.AppendTypedItem(nil, d.Record)
	}
	return s
}

func (t *deadTarget) with(p *program, use func(*runner.Runner) error) error {
	s, err := p.existing(t.data, []string{t.Model}, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	return use(s.Models[0].Runner)
}

func (c *deadList) Run(p *program) error {
	return c.with(p, func(r *runner.Runner) error {
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		enc := json.NewEncoder(p.stdout)
		all := []shown{}
		err := r.Dead(p.ctx, func(d runner.Dead) error {
			switch s := show(d); c.Output {
			case "text":
				at := s.Source
				if at == "" {
					at = s.Position
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Kind, s.Target, at, s.Reason)
			case "jsonl":
				return enc.Encode(s)
			default:
				all = append(all, s)
			}
			return nil
		})
		if err == nil && c.Output == "json" {
			err = enc.Encode(all)
		}
		table.Flush()
		return err
	})
}

type deadOne struct {
	deadTarget
	ID string `arg:"" help:"Id from dead list."`
}

type deadShow struct{ deadOne }

func (c *deadShow) Run(p *program) error {
	return c.with(p, func(r *runner.Runner) error {
		d, err := r.DeadByID(p.ctx, c.ID)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(show(d))
	})
}

type deadRetry struct{ deadOne }

func (c *deadRetry) Run(p *program) error {
	return c.with(p, func(r *runner.Runner) error {
		n, err := r.Retry(p.ctx, c.ID)
		if n > 0 {
			fmt.Fprintf(p.stderr, "%d applied\n", n)
		}
		return err
	})
}

type deadDiscard struct{ deadOne }

func (c *deadDiscard) Run(p *program) error {
	return c.with(p, func(r *runner.Runner) error {
		if err := r.Discard(p.ctx, c.ID); err != nil {
			return err
		}
		fmt.Fprintln(p.stderr, "discarded")
		return nil
	})
}
