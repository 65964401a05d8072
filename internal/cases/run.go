package cases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/parallel"
	"weir/internal/system"
	"weir/internal/value"
)

// Query is a query of a console block.
type Query struct {
	Name   string
	Params map[string]string
	Limit  int // 0 for all rows
	Only   []string
}

// Runner runs cases. Load takes in a file of rows or records, before anything is derived, and Parse reads a command.
type Runner struct {
	Load  func(ctx context.Context, s *system.System, part *system.Part, path string) error
	Parse func(command string) (Query, error)
}

// Failure is an answer that is not as it should be.
type Failure struct {
	Case      *Case
	Way       string // in which the records came
	Line      int    // of the page
	What      string // was asked
	Want, Got string
	Err       error // instead of an answer

	from, to int // the answer in the page, if that is wrong
}

// way is one way in which the records of a case come.
type way struct {
	name string
	come func(ctx context.Context, w *world, records []events.Record) error
	// inOrder is of a way that keeps to the order of records of different rows.
	inOrder bool
}

// ways are all of them. The answers of the first are compared with the page, and those of the others with the first.
var ways = []way{
	{"plainly", func(ctx context.Context, w *world, records []events.Record) error {
		return w.writeRecords(ctx, records, len(records)/100)
	}, true},
	{"redelivered", func(ctx context.Context, w *world, records []events.Record) error {
		return w.comeAgain(ctx, records, cmp.Or(len(records)/5, 2))
	}, true},
	{"rebuilt", func(ctx context.Context, w *world, records []events.Record) error {
		return errors.Join(w.writeRecords(ctx, records, 100), w.rebuild(ctx))
	}, true},
	{"reordered", func(ctx context.Context, w *world, records []events.Record) error {
		return w.writeRecords(ctx, reordered(records), 7)
	}, false},
}

// reordered has the records of the row that came last first. Those of one row stay in their order, as they do in a stream.
func reordered(records []events.Record) (out []events.Record) {
	of := map[string][]events.Record{}
	var rows []string
	for _, r := range records {
		row := r.Table + string(value.AppendPlainItem(nil, r.Keys))
		if of[row] == nil {
			rows = append(rows, row)
		}
		of[row] = append(of[row], r)
	}
	for _, row := range slices.Backward(rows) {
		out = append(out, of[row]...)
	}
	return out
}

// Run runs a case by all ways, and returns the failures. Where the order of changes matters to a derivation, such as a feed,
// records do not come reordered.
func (r *Runner) Run(ctx context.Context, c *Case) (found []Failure, err error) {
	records, err := r.writeSources(ctx, c)
	if err != nil {
		return []Failure{{Case: c, Way: "plainly", Line: c.Line, What: "rows", Err: err}}, ctx.Err()
	}
	type outcome struct {
		got     []string
		differs string
		err     error
	}
	outcomes := make([]outcome, len(ways))
	err = parallel.Do(len(ways), len(ways), func(i int) error {
		o := &outcomes[i]
		o.got, o.differs, o.err = r.run(ctx, c, ways[i], records)
		return nil
	})
	var first []string
	for i, way := range ways {
		got, differs, err := outcomes[i].got, outcomes[i].differs, outcomes[i].err
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			found = append(found, Failure{Case: c, Way: way.name, Line: c.Line, What: "the model", Err: err})
			continue
		case got == nil: // it does not apply
			continue
		}
		fail := func(line int, what, want, got string) *Failure {
			found = append(found, Failure{Case: c, Way: way.name, Line: line, What: what, Want: want, Got: got})
			return &found[len(found)-1]
		}
		for i, a := range c.asks {
			what := cmp.Or(a.command, expected)
			if first == nil {
				if normal(a.want) != normal(got[i]) {
					f := fail(a.line, what, a.want, got[i])
					f.from, f.to = a.from, a.to
				}
			} else if got[i] != first[i] {
				fail(a.line, what, first[i], got[i])
			}
		}
		said, letters := "", got[len(c.asks)]
		if first != nil {
			said = first[len(c.asks)]
		}
		if letters != said && !slices.ContainsFunc(c.asks, func(a ask) bool { return a.command == "" }) {
			fail(c.Line, "dead letters", said, letters)
		}
		if differs != "" {
			fail(c.Line, "verify", "", differs)
		}
		if first == nil {
			first = got
		}
	}
	return found, err
}

// normal is an answer without the blanks that a person may write between the parts of its lines.
func normal(answer string) string {
	var out strings.Builder
	for line := range strings.Lines(answer) {
		if it, err := ingest.ReadItem([]byte(line)); err == nil {
			line = string(value.AppendPlainItem(nil, it))
		}
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// writeSources writes a case's rows and records where nothing is derived, and returns the records of the streams.
func (r *Runner) writeSources(ctx context.Context, c *Case) (records []events.Record, err error) {
	w, err := newWorld(ctx, c.model)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, b := range c.files {
		path := filepath.Join(w.dir, b.name)
		if err := os.WriteFile(path, []byte(b.body), 0o666); err != nil {
			return nil, err
		}
		if err := r.Load(ctx, w.s, w.part, path); err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	pages, err := w.readStreams(ctx, events.Position{})
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		for _, record := range page.Records {
			record.Table = page.Table.Name
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b events.Record) int { return a.Position.Compare(b.Position) })
	return records, nil
}

// run has the records come in one way, and returns the answers, with the dead letters as the last, and the findings of verify. It
// returns no answers if the records cannot come so.
func (r *Runner) run(ctx context.Context, c *Case, way way, records []events.Record) (got []string, differs string, err error) {
	w, err := newWorld(ctx, c.model)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if !way.inOrder && len(w.part.Runner.Orders()) > 0 {
		return nil, "", nil
	}
	if err := way.come(ctx, w, records); err != nil {
		return nil, "", err
	}
	for _, a := range c.asks {
		answer, err := w.answer(ctx, a, r.Parse)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", cmp.Or(a.command, expected), err)
		}
		got = append(got, answer)
	}
	letters, err := w.letters(ctx)
	if err != nil {
		return nil, "", err
	}
	differs, err = w.verify(ctx)
	return append(got, letters), differs, err
}

// Diff shows a failure to a person: lines that are missing, and lines that should not be there.
func (f *Failure) Diff() string {
	if f.Err != nil {
		return f.Err.Error() + "\n"
	}
	want, got := slices.Collect(strings.Lines(f.Want)), slices.Collect(strings.Lines(f.Got))
	var out strings.Builder
	for len(want)+len(got) > 0 {
		switch at := -1; {
		case len(want) > 0 && len(got) > 0 && normal(want[0]) == normal(got[0]):
			out.WriteString("  " + want[0])
			want, got = want[1:], got[1:]
		case len(want) > 0:
			if at = slices.IndexFunc(got, func(g string) bool { return normal(g) == normal(want[0]) }); at > 0 {
				for _, line := range got[:at] {
					out.WriteString("+ " + line)
				}
				got = got[at:]
				continue
			}
			out.WriteString("- " + want[0])
			want = want[1:]
		default:
			out.WriteString("+ " + got[0])
			got = got[1:]
		}
	}
	return out.String()
}
