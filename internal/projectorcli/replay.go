package projectorcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/cli"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/sorter"
	"weir/internal/stage"
	"weir/internal/system"
)

// replayCommand derives from recorded files. The same file may be replayed any number of times.
type replayCommand struct {
	data
	output
	assume
	cli.LetterFlag
	Model    string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Files    []string `arg:"" optional:"" name:"file" help:"Recorded files, directories of them, - for stdin, or TABLE=FILE where the records name no table."`
	Bulk     string   `enum:"auto,never" default:"auto" help:"How rows get into an embedded directory: auto lands many at a time where nothing follows the directory yet; never writes each record by itself."`
	Forget   string   `placeholder:"TIME" env:"-" help:"Replay nothing, but forget which rows were removed by records up to this time. No recording from before it may be replayed here any more."`
	NoSearch bool     `help:"Leave the search indexes alone; the next command that opens them makes them from the rows."`
}

func (replayCommand) Help() string {
	return `Files may be Lambda DynamoDB events, GetRecords pages, single records, the CLI's
output of these, Kinesis Data Streams for DynamoDB records, DynamoDB exports to S3
or Lambda on-failure documents; plain, gzip or zstd. replay recognises the form by its
content. For an export, give its folder as it is in S3: all files that its manifest
names must be there, unchanged. Returns when everything derived has caught up. Replaying a file
again changes nothing; after an interruption the same command goes on. On AWS it
makes the tables, and refuses any that no replay made.

Files may overlap, and come in any order: the records of one command are sorted by row and
time, in a file beside the rows or in the directory for temporary files, which takes about as
much room as two unpacked copies. A record that a later command brings, older than what its row
has seen, changes no row, but is added to histories. In one moment, these have an order only by
sequence numbers. A feed needs all its files in one command, and takes records of one moment
without sequence numbers in the order of Kinesis, or of the files. Changes that come in two
forms, with such numbers and without, belong in one command, and, for a history, an incremental
export and a stream of its time. Equal ones of one moment without eventID count once, unless
those around need more.

A full export with its manifest is the table as it was at its exportTime: rows that it lacks are
removed if replays wrote them and nothing newer is known. It adds nothing to histories and
feeds. An incremental export whose window begins later than what is known is a gap, until
what covers the time between is replayed. Each file of a stream covers the time from its first
to its last record; that one is missing is known only where a row's changes do not follow
each other, or such a window begins in its time. A data file without its manifest has no time: it fills only rows of which no change is
known. Export and stream may overlap; give what was recorded within a minute of an
export in the same command as the export, and records of one moment that have no sequence
numbers, such as Kinesis records, in one command with the change before them, in their order:
where nothing tells their order, that is a gap which only a replay into a new directory ends.

If only replays in bulk have written into the directory, the rows of many records are
written at a time. The result is the same; -o json says how many records were in bulk.

For each row that a record removes, weir keeps a row of 150 bytes in its own table, so that
its recording can be replayed at any time without bringing it back. --forget TIME, such as
2026-01-31 or 2026-01-31T12:00:00Z, deletes those of records up to then. Afterwards a record up
to that time is refused, with exit code 2, if its row does not exist.

With --tables NAME=REAL, the records name the tables as the store does.

The exit code is 1 if a record could not be used, records are missing at the end, or the
model has dead letters from before. A gap is said by each command until the missing records
come, or, where the row has no history, a newer full export, or its letter is discarded (dead discard). The other records
are applied, and counted in the output.

  projector replay gallery testdata/streams/gallery/stream.jsonl.gz
  projector replay movienight streams/ --data ./data
  projector replay movienight Votes=votes.json Picks=picks.json
  projector replay gallery recorded.jsonl --tables gallery=gallery-prod`
}

// maxShown is how many gaps and bad records are told one by one.
const maxShown = 10

// Run looks for all files before it opens the data, so that a wrong path changes nothing.
// The tables of the model are made on AWS if they do not exist, before anything is written.
func (c *replayCommand) Run(p *program) error {
	upTo, err := c.forget(time.Now())
	if err != nil {
		return err
	}
	inputs, err := inputsOf(c.Files)
	if err != nil {
		return err
	}
	p.noteModel(c.data, []string{c.Model})
	if err := p.prepareReplay(c.at(), c.Model); err != nil {
		return err
	}
	s, err := p.openSystem(c.data, []string{c.Model}, system.Options{NoSearch: c.NoSearch, Writes: true, AssumeComplete: c.AssumeComplete, LetterTTL: time.Duration(c.LetterTTL)})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Start(p.ctx); err != nil {
		return err
	}
	if c.Forget != "" {
		part := s.Models[0]
		n, err := (&replay.Replay{Model: part.Model, Store: s.Store}).Forget(p.ctx, upTo)
		if err == nil {
			fmt.Fprintf(p.stderr, "%d removals are forgotten; recordings from before %s are refused from now on\n", n, upTo.UTC().Format(time.RFC3339))
		}
		return err
	}
	return c.replay(p, s, inputs)
}

// forget returns the time of --forget, zero without it. There are files, or there is that.
func (c *replayCommand) forget(now time.Time) (upTo time.Time, err error) {
	switch {
	case c.Forget == "" && len(c.Files) == 0:
		return upTo, usage("give recorded files")
	case c.Forget == "":
		return upTo, nil
	case len(c.Files) > 0:
		return upTo, usage("--forget replays no files: give it alone")
	}
	if upTo, err = time.Parse(time.DateOnly, c.Forget); err != nil {
		upTo, err = time.Parse(time.RFC3339, c.Forget)
	}
	if err != nil || upTo.After(now) {
		return upTo, usage("--forget %s: give a time that is past, such as 2026-01-31 or 2026-01-31T12:00:00Z", c.Forget)
	}
	return upTo, nil
}

// An interruption after the first record is exit code 4: the same command continues, and skips applied records.
// After an error no summary is printed, but the gaps and the records that cannot be used are.
func (c *replayCommand) replay(p *program, s *system.System, inputs []input) error {
	part, start := s.Models[0], time.Now()
	r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner, Names: s.Names}
	gaps := &talk{more: "gaps", out: p.stderr}
	bad := &talk{more: "records that cannot be used; see " + part.Model.Command("dead list")}
	r.Bad = func(e events.Entry, err error) {
		bad.sayLine("dead letter: %s: %s", e.Location, part.Model.ShownText(err.Error()))
	}
	dir := ""
	if !c.shared() {
		dir = c.at().Directory()
	}
	a := replay.NewArrangement(r, int(c.Memory.Share(window)), scratchIn(dir))
	defer a.Close()
	unread, err := p.orderRecords(inputs, r, a)
	if err == nil {
		err = r.Begin(p.ctx)
	}
	if err == nil {
		err = r.CheckForms(p.ctx, a)
	}
	if err != nil {
		return err
	}
	landed, whole, err := c.inBulk(p, s, a, r, bad)
	if err == nil {
		err = p.fill(s) // after the bulk: the indexes are made from the rows
	}
	lack := map[*model.Table]*events.Export{}
	if err == nil && unread == nil {
		lack, err = r.Lacking(p.ctx, a)
	}
	if err == nil && (!whole || len(lack) > 0) {
		reading := cli.New(p.stderr, "records")
		bad.out = reading
		err = p.writeAndApply(part.Runner, reading, func(ctx context.Context) error {
			if err := replayArranged(ctx, reading, a, r, landed); err != nil {
				return err
			}
			return r.RemoveLacking(ctx, lack)
		})
	}
	if err == nil && unread == nil {
		err = r.CheckWindows(p.ctx, a)
	}
	bad.sayRest()
	if err == nil {
		err = unread // records that were read before it are replayed
	}
	if n := r.Summary.Lacking; n > 0 {
		fmt.Fprintf(p.stderr, "%d rows were removed, since the export does not have them and their last recorded change is older\n", n)
	}
	if a.Bare > 0 {
		fmt.Fprintf(p.stderr, "%d rows are of an export without its manifest, so they have no time: they fill only rows of which no change is known\n", a.Bare)
	}
	if a.Unordered > 0 {
		fmt.Fprintf(p.stderr, "%d times a row changed more than once in a moment, without sequence numbers: its history has these entries in no order\n", a.Unordered)
	}
	r.Summary.Gaps = 0
	failed := r.Gaps(p.ctx, func(d deadletter.Letter) {
		r.Summary.Gaps++
		gaps.sayLine("gap: %s: %s: %s", d.Source, d.Target, d.Reason)
	})
	if gaps.sayRest(); err == nil {
		err = failed
	}
	if err == nil {
		err = r.End(p.ctx)
	}
	if errors.Is(err, replay.ErrForgotten) || errors.Is(err, replay.ErrBehind) {
		return usage("%v", err) // the same command would be refused again
	}
	if err != nil {
		return cli.Partly(err, r.Summary.Records() > 0)
	}
	if err := c.printSummary(p, s, r, landed, time.Since(start)); err != nil {
		return err
	}
	return c.complete(p, part, r)
}

// complete is the end of a replay that went through: good only where every record was
// used, and no dead letter is left of this replay or one before it, which may have
// been broken off after it stored one.
func (c *replayCommand) complete(p *program, part *system.Part, r *replay.Replay) error {
	found := errors.New("a dead letter")
	err := part.Runner.EachDeadLetter(p.ctx, func(deadletter.Letter) error { return found })
	switch {
	case errors.Is(err, found):
		fmt.Fprintf(p.stderr, "there are dead letters: %s shows them\n", part.Model.Command("dead list"))
		return failed(exitCheck)
	case err != nil:
		return err
	case r.Summary.Dead > 0 || r.Summary.Gaps > 0:
		return failed(exitCheck)
	}
	return nil
}

// writeAndApply writes the source rows and has their records applied at the same time.
// It returns when all that was written is applied, or with the first error of either; the other is then stopped.
func (p *program) writeAndApply(run *runner.Runner, writing *cli.Progress, write func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	written := make(chan struct{})
	deriving := cli.New(p.stderr, "changes worked through")
	var dead atomic.Int64
	follower := reader.Follower{Runner: run, Report: func(n reader.Applied) {
		deriving.Add(int64(n.Applied + n.Skipped + n.Dead))
		dead.Add(int64(n.Dead))
	}}
	deriving.Hold()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := follower.CatchUp(ctx, written); err != nil {
			cancel(err)
		}
	})
	err := write(ctx)
	writing.End()
	if err != nil {
		cancel(err)
	}
	close(written)
	deriving.Release()
	wg.Wait()
	deriving.End()
	if n := dead.Load(); n > 0 {
		fmt.Fprintf(p.stderr, "dead letters: %d changes of which not everything could be derived; %s shows them\n", n, run.Model.Command("dead list"))
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// input is files of one table, or of any.
type input struct {
	table string
	paths []string
	files *events.Files // once eachBatch has opened them
}

// inputsOf reads the arguments: FILE, DIRECTORY, - or TABLE=FILE. A file whose own name has "=" in it is a file.
// Inputs of one table that follow each other are put together; the order of the arguments is the order of replay.
func inputsOf(args []string) ([]input, error) {
	var out []input
	for _, arg := range args {
		table, path := "", arg
		if name, rest, ok := strings.Cut(arg, "="); ok && !exists(arg) {
			table, path = name, rest
		}
		paths, err := filesIn(path)
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, usage("%s: no files in it", path)
		}
		if n := len(out); n > 0 && out[n-1].table == table {
			out[n-1].paths = append(out[n-1].paths, paths...)
			continue
		}
		out = append(out, input{table: table, paths: paths})
	}
	return out, nil
}

// exists reports whether a path can be looked up. It does not say whether it can be read.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// filesIn is the file itself, or the files of a directory in the order of their
// names, but for those that are about the rest of a recording.
// Files whose names begin with "." or "expected." are left out, in subdirectories too. A path that is no directory is
// returned as it is, with an error if it does not exist.
func filesIn(path string) ([]string, error) {
	if path == "-" {
		path = "/dev/stdin"
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var out []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") && !strings.HasPrefix(d.Name(), "expected.") {
			out = append(out, p)
		}
		return err
	})
	slices.Sort(out)
	return out, err
}

// orderRecords reads all records, and puts them in order. unread is why the
// rest of the files cannot be read; records that were read before are replayed nevertheless.
func (p *program) orderRecords(inputs []input, r *replay.Replay, a *replay.Arrangement) (unread, err error) {
	reading := cli.New(p.stderr, "records read")
	defer reading.End()
	unread = eachBatch(p.ctx, reading, inputs, &r.Names, func(entries []events.Entry, table string) error {
		return a.Add(entries, table)
	})
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}
	if unread != nil {
		return unread, a.Arrange(p.ctx)
	}
	for _, in := range inputs {
		for _, x := range in.files.Exports() {
			if err := a.AddExport(x, r.Names.Said(in.table)); err != nil {
				return nil, usage("%v", err)
			}
		}
	}
	return nil, a.Arrange(p.ctx)
}

// scratchIn makes files to sort in, which are gone when they are closed, in a directory, or in that for such files.
func scratchIn(dir string) func() (sorter.File, error) {
	return func() (sorter.File, error) {
		f, err := os.CreateTemp(dir, "sorting-*")
		if err != nil {
			return nil, err
		}
		return f, os.Remove(f.Name())
	}
}

// replayArranged replays the records that were arranged, but for the first done, and shows how far it is.
func replayArranged(ctx context.Context, reading *cli.Progress, a *replay.Arrangement, r *replay.Replay, done int) error {
	var records int64
	for b, err := range a.Batches() {
		if err != nil {
			return err
		}
		n := min(done, len(b.Entries))
		done -= n
		if err := r.Batch(ctx, b.Entries[n:], b.Table); err != nil {
			return err
		}
		records += int64(len(b.Entries))
		reading.Set(records, 0)
	}
	return nil
}

// eachBatch hands over the records of the inputs in order, in batches, with the logical
// names of their tables, and shows how far it is.
// All files are opened before the first batch. An error of yield ends it and is returned; a file that cannot be read
// as records, or a table that the names do not have, is a usage error.
func eachBatch(ctx context.Context, reading *cli.Progress, inputs []input, names *stage.Names, yield func(entries []events.Entry, table string) error) error {
	for i := range inputs {
		in := &inputs[i]
		var err error
		if in.files, err = events.Open(in.paths...); errors.Is(err, events.ErrExport) || errors.Is(err, events.ErrNoRecords) {
			return usage("%v", err)
		} else if err != nil {
			return err
		}
		for _, x := range in.files.Exports() {
			if in.table == "" && x.Table != "" && !names.Has(x.Table) {
				return usage("%s: it is an export of table %s, which the model does not have; if one of its tables has that name where this was exported, say --tables TABLE=%s; or name the table with the files, TABLE=FILE", x.Name, x.Table, x.Table)
			}
		}
		reading.Total += in.files.Size()
	}
	var before, records int64 // bytes of the inputs that are done; records of all
	for _, in := range inputs {
		for entries, err := range in.files.Batches(ctx) {
			if errors.Is(err, events.ErrNoRecords) {
				return usage("%v", err)
			}
			if err != nil {
				return err
			}
			if err := names.Entries(entries); err != nil {
				return usage("%v", err)
			}
			if err := yield(entries, names.Said(in.table)); err != nil {
				return err
			}
			records += int64(len(entries))
			reading.Set(records, before+in.files.Consumed())
		}
		before += in.files.Size()
	}
	return nil
}

// eachEntry is eachBatch for one record after the other.
func eachEntry(ctx context.Context, reading *cli.Progress, inputs []input, names *stage.Names, yield func(*events.Entry, string) error) error {
	return eachBatch(ctx, reading, inputs, names, func(entries []events.Entry, table string) error {
		for i := range entries {
			if err := yield(&entries[i], table); err != nil {
				return err
			}
		}
		return nil
	})
}

// talk says the first few of many alike, then how many more there were.
// A talk is used by one goroutine at a time. out may be set after it was made, before the first word.
type talk struct {
	out  io.Writer
	more string
	n    int
}

// sayLine prints a line, up to maxShown of them.
func (t *talk) sayLine(format string, args ...any) {
	if t.n++; t.n <= maxShown {
		fmt.Fprintf(t.out, format+"\n", args...)
	}
}

// sayRest says how many more there were.
func (t *talk) sayRest() {
	if t.n > maxShown {
		fmt.Fprintf(t.out, "… and %d more %s\n", t.n-maxShown, t.more)
	}
}

// replayed is the outcome of a replay, as JSON; docs/guide/json.md explains each field.
type replayed struct {
	Applied int              `json:"applied"`
	Bulk    int              `json:"bulk"`
	Dead    int              `json:"dead"`
	Derived []system.Counted `json:"derived"`
	Gaps    int              `json:"gaps"`
	// Missing has the targets for which rows count and that do not exist.
	Missing []projections.Missing `json:"missingTargets,omitempty"`
	Model   string                `json:"model"`
	Records int                   `json:"records"`
	Seconds float64               `json:"seconds"`
	Skipped int                   `json:"skipped"`
}

// printSummary prints the outcome of the records, of which so many were replayed in bulk, and how
// much there now is.
// Rows are counted in the store, not remembered: the numbers are those of all replays together.
func (c *replayCommand) printSummary(p *program, s *system.System, r *replay.Replay, bulk int, took time.Duration) error {
	derived, missing, err := s.Census(p.ctx, s.Models[0])
	if err != nil {
		return err
	}
	sum := r.Summary
	if c.Output != "text" {
		return json.NewEncoder(p.stdout).Encode(replayed{
			Model: r.Model.Name, Records: sum.Records(), Applied: sum.Applied, Skipped: sum.Skipped, Dead: sum.Dead,
			Gaps: sum.Gaps, Bulk: min(bulk, sum.Records()), Seconds: took.Seconds(), Derived: derived, Missing: missing,
		})
	}
	fmt.Fprintf(p.stdout, "%s: %d records in %.1f s: %d applied, %d skipped, %d dead, %d gaps\n",
		r.Model.Name, sum.Records(), took.Seconds(), sum.Applied, sum.Skipped, sum.Dead, sum.Gaps)
	for _, d := range derived {
		fmt.Fprintf(p.stdout, "  %s\n", d)
	}
	for _, m := range missing {
		fmt.Fprintf(p.stdout, "  %s\n", m)
	}
	return nil
}
