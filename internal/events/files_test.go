package events

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/failtest"
)

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	failtest.On(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestFiles(t *testing.T) {
	first := writeFile(t, "a.jsonl", strings.Join(streamRecords(1, 1000), "\n"))
	second := writeFile(t, "b", zstded(t, `{"Records":[`+strings.Join(streamRecords(1001, 1000), ",")+`]}`))
	third := writeFile(t, "c.gz", gzipped(t, `{"eventID":"x"}`+"\n"+streamRecord(2001)))
	files, err := Open(first, second, third)
	failtest.On(t, err)
	n, bad := 0, 0
	for batch, err := range files.Batches(context.Background()) {
		failtest.On(t, err)
		for _, e := range batch {
			if e.Bad != nil {
				if bad++; e.File != third || e.Line != 1 {
					t.Errorf("%s: %v", e.Location, e.Bad)
				}
				continue
			}
			if n++; e.Record.ID != fmt.Sprint("e", n) {
				t.Fatalf("%s: record %d is %s", e.Location, n, e.Record.ID)
			}
		}
	}
	if n != 2001 || bad != 1 {
		t.Errorf("%d records, %d bad", n, bad)
	}
	if files.Consumed() != files.Size() || files.Size() == 0 {
		t.Errorf("consumed %d of %d bytes", files.Consumed(), files.Size())
	}
}

func TestFilesStop(t *testing.T) {
	path := writeFile(t, "a", strings.Join(streamRecords(1, 20_000), "\n"))
	files, err := Open(path)
	failtest.On(t, err)
	for range files.Batches(context.Background()) {
		break
	}
	if files.Consumed() == files.Size() {
		t.Error("the whole file was read for one batch")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n, last := 0, error(nil)
	for batch, err := range files.Batches(ctx) {
		n += len(batch)
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n == 20_000 {
		t.Errorf("%d records, then %v", n, last)
	}
}

func TestFilesErrors(t *testing.T) {
	if _, err := Open("no-such-file"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
	files, err := Open(writeFile(t, "a", streamRecord(1)), writeFile(t, "b", "a,b,c\n"), writeFile(t, "c", streamRecord(2)))
	failtest.On(t, err)
	n, last := 0, error(nil)
	for batch, err := range files.Batches(context.Background()) {
		n += len(batch)
		last = err
	}
	if n != 1 || !errors.Is(last, ErrNoRecords) || !strings.Contains(last.Error(), "b: holds no stream records: line 1: not JSON") {
		t.Errorf("%d records, then %v", n, last)
	}
}
