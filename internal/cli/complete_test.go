package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tryCommands are those of a program that the tests run.
type tryCommands struct {
	Query tryQuery `cmd:"" help:"Answer a named query.\nMore."`
	Check struct {
		All tryCheck `cmd:"" help:"Check all."`
		One tryCheck `cmd:"" help:"Check one."`
	} `cmd:"" help:"Check.\n\nMore."`

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

type tryCheck struct{}

func (tryCheck) Run() error   { return nil }
func (tryCheck) Help() string { return "It's -\\ strict.\n\n  try check all\n  .try check one" }

// try runs the program.
func try(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said, bound bytes.Buffer
	p := &Program{Name: "try", Description: "Tries things.\n\nAt length.", Commands: &tryCommands{}}
	code = p.Run(t.Context(), args, &out, &said, &bound)
	return out.String() + bound.String(), said.String(), code
}

func TestComplete(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"try ", "query check completion man"},
		{"try ch", "check"},
		{"try check ", "all one"},
		{"try nothing ", "query check completion man"},
		{"try query --a", "--again"},
		{"try query --output ", "text json jsonl"},
		{"try query -o j", "json jsonl"},
		{"try query --output=j", "--output=json --output=jsonl"},
		{"try query --output = j", "json jsonl"},
		{"try query --output =", "text json jsonl"},
		{"try query --again ", "gallery movienight viewing wardrobe watchlists :files"},
		{"try query --data x gal", "gallery :files"},
		{"try query --data ", ":files"},
		{"try query --data=x gallery search-", "search-albums search-media"},
		{"try query gallery search-albums ", ":files"},
		{"try query no-such-model ", ""},
		{"try completion ", "bash zsh fish"},
		{"try check all ", ""},
		{"try", ""},
	} {
		out, said, code := try(t, append([]string{"complete", "--"}, strings.Split(c.line, " ")...)...)
		var got []string
		for l := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			got = append(got, word)
		}
		if have := strings.Join(got, " "); have != c.want || said != "" || code != Good {
			t.Errorf("%q: %q %q %d, should be %q", c.line, have, said, code, c.want)
		}
	}
	if out, _, _ := try(t, "complete", "--", "try", "q"); out != "query\tAnswer a named query.\n" {
		t.Errorf("%q", out)
	}
}

// TestShells completes in the shells that the machine has.
func TestShells(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "try")
	answers := "#!/bin/sh\nprintf '%s|' \"$@\" >" + filepath.Join(dir, "asked") + "\nprintf 'json\\tas a:b\\njsonl\\t\\n:files\\n'\n"
	if err := os.WriteFile(program, []byte(answers), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "j file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for shell, c := range map[string]struct{ script, want string }{
		"bash": {`COMP_WORDS=(./try query -o j); COMP_CWORD=3; _try ./try; printf '%s\n' "${COMPREPLY[@]}"`, "json\njsonl\nj file\n"},
		"zsh":  {`words=(./try query -o j); CURRENT=4; _try`, "files\njson:as a:b\njsonl:\n"},
		"fish": {`complete -C'./try query -o j'`, "j file\njson\tas a:b\njsonl\n"},
	} {
		t.Run(shell, func(t *testing.T) {
			at, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("no " + shell + " here")
			}
			code, _, _ := try(t, "completion", shell)
			if shell == "zsh" { // outside its editor, zsh has none of these
				code = "compdef() { }\n_files() { print files }\n_describe() { print -l -- ${(P)2} }\n" + code
			}
			cmd := exec.Command(at, "-c", code+c.script)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := strings.SplitAfter(string(out), "\n")
			if shell == "fish" {
				slices.Sort(got)
			}
			if have := strings.Join(got, ""); have != c.want {
				t.Errorf("%q, should be %q", have, c.want)
			}
			if asked, err := os.ReadFile(filepath.Join(dir, "asked")); err != nil || string(asked) != "complete|--|./try|query|-o|j|" {
				t.Errorf("%s %v", asked, err)
			}
		})
	}
}

func TestManual(t *testing.T) {
	page, _, code := try(t, "man")
	for _, want := range []string{
		".TH \"TRY\" \"1\"", "\ntry \\- Tries things\n", "\nAt length.\n", ".SS \"check all\"\n",
		"\nIt\\(aqs \\-\\e strict.\n", ".nf\ntry check all\n\\&.try check one\n.fi\n", "\\fB\\-o, \\-\\-output=\"text\"\\fR\nHow. ($WEIR_OUTPUT)\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	if strings.Contains(page, ".SS \"complete") && !strings.Contains(page, ".SS \"completion") || code != Good {
		t.Error(page)
	}
}

// TestEnvironment: what a flag can say, its variable can, unless it is to be said each time.
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
	if out, _, _ := try(t, "man"); !strings.Contains(out, "A directory. ($WEIR_DATA)") {
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
