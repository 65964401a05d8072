package cli

import (
	"os"
	"strings"
	"testing"

	"weir/internal/system"
)

// TestChangelogHasFormats: the first chapter of the changelog names the formats of this program.
func TestChangelogHasFormats(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapters, _ := strings.Cut(string(text), "\n## ")
	chapter, _, _ := strings.Cut(chapters, "\n## ")
	if words := strings.Join(strings.Fields(chapter), " "); !strings.Contains(words, "Formats: "+system.Formats()+".") {
		t.Errorf("the changelog does not say %q, but %q", system.Formats(), words)
	}
}
