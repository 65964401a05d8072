package projectorcli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"weir/internal/cli"
	"weir/internal/deploy"
	"weir/internal/events"
	"weir/internal/scratch"
	"weir/internal/system"
)

// whyCommand explains a value from recordings, which have to reach back far enough and for which it opens no store of the user's, or from
// the rows that there are.
type whyCommand struct {
	output
	data
	Model     string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Target    string   `arg:"" help:"The row: an entity and its key, Album:id=a1 or Album:a1, or a row as verify prints it."`
	Attribute string   `arg:"" help:"The derived attribute."`
	From      []string `sep:"none" placeholder:"FILE" help:"Recorded files, as replay takes them; they are read twice. Without any, the rows that there are."`
	Files     []string `arg:"" optional:"" name:"file" help:"More of them."`
}

func (whyCommand) Help() string {
	return `With --from, lists the records of recorded files that made a value what it is, in their
order: where the record is, its shard and sequence number, its time, the event and its row,
what it added or made of the value, and the value after it. The records of these rows are
applied to a temporary store, one by one. Without, it reads the store, on AWS the tables as
they are, twice, and lists the rows that count for the value now. Nothing is written. Exits
with 1 when nothing had a part in it.

  projector why gallery Album:id=a1 mediaCount
  projector why gallery Album:id=a1 mediaCount --aws
  projector why gallery Album:id=a1 mediaCount --from testdata/streams/gallery/stream.jsonl.gz
  projector why movienight Round:r1 status --from streams/
  projector why gallery 'gallery "ALBUM#a1", "METADATA"' mediaCount --from day1.jsonl day2.jsonl -o jsonl`
}

// Run reads twice, first to find which rows had a part and then to explain, so memory and time depend on the
// number of such rows, not on how much there is.
func (c *whyCommand) Run(p *program) error {
	out, found, last := c.to(p.stdout), 0, ""
	line := func(l scratch.Line) {
		found, last = found+1, l.Value
		is := partOf(&l)
		out.printResult(is, func() { is.printText(out.table) })
	}
	explain, things := c.explainRows, "rows"
	if len(c.From)+len(c.Files) > 0 {
		explain, things = c.explainRecords, "records"
	}
	w, err := explain(p, line)
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	if out.table.Flush(); err == nil || found > 0 {
		out.printEnd()
	}
	if err != nil {
		return err
	}
	if found == 0 {
		fmt.Fprintf(p.stderr, "no %s has a part in %s of %s\n", strings.TrimSuffix(things, "s"), c.Attribute, w.Target)
		return failed(exitCheck)
	}
	fmt.Fprintf(p.stderr, "%d %s have a part in %s of %s", found, things, c.Attribute, w.Target)
	if last != "" {
		if !strings.HasPrefix(last, "cannot ") {
			last = "is " + last
		}
		fmt.Fprintf(p.stderr, ", which %s after them", last)
	}
	fmt.Fprintln(p.stderr)
	return nil
}

// explainRecords explains by recorded files.
func (c *whyCommand) explainRecords(p *program, line func(scratch.Line)) (*scratch.Why, error) {
	models, err := cli.Load(p.ctx, []string{c.Model})
	if err != nil {
		return nil, err
	}
	w, err := scratch.NewWhy(models[0], c.Target, c.Attribute)
	if err != nil {
		return nil, usage("%v", err)
	}
	names, err := cli.Names(system.Place{Stage: c.Deployment()}, models)
	if err != nil {
		return nil, err
	}
	inputs, err := inputsOf(append(c.From, c.Files...))
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		for _, path := range in.paths {
			if path == "/dev/stdin" {
				return nil, usage("the files are read twice, so they cannot come from stdin; write them to a file first")
			}
		}
	}
	return w, c.readTwice(p, w, line, scratch.Options{Memory: c.Memory, Now: time.Now}, "records", func(reading *cli.Progress, yield func(*events.Entry, string) error) error {
		return eachEntry(p.ctx, reading, inputs, &names, yield)
	})
}

// readTwice reads all there is twice.
func (c *whyCommand) readTwice(p *program, w *scratch.Why, line func(scratch.Line), o scratch.Options, unit string, each func(*cli.Progress, func(*events.Entry, string) error) error) error {
	pass := func(what string, yield func(*events.Entry, string) error) error {
		reading := cli.New(p.stderr, unit+what)
		defer reading.End()
		return each(reading, yield)
	}
	err := pass(" looked through", func(e *events.Entry, table string) error {
		w.Find(e, table)
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.Choose(o); err != nil {
		return usage("%v", err)
	}
	return pass(" read again", func(e *events.Entry, table string) error {
		l, ok, err := w.Explain(p.ctx, e, table)
		if ok {
			line(l)
		}
		return err
	})
}

// explainRows explains by the rows that there are. Its report of a value that applications write meanwhile may be of two moments.
func (c *whyCommand) explainRows(p *program, line func(scratch.Line)) (*scratch.Why, error) {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{NoSearch: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	m := s.Models[0].Model
	w, err := scratch.NewWhy(m, c.Target, c.Attribute)
	if err != nil {
		return nil, usage("%v", err)
	}
	if c.shared() {
		a, err := scratch.Of(s, s.Models[0]).Ahead(p.ctx)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(p.stderr, "about %d rows are read twice: at most %d read units, $%.4f on demand\n", a.Rows, 2*a.ReadUnits(), deploy.Price(0, 2*float64(a.ReadUnits())))
	}
	dir, size := s.Room()
	now := func(l scratch.Line) {
		l.Event, l.Sequence = "", ""
		line(l)
	}
	return w, c.readTwice(p, w, now, scratch.Options{Dir: dir, Memory: size, Now: s.Now}, "rows", func(reading *cli.Progress, yield func(*events.Entry, string) error) error {
		n := int64(0)
		return scratch.Rows(p.ctx, m, s.Store, func(e *events.Entry, table string) error {
			n++
			reading.Set(n, n)
			return yield(e, table)
		})
	})
}

// printText prints a part as a row of a table.
func (l *part) printText(table io.Writer) {
	if l.Line == 0 {
		fmt.Fprintf(table, "%s\t%s\t%s\n", l.Row, l.Added, l.Value)
		return
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Where, l.Shard+" "+l.Sequence, l.Time, l.Event, l.Row, l.Added, l.Value)
}

// part is a record's part in a value, as it is printed.
// Its JSON is a format that scripts rely on. Time is in UTC, to the second.
// A sum or a mean may add two things; Value is the row's value after the record.
type part struct {
	Where    string `json:"where"`
	File     string `json:"file,omitempty"`
	Line     int64  `json:"line"` // from 1; 0 of a row that there is
	Byte     int64  `json:"byte"` // of the content after decompression
	Shard    string `json:"shard,omitempty"`
	Sequence string `json:"sequenceNumber,omitempty"`
	Time     string `json:"time,omitempty"`
	Event    string `json:"event"`
	Row      string `json:"row"`
	Added    string `json:"added"`
	Value    string `json:"value"`
}

// partOf is a line as scripts read it. Its names do not change.
// Times are in UTC to the second, and left out where the record has none.
func partOf(l *scratch.Line) part {
	d := part{
		Where: "now", File: l.Where.File, Line: l.Where.Line, Byte: l.Where.Offset, Shard: l.Shard, Sequence: l.Sequence, Event: l.Event,
		Row: l.Row.String(), Added: l.Added, Value: l.Value,
	}
	if l.Where.Line > 0 {
		d.Where = l.Where.String()
	}
	if !l.Time.IsZero() {
		d.Time = l.Time.UTC().Format(time.RFC3339)
	}
	return d
}
