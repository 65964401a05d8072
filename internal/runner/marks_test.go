package runner_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// differs is what a script prints that is not the same without lanes: how many
// writes a delivery takes, which moves later positions, the ids of what is kept, and
// which kind of write was refused.
var differs = regexp.MustCompile(`\d+ of \d+ writes|\b0{20}\d{20}\b|\b[0-9a-f]{16}\b|transact: `)

// TestPromisesByItem runs the scripts of the promises again, without lanes: the same
// comes of the same.
func TestPromisesByItem(t *testing.T) {
	if testing.Short() {
		t.Skip("the same scripts once more")
	}
	files, err := filepath.Glob("testdata/*.txt")
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t, byItem: true}
			defer s.close()
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				out := s.run(t, d)
				if differs.ReplaceAllString(out, "") == differs.ReplaceAllString(d.Expected, "") {
					return d.Expected
				}
				return out
			})
		})
	}
}
