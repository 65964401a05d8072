package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"

	"weir/internal/search"
)

// damaged makes an index, lets harm damage the directory, and opens the index again.
func damaged(t *testing.T, harm func(dir string)) (*Index, error) {
	t.Helper()
	dir := t.TempDir()
	ix := openTest(t, dir, Options{}, plain)
	for v := 1; v < 5; v++ {
		for part := range 2 {
			var docs []search.Document
			for n := range 100 {
				docs = append(docs, version(part*100+n, v))
			}
			mustApply(t, ix, docs...)
		}
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	harm(filepath.Join(dir, "plain"))
	return Open(dir, []search.Schema{plain}, Options{})
}

// wantDamage checks that an error says what is wrong and what to do.
func wantDamage(t *testing.T, ix *Index, err error) {
	t.Helper()
	var d *DamageError
	if !errors.As(err, &d) || !strings.Contains(err.Error(), "plain") || !strings.Contains(err.Error(), "delete") {
		t.Errorf("error: %v", err)
	}
	if ix != nil {
		ix.Close()
	}
}

// aSegment is a file that the index consists of.
func aSegment(t *testing.T, dir string) string {
	t.Helper()
	found, err := inspect(dir)
	if err != nil || len(found.files) == 0 {
		t.Fatalf("no segments in %s: %v", dir, err)
	}
	return filepath.Join(dir, found.files[0])
}

func TestDamaged(t *testing.T) {
	overwrite := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cut := func(path string, size int64) {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	for name, harm := range map[string]func(dir string){
		"no root":              func(dir string) { os.Remove(filepath.Join(dir, rootFile)) },
		"another root":         func(dir string) { overwrite(filepath.Join(dir, rootFile), []byte(strings.Repeat("no bolt ", 9999))) },
		"a root cut short":     func(dir string) { cut(filepath.Join(dir, rootFile), 8192) },
		"a short root":         func(dir string) { overwrite(filepath.Join(dir, rootFile), []byte("x")) },
		"a segment is lost":    func(dir string) { os.Remove(aSegment(t, dir)) },
		"a segment is empty":   func(dir string) { overwrite(aSegment(t, dir), nil) },
		"a segment is short":   func(dir string) { overwrite(aSegment(t, dir), []byte("x")) },
		"half a segment":       func(dir string) { cut(aSegment(t, dir), 1000) },
		"another segment":      func(dir string) { overwrite(aSegment(t, dir), []byte(strings.Repeat("no zap ", 9999))) },
		"a file for directory": func(dir string) { os.RemoveAll(dir); overwrite(dir, []byte("x")) },
		"somebody's files": func(dir string) {
			os.RemoveAll(dir)
			os.MkdirAll(dir, 0o700)
			overwrite(dir+"/letter.txt", []byte("x"))
		},
		"somebody's index": func(dir string) {
			os.RemoveAll(dir)
			if ix, err := bleve.New(dir, bleve.NewIndexMapping()); err == nil {
				ix.Index("1", "text")
				ix.Close()
			}
		},
		"somebody's scorch": func(dir string) {
			os.RemoveAll(dir)
			if ix, err := bleve.New(dir, bleve.NewIndexMapping()); err == nil {
				ix.Index("1", "text")
				ix.Close()
			}
			os.Rename(filepath.Join(dir, "store"), dir+"2")
			os.RemoveAll(dir)
			os.Rename(dir+"2", dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ix, err := damaged(t, harm)
			wantDamage(t, ix, err)
		})
	}
}

// TestFlipped: a changed byte in a segment is noticed. In the root it causes an error
// or has no effect, but never ends the process.
func TestFlipped(t *testing.T) {
	flip := func(path string, at int) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[at%len(b)] ^= 0x55
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	few, rounds := 3, 8
	if testing.Short() {
		few, rounds = 1, 2
	}
	for round := range few {
		ix, err := damaged(t, func(dir string) { flip(aSegment(t, dir), round*7919) })
		wantDamage(t, ix, err)
	}
	for round := range rounds {
		ix, err := damaged(t, func(dir string) { flip(filepath.Join(dir, rootFile), round*7919) })
		wantDamage(t, ix, err)
	}
	for round := range rounds { // of a killed process
		ix, err := damaged(t, func(dir string) {
			os.Remove(filepath.Join(dir, closedFile))
			flip(filepath.Join(dir, rootFile), round*7919)
		})
		if err == nil {
			useDamaged(t, ix, round)
		}
	}
}

// useDamaged makes an index answer and apply changes, whatever the results.
func useDamaged(t *testing.T, ix *Index, round int) {
	t.Helper()
	for _, q := range []search.Query{{}, {Text: "tex"}, {Text: "texd", Fuzzy: true}, {Text: "v4"}} {
		q.Index, q.Limit = "plain", 1000
		ix.Search(t.Context(), q)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for n := range 5 {
			ix.Apply(t.Context(), []search.Document{version(n, 6)})
		}
		ix.Close()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("round %d: it hangs", round)
	}
}

// TestDamageAnywhere: a closed index with a damaged file, wherever the damage is, is
// refused, or has every document.
func TestDamageAnywhere(t *testing.T) {
	dir := t.TempDir()
	ix := openTest(t, dir, Options{}, plain)
	for v := 1; v < 3; v++ {
		for part := range 3 {
			mustApply(t, ix, version(part*4, v), version(part*4+1, v), version(part*4+2, v), version(part*4+3, v))
		}
	}
	want := count(t, ix, search.Query{Index: "plain", Text: "v2"})
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	whole := map[string][]byte{}
	entries, err := os.ReadDir(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if whole[e.Name()], err = os.ReadFile(filepath.Join(dir, "plain", e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range whole {
		checkHarm(t, whole, want, name, nil)
		for at := 0; at < len(b); at += max(64, len(b)/16&^63) {
			flipped := append([]byte{}, b...)
			flipped[at] ^= 1 << (at / 64 % 8)
			checkHarm(t, whole, want, name, flipped)
			checkHarm(t, whole, want, name, b[:at:at])
		}
	}
}

// checkHarm opens an index with another content of one file, nil for none.
func checkHarm(t *testing.T, whole map[string][]byte, want int, name string, b []byte) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "plain"), 0o700); err != nil {
		t.Fatal(err)
	}
	for other, content := range whole {
		if other == name {
			if content = b; b == nil {
				continue
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "plain", other), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ix, err := Open(dir, []search.Schema{plain}, Options{})
	if err != nil {
		wantDamage(t, nil, err)
		return
	}
	defer ix.Close()
	if n := count(t, ix, search.Query{Index: "plain", Text: "v2"}); n != want || n == 0 {
		t.Errorf("%s, %d bytes of %d: %d documents of %d", name, len(b), len(whole[name]), n, want)
	}
}

// TestCompare: if scorch leaves a segment out, that is noticed.
func TestCompare(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	mustApply(t, ix, version(1, 1))
	err := ix.corpora["plain"].compare(inspection{files: []string{"000000000001.zap", "000000000002.zap"}})
	wantDamage(t, nil, err)
}

// TestLocked: a second process that opens the index does not wait for ever, and does no
// harm.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	ix := openTest(t, dir, Options{}, plain)
	mustApply(t, ix, version(1, 1))
	_, err := Open(dir, []search.Schema{plain}, Options{})
	if err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("got %v, want that another has it", err)
	}
	var d *DamageError
	if errors.As(err, &d) {
		t.Errorf("a directory in use is not damaged: %v", err)
	}
	mustApply(t, ix, version(1, 2))
	if n := count(t, ix, search.Query{Index: "plain", Text: "v2"}); n != 1 {
		t.Error(fmt.Sprint(n, " documents"))
	}
}
