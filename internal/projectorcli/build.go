package projectorcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weir/internal/build"
	"weir/internal/cli"
	"weir/internal/measures"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/scratch"
	"weir/internal/system"
	"weir/internal/traces"
)

type buildCommand struct {
	data
	output
	traces.Flag
	cli.LetterFlag
	Model       string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Derivations []string `arg:"" optional:"" name:"derivation" help:"Only these, such as Album.mediaCount or search/albums; all that is shown on the rows of an entity is built together, and so are all copies with what they follow. Without any, all of the model."`
	DryRun      bool     `env:"-" help:"Print the rows, units, price and time that the build, or --prune, would take, and change nothing. Search indexes are left out."`
	Examples    int      `default:"5" placeholder:"N" help:"With --dry-run, print what up to so many rows will show of each derivation that is new or changed (default ${default})."`
	Abort       bool     `xor:"how" env:"-" help:"End builds that rows do not show yet, and remove what they have written."`
	Prune       bool     `xor:"how" env:"-" help:"Remove what no program derives any more, instead of building: what retired derivations have shown in rows, what builds have replaced, and search indexes of other definitions. Names choose some of what is retired."`
	Again       bool     `env:"-" help:"Build also values that are live by the model's definitions: after a gap, or when verify finds a wrong count."`
	TakeOver    bool     `env:"-" help:"Have this region derive from tables that are replicated, instead of the one that does, whose programs refuse from then on. All that rows tell is built again."`
	From        []string `env:"WEIR_BUILD_FROM" sep:"none" placeholder:"FILE" help:"Put the entries of history that this recording of the stream leads to, and that do not exist yet: a file, a directory of files, - for stdin, or TABLE=FILE. May be given several times."`
	WriteBudget int      `env:"WEIR_BUILD_WRITE_BUDGET" placeholder:"UNITS" help:"At most so many write units in a second, for values on rows."`
	Segments    int      `default:"8" help:"How many parts of a table are read at the same time (default ${default})."`
}

func (buildCommand) Help() string {
	return `Derives counts, sums, means, distinct values, sets, statuses, copies, followed
attributes and subscribers from existing rows, and fills the search indexes, while
applications write and readers apply the streams: where a table had rows before weir,
where the model has new or changed derivations, and with --again also after a gap or
when verify finds a wrong count. Rows show the old values until the new ones are
complete. Stopped or killed, the same command goes on.

From the beginning of a build of values, programs with the older model are refused, and
stop; start those with the new one. A build is live when all rows show it. Run the same
command again a day later: it then reads everything once more and corrects what a
function may have counted if it was invoked before the build began.

Each set of search definitions has indexes of its own, which are filled beside the old
ones. From the beginning, programs with other definitions are refused. A function never
fills an index. Going back is the same command with the earlier model.

What the model no longer has is retired, unless derivations are named: programs that still
derive it are refused, and what it has shown stays in the rows until --prune. So the same
command with the earlier model takes a change back.

With --dry-run, nothing is written. It also derives all values in a temporary store, reads
each row once more for that, and prints examples: what rows show of each derivation that
is new or changed, and what they will show. --examples 0 leaves that out.

With --prune, what retired derivations have shown goes from the rows: their attributes, rows
that weir made, and what a status shows over the application's value, which comes
back. --dry-run counts them first, with examples. What is derived or declared today stays,
and so does what another program wrote. History goes only if it is named, since nothing
can derive it again. Ledgers that a build has replaced go too, and so do the indexes
and notes of search definitions that no reader keeps. What a program derived within the
hour stays.

History (keep) is in no row: weir keeps it from when its derivation began. With --from,
what was before comes from recordings of DynamoDB Streams, in the forms that replay reads.
They may overlap, and be given again: entries that exist stay. An export is refused: it
says what rows were, not what was written. Of a row that was gone before weir began, no
followed value is known.

The price is that of DynamoDB on demand in us-east-1. Without --write-budget, the time
is for 4,000 write units in a second.

  projector build gallery --dry-run
  projector build gallery --data ./data
  projector build gallery Album.mediaCount --aws --write-budget 500
  projector build gallery --aws --opensearch https://search-x.eu-west-1.es.amazonaws.com
  projector build gallery.yaml --aws --opensearch URL
  projector build gallery --aws --opensearch URL --prune
  projector build gallery.yaml --aws --prune --dry-run
  projector build watchlists Audit --aws --from recorded/`
}

// usualPace is the write units in a second by which a dry run tells the time.
const usualPace = 4000

// Run does the work that the flags ask for: a dry run, an end, a removal, or the build. Values come before search
// indexes, and each part can be done again after an interruption: parts that are complete are passed over.
func (c *buildCommand) Run(p *program) error {
	if c.Segments < 1 || c.WriteBudget < 0 || c.Examples < 0 {
		return usage("--segments is at least 1, and --write-budget and --examples are not below 0")
	}
	if c.TakeOver && (c.DeriveIn == "" || c.DryRun || c.Abort || c.Prune || len(c.From) > 0 || len(c.Derivations) > 0) {
		return usage("--take-over builds all that the model derives, and goes with --derive-in")
	}
	c.Again = c.Again || c.TakeOver
	if c.DryRun && c.Abort {
		return usage("--dry-run is of a build, of --from or of --prune")
	}
	if len(c.From) > 0 {
		return c.buildHistories(p)
	}
	p.log, _ = measures.Logging{}.Open(p.stderr)
	end, err := p.beginTracing(c.Flag)
	if err != nil {
		return err
	}
	defer end()
	values := c.DryRun || c.Abort // of these, search has no part
	s, err := p.existing(c.data, []string{c.Model}, system.Options{NoSearch: values, Writes: !c.DryRun, LetterTTL: time.Duration(c.LetterTTL)})
	if err != nil {
		return err
	}
	defer s.Close()
	part := s.Models[0]
	if c.Prune {
		return c.pruneRetired(p, s)
	}
	names, search, err := buildable(part.Model, c.Derivations)
	if err != nil {
		return err
	}
	b := part.Builder()
	b.Names, b.Again, b.Asked, b.Segments, b.Budget = names, c.Again, b.Runner.Now(), c.Segments, c.WriteBudget
	switch {
	case c.DryRun:
		return c.printEstimates(p, s, b)
	case c.Abort:
		return c.abortBuilds(p, b)
	}
	if c.TakeOver {
		taken, err := part.Runner.Catalog.TakeOver(p.ctx)
		if err != nil {
			return err
		}
		if taken {
			fmt.Fprintf(p.stderr, "%s derives from now on\n", c.DeriveIn)
		}
	}
	retired := false
	if len(c.Derivations) == 0 {
		if retired, err = p.noteRetired(b, true); err != nil {
			return err
		}
	}
	if search && s.Index == nil && len(names) == 0 && !retired {
		return usage(noSearchPlace)
	}
	err = c.buildValues(p, b)
	if err == nil && len(part.Model.Searches) == 0 {
		err = s.NameIndexes(p.ctx) // none, for readers that kept some
	}
	if err != nil || !search {
		return err
	}
	if s.Index == nil {
		fmt.Fprintln(p.stderr, "the search indexes are not built: --opensearch URL says where they are")
		return nil
	}
	return c.fillIndexes(p, s, part)
}

const noSearchPlace = "it is not said where the search indexes are: --opensearch URL"

// runBuilds runs a builder, shows its progress, and releases the builds that it leaves.
// It returns the error of run. A builder that cannot be released is only reported: other processes then wait for
// build.Idle before they continue its build.
func runBuilds(p *program, b *build.Builder, run func() error) error {
	reading := cli.New(p.stderr, "rows read and values put")
	b.Report = func(d build.Progress) { reading.Set(d.Rows+d.Puts+d.Targets, 0) }
	err := run()
	reading.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), finishTime)
	defer cancel()
	if err := b.Release(ctx); err != nil {
		fmt.Fprintf(p.stderr, "the build is not released, so processes wait for up to %s before they go on with it: %v\n", build.Idle, err)
	}
	return err
}

// printEstimates prints the cost of the build, and writes nothing. Search indexes are no part of it.
func (c *buildCommand) printEstimates(p *program, s *system.System, b *build.Builder) error {
	var d build.Progress
	err := runBuilds(p, b, func() (err error) {
		d, err = b.Estimate(p.ctx)
		return err
	})
	if err != nil {
		return err
	}
	previews, err := c.previewRows(p, s, b, d.Rows)
	if err != nil {
		return err
	}
	c.printEstimate(p, b.Runner.Model, d, previews, b.UnfitRows(""))
	return nil
}

// previewRows derives everything again, unless no examples are asked for, and returns the values that rows will show. There are about so
// many rows to read.
func (c *buildCommand) previewRows(p *program, s *system.System, b *build.Builder, rows int64) ([]scratch.Preview, error) {
	if c.Examples == 0 {
		return nil, nil
	}
	names, err := b.Rebuilds(p.ctx)
	if err != nil {
		return nil, err
	}
	v, reading := scratch.Of(s, s.Models[0]), cli.New(p.stderr, "rows derived from")
	defer reading.End()
	v.Progress = func(read int) { reading.Set(int64(read), rows) }
	return v.Preview(p.ctx, names, c.Examples)
}

// abortBuilds ends the builds that rows do not show yet. That there is none is a usage error, exit code 2.
// Builds that are live stay as they are.
func (c *buildCommand) abortBuilds(p *program, b *build.Builder) error {
	if err := b.Abort(p.ctx); errors.Is(err, build.ErrNone) {
		return usage("model %s has no build that can be aborted", b.Runner.Model.Name)
	} else if err != nil {
		return err
	}
	fmt.Fprintln(p.stderr, "rows show what they showed; what builds left that are not shown is removed")
	return nil
}

// buildValues builds the values that rows show.
// An error after the first value was put is reported as incomplete, exit code 4: the same command continues.
func (c *buildCommand) buildValues(p *program, b *build.Builder) error {
	if len(b.Names) == 0 {
		return nil
	}
	begins, err := b.BegunHistories(p.ctx)
	if err != nil {
		return err
	}
	var is []build.Status
	err = runBuilds(p, b, func() (err error) {
		is, err = b.Run(p.ctx)
		return err
	})
	if err != nil {
		return cli.Partly(err, b.Done().Puts > 0)
	}
	saysBegins(p, b.Runner.Model.Name, begins)
	return c.print(p, is, b, len(begins) > 0)
}

// buildable returns the names of the model's builds of which the derivations are part, or
// all, and whether search indexes are to be built.
// out has each build once, in the order in which they are to be built. A derivation that no build makes, such as history, is a usage
// error, as is a name that the model does not have.
func buildable(m *model.Model, names []string) (out []string, search bool, err error) {
	builds := m.Builds()
	for _, name := range names {
		isSearch := func(s *model.Search) bool { return s.Derivation() == name }
		is := func(d model.Derivation) bool { return d.Name == name }
		switch {
		case slices.ContainsFunc(m.Searches, isSearch):
			search = true // the indexes of a model are one generation
		case builds[name] != "":
			out = append(out, builds[name])
		case m.CanBuild(name) && m.Entity(name) != nil:
			out = append(out, name)
		case slices.ContainsFunc(m.Derivations(), is):
			return nil, false, usage("%s is history, which no row tells: it is complete from when weir began to derive it; --from FILE takes what was before from recordings", name)
		default:
			return nil, false, usage("model %s has no derivation %s; %s lists them", m.Name, name, m.Command("status"))
		}
	}
	search = search || len(names) == 0 && len(m.Searches) > 0
	return m.InBuildOrder(func(build string) bool { return len(names) == 0 || slices.Contains(out, build) }), search, nil
}

// estimated is the cost of a build, as JSON.
type estimated struct {
	Contributions int64             `json:"contributions"`
	Dollars       float64           `json:"dollars"`
	Previews      []scratch.Preview `json:"previews"`
	ReadUnits     int64             `json:"readUnits"`
	Rows          int64             `json:"rows"`
	Seconds       float64           `json:"seconds"`
	Targets       int64             `json:"targets"`
	Unfit         int64             `json:"unfit"`
	UnfitRows     []build.Unfit     `json:"unfitRows,omitempty"`
	WriteUnits    int64             `json:"writeUnits"`
}

// printEstimate prints the cost of a build.
// In JSON it is one object; in text, two lines and then a line for each derivation whose values will differ, with
// examples below it. The time is units divided by the write budget, or by usualPace.
func (c *buildCommand) printEstimate(p *program, m *model.Model, d build.Progress, previews []scratch.Preview, unfit []build.Unfit) {
	pace := usualPace
	if c.WriteBudget > 0 {
		pace = c.WriteBudget
	}
	takes := time.Duration(float64(d.Units) / float64(pace) * float64(time.Second)).Round(time.Second)
	if c.Output != "text" {
		json.NewEncoder(p.stdout).Encode(estimated{
			Rows: d.Rows, Contributions: d.Puts, Targets: d.Targets, WriteUnits: d.Units, ReadUnits: d.ReadUnits(),
			Dollars: d.Price(), Seconds: takes.Seconds(), Unfit: d.Unfit, UnfitRows: unfit, Previews: append([]scratch.Preview{}, previews...),
		})
		return
	}
	fmt.Fprintf(p.stdout, "%d rows to read, %d contributions to put, %d rows to show\n", d.Rows, d.Puts, d.Targets)
	fmt.Fprintf(p.stdout, "%d write units and %d read units, $%.4f on demand, %s at %d write units a second\n", d.Units, d.ReadUnits(), d.Price(), takes, pace)
	saysUnfit(p.stdout, m, d.Unfit, unfit)
	for _, of := range previews {
		fmt.Fprintf(p.stdout, "%s: %d rows will show another value, of %d compared\n", of.Derivation, of.Differ, of.Rows)
		for _, x := range of.Some {
			fmt.Fprintf(p.stdout, "  %s: %s, will be %s\n", x.Row, cut(x.Is, 200), cut(x.Will, 200))
		}
	}
}

// builtNow is the outcome of a build, as JSON. Audit is when the second pass may begin.
type builtNow struct {
	Entity string              `json:"entity"`
	State  owntable.BuildState `json:"state"`
	Audit  *time.Time          `json:"auditFrom,omitempty"`
	Unfit  []build.Unfit       `json:"unfitRows,omitempty"`
}

// saysUnfit names the first of n rows that are left out, and says how many more there are.
func saysUnfit(to io.Writer, m *model.Model, n int64, some []build.Unfit) {
	if n == 0 {
		return
	}
	fmt.Fprintf(to, "%d rows cannot be used by some derivation, and are left out of it; %s names all:\n", n, m.Command("verify"))
	for _, is := range some {
		fmt.Fprintf(to, "  %s\n", is)
	}
	if more := n - int64(len(some)); more > 0 {
		fmt.Fprintf(to, "  and %d more\n", more)
	}
}

// print prints the outcome of the builds.
// Results go to stdout in the form asked for; the totals of work, and derivations that stay as they are, go to stderr.
func (c *buildCommand) print(p *program, is []build.Status, b *build.Builder, begun bool) error {
	d := b.Done()
	if len(is) == 0 && !begun {
		fmt.Fprintln(p.stderr, "nothing to build: all is live by the definitions of this model; --again builds it nevertheless")
	}
	out := c.to(p.stdout)
	for _, s := range is {
		r := builtNow{Entity: s.Entity, State: s.State, Unfit: b.UnfitRows(s.Entity)}
		if !s.AuditAt.IsZero() {
			r.Audit = &s.AuditAt
		}
		out.printResult(r, func() {
			fmt.Fprintf(p.stdout, "%s: %s", s.Entity, s.State)
			if r.Audit != nil {
				fmt.Fprintf(p.stdout, ", not yet audited: run this again from %s", s.AuditAt.UTC().Format("2006-01-02 15:04 UTC"))
			}
			fmt.Fprintln(p.stdout)
		})
	}
	out.printEnd()
	if len(is) == 0 {
		return nil
	}
	fmt.Fprintf(p.stderr, "%d rows read, %d contributions put, %d rows shown, %d write units and %d read units, $%.4f on demand\n", d.Rows, d.Puts, d.Targets, d.Units, d.ReadUnits(), d.Price())
	if d.Left > 0 {
		fmt.Fprintf(p.stderr, "%d things differ and are left as they are: the table refuses what the model says, or another program made the row; verify says which\n", d.Left)
	}
	if d.Orphans > 0 {
		fmt.Fprintf(p.stderr, "%d rows look like copies that an older definition made, at keys that the model no longer has: nothing updates or removes them\n", d.Orphans)
	}
	saysUnfit(p.stderr, b.Runner.Model, d.Unfit, b.UnfitRows(""))
	return nil
}

// fillIndexes fills the search indexes of the model's definitions.
// It returns when the indexes are complete. Interrupted, the next call goes on after the rows that were read.
func (c *buildCommand) fillIndexes(p *program, s *system.System, part *system.Part) error {
	reading := cli.New(p.stderr, "rows read")
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
	err := s.Reach(p.ctx, filling)
	if err == nil && c.Again && rows == 0 { // they were filled before
		err = s.IndexAgain(p.ctx, part, filling)
	}
	if err != nil {
		return cli.Partly(err, rows > 0)
	}
	reading.End()
	fmt.Fprintf(p.stderr, "the search indexes of %s are built\n", part.Model.Name)
	return nil
}
