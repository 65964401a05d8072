package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// buildTools builds the tools of .ci/release and returns their folder.
func (r *release) buildTools(ctx context.Context) (string, error) {
	to, err := filepath.Abs(filepath.Join(r.source, "bin", "release"))
	if err != nil {
		return "", err
	}
	_, err = commandOutput(ctx, filepath.Join(r.source, ".ci", "release"), r.env, "go", "build", "-o", to+string(filepath.Separator), "tool")
	return to, err
}

// packDebian makes the Debian package for a machine, with nfpm.
func (r *release) packDebian(ctx context.Context, work, machine string, files, common []file) error {
	tools, err := r.buildTools(ctx)
	if err != nil {
		return err
	}
	config := filepath.Join(work, machine+".nfpm.yaml")
	if err := os.WriteFile(config, []byte(r.debianConfig(machine, files, common)), 0o644); err != nil {
		return err
	}
	_, err = commandOutput(ctx, work, nil, filepath.Join(tools, "nfpm"), "package", "-f", config, "-p", "deb", "-t", r.releaseFile("weir_%s_%s.deb", r.version, machine))
	return err
}

// debianConfig lists the files of the package, with their paths on a Debian system.
func (r *release) debianConfig(machine string, files, common []file) string {
	at := r.time.Format("2006-01-02T15:04:05Z")
	var b strings.Builder
	fmt.Fprintf(&b, `name: weir
arch: %s
platform: linux
version: %s
section: database
priority: optional
maintainer: The weir authors
license: Apache-2.0
mtime: %s
description: |
  Derived data for DynamoDB tables, kept exactly right
  Counters, means, copies, feeds, statuses and search indexes that follow from
  the rows of DynamoDB tables: declared in a model file, and kept current from
  the streams of the tables.
deb:
  compression: gzip
contents:
`, machine, r.version, at)
	for _, f := range append(files, common...) {
		from, _ := filepath.Abs(f.from) // fails only without a working directory
		fmt.Fprintf(&b, "- {src: %q, dst: %q, file_info: {mode: 0%o, mtime: %s}}\n", from, debianPath(f.name), f.mode, at)
	}
	return b.String()
}

// debianPath is where a file of an archive belongs.
func debianPath(name string) string {
	base := filepath.Base(name)
	if name == "LICENSE" {
		return "/usr/share/doc/weir/copyright"
	}
	if name == "NOTICE" || filepath.Ext(name) == ".md" {
		return "/usr/share/doc/weir/" + base
	}
	return "/usr/bin/" + base
}
