package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand prints a manual page from the same texts as --help.
type manCommand struct{}

func (manCommand) Help() string {
	return `The page has every command with its flags.

  projector man > /usr/local/share/man/man1/projector.1

ingest has the same command.`
}

// Run prints the page in roff, as man reads it.
func (manCommand) Run(k *kong.Kong) error {
	_, err := k.Stdout.Write(manual(k.Model))
	return err
}

// manual is the manual page of a program.
func manual(app *kong.Application) []byte {
	m := &roff{}
	m.request("TH", strings.ToUpper(app.Name), "1", "", "weir", "")
	m.request("SH", "NAME")
	summary, rest, _ := strings.Cut(app.Help, "\n\n")
	fmt.Fprintf(m, "%s \\- %s\n", escape(app.Name), escape(strings.TrimSuffix(summary, ".")))
	m.request("SH", "SYNOPSIS")
	fmt.Fprintf(m, "\\fB%s\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fIFLAGS\\fR]\n", escape(app.Name))
	m.request("SH", "DESCRIPTION")
	m.text(rest)
	m.flags(app.Flags)
	m.request("SH", "COMMANDS")
	for _, n := range app.Leaves(true) {
		m.request("SS", n.Summary())
		m.text(n.Help)
		m.text(n.Detail)
		m.flags(n.Flags)
	}
	return m.Bytes()
}

// roff is a page in the language that man reads.
type roff struct{ bytes.Buffer }

// request writes a request with its arguments quoted.
func (m *roff) request(name string, args ...string) {
	fmt.Fprintf(m, ".%s", name)
	for _, a := range args {
		fmt.Fprintf(m, ` "%s"`, strings.ReplaceAll(escape(a), `"`, `\(dq`))
	}
	m.WriteByte('\n')
}

// text writes paragraphs. Indented lines are examples, and stay as they are.
func (m *roff) text(s string) {
	for part := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n\n") {
		if part == "" {
			continue
		}
		m.request("PP")
		example := strings.HasPrefix(part, "  ")
		if example {
			m.request("RS", "4")
			m.request("nf")
		}
		for l := range strings.SplitSeq(part, "\n") {
			if example {
				l = strings.TrimPrefix(l, "  ")
			}
			m.WriteString(escape(l) + "\n")
		}
		if example {
			m.request("fi")
			m.request("RE")
		}
	}
}

// flags writes the flags that are not hidden.
func (m *roff) flags(all []*kong.Flag) {
	for _, f := range all {
		if f.Hidden {
			continue
		}
		m.request("TP")
		fmt.Fprintf(m, "\\fB%s\\fR\n%s\n", escape(f.String()), escape(about(f.Value)))
	}
}

// escape makes a text mean itself.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
