package projectorcli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/goldentest"
	"weir/internal/soaktest"
)

// TestBadArguments runs the command lines of testdata/bad, each in a directory of its
// own.
func TestBadArguments(t *testing.T) {
	soaktest.Calm(t)
	const archive = "../../testdata/bad/arguments.txtar"
	given := goldentest.Read(t, archive).Given
	here, err := os.Getwd()
	failtest.On(t, err)
	goldentest.Check(t, filepath.Join(here, archive), func(t *testing.T, c goldentest.Case) string {
		dir := t.TempDir()
		for name, text := range given {
			failtest.On(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o644))
		}
		t.Chdir(dir)
		args := strings.Fields(c.Input)
		if strings.Contains(c.Input, "seeded") {
			if code, said := runs(t, "replay", "gallery", "album.jsonl", "--data", "seeded", "--no-search"); code != exitGood {
				t.Fatal(said)
			}
		}
		code, said := runs(t, args...)
		if code == exitGood {
			t.Errorf("it is taken: %s", said)
		}
		return fmt.Sprintf("%d\n%s", code, strings.ReplaceAll(said, dir, "DIR"))
	})
}

// runs runs a command line and gives the last that it says.
func runs(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	said = strings.TrimSpace(stderr.String())
	if said == "" {
		said = strings.TrimSpace(stdout.String())
	}
	lines := strings.Split(said, "\n")
	return code, strings.Join(lines[max(0, len(lines)-2):], "\n")
}
