package main

import (
	"fmt"

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
	if err == nil && c.Again && rows == 0 { // they were filled before
		err = s.IndexAgain(p.ctx, part, func(n int) { rows = n; reading.Set(int64(n), 0) })
	}
	if err != nil {
		return cli.Partly(err, rows > 0)
	}
	reading.End()
	fmt.Fprintf(p.stderr, "the search indexes of %s are built\n", part.Model.Name)
	return nil
}
