package events

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/failtest"
)

// The streams recorded for the systems' tests are read without a bad record.
func TestRecordedStreams(t *testing.T) {
	var paths []string
	filepath.WalkDir("../../testdata/streams", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), "stream") {
			paths = append(paths, path)
		}
		return nil
	})
	if len(paths) == 0 {
		t.Fatal("no recorded streams")
	}
	for _, path := range paths {
		files, err := Open(path)
		failtest.On(t, err)
		n := 0
		for batch, err := range files.Batches(context.Background()) {
			failtest.On(t, err)
			for _, e := range batch {
				n++
				if e.Bad != nil {
					t.Fatalf("%s: %v", e.Location, e.Bad)
				}
				if e.Record.Keys == nil || e.Record.Position.IsZero() {
					t.Fatalf("%s: %s", e.Location, describe(e))
				}
			}
		}
		t.Logf("%s: %d records", path, n)
		if n == 0 {
			t.Errorf("%s: no records", path)
		}
	}
}
