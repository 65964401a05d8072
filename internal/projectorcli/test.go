package projectorcli

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/cases"
	"weir/internal/cli"
	"weir/internal/replay"
	"weir/internal/system"
)

// testCommand runs a user's own cases.
type testCommand struct {
	JUnit  string   `name:"junit" placeholder:"FILE" help:"Write the results to this file, too, in the form of JUnit."`
	Only   string   `name:"case" placeholder:"TEXT" help:"Run only cases whose title has this text."`
	Update bool     `env:"-" help:"Write what is derived into the pages where they say something else, instead of failing. Read the difference before you commit it."`
	Pages  []string `arg:"" optional:"" name:"page" help:"Pages of cases, models with a page beside them, or directories; none is this directory."`
}

func (testCommand) Help() string {
	return `A page of cases is Markdown. Each section with a heading of two signs is a case: blocks
of code with a name have the model and the rows, and console blocks have queries with
their answers. Without a block, the model is the file beside the page: shop.yaml of
shop.test.md. Rows are commands as ingest put reads them, or records in any form that
replay reads. A block named expected.jsonl has rows of any entity after them, and the
dead letters:

  {"entity":"Album","item":{"id":"a1","mediaCount":2}}
  {"entity":"Album","item":{"id":"a2"},"gone":true}
  {"letter":"image","of":"Order.total","reason":"…"}

Each case is run in a store of its own, and four times. The rows are written and derived
from little by little; all records are delivered again, several times; all is derived
again by a build; and records of different rows come in another order, as DynamoDB may
bring them, unless the order matters to the model, as to feeds. All answers must agree,
verify must find nothing, and there may be no dead letter that the page does not have.

Differences are printed on stdout as FILE:LINE: and lines with - and +. In a workflow of
GitHub they are annotations, too. Exits with 1 if a case fails.

  projector test
  projector test shop.yaml
  projector test shop.yaml --case refund --update
  projector test shop.yaml --junit results.xml`
}

// Run runs all cases of all pages.
func (c *testCommand) Run(p *program) error {
	pages, err := c.readPages()
	if err != nil {
		return err
	}
	run := p.caseRunner()
	report, ran, failed := junitSuites{}, 0, 0
	for _, page := range pages {
		suite := junitSuite{Name: page.Path}
		var all []cases.Failure
		for _, one := range page.Cases {
			if !strings.Contains(one.Title, c.Only) {
				continue
			}
			began := time.Now()
			found, err := run.Run(p.ctx, one)
			if err != nil {
				return err
			}
			is := junitCase{Name: one.Title, Class: page.Path, Seconds: time.Since(began).Seconds()}
			for _, f := range found {
				is.Failures = append(is.Failures, junitFailure{fmt.Sprintf("%s: %s", f.Way, f.What), f.Diff()})
			}
			if ran++; len(found) > 0 {
				failed++
				suite.Failures++
			}
			suite.Tests++
			suite.Cases = append(suite.Cases, is)
			all = append(all, found...)
		}
		report.Suites = append(report.Suites, suite)
		if c.Update && len(all) > 0 {
			if err := page.Update(all); err != nil {
				return err
			}
		}
		c.print(p.stdout, page.Path, all)
	}
	fmt.Fprintf(p.stderr, "%d cases, %d failed\n", ran, failed)
	if c.JUnit != "" {
		if err := report.write(c.JUnit); err != nil {
			return err
		}
	}
	switch {
	case ran == 0:
		return usage("no case has %q in its title", c.Only)
	case failed > 0 && c.Update:
		fmt.Fprintln(p.stderr, "what is derived plainly is written into the pages; run the test again")
		return casesFailed
	case failed > 0:
		return casesFailed
	}
	return nil
}

// CaseRunner runs cases as projector test does.
func CaseRunner(ctx context.Context) *cases.Runner {
	return (&program{ctx: ctx, stdout: io.Discard, stderr: io.Discard}).caseRunner()
}

func (p *program) caseRunner() *cases.Runner {
	return &cases.Runner{Parse: parseQuery, Load: p.loadCase}
}

const casesFailed = cli.Failed(exitCheck)

// readPages reads the pages that are named.
func (c *testCommand) readPages() (out []*cases.Page, err error) {
	if len(c.Pages) == 0 {
		c.Pages = []string{"."}
	}
	for _, path := range c.Pages {
		paths := []string{path}
		if is, err := os.Stat(path); err == nil && is.IsDir() {
			if paths, err = filepath.Glob(filepath.Join(path, "*"+cases.Suffix)); err != nil {
				return nil, err
			}
			if len(paths) == 0 {
				return nil, usage("there is no page of cases in %s: a page is named MODEL%s", path, cases.Suffix)
			}
		} else if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			paths = []string{strings.TrimSuffix(path, ext) + cases.Suffix}
		}
		for _, path := range paths {
			page, err := cases.Read(path)
			if err != nil {
				return nil, usage("%v", err)
			}
			out = append(out, page)
		}
	}
	return out, nil
}

// loadCase takes in a file of a case, and leaves its records in the streams.
func (p *program) loadCase(ctx context.Context, s *system.System, part *system.Part, path string) error {
	commands, err := hasCommands(path)
	if err != nil {
		return err
	}
	if commands {
		return putFile(ctx, s, part, path)
	}
	quiet := &program{ctx: ctx, stdout: io.Discard, stderr: io.Discard, limit: p.limit}
	r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner, Names: s.Names}
	a := replay.NewArrangement(r, int(window), scratchIn(""))
	defer a.Close()
	unread, err := quiet.orderRecords([]input{{paths: []string{path}}}, r, a)
	if err == nil {
		err = replayArranged(ctx, cli.New(io.Discard, "records"), a, r, 0)
	}
	return errors.Join(err, unread)
}

// parseQuery reads a query as the command line does.
func parseQuery(command string) (q cases.Query, err error) {
	is := &commands{}
	program := theProgram()
	program.Commands = is
	parser, err := program.Parser(io.Discard, io.Discard, func(int) {})
	if err != nil {
		return q, err
	}
	if _, err := parser.Parse(shellWords(command)); err != nil {
		return q, err
	}
	q.Name, q.Only = is.Query.Name, is.Query.Only
	q.Params, q.Limit, err = is.Query.parseParameters()
	return q, err
}

// shellWords splits a line as a shell does that knows nothing but quotes.
func shellWords(line string) (words []string) {
	quote, word, begun := rune(0), "", false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if begun {
				words, word, begun = append(words, word), "", false
			}
		default:
			word, begun = word+string(r), true
		}
	}
	if begun {
		words = append(words, word)
	}
	return words
}

// print prints the failures, for people, and as annotations in a workflow of GitHub.
func (c *testCommand) print(to io.Writer, path string, all []cases.Failure) {
	for _, f := range all {
		said := fmt.Sprintf("%s: %s: %s", f.Case.Title, f.Way, f.What)
		fmt.Fprintf(to, "%s:%d: %s\n%s", path, f.Line, said, f.Diff())
		if os.Getenv("GITHUB_ACTIONS") == "true" {
			fmt.Fprintf(to, "::error file=%s,line=%d,title=%s::%s\n", annotated(path), f.Line, annotated(said), escaped.Replace(f.Diff()))
		}
	}
}

// escaped is for the text of an annotation; its properties have more to escape.
var escaped = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

func annotated(property string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escaped.Replace(property))
}

// junitSuites is a file of results in the form of JUnit.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name     string         `xml:"name,attr"`
	Class    string         `xml:"classname,attr"`
	Seconds  float64        `xml:"time,attr"`
	Failures []junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (s *junitSuites) write(path string) error {
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, slices.Concat([]byte(xml.Header), text, []byte("\n")), 0o666)
}
