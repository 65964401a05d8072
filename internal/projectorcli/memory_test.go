package projectorcli

import (
	"io"
	"strings"
	"testing"

	"weir/internal/cli"
)

// TestMemoryRefused: a size that nothing works with is refused before anything is opened.
func TestMemoryRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"run", "gallery"}, {"replay", "gallery", "-"}, {"query", "gallery", "albums"}, {"verify", "gallery"}, {"dev"}} {
		for _, c := range []struct{ flag, env, want string }{
			{"1MB", "", "128MB is the least"}, {"much", "", "not a size"}, {"", "127MB", "128MB is the least"},
		} {
			t.Setenv("WEIR_MEMORY", c.env)
			line := args
			if c.flag != "" {
				line = append([]string{}, args...)
				line = append(line, "--memory", c.flag)
			}
			var talk strings.Builder
			if code := run(t.Context(), line, strings.NewReader(""), io.Discard, &talk); code != cli.Mistake || !strings.Contains(talk.String(), c.want) {
				t.Errorf("%q, %q: exit %d, %s", line, c.env, code, talk.String())
			}
		}
	}
}
