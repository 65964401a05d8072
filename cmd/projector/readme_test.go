package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme follows the README: it writes the files that stand there with a name,
// types what stands behind a $ in console blocks, and compares what is printed.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, typed := t.TempDir(), 0
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+) ?([\\w.]*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
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
				if got := typeLine(t, dir, line); got != strings.TrimSuffix(want, "\n") {
					t.Errorf("$ %s\nprints\n%s\nthe README says\n%s", line, got, want)
				}
			}
		}
	}
	if typed == 0 {
		t.Error("the README has no console blocks")
	}
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
