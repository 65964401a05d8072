package cli

import (
	"bytes"
	"strings"
	"testing"
)

// tryCommands are those of a program that the tests run.
type tryCommands struct {
	Query tryQuery `cmd:"" help:"Answer a named query."`
	Extras
}

type tryQuery struct {
	Data   string   `default:"./data" help:"A directory."`
	Output string   `short:"o" enum:"text,json,jsonl" default:"text" help:"How."`
	Again  bool     `env:"-" help:"Once more."`
	Model  string   `arg:"" help:"A model."`
	Name   string   `arg:"" optional:"" help:"A query."`
	Params []string `arg:"" optional:"" help:"Others."`
}

func (q *tryQuery) Run(to *bytes.Buffer) error {
	to.WriteString(q.Data + " " + q.Output + " " + map[bool]string{true: "again"}[q.Again])
	return nil
}

// try runs the program.
func try(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said, bound bytes.Buffer
	p := &Program{Name: "try", Description: "Tries things.\n\nAt length.", Commands: &tryCommands{}}
	code = p.Run(t.Context(), args, &out, &said, &bound)
	return out.String() + bound.String(), said.String(), code
}

// TestEnvironment: each flag has a variable, unless it is to be given each time.
func TestEnvironment(t *testing.T) {
	t.Setenv("WEIR_DATA", "elsewhere")
	t.Setenv("WEIR_OUTPUT", "json")
	t.Setenv("WEIR_AGAIN", "true")
	if out, said, _ := try(t, "query", "gallery"); out != "elsewhere json " {
		t.Errorf("%q %q", out, said)
	}
	if out, said, _ := try(t, "query", "gallery", "--data", "here", "-o", "text", "--again"); out != "here text again" {
		t.Errorf("%q %q", out, said)
	}
	t.Setenv("WEIR_OUTPUT", "yaml")
	if out, said, code := try(t, "query", "gallery"); code != Mistake || !strings.Contains(said, "--output must be one of") {
		t.Errorf("%q %q %d", out, said, code)
	}
	if out, _, _ := try(t, "query", "--help"); !strings.Contains(out, "A directory. ($WEIR_DATA)") || strings.Contains(out, "WEIR_AGAIN") || strings.Contains(out, "elsewhere") {
		t.Error(out)
	}
}

func TestVersion(t *testing.T) {
	release, commit = "1.2.3", "abc"
	defer func() { release, commit = "", "" }()
	out, said, code := try(t, "--version")
	if !strings.HasPrefix(out, "try 1.2.3\ncommit abc\nformats: data directory ") || said != "" || code != Good {
		t.Errorf("%q %q %d", out, said, code)
	}
}
