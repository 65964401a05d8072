// Package goldentest holds what is said of inputs to what was said of them before. An
// archive (txtar) begins with a comment, and has for each input a file with its name,
// and behind it one with "NAME says", for people to read and to add to. It also holds a part
// of a page to what the code says.
package goldentest

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("says", false, "write what is said into the file that a test compares with")

const says = " says"

// Archive is what a file of inputs holds.
type Archive struct {
	Given map[string]string // inputs that go before the others; their names begin with given
	Cases []Case
}

// Case is an input and what is to be said of it.
type Case struct{ Name, Input, Says string }

// Read reads an archive.
func Read(t testing.TB, file string) Archive {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := Archive{Given: map[string]string{}}
	seen := map[string]bool{}
	for _, f := range a.Files {
		name, text := f.Name, string(f.Data)
		if seen[name] {
			t.Fatalf("%s: %s is there twice", file, name)
		}
		seen[name] = true
		switch of, is := strings.CutSuffix(name, says); {
		case is && (len(out.Cases) == 0 || out.Cases[len(out.Cases)-1].Name != of):
			t.Fatalf("%s: %s stands behind another input", file, name)
		case is:
			out.Cases[len(out.Cases)-1].Says = text
		case strings.HasPrefix(name, "given"):
			out.Given[name] = text
		default:
			out.Cases = append(out.Cases, Case{Name: name, Input: text})
		}
	}
	return out
}

// Check says each input and holds it to the archive. With -says it writes the
// archive instead.
func Check(t *testing.T, file string, say func(t *testing.T, c Case) string) {
	t.Helper()
	a := Read(t, file)
	now := map[string]string{}
	for _, c := range a.Cases {
		t.Run(c.Name, func(t *testing.T) {
			now[c.Name] = strings.TrimRight(say(t, c), "\n") + "\n"
			if !*update && now[c.Name] != c.Says {
				t.Errorf("%s\nit is said:\n%s\nnot:\n%s", c.Input, now[c.Name], c.Says)
			}
		})
	}
	if *update {
		write(t, file, now)
	}
}

func write(t *testing.T, file string, now map[string]string) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for _, f := range a.Files {
		if strings.HasSuffix(f.Name, says) {
			continue
		}
		out = append(out, f)
		if text, ok := now[f.Name]; ok {
			out = append(out, txtar.File{Name: f.Name + says, Data: []byte(text)})
		}
	}
	a.Files = out
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Part holds what a page has between two lines to text. With -says it writes the text there
// instead.
func Part(t *testing.T, page, begin, end, text string) {
	t.Helper()
	is, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(is), begin)
	was, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the list", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != text {
		t.Errorf("%s has another list than the code: run this test with -says\n%s", page, text)
	}
}
