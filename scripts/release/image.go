package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The media types of an OCI layout.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// user is who runs the programs in a container. /data belongs to it.
const user = 65532

// image is an image of containers with weir and nothing else, one for each Linux
// machine, as an OCI layout. No daemon takes part.
type image struct {
	*release
	roots     string            // a file of certificates
	blobs     map[string][]byte // by digest
	order     []string
	manifests []descriptor
}

type descriptor struct {
	Type        string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Machine string `json:"architecture"`
	System  string `json:"os"`
}

func newImage(r *release) *image { return &image{release: r, blobs: map[string][]byte{}} }

// writeAuthorities makes the file of the authorities that programs in the image trust.
func (b *image) writeAuthorities(ctx context.Context, work string) error {
	text, err := commandOutput(ctx, b.source, b.env, "go", "run", "-modfile=.ci/release/go.mod", "scripts/release/roots.go")
	if err != nil {
		return err
	}
	b.roots = filepath.Join(work, "roots.pem")
	return os.WriteFile(b.roots, []byte(text), 0o644)
}

// putBlob keeps a blob.
func (b *image) putBlob(mediaType string, content []byte) descriptor {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if _, had := b.blobs[digest]; !had {
		b.order = append(b.order, digest)
	}
	b.blobs[digest] = content
	return descriptor{Type: mediaType, Digest: digest, Size: len(content)}
}

// putJSON keeps a value as a blob. Keys are sorted, or in the order of the type's fields.
func (b *image) putJSON(mediaType string, v any) (descriptor, error) {
	content, err := json.Marshal(v)
	return b.putBlob(mediaType, content), err
}

// addMachine adds the image of a machine.
func (b *image) addMachine(machine string, programs []file) error {
	plain, packed, err := b.packLayer(programs)
	if err != nil {
		return err
	}
	layer := b.putBlob(typeLayer, packed)
	config, err := b.putJSON(typeConfig, map[string]any{
		"created": b.time, "architecture": machine, "os": "linux",
		"config": map[string]any{
			"User": fmt.Sprint(user), "Entrypoint": []string{"/usr/bin/weir"}, "WorkingDir": "/",
			"Env": []string{"PATH=/usr/bin"}, "Labels": b.imageLabels(),
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
		"history": []any{map[string]any{"created": b.time, "created_by": "scripts/release"}},
	})
	if err != nil {
		return err
	}
	manifest, err := b.putJSON(typeManifest, map[string]any{"schemaVersion": 2, "mediaType": typeManifest, "config": config, "layers": []descriptor{layer}, "annotations": b.imageLabels()})
	manifest.Platform = &platform{machine, "linux"}
	b.manifests = append(b.manifests, manifest)
	return err
}

// imageLabels describe the image.
func (b *image) imageLabels() map[string]string {
	const key = "org.opencontainers.image."
	return map[string]string{key + "title": "weir", key + "version": b.version, key + "revision": b.commit, key + "licenses": "Apache-2.0"}
}

// packLayer packs the only layer: the programs, the trusted authorities, and a folder for data.
func (b *image) packLayer(programs []file) (plain, packed []byte, err error) {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	folder := func(name string, mode int64, owner int) {
		err = errors.Join(err, t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: b.time, Format: tar.FormatUSTAR}))
	}
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "usr/", "usr/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/weir/"} {
		folder(name, 0o755, 0)
	}
	folder("data/", 0o700, user)
	folder("tmp/", 0o1777, 0)
	var files []file
	for _, f := range programs {
		files = append(files, file{"usr/bin/" + f.name, f.from, f.mode})
	}
	for _, f := range b.noticeFiles() {
		files = append(files, file{"usr/share/doc/weir/" + f.name, f.from, f.mode})
	}
	files = append(files, file{"etc/ssl/certs/ca-certificates.crt", b.roots, 0o644})
	if err = errors.Join(err, writeTar(t, b.time, files), t.Close()); err != nil {
		return nil, nil, err
	}
	var zipped bytes.Buffer
	gz, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	_, err = gz.Write(out.Bytes())
	err = errors.Join(err, gz.Close()) // before its bytes are taken
	return out.Bytes(), zipped.Bytes(), err
}

// writeLayout writes the layout as a tar file, which docker load, podman load and skopeo read. Without
// images it writes nothing.
func (b *image) writeLayout(to string) (err error) {
	if len(b.manifests) == 0 {
		return nil
	}
	all, err := b.putJSON(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": b.manifests, "annotations": b.imageLabels()})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": b.version, "io.containerd.image.name": "weir:" + b.version}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{all}})
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	t := tar.NewWriter(out)
	entry := func(name string, content []byte) {
		if err == nil {
			err = writeEntry(t, b.time, name, 0o644, content)
		}
	}
	entry("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	entry("index.json", index)
	for _, digest := range b.order {
		entry("blobs/sha256/"+digest[len("sha256:"):], b.blobs[digest])
	}
	return errors.Join(err, t.Close())
}
