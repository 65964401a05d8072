package projectorcli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/deadletter"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/system"
)

// deadCommands are the commands on dead letters. List and show only read; retry and discard write, and need the
// store for writing.
type deadCommands struct {
	List    deadList    `cmd:"" help:"List what could not be applied."`
	Show    deadShow    `cmd:"" help:"Show a dead letter, with its record."`
	Retry   deadRetry   `cmd:"" help:"Apply a dead letter again."`
	Discard deadDiscard `cmd:"" help:"Drop a dead letter for good."`
}

// deadTarget is the model whose dead letters a command is about, and where its rows are.
type deadTarget struct {
	data
	running
	Model string `arg:"" help:"Name of a built-in model or path of a model file."`
}

// deadList prints all dead letters, or those of the rows named.
type deadList struct {
	deadTarget
	output
	Targets []string `arg:"" optional:"" name:"target" help:"Only the dead letters of these rows: an entity and its key, Album:id=a1 or Album:a1, or a row as verify prints it."`
}

func (deadCommands) Help() string {
	return `A change that cannot be applied becomes a dead letter and stops nothing else. A row that
refuses what is derived on it has one; later changes go on counting, and the first that the
row takes shows all and removes the letter.

  projector dead list gallery
  projector dead show gallery ID
  projector dead retry gallery ID
  projector dead retry gallery --all
  projector dead discard gallery ID
  projector dead list gallery --server http://127.0.0.1:8480`
}

func (deadList) Help() string {
	return `Prints a line for each: id, kind, what it was for, where it came from, the reason.
Kinds are record (a replay cannot use it), image (a derivation cannot use it),
parked (a ledger refused an amount), publish, row, set, notification and follow
(a table refused it; follow: a row has no room for what it follows), document (an index
refused it), number (a distinct has more values than its max; it goes by itself when it
has fewer), status (a stage has more rows than its max; the same) and gap (records that the stream no longer had).

  projector dead list gallery
  projector dead list gallery -o jsonl
  projector dead list gallery Album:a1`
}

// letters are where the commands find dead letters: in the rows, or in the console of a process that serves.
type letters interface {
	// eachLetter hands over the letters; more reports that there are others, which it does not have.
	eachLetter(do func(console.Letter) error) (more bool, err error)
	readLetter(id string) (console.Letter, error)
	// actOn retries a letter or discards it. Letters are retried after startModel, and settleRows applies their changes.
	actOn(id, action string) (console.Acted, error)
	startModel() error
	settleRows() error
}

// stored are the letters of a model's rows.
type stored struct {
	*program
	s    *system.System
	only func(row string) bool // nil for all
}

// eachLetter reads letters one by one, so a long list needs no memory.
func (l stored) eachLetter(do func(console.Letter) error) (more bool, err error) {
	r := l.s.Models[0].Runner
	return false, r.EachDeadLetter(l.ctx, func(d deadletter.Letter) error {
		if l.only != nil && !l.only(runner.RowText(r.Model, d.Row)) {
			return nil
		}
		return do(console.LetterOf(r.Model, &d))
	})
}

func (l stored) readLetter(id string) (console.Letter, error) {
	r := l.s.Models[0].Runner
	d, err := r.DeadByID(l.ctx, id)
	return console.LetterOf(r.Model, &d), err
}

func (l stored) actOn(id, action string) (console.Acted, error) {
	return console.Act(l.ctx, l.s, l.s.Models[0], id, action)
}

func (l stored) startModel() error { return l.s.Start(l.ctx) }
func (l stored) settleRows() error { return l.program.settleSystem(l.s) }

// useLetters calls use with the letters of a server, if one is named: its console has them without hidden values. Otherwise it
// opens the model's data, and closes it. It does not create data: a directory without any is a usage error.
func (t *deadTarget) useLetters(p *program, writes bool, targets []string, use func(letters) error) error {
	if t.Server != "" {
		a, err := t.asks(p)
		if err == nil && len(targets) > 0 {
			err = usage("with --server, all dead letters are listed: name no rows")
		}
		if err != nil {
			return err
		}
		return use(a)
	}
	s, err := p.existing(t.data, []string{t.Model}, system.Options{Writes: writes})
	if t.found(err, t.data) {
		return t.useLetters(p, writes, targets, use)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	only, err := rowsOnly(p, s, targets)
	if err != nil {
		return err
	}
	return use(stored{p, s, only})
}

// Run prints letters as they are read with -o jsonl. A server lists as many as its page has.
func (c *deadList) Run(p *program) error {
	return c.useLetters(p, false, c.Targets, func(in letters) error {
		table, out, n := newLetterTable(p.stdout), c.to(p.stdout), 0
		more, err := in.eachLetter(func(l console.Letter) error {
			n++
			out.printResult(l, func() { table.add(&l) })
			return nil
		})
		if more {
			fmt.Fprintf(p.stderr, "there are more than these %d\n", n)
		}
		if err == nil {
			out.printEnd()
		}
		table.print(p.stdout)
		return err
	})
}

// letterTable is a table of letters, whole or, on a terminal, cut to its width.
type letterTable struct {
	lines *tabwriter.Writer
	out   bytes.Buffer
	width int
}

func newLetterTable(to io.Writer) *letterTable {
	t := &letterTable{width: cmp.Or(cli.Columns(to), math.MaxInt)}
	t.lines = tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	return t
}

// add adds a letter as a line.
func (t *letterTable) add(s *console.Letter) {
	fmt.Fprintf(t.lines, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Kind, cut(cli.Line(s.Target), t.width/4), cut(cli.Line(s.From()), t.width/8), cli.Line(s.Reason))
}

// print prints the table.
func (t *letterTable) print(to io.Writer) {
	t.lines.Flush()
	for line := range strings.Lines(t.out.String()) {
		fmt.Fprintln(to, cut(strings.TrimSuffix(line, "\n"), t.width-1))
	}
}

// cut cuts a text that has more characters than most.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// deadOne is a command on one dead letter.
type deadOne struct {
	deadTarget
	ID string `arg:"" help:"Id from dead list."`
}

// deadShow prints one dead letter whole. An ID that does not exist is exit code 2.
type deadShow struct{ deadOne }

func (deadShow) Help() string {
	return `Prints the dead letter as one JSON object: what dead list says, and the record with its images.

  projector dead show gallery ID`
}

// Run prints the whole letter, with its record in DynamoDB's JSON.
func (c *deadShow) Run(p *program) error {
	return c.useLetters(p, false, nil, func(in letters) error {
		l, err := in.readLetter(c.ID)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(l)
	})
}

// deadRetry applies dead letters again. One that is refused again stays as it was.
type deadRetry struct {
	deadTarget
	All bool   `env:"-" help:"All dead letters of the model, instead of one."`
	ID  string `arg:"" optional:"" help:"Id from dead list."`
}

func (deadRetry) Help() string {
	return `A record that a replay could not use is read again, with the model as it is now.
What is refused again stays a dead letter, and the command exits with 1.
With --all, a dead letter that no retry can help stays, too.

  projector dead retry gallery ID
  projector dead retry gallery --all`
}

// Run ends with exit code 1 if some letters stay, whose reasons it prints, and with 4 if a service failed after some were
// applied. With --all it applies each letter once, in the order of the list.
func (c *deadRetry) Run(p *program) error {
	if c.All == (c.ID != "") {
		return usage("say which dead letter with its ID from dead list, or --all")
	}
	return c.useLetters(p, true, nil, func(in letters) error {
		if err := in.startModel(); err != nil {
			return err
		}
		applied, left := 0, 0
		stays := talk{out: p.stderr, more: "that stay"}
		retry := func(l console.Letter) error {
			done, err := in.actOn(l.ID, "retry")
			if c.All && errors.Is(err, deadletter.ErrNoDead) { // it went with another one
				return nil
			}
			if applied += done.Applied; done.Why != "" {
				left++
				stays.sayLine("%s: %s", l.ID, done.Why)
			}
			return err
		}
		more, err := false, error(nil)
		if c.All {
			more, err = in.eachLetter(retry)
		} else {
			err = retry(console.Letter{ID: c.ID})
		}
		stays.sayRest()
		if err == nil || applied+left > 0 {
			fmt.Fprintf(p.stderr, "%d applied, %d dead letters stay\n", applied, left)
		}
		if err != nil {
			return cli.Partly(err, applied > 0)
		}
		if err := in.settleRows(); err != nil {
			return err
		}
		if more {
			fmt.Fprintln(p.stderr, "there are more; the same command again goes on")
		}
		if left > 0 || more {
			return failed(exitCheck)
		}
		return nil
	})
}

// deadDiscard gives a dead letter up. That cannot be undone;
// build --again can still make the value right from the rows.
type deadDiscard struct{ deadOne }

func (deadDiscard) Help() string {
	return `Drops one dead letter for good: its record never counts for this target. Run projector
build --again afterwards, which derives the value from the rows again.

  projector dead discard gallery ID`
}

// Run drops the letter. There is no way to bring it back.
func (c *deadDiscard) Run(p *program) error {
	return c.useLetters(p, true, nil, func(in letters) error {
		done, err := in.actOn(c.ID, "discard")
		if err != nil {
			return err
		}
		if done.Why != "" {
			fmt.Fprintln(p.stderr, "projector:", done.Why)
			return failed(exitCheck)
		}
		fmt.Fprintln(p.stderr, "discarded")
		return nil
	})
}

// rowsOnly chooses the rows that a person names, nil where they name
// none. A place that verify prints and that is no row is named as it is printed.
// It reads the store to find rows whose key parts were escaped in another way. Of a target that could be several
// rows, all count.
func rowsOnly(p *program, s *system.System, targets []string) (func(row string) bool, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	m, rows := s.Models[0].Model, map[string]bool{}
	for _, t := range targets {
		rows[t] = true
		all, err := scratch.Parse(m, t)
		if err != nil && (strings.HasPrefix(t, "#") || strings.Contains(t, "|") || strings.HasPrefix(t, "[") || strings.HasPrefix(t, "{")) {
			continue
		}
		if err != nil {
			return nil, usage("%v", err)
		}
		known, err := scratch.Known(p.ctx, s.Store, all)
		if err != nil {
			return nil, err
		}
		for _, row := range known {
			rows[runner.RowText(m, row)] = true
			rows[owntable.RowText(row)] = true // as a ledger is named whose row counts nothing
		}
	}
	return func(row string) bool { return rows[row] }, nil
}
