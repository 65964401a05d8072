package internal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulnerable: the step vuln of .ci/run fails for a finding, and never passes for
// good when the database was not read.
func TestVulnerable(t *testing.T) {
	const version = "echo 'DB: https://vuln.go.dev'; echo 'DB updated: 2026-11-20 17:01:18 +0000 UTC'\n"
	for name, c := range map[string]struct {
		script string
		code   int
		says   string
	}{
		"nothing found": {version + "echo 'No vulnerabilities found.'", 0, "=> the database of 2026-11-20 17:01:18 +0000 UTC was read; nothing was found"},
		"found":         {version + "echo 'Vulnerability #1: GO-2026-1'; exit 3", 1, "GO-2026-1"},
		"no database":   {"echo 'govulncheck: fetching vulnerabilities: no such host' >&2; exit 1", 77, "nothing was checked"},
		"no date":       {"echo 'No vulnerabilities found.'", 77, "nothing was checked"},
		"broken":        {version + "echo 'govulncheck: loading packages: no' >&2; exit 1", 2, "loading packages"},
	} {
		t.Run(name, func(t *testing.T) {
			checker := filepath.Join(t.TempDir(), "govulncheck")
			if err := os.WriteFile(checker, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("../.ci/vuln", checker).CombinedOutput()
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.says, out)
			}
		})
	}
}
