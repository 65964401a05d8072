package live

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var quiet = slog.New(slog.DiscardHandler)

// TestSpoolDamageAnywhere: a spool of which any file is cut or flipped, anywhere, gives
// what it had up to there and is filled again behind it, and what is lost of it is said
// with the damaged file and the offset, also where the file of its end exists.
func TestSpoolDamageAnywhere(t *testing.T) {
	const n = 40
	dir := filepath.Join(t.TempDir(), "s")
	s, err := openSpool(machine{}, dir, 600, at(0), quiet)
	must(t, err)
	for from := 1; from <= n; from += 4 {
		must(t, s.append(records(from, from+3)))
	}
	must(t, s.end())
	s.close()
	whole := map[string][]byte{}
	names, err := machine{}.List(dir)
	must(t, err)
	for _, name := range names {
		whole[name], err = os.ReadFile(filepath.Join(dir, name))
		must(t, err)
	}
	if len(whole) < 4 {
		t.Fatalf("%d files are too few", len(whole))
	}
	step := 64
	if testing.Short() {
		step = 192
	}
	for name, b := range whole {
		for place := 0; place < len(b); place += step {
			flipped := bytes.Clone(b)
			flipped[place] ^= 1 << (place / 64 % 8)
			for _, applied := range []int{0, n / 2} {
				harmed(t, whole, name, flipped, applied, n)
				harmed(t, whole, name, b[:place:place], applied, n)
			}
		}
	}
}

// harmed opens a spool of n records with another content of one file.
func harmed(t *testing.T, whole map[string][]byte, name string, b []byte, applied, n int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	must(t, os.Mkdir(dir, 0o755))
	for other, content := range whole {
		if other == name {
			content = b
		}
		must(t, os.WriteFile(filepath.Join(dir, other), content, 0o644))
	}
	var said bytes.Buffer
	s, err := openSpool(machine{}, dir, 600, at(applied), slog.New(slog.NewTextHandler(&said, nil)))
	must(t, err)
	defer s.close()
	if !s.begun {
		t.Error("the spool is said to be new")
	}
	position, ended := s.position()
	last := int(position.Uint64())
	about := fmt.Sprintf("%s, %d bytes of %d, applied %d: it is at %d, ended %v", name, len(b), len(whole[name]), applied, last, ended)
	if last < applied {
		t.Fatal(about)
	}
	got, _ := all(t, s, applied, 7)
	same(t, got, records(applied+1, last))
	if last < n || !ended {
		if want := warning(whole, dir, name, b); !slices.ContainsFunc(strings.Split(said.String(), "\n"), func(line string) bool {
			return strings.Contains(line, "level=WARN") && strings.Contains(line, want) && strings.Contains(line, "read again after")
		}) {
			t.Errorf("%s, and it says %q, without %q", about, said.String(), want)
		}
	}
	if last < n { // as the stream gives them
		must(t, s.append(records(last+1, n)))
	}
	got, _ = all(t, s, applied, 7)
	same(t, got, records(applied+1, n))
}

// warning is what the warning about a damaged file says of it. A segment that ends with
// a whole frame is not damaged by itself: then the file behind it does not go on from it.
func warning(whole map[string][]byte, dir, name string, b []byte) string {
	path := "file=" + filepath.Join(dir, name)
	if name == endFile {
		return path + " offset=0 "
	}
	r := frameReader{r: bufio.NewReader(bytes.NewReader(b))}
	for offset := int64(0); ; offset = r.offset {
		switch _, err := r.next(); {
		case err == io.EOF:
			names := slices.Sorted(maps.Keys(whole)) // the end is the last of them
			if next := names[slices.Index(names, name)+1]; next != endFile {
				return "file=" + filepath.Join(dir, next) + " "
			}
			return warning(whole, dir, endFile, nil)
		case err != nil:
			return fmt.Sprint(path, " offset=", offset, " ")
		}
	}
}
