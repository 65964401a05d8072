package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/internal/failtest"
)

// TestLint shows what a file with mistakes is answered. The command lint takes a
// whole model, or some of its sections; the rest is then testdata/base.yaml's,
// set behind them so that the lines are the input's own.
func TestLint(t *testing.T) {
	base := sections(t, "testdata/base.yaml")
	datadriven.Walk(t, "testdata/lint", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "lint":
				return answer(t, whole(d.Input+"\n", base))
			case "lint-alone":
				return answer(t, d.Input+"\n")
			}
			d.Fatalf(t, "no command %q", d.Cmd)
			return ""
		})
	})
}

// whole is a model file with the sections of another that it does not have.
func whole(text string, base []string) string {
	for _, s := range base {
		if name, _, _ := strings.Cut(s, ":"); !strings.HasPrefix(text, name+":") && !strings.Contains(text, "\n"+name+":") {
			text += s
		}
	}
	return text
}

func answer(t *testing.T, text string) string {
	m, err := Parse("m.yaml", []byte(text))
	if err == nil {
		out := "ok\n"
		for _, w := range m.Warnings {
			out += w.String() + "\n"
		}
		return out
	}
	var problems *Problems
	if m != nil || !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("model %v, error %v", m, err)
	}
	return err.Error() + "\n"
}

// sections cuts a model file into its top-level parts.
func sections(t *testing.T, file string) []string {
	b, err := os.ReadFile(file)
	failtest.On(t, err)
	var out []string
	for _, line := range strings.SplitAfter(string(b), "\n") {
		if line != "" && line[0] != ' ' && line[0] != '#' {
			out = append(out, "")
		}
		if len(out) > 0 {
			out[len(out)-1] += line
		}
	}
	return out
}

func TestHugeFilesAreRefused(t *testing.T) {
	text := "model: m\n" + strings.Repeat("# a comment\n", MaxFileBytes/12)
	if _, err := Parse("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "huge.yaml")
	failtest.On(t, os.WriteFile(file, []byte(text), 0o600))
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Fatal(err)
	}
}

func TestTextThatIsNotUTF8IsRefusedAtItsPlace(t *testing.T) {
	_, err := Parse("m.yaml", []byte("model: m\n# caf\xe9\n"))
	if want := "m.yaml:2:6: this is not UTF-8 text (save the file as UTF-8)"; fmt.Sprint(err) != want {
		t.Fatalf("got %v, want %s", err, want)
	}
}

// A file of many mistakes is answered in bounded time and length.
func TestManyMistakesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("model: m\ntables: {tab: {key: [PK]}}\nentities:\n  A: {key: {PK: \"A#{a}\"}}\nqueries:\n")
	for i := range 20000 {
		fmt.Fprintf(&b, "  q%d: {get: Nobody%d}\n", i, i)
	}
	_, err := Parse("m.yaml", []byte(b.String()))
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) > maxProblems {
		t.Fatal(err)
	}
}

// FuzzParse: any text is a model, or has problems that say where and are the same
// each time.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/good/*.yaml", "../../models/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			b, err := os.ReadFile(file)
			failtest.On(f, err)
			f.Add(b)
		}
	}
	f.Add([]byte("a: &a [x]\nb: *a"))
	f.Add([]byte("? {}\n: - - -\n--- |\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("m.yaml", text)
		checkProblems(t, text, m, err)
	})
}
