package projectorcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/internal/catalog"
	"weir/internal/cli"
	"weir/internal/deploy"
	"weir/internal/projections"
	"weir/internal/reader"
	"weir/internal/scratch"
	"weir/internal/system"
)

// verifyCommand derives again from the rows. On an embedded store it first applies the rest of the streams;
// after that, and on AWS, it only reads.
type verifyCommand struct {
	data
	output
	Limit int    `placeholder:"N" help:"Print at most so many differences, and count the others. 0 prints all (default)."`
	Model string `arg:"" help:"Name of a built-in model or path of a model file."`
}

func (verifyCommand) Help() string {
	return `Applies what is still in the streams, then derives everything again from the source
rows, as a replay does, into a temporary store, and compares. Prints what differs and
exits with 1 when anything does; build --again puts it right. On AWS, where others write
and derive meanwhile, it applies nothing, derives twice, some seconds apart, if something
differs, and prints what differs in the same way both times, with how sure that is.

A distinct with more values than its max is printed as "cannot be computed", a value
that its row refuses as "cannot be shown", and what a row cannot contribute, such as a
number that a sum cannot take or a copy whose key would be too long, as "cannot be
derived". That is no difference, and a build has nothing to do: the value is absent until
the rows behind it are corrected. But the row lacks a value that the model asks for, so
verify exits with 1. So it does if the model may not derive here; it says why.

History and notifications are in no other row, so nothing can say whether they are right.

The temporary store is beside the data, or in the directory for temporary files; it takes
about as much room as the rows, and is gone afterwards. On AWS, verify first says what a
pass takes: read units, dollars and room; without the room it refuses.

  projector verify gallery --data ./data
  projector verify gallery --limit 20 -o json`
}

// recounted is the findings of a recount, as JSON.
type recounted struct {
	Cannot  []scratch.Unshown     `json:"cannotBeComputed,omitempty"`
	Missing []projections.Missing `json:"missingTargets,omitempty"` // no difference
	Kept    map[string]int        `json:"notCompared,omitempty"`
	Checked int                   `json:"checked"`
	Differ  int                   `json:"differ"`
	Found   []scratch.Difference  `json:"differences"` // with --limit, the first ones
}

// Differences are printed as they are found, except as one JSON object, which comes at the end.
// The exit code is 1 also if nothing differs and a value cannot be computed, or the program would be refused. With --limit, all are
// counted and some are printed.
func (c *verifyCommand) Run(p *program) error {
	if c.Limit < 0 {
		return usage("--limit is %d; it is 0 at the least", c.Limit)
	}
	s, err := p.existing(c.data, []string{c.Model}, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	recount := (*scratch.Verify).Run
	if c.shared() {
		recount = twice
	}
	_, refused, err := s.Models[0].Runner.Catalog.ReadAndCheck(p.ctx)
	if errors.Is(refused, catalog.ErrReplica) { // values that another region derives are read here
		refused = nil
	}
	if err == nil && refused != nil { // the recount reports differences all the same
		fmt.Fprintf(p.stderr, "nothing is applied: %v\n", refused)
	} else if err == nil && !c.shared() {
		err = p.settleSystem(s)
	}
	if err != nil {
		return err
	}
	v := scratch.Of(s, s.Models[0])
	if c.shared() {
		if err := c.sayAhead(p, v); err != nil {
			return err
		}
	}
	reading := cli.New(p.stderr, "rows read")
	v.Progress = func(rows int) { reading.Set(int64(rows), int64(rows)) }
	var found []scratch.Difference
	n := 0
	err = recount(v, p.ctx, func(d scratch.Difference) {
		if n++; c.Limit > 0 && n > c.Limit {
			return
		}
		d = d.Shown(v.Model)
		switch c.Output {
		case "text":
			fmt.Fprintf(p.stdout, "%s of %s: is %s, should be %s\n", d.Derivation, d.Row, d.Have, d.Want)
		case "jsonl":
			json.NewEncoder(p.stdout).Encode(d)
		default:
			found = append(found, d)
		}
	})
	reading.End()
	if err != nil {
		return err
	}
	c.printUnfit(p, v.Unshown)
	if c.Output == "json" {
		json.NewEncoder(p.stdout).Encode(recounted{v.Unshown, v.Missing, v.NotCompared, v.Checked, n, append([]scratch.Difference{}, found...)})
	}
	if c.Limit > 0 && n > c.Limit {
		fmt.Fprintf(p.stderr, "… and %d more\n", n-c.Limit)
	}
	for _, m := range v.Missing {
		fmt.Fprintln(p.stderr, m)
	}
	for _, name := range slices.Sorted(maps.Keys(v.NotCompared)) {
		fmt.Fprintf(p.stderr, "%s: not compared: %d values that are kept of rows that are gone; nothing else says what they were\n", name, v.NotCompared[name])
	}
	fmt.Fprintf(p.stderr, "%d derived values checked, %d differ", v.Checked, n)
	if len(v.Unshown) > 0 {
		fmt.Fprintf(p.stderr, ", %d cannot be computed or derived", len(v.Unshown))
	}
	fmt.Fprintln(p.stderr)
	if c.shared() {
		fmt.Fprintln(p.stderr, howSure(n, v.Passing))
	}
	if n > 0 {
		fmt.Fprintf(p.stderr, "%s derives it from the rows again\n", v.Model.Command("build", "--again"))
	}
	if n > 0 || len(v.Unshown) > 0 || refused != nil {
		return failed(exitCheck)
	}
	return nil
}

// sayAhead prints the cost of verify on DynamoDB, and refuses if there is no room for it.
func (c *verifyCommand) sayAhead(p *program, v *scratch.Verify) error {
	a, err := v.Ahead(p.ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "a pass takes about %s; $%.4f on demand; if something differs, there is a second one\n", a, deploy.Price(0, float64(a.ReadUnits())))
	return a.Check()
}

// howSure is the certainty of n differences beside others that write, if so many others were gone in the second pass.
func howSure(n, passing int) string {
	switch {
	case n == 0 && passing == 0:
		return "nothing differed while applications may have written: one pass was enough"
	case n == 0:
		return fmt.Sprintf("%d differed in the first pass and not in the second: changes that were on their way", passing)
	}
	return fmt.Sprintf("%d differed in the same way in two passes %s apart, %d others did not. DynamoDB has no bound for how late a change appears in its stream: "+
		"if readers lag (status says how far), verify again when they do not", n, scratch.Meanwhile, passing)
}

// printUnfit prints the values that are over their max, or that cannot be derived. They are
// no differences: rows rightly do not show them.
func (c *verifyCommand) printUnfit(p *program, values []scratch.Unshown) {
	for _, u := range values {
		switch c.Output {
		case "text":
			fmt.Fprintf(p.stdout, "%s of %s: %s\n", u.Derivation, u.Row, u.Why)
		case "jsonl":
			json.NewEncoder(p.stdout).Encode(u)
		}
	}
}

// twice recounts beside others that write and derive. A write that is on its way for longer than scratch.Meanwhile can
// still be reported; run verify again to know.
func twice(v *scratch.Verify, ctx context.Context, yield func(scratch.Difference)) error {
	_, err := v.Twice(ctx, 0, yield)
	return err
}

// settleSystem starts the models, fills indexes that are new and applies the rest of the streams.
// Only one process may use the rows then. It returns when nothing is left to apply.
func (p *program) settleSystem(s *system.System) error {
	if err := s.Start(p.ctx); err != nil {
		return err
	}
	if err := p.fill(s); err != nil {
		return err
	}
	done := make(chan struct{})
	close(done)
	for _, part := range s.Models {
		f := reader.Follower{Runner: part.Runner}
		if err := f.CatchUp(p.ctx, done); err != nil {
			return err
		}
	}
	return s.Show(p.ctx)
}

// fill fills indexes that are new.
func (p *program) fill(s *system.System) error {
	reading := cli.New(p.stderr, "rows read")
	defer reading.End()
	return s.Reach(p.ctx, func(f system.Filling) { reading.Set(int64(f.Rows), int64(f.Rows)) })
}
