package ingestcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"weir/internal/cli"
	"weir/internal/ingest"
	"weir/internal/interrupt"
	"weir/internal/reader"
)

// putCommand writes the commands of files.
type putCommand struct {
	data
	output
	Model string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Files []string `arg:"" optional:"" name:"file" help:"Files of commands, plain, .gz or .zst; - or none is stdin."`
}

func (putCommand) Help() string {
	return `Reads a command from each line:

  {"op": "create", "entity": "Album", "item": {"id": "a1", "title": "The sea", …}}

op is create (the row must not be there), put (create or replace what the
application wrote), update (change the fields given; null removes one) or delete.
With an idempotencyKey a command is done once, however often it is sent.

A wrong command is refused, with file, line, field and reason, as a JSON object on stderr; the others are done. If a
row already is as its create would make it, the create counts as unchanged, so an
interrupted file may be put again. A file that is put twice changes nothing if each of
its commands creates or puts another row, or has an idempotencyKey (for 48 hours); other
commands are done again. The outcome is printed, and the exit code is 1 if a command was
refused.

  ingest put gallery albums.jsonl
  ingest put gallery albums.jsonl --aws --stage prod --tables gallery=gallery-prod
  zcat albums.jsonl.gz | ingest put gallery -o json 2>refused.jsonl`
}

const (
	// A batch has at most so many commands, and ends with the one that brings it to so many bytes.
	batchCommands = 256
	batchBytes    = 1 << 20
)

// Run syncs the store before it prints, so a command that is printed as done survives a crash, also after an error.
// A refused command is exit code 1.
func (c *putCommand) Run(p *program) (err error) {
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files { // a wrong path is said before anything is written
		if name == "-" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return cli.Usage("%s is a directory; name the files in it", name)
		}
	}
	s, err := p.openTables(c.data, []string{c.Model})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	put := &putting{
		program: p, writer: &ingest.Writer{Model: s.Models[0].Model, Store: s.Store, Again: true, Brief: true},
		counts: map[ingest.Done]int{},
	}
	err = put.putFiles(files)
	if serr := s.Store.Sync(p.ctx); err == nil {
		err = serr
	}
	put.print(c.Output)
	if part := s.Models[0]; !c.at().Store().Shared() && len(put.counts) > 0 {
		if at, oerr := reader.OldestRecord(p.ctx, part.Runner); oerr == nil && !at.IsZero() {
			fmt.Fprintf(p.stderr, "%s: nothing is derived from these rows yet; %s derives it\n", cli.Called("ingest"), part.Model.Command("run"))
		}
	}
	if err == nil && put.refused > 0 {
		fmt.Fprintf(p.stderr, "%s: %d refused\n", cli.Called("ingest"), put.refused)
		return cli.Failed(cli.Check)
	}
	return cli.Partly(err, len(put.counts) > 0)
}

// putting is a run of commands from files: the lines that wait, and the outcome of
// those done.
type putting struct {
	*program
	writer   *ingest.Writer
	batch    []ingest.Command
	from     []place
	size     int
	counts   map[ingest.Done]int
	repeated int
	refused  int
}

// place is where a command stands.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// putFiles does the commands of all files, in order. After an error, the commands that were read before it are done too.
// The error of reading and that of doing are joined.
func (u *putting) putFiles(files []string) error {
	for _, name := range files {
		if err := u.putFile(name); err != nil {
			return errors.Join(err, u.flush())
		}
	}
	return u.flush()
}

// putFile takes the lines of a file, or of stdin.
func (u *putting) putFile(name string) error {
	in := io.NopCloser(u.stdin)
	if name != "-" {
		var err error
		if in, err = interrupt.Open(u.ctx, name); err != nil {
			return err
		}
		defer in.Close()
	}
	last, done := 0, error(nil)
	err := cli.Lines(in, func(number int, line []byte) error {
		last, done = number, u.takeLine(place{name, number}, line)
		return done
	})
	switch {
	case err == nil || done != nil:
		return err
	case errors.Is(err, cli.ErrUsage): // which says its line
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s:%d: %w", name, last, err)
}

// takeLine puts a line with those that wait, and does them when there are enough.
// The seed of invented ids is the number and the text of the line, so
// a file that is put again makes the same rows.
func (u *putting) takeLine(at place, line []byte) error {
	c, err := ingest.ReadCommand(line)
	c.Seed = fmt.Sprintf("%d %s", at.Line, line)
	if err != nil {
		// Refusals are printed in the order of the lines.
		if ferr := u.flush(); ferr != nil {
			return ferr
		}
		return u.printRefused(at, c, err)
	}
	u.batch, u.from, u.size = append(u.batch, c), append(u.from, at), u.size+len(line)
	if len(u.batch) < batchCommands && u.size < batchBytes {
		return nil
	}
	return u.flush()
}

// flush does the commands that wait. Those that are done stay done, whatever the
// error.
func (u *putting) flush() error {
	if len(u.batch) == 0 {
		return u.ctx.Err()
	}
	var down error
	for i, r := range u.writer.Do(u.ctx, u.batch) {
		var refusal *ingest.Refusal
		switch {
		case errors.As(r.Err, &refusal):
			if err := u.printRefused(u.from[i], u.batch[i], refusal); err != nil {
				return err
			}
		case r.Err != nil && down == nil:
			down = fmt.Errorf("%s:%d: %w", u.from[i].File, u.from[i].Line, r.Err)
		case r.Err != nil:
		case r.Repeated:
			u.repeated++
			u.counts[ingest.Unchanged]++
		default:
			u.counts[r.Done]++
		}
	}
	u.batch, u.from, u.size = u.batch[:0], u.from[:0], 0
	return down
}

// rejected is a refused command as it is printed.
type rejected struct {
	place
	Op       ingest.Op `json:"op,omitempty"`
	Entity   string    `json:"entity,omitempty"`
	Kind     string    `json:"kind"`
	Problems []problem `json:"problems"`
}

// problem is one thing that is wrong with a command, as it is printed.
type problem struct {
	Field  string `json:"field,omitempty"` // an RFC 6901 pointer into the item
	Reason string `json:"reason"`
}

// printRefused prints a refused command, and counts it. Its error means that it cannot be printed.
// Fields are named by JSON pointers (RFC 6901), as over HTTP.
func (u *putting) printRefused(at place, c ingest.Command, err error) error {
	u.refused++
	r := rejected{place: at, Op: c.Op, Entity: c.Entity, Kind: ingest.Invalid.String()}
	var refusal *ingest.Refusal
	if errors.As(err, &refusal) {
		r.Kind = refusal.Kind.String()
		for _, p := range refusal.Shown(u.writer.Model).Problems {
			r.Problems = append(r.Problems, problem{p.Pointer, p.Reason})
		}
	}
	enc := json.NewEncoder(u.stderr)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// outcomes are printed in this order.
var outcomes = []ingest.Done{ingest.Created, ingest.Replaced, ingest.Updated, ingest.Deleted, ingest.Unchanged}

// print prints how many commands had each outcome.
// It also prints the commands that were done before an error, so the user knows which to send again.
func (u *putting) print(how string) {
	if how == "json" {
		all := map[string]int{"refused": u.refused}
		for _, d := range outcomes {
			all[string(d)] = u.counts[d]
		}
		json.NewEncoder(u.stdout).Encode(all)
		return
	}
	var parts []string
	for _, d := range outcomes {
		if n := u.counts[d]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, d))
		}
	}
	if u.refused > 0 || len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%d refused", u.refused))
	}
	fmt.Fprintln(u.stdout, strings.Join(parts, ", "))
}
