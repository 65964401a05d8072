package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/util"
	index "github.com/blevesearch/bleve_index_api"
	"go.etcd.io/bbolt"

	"weir/internal/failtest"
	"weir/internal/memory"
	"weir/internal/memory/memorytest"
	"weir/internal/search"
	"weir/internal/soaktest"
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
	failtest.On(t, ix.Close())
	harm(filepath.Join(dir, placeOf(plain)))
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
	found, err := inspectDirectory(dir)
	if err != nil || len(found.files) == 0 {
		t.Fatalf("no segments in %s: %v", dir, err)
	}
	return filepath.Join(dir, found.files[0])
}

func TestDamaged(t *testing.T) {
	overwrite := func(path string, b []byte) {
		failtest.On(t, os.WriteFile(path, b, 0o600))
	}
	cut := func(path string, size int64) {
		failtest.On(t, os.Truncate(path, size))
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

// mostDamaged is more than a test of damaged files takes.
const mostDamaged = memory.GB

// TestDamageAnywhere: an index with a damaged file, closed or of a killed process, is
// refused and left as it is, or has every document and works on, wherever the damage is.
// WEIR_TEST_EVERY_BYTE=1 damages every byte of the root, not every 257th.
func TestDamageAnywhere(t *testing.T) {
	soaktest.Calm(t)
	begin := memorytest.Bound(t, mostDamaged)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			dir := t.TempDir()
			clock := time.Now()
			ix := openTest(t, dir, Options{Now: func() time.Time { return clock }}, plain)
			applyDeleted(t, ix)
			clock = clock.Add(keepTombstones + 2*time.Hour)
			mustApply(t, ix, harmed(999, 1)) // and prunes
			want := harmedIn(t, ix)
			if killed {
				dir = copied(t, dir)
			} else if err := ix.Close(); err != nil {
				t.Fatal(err)
			}
			whole := contents(t, filepath.Join(dir, placeOf(plain)))
			if _, closed := whole[closedFile]; closed == killed {
				t.Fatal("the checksum of a closed index:", closed)
			}
			if h := (harm{whole: whole, want: want, name: rootFile, begin: begin}); !h.with(t, whole[rootFile]) {
				t.Fatal("an index without damage is refused")
			}
			for name, b := range whole {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					h := harm{whole: whole, want: want, name: name, begin: begin}
					h.with(t, nil)
					every := step(killed && name == rootFile, b)
					for at := 0; at < len(b); at += every {
						flipped := append([]byte{}, b...)
						flipped[at] ^= 1 << (at / 64 % 8)
						h.with(t, flipped)
						if at%(len(b)/16+1) < every {
							h.with(t, b[:at:at])
						}
					}
				})
			}
		})
	}
}

// TestHiddenSnapshot: an index of a killed process whose root is as an earlier commit left it
// is refused, and one that is further than COMMITTED says, as after a power cut, is not.
func TestHiddenSnapshot(t *testing.T) {
	dir := t.TempDir()
	ix := openTest(t, dir, Options{}, plain)
	mustApply(t, ix, version(1, 1))
	before := contents(t, filepath.Join(copied(t, dir), placeOf(plain)))
	mustApply(t, ix, version(2, 1))
	for name, refused := range map[string]bool{rootFile: true, committedFile: false} {
		now := copied(t, dir)
		for file, b := range before { // segments that the earlier commit has may be merged by now
			path := filepath.Join(now, placeOf(plain), file)
			if _, err := os.Stat(path); file == name || err != nil {
				failtest.On(t, os.WriteFile(path, b, 0o600))
			}
		}
		again, err := Open(now, []search.Schema{plain}, Options{})
		if !refused {
			if err != nil {
				t.Fatalf("an older %s: %v", name, err)
			}
			if n := count(t, again, search.Query{Index: "plain", Limit: 10}); n != 2 {
				t.Errorf("%d documents", n)
			}
			again.Close()
			continue
		}
		wantDamage(t, again, err)
		if err == nil || !strings.Contains(err.Error(), "the last one was 2") {
			t.Errorf("an older %s: %v", name, err)
		}
	}
}

// TestDeletedBits: in an index of a killed process, no changed bit of the list of deleted
// documents hides a document or brings one back.
func TestDeletedBits(t *testing.T) {
	soaktest.Calm(t)
	dir := t.TempDir()
	ix := openTest(t, dir, Options{}, plain)
	for v, size := range []int{2200, 20} { // two segments that scorch does not merge
		var docs []search.Document
		for n := range size {
			docs = append(docs, harmed(n, v+1))
		}
		mustApply(t, ix, docs...)
		copied(t, dir)
	}
	want := harmedIn(t, ix)
	dir = filepath.Join(copied(t, dir), placeOf(plain))
	h := harm{whole: contents(t, dir), want: want, name: rootFile, begin: memorytest.Bound(t, mostDamaged)}
	refused, opened := 0, 0
	for _, deleted := range deletedIn(t, dir) {
		for n := range deleted {
			for bit := n % 2; bit < 8; bit += 2 {
				changed := bytes.Clone(deleted)
				changed[n] ^= 1 << bit
				if h.with(t, bytes.ReplaceAll(h.whole[rootFile], deleted, changed)) { // older pages have it too
					opened++
				} else {
					refused++
				}
			}
		}
	}
	if refused < 80 || opened > refused {
		t.Errorf("%d refused, %d opened", refused, opened)
	}
}

// deletedIn is what the newest snapshot says of each segment's deleted documents.
func deletedIn(t *testing.T, dir string) (all [][]byte) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, rootFile), 0o600, &bbolt.Options{ReadOnly: true})
	failtest.On(t, err)
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		snapshots := tx.Bucket(util.BoltSnapshotsBucket)
		newest, _ := snapshots.Cursor().Last()
		return snapshots.Bucket(newest).ForEachBucket(func(k []byte) error {
			if b := snapshots.Bucket(newest).Bucket(k).Get(util.BoltDeletedKey); b != nil {
				all = append(all, bytes.Clone(b))
			}
			return nil
		})
	})
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	return all
}

// step is how far one damaged byte is from the next. What a closed index says of its
// files, and of its segments any, is a checksum of all bytes.
func step(unsummed bool, b []byte) int {
	switch {
	case testing.Short() || !unsummed:
		return max(65, len(b)/soaktest.Count(6, 16))
	case os.Getenv("WEIR_TEST_EVERY_BYTE") != "":
		return 1
	}
	return 257
}

// harmed is state number v of document n. Some are gone in their second state.
func harmed(n, v int) search.Document {
	d := version(n, v)
	d.Deleted = v == 2 && n%8 == 7
	return d
}

// applyDeleted leaves several segments, in which some documents are deleted.
func applyDeleted(t *testing.T, ix *Index) {
	t.Helper()
	for v := 1; v < 3; v++ {
		for part := range 4 {
			var docs []search.Document
			for n := part * 8; n < part*8+8*(3-v); n++ {
				if v == 1 || n%3 > 0 {
					docs = append(docs, harmed(n, v))
				}
			}
			mustApply(t, ix, docs...)
		}
	}
}

// harmedIn is all that the index of harmed documents finds, by version.
func harmedIn(t *testing.T, ix *Index) (ids []string) {
	t.Helper()
	for _, text := range []string{"v1", "v2", ""} {
		hits, err := ix.Search(t.Context(), search.Query{Index: "plain", Text: text, Limit: 100000})
		failtest.On(t, err)
		for _, h := range hits {
			ids = append(ids, text+" "+h.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// copied is a copy of a directory, as a kill of the process that has it open leaves it.
// It waits until scorch has merged and written what it wants.
func copied(t *testing.T, dir string) string {
	t.Helper()
	for range 100 {
		time.Sleep(100 * time.Millisecond)
		to := t.TempDir()
		if os.CopyFS(to, os.DirFS(dir)) == nil && maps.EqualFunc(contents(t, filepath.Join(dir, placeOf(plain))), contents(t, filepath.Join(to, placeOf(plain))), bytes.Equal) {
			return to
		}
	}
	t.Fatal("the files change all the time")
	return ""
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	failtest.On(t, err)
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// harm opens an index with another content of one file.
type harm struct {
	whole map[string][]byte
	want  []string
	name  string
	begin func(string) func()
}

// with opens the index with this content of the file, nil for none, and reports whether
// it was not refused.
func (h *harm) with(t *testing.T, b []byte) bool {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-harm") // t.TempDir keeps a cleanup for each of 100,000
	failtest.On(t, err)
	defer os.RemoveAll(dir)
	failtest.On(t, os.Mkdir(filepath.Join(dir, placeOf(plain)), 0o700))
	files := maps.Clone(h.whole)
	if files[h.name] = b; b == nil {
		delete(files, h.name)
	}
	for name, content := range files {
		failtest.On(t, os.WriteFile(filepath.Join(dir, placeOf(plain), name), content, 0o600))
	}
	which := fmt.Sprintf("%s, %d bytes of %d", h.name, len(b), len(h.whole[h.name]))
	for at := range b {
		if len(b) == len(h.whole[h.name]) && b[at] != h.whole[h.name][at] {
			which += fmt.Sprint(", byte ", at)
		}
	}
	defer h.begin(which)()
	ix, err := Open(dir, []search.Schema{plain}, Options{})
	if err != nil {
		wantDamage(t, nil, err)
		if now := contents(t, filepath.Join(dir, placeOf(plain))); !maps.EqualFunc(now, files, bytes.Equal) {
			t.Errorf("%s: refused, and the files are others: %v", which, slices.Sorted(maps.Keys(now)))
		}
		return false
	}
	if got := harmedIn(t, ix); !slices.Equal(got, h.want) || len(got) == 0 {
		t.Errorf("%s: it has %d documents, should have %d:\n%q\n%q", which, len(got), len(h.want), got, h.want)
	}
	mustApply(t, ix, harmed(1, 5), harmed(9999, 5))
	if err := ix.Close(); err != nil {
		t.Errorf("%s: %v", which, err)
	}
	if ix, err = Open(dir, []search.Schema{plain}, Options{}); err != nil {
		t.Fatal(which, err)
	}
	if n, all := count(t, ix, search.Query{Index: "plain", Text: "v5"}), count(t, ix, search.Query{Index: "plain"}); n != 2 || all != len(h.want)/2+1 {
		t.Errorf("%s: later it has %d, and %d documents in all", which, n, all)
	}
	if err := ix.Close(); err != nil {
		t.Error(err)
	}
	return true
}

// TestMergeWaits: an index whose segments scorch would merge at once is not damaged, however
// late it is compared.
func TestMergeWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	q := index.NewAnalysisQueue(analysts)
	defer q.Close()
	begin := func(late time.Duration) (*corpus, inspection) {
		c := newCorpus(dir, plain, Options{Now: time.Now})
		found, err := inspectDirectory(dir)
		if c.made = found.made; !found.exists {
			c.made = made{Schema: fingerprint(plain), Instance: noted + "merge"}
		}
		if err == nil {
			err = c.startScorch(q)
		}
		failtest.On(t, err)
		time.Sleep(late)
		return c, found
	}
	c, found := begin(0)
	failtest.On(t, c.checkOpened(found))
	c.scorch.Close()
	c, _ = begin(0) // and merges nothing
	for n := range 5 {
		docs := []search.Document{version(n, 1)}
		r, size := requestOf(docs, []int{0})
		failtest.On(t, c.writeNewest([]*request{r}, size))
	}
	killed := filepath.Join(t.TempDir(), "plain")
	failtest.On(t, os.CopyFS(killed, os.DirFS(dir)))
	close(c.compared)
	c.scorch.Close()
	dir = killed
	c, found = begin(300 * time.Millisecond)
	if len(found.files) < 5 {
		t.Fatal(found.files)
	}
	if err := c.checkOpened(found); err != nil {
		t.Error(err)
	}
	c.scorch.Close()
}

// TestCompare: if scorch leaves a segment out, that is noticed.
func TestCompare(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	mustApply(t, ix, version(1, 1))
	c := ix.corpora["plain"]
	snap, err := c.snapshot()
	failtest.On(t, err)
	defer snap.Close()
	err = c.compareFound(snap, inspection{files: []string{"000000000001.zap", "000000000002.zap"}})
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
