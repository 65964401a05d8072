package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme follows each page that a newcomer types from: it writes the files that stand
// there with a name, types what stands behind a $ in console blocks, and compares what is
// printed. A line of … stands for any lines.
func TestReadme(t *testing.T) {
	streams, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"README.md", "docs/guide/tutorial.md", "docs/guide/model.md"} {
		t.Run(page, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(streams, filepath.Join(dir, "testdata")); err != nil {
				t.Fatal(err)
			}
			typePage(t, "../../"+page, dir)
		})
	}
}

var blocks = regexp.MustCompile("(?ms)^```(\\w+) ?([\\w.]*)\n(.*?)^```$")

// typePage does what a page says, in a directory.
func typePage(t *testing.T, page, dir string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	typed := 0
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		kind, name, body := block[1], block[2], block[3]
		switch {
		case name != "":
			if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
		case kind == "console":
			for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
				line, want, _ := strings.Cut(part, "\n")
				typed++
				if got := typeLine(t, dir, line); !printed(want).MatchString(got) {
					t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", line, got, want)
				}
			}
		}
	}
	if typed == 0 {
		t.Error("the page has no console blocks")
	}
}

// printed matches what a page says that a command prints.
func printed(want string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimSuffix(want, "\n"))
	return regexp.MustCompile(`^` + strings.ReplaceAll(text, "\n  …", `(\n.*)+`) + `$`)
}

// typeLine runs a line of shell and gives what a person sees, times as 0.0 s.
func typeLine(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("$ %s: %v", line, err)
	}
	return regexp.MustCompile(`in \d+\.\d s`).ReplaceAllString(strings.TrimSuffix(string(out), "\n"), "in 0.0 s")
}
