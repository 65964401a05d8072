package projectorcli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/build"
	"weir/internal/cli"
	"weir/internal/events"
	"weir/internal/measures"
	"weir/internal/projections"
	"weir/internal/replay"
	"weir/internal/system"
)

// buildHistories puts the entries of history that recordings lead to.
// It looks for all files before it opens the data, so that a wrong path changes nothing. A record that cannot be used is said, is
// left out, and makes the exit code 1. The same command goes on after an interruption.
func (c *buildCommand) buildHistories(p *program) error {
	if c.Abort || c.Prune || c.Again {
		return usage("--from goes with --dry-run and --write-budget only")
	}
	inputs, err := inputsOf(c.From)
	if err != nil {
		return err
	}
	p.log, _ = measures.Logging{}.Open(p.stderr)
	end, err := p.beginTracing(c.Flag)
	if err != nil {
		return err
	}
	defer end()
	s, err := p.existing(c.data, []string{c.Model}, system.Options{NoSearch: true, Writes: !c.DryRun, LetterTTL: time.Duration(c.LetterTTL)})
	if err != nil {
		return err
	}
	defer s.Close()
	part := s.Models[0]
	b := part.Builder()
	b.Budget = c.WriteBudget
	x, err := b.Recording(c.Derivations)
	if err != nil {
		return usage("%v", err)
	}
	if made := x.OfMade(); len(made) > 0 && !c.shared() {
		return usage("%s: made from rows that weir makes, which an embedded store has under numbers of its own; name the other histories", strings.Join(made, ", "))
	}
	x.Dry = c.DryRun
	if err := x.Begin(p.ctx); err != nil {
		return err
	}
	from := recordingsOf{Recording: x, Replay: &replay.Replay{Model: part.Model}, bad: &talk{more: "records that cannot be used"}}
	reading := cli.New(p.stderr, "records")
	from.bad.out = reading
	x.Unusable = from.sayUnusable
	err = eachBatch(p.ctx, reading, inputs, &s.Names, func(entries []events.Entry, table string) error { return from.putBatch(p, entries, table) })
	reading.End()
	from.bad.out = p.stderr
	from.bad.sayRest()
	if err != nil {
		return cli.Partly(err, b.Done().Puts > 0)
	}
	if err := c.printEntered(p, x, b.Done()); err != nil {
		return err
	}
	if from.bad.n > 0 {
		return failed(exitCheck)
	}
	return nil
}

// recordingsOf reads recordings into a build.
type recordingsOf struct {
	*build.Recording
	*replay.Replay
	entries []events.Entry // of the batch
	bad     *talk
}

// putBatch puts the entries of a batch. A record that is of no row of the model is said and left out.
func (x *recordingsOf) putBatch(p *program, entries []events.Entry, table string) error {
	x.entries = entries
	var changes []projections.Change
	for i := range entries {
		c, err := x.Replay.Change(&entries[i], table)
		if err != nil {
			x.bad.sayLine("%s: %v", entries[i].Location, err)
			continue
		}
		if err := x.CheckChange(&c); err != nil {
			return usage("%s: %v", entries[i].Location, err)
		}
		changes = append(changes, c)
	}
	return x.PutChanges(p.ctx, changes)
}

// sayUnusable says which entry cannot be made of a record, and where the record is.
func (x *recordingsOf) sayUnusable(c *projections.Change, derivation, reason string) {
	i := slices.IndexFunc(x.entries, func(e events.Entry) bool { return e.Record.Position == c.Position && e.Record.Table == c.Table.Name })
	x.bad.sayLine("%s: %s: %s", x.entries[max(i, 0)].Location, derivation, reason)
}

// enteredNow is the outcome of the entries of a history, as JSON.
type enteredNow struct {
	Derivation string     `json:"derivation"`
	Put        int64      `json:"put"`
	There      int64      `json:"there"`
	Lacks      int64      `json:"lacks"`
	Since      *time.Time `json:"since,omitempty"`
}

// printEntered prints the entries that were put of each history. How far the recordings go, and missing fields of entries, goes to stderr.
func (c *buildCommand) printEntered(p *program, x *build.Recording, d build.Progress) error {
	results, lacks, out := []enteredNow{}, int64(0), c.to(p.stdout)
	for _, name := range slices.Sorted(maps.Keys(x.Of)) {
		of := x.Of[name]
		r := enteredNow{Derivation: name, Put: of.Put, There: of.There, Lacks: of.Lacks}
		lacks += of.Lacks
		if !of.Since.IsZero() {
			r.Since = &of.Since
		}
		results = append(results, r)
		out.printResult(r, func() {
			fmt.Fprintf(p.stdout, "%s: %d entries %s, %d were there\n", name, r.Put, map[bool]string{true: "would be put", false: "put"}[c.DryRun], r.There)
		})
	}
	out.printEnd()
	fmt.Fprintf(p.stderr, "%d records read, %d write units and %d read units\n", d.Rows, d.Units, d.ReadUnits())
	for _, r := range results {
		if r.Since != nil && !x.From.IsZero() {
			fmt.Fprintf(p.stderr, "%s is complete from %s on; before that it has what the recordings have, which is from %s to %s\n",
				r.Derivation, stamp(*r.Since), stamp(x.From), stamp(x.To))
		}
	}
	if lacks > 0 {
		fmt.Fprintf(p.stderr, "%d entries lack a value that they follow: its row was gone before weir kept it\n", lacks)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
