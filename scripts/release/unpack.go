package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// unpackZip unpacks a zip into a directory.
func unpackZip(path, dir string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if err := placeFile(dir, f.Name, f.Mode(), r); err != nil {
			return err
		}
	}
	return nil
}

// unpackTarGz unpacks a compressed tar file into a directory.
func unpackTarGz(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return extractTar(gz, dir)
}

// unpackTar unpacks a tar file into a directory.
func unpackTar(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return extractTar(f, dir)
}

func extractTar(from io.Reader, dir string) error {
	t := tar.NewReader(from)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			if err := placeFile(dir, h.Name, h.FileInfo().Mode(), t); err != nil {
				return err
			}
		}
	}
}

// placeFile writes a file below dir.
func placeFile(dir, name string, mode fs.FileMode, from io.Reader) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("an archive has %q", name)
	}
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

// checkSums compares the files of a directory with their checksums: all of them, and no other.
func checkSums(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != len(entries)-1 {
		return fmt.Errorf("%d files have a checksum, of %d", len(lines), len(entries)-1)
	}
	for _, l := range lines {
		sum, name, _ := strings.Cut(l, "  ")
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if is := fmt.Sprintf("%x", sha256.Sum256(content)); is != sum {
			return fmt.Errorf("%s has the checksum %s, which should be %s", name, is, sum)
		}
	}
	return nil
}
