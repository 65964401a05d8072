package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPack: archives have what they are given, with modes, and the same bytes whenever and from
// wherever they are made.
func TestPack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	pack := func(touched time.Time) (tgz, zipped []byte) {
		dir := t.TempDir()
		var files []file
		for _, name := range []string{"a", "man/b"} {
			from := filepath.Join(dir, filepath.Base(name))
			if err := os.WriteFile(from, []byte("content of "+name), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(from, touched, touched); err != nil {
				t.Fatal(err)
			}
			files = append(files, file{name, from, map[string]int64{"a": 0o755, "man/b": 0o644}[name]})
		}
		for name, f := range map[string]func(string, time.Time, []file) error{"x.tar.gz": packTar, "x.zip": packZip} {
			if err := f(filepath.Join(dir, name), at, files); err != nil {
				t.Fatal(err)
			}
		}
		tgz, err := os.ReadFile(filepath.Join(dir, "x.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		zipped, err = os.ReadFile(filepath.Join(dir, "x.zip"))
		if err != nil {
			t.Fatal(err)
		}
		return tgz, zipped
	}
	tgz, zipped := pack(time.Unix(1, 0))
	if tgz2, zipped2 := pack(time.Now()); !bytes.Equal(tgz, tgz2) || !bytes.Equal(zipped, zipped2) {
		t.Error("packed again, bytes differ")
	}
	var have []string
	gz, err := gzip.NewReader(bytes.NewReader(tgz))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		content, err2 := io.ReadAll(r)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		have = append(have, fmt.Sprintf("%s %o %s", h.Name, h.Mode, content))
	}
	z, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, fmt.Sprintf("%s %o %s", f.Name, f.Mode().Perm(), content))
	}
	if got, want := fmt.Sprint(have), "[a 755 content of a man/b 644 content of man/b a 755 content of a man/b 644 content of man/b]"; got != want {
		t.Errorf("%s, should be %s", got, want)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(dir, sums))
	if want := fmt.Sprintf("%x  a\n%x  b\n", sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))); err != nil || string(have) != want {
		t.Errorf("%s %v, should be %s", have, err, want)
	}
}

func TestVersions(t *testing.T) {
	for v, ok := range map[string]bool{"0.1.0": true, "1.20.3-rc.1": true, "v1.0.0": false, "1.0": false, "": false, "1.0.0 -X a=b": false} {
		if versions.MatchString(v) != ok {
			t.Errorf("%q: %v", v, !ok)
		}
	}
}
