package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is one of an archive.
type file struct {
	name string // in the archive
	from string
	mode int64
}

// packTar packs files; nothing but their names and contents, and the time, decides its bytes.
func packTar(to string, at time.Time, files []file) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	gz, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(gz)
	return errors.Join(writeTar(t, at, files), t.Close(), gz.Close())
}

// writeTar writes files to an archive.
func writeTar(t *tar.Writer, at time.Time, files []file) error {
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		if err := writeEntry(t, at, f.name, f.mode, content); err != nil {
			return err
		}
	}
	return nil
}

func writeEntry(t *tar.Writer, at time.Time, name string, mode int64, content []byte) error {
	err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR})
	if err == nil {
		_, err = t.Write(content)
	}
	return err
}

// packZip does the same as a zip.
func packZip(to string, at time.Time, files []file) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z := zip.NewWriter(out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return z.Close()
}

// sums is the file with the checksums of all others, as sha256sum -c reads it.
const sums = "SHA256SUMS"

func writeSums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sums), []byte(b.String()), 0o644)
}
