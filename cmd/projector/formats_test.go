package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/drivers"
)

// formats has, for each model, what a release wrote: the model, a recording in two parts, and
// the directory after the first part; for one model also tables of DynamoDB. The file formats
// says which formats these have.
const formats = "../../testdata/formats"

var writeFormats = flag.Bool("write-formats", false, "write testdata/formats again, with the formats of this program")

// results runs the program in this process, which has to end well, and returns its results.
func results(t *testing.T, args ...string) string {
	t.Helper()
	var out, talk bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &out, &talk); code != exitGood {
		t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), code, talk.String())
	}
	return out.String()
}

// TestLastFormats: this program opens the directories that the last release wrote. Their
// values are right and found, it goes on with the rest of the recording, and the values are
// right again: those of a replay of everything by this program.
func TestLastFormats(t *testing.T) {
	if *writeFormats {
		for _, m := range []string{"chat", "gallery"} {
			dir := filepath.Join(t.TempDir(), m)
			results(t, "replay", formats+"/"+m+".yaml", formats+"/"+m+"-1.jsonl.gz", "--data", dir)
			packDir(t, dir, formats+"/"+m+".tar.gz")
		}
		if err := os.WriteFile(formats+"/formats", []byte(drivers.Formats()+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	said, err := os.ReadFile(formats + "/formats")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("written with %sread with %s", said, drivers.Formats())
	for name, asks := range map[string][]string{
		"chat":    {"months channel=general", "joined person=p3", "emojis message=m9", "person person=p3"},
		"gallery": {"albums", "search-albums q=market", "user-interactions userId=u-1"},
	} {
		t.Run(name, func(t *testing.T) {
			model, first, rest := formats+"/"+name+".yaml", formats+"/"+name+"-1.jsonl.gz", formats+"/"+name+"-2.jsonl.gz"
			old, fresh := unpackDir(t, formats+"/"+name+".tar.gz"), t.TempDir()
			results(t, "replay", model, first, "--data", fresh)
			compare := func(when string) {
				t.Helper()
				results(t, "verify", model, "--data", old)
				for _, ask := range asks {
					args := append([]string{"query", model}, strings.Fields(ask)...)
					is, want := results(t, append(args, "--data", old)...), results(t, append(args, "--data", fresh)...)
					if is != want || is == "" {
						t.Errorf("%s, %s: %s\nshould be %s", when, ask, is, want)
					}
				}
			}
			compare("as it was written")
			results(t, "replay", model, rest, "--data", fresh)
			results(t, "replay", model, rest, "--data", old)
			compare("after the rest")
		})
	}
}

// packDir packs the files of a directory, without the one that a process holds while it runs.
func packDir(t *testing.T, dir, to string) {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), Format: tar.FormatUSTAR})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if err = errors.Join(err, w.Close(), gz.Close()); err == nil {
		err = os.WriteFile(to, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unpackDir unpacks what packDir packed, and returns the directory.
func unpackDir(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	r := tar.NewReader(readPacked(t, from))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		content, err := io.ReadAll(r)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o777)); err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readPacked reads a compressed file.
func readPacked(t *testing.T, path string) io.Reader {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gz, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(content)))
	if err != nil {
		t.Fatal(err)
	}
	return gz
}
