package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestImage: every blob of a layout has its digest and size, all are reached from the index,
// each machine has its own programs, and the same files give the same bytes.
func TestImage(t *testing.T) {
	one, two := testImage(t), testImage(t)
	if !bytes.Equal(one, two) {
		t.Error("made again, bytes differ")
	}
	layout := t.TempDir()
	if err := extractTar(bytes.NewReader(one), layout); err != nil {
		t.Fatal(err)
	}
	reached := 0
	var index, all, manifest struct {
		Manifests, Layers []descriptor
		Config            descriptor
	}
	read := func(path string, v any) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(layout, path))
		if err == nil {
			err = json.Unmarshal(content, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	blob := func(d descriptor) string {
		t.Helper()
		path := filepath.Join("blobs", "sha256", d.Digest[len("sha256:"):])
		content, err := os.ReadFile(filepath.Join(layout, path))
		if err != nil || len(content) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(content)) != d.Digest {
			t.Errorf("%v: %d bytes, %v", d, len(content), err)
		}
		reached++
		return path
	}
	read("index.json", &index)
	read(blob(index.Manifests[0]), &all)
	for _, m := range all.Manifests {
		read(blob(m), &manifest)
		var config struct {
			Architecture string
			RootFS       struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		read(blob(manifest.Config), &config)
		plain, program := layerOf(t, filepath.Join(layout, blob(manifest.Layers[0])))
		if config.Architecture != m.Platform.Machine || program != "for "+m.Platform.Machine || config.RootFS.DiffIDs[0] != plain {
			t.Errorf("%v: %v, %q, %s", m, config, program, plain)
		}
	}
	blobs, err := os.ReadDir(filepath.Join(layout, "blobs", "sha256"))
	if err != nil || reached != len(blobs) || reached != 7 {
		t.Errorf("%d blobs are reached, of %d: %v", reached, len(blobs), err)
	}
}

func testImage(t *testing.T) []byte {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := &release{source: dir, version: "1.2.3", commit: "abc", time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}
	write("LICENSE", "licence")
	write("NOTICE", "notice")
	b := newImage(r)
	b.roots = write("roots", "certificates")
	for _, machine := range []string{"amd64", "arm64"} {
		if err := b.addMachine(machine, []file{{"weir", write(machine, "for "+machine), 0o755}}); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(dir, "image.tar")
	if err := b.writeLayout(to); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// layerOf returns the digest of a layer's tar file, and the program in it.
func layerOf(t *testing.T, path string) (digest, program string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(gz)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(plain)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "usr/bin/weir" {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			program = string(content)
		}
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(plain)), program
}
