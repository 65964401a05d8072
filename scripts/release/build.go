package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// programs are what a person runs.
var programs = []string{"weir"}

// functions are what Lambda runs, by name in a release, with the program of each.
var functions = []struct{ name, program string }{{"projector", "function"}, {"ingest", "ingest"}}

// maxFunction is what a package for Lambda may have.
const maxFunction = 10 << 20

// release is one build of everything.
type release struct {
	source, version, out string
	platforms            []string
	module               string // its path, by go.mod
	commit               string
	time                 time.Time // of the commit
	env                  []string
}

// newRelease reads what is released, and makes the directory for it, which must not exist.
func newRelease(ctx context.Context, source, version, out string, platforms []string) (*release, error) {
	commit, err := output(ctx, source, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	module, err := output(ctx, source, nil, "go", "list", "-m")
	if err != nil {
		return nil, err
	}
	r := &release{source: source, version: version, platforms: platforms, module: strings.TrimSpace(module),
		env: []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath", "GOAMD64=v1", "GOARM64=v8.0"}}
	var seconds string
	r.commit, seconds, _ = strings.Cut(strings.TrimSpace(commit), " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.time = time.Unix(at, 0).UTC()
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	return r, os.Mkdir(r.out, 0o777)
}

// build makes all files.
func (r *release) build(ctx context.Context) error {
	work, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	common := r.common()
	list, box := newBill(r), newImage(r)
	if err := box.trust(ctx, work); err != nil {
		return err
	}
	for _, p := range r.platforms {
		began := time.Now()
		system, machine, ok := strings.Cut(p, "/")
		if !ok {
			return fmt.Errorf("-platforms has %q; a platform is such as linux/arm64", p)
		}
		files, err := r.programs(ctx, work, system, machine)
		if err != nil {
			return err
		}
		if err := list.add(files); err != nil {
			return err
		}
		if system == "linux" {
			if err := r.linux(ctx, work, machine, files, common, list, box); err != nil {
				return err
			}
		}
		if err := r.archive(system, machine, append(files, common...)); err != nil {
			return err
		}
		fmt.Printf("built %s in %d s\n", p, int(time.Since(began).Seconds()))
	}
	if err := box.write(r.path("weir_%s_image.tar", r.version)); err != nil {
		return err
	}
	if err := list.write(r.path("weir_%s.spdx.json", r.version)); err != nil {
		return err
	}
	if err := r.formula(fmt.Sprintf("https://%s/releases/download/v%s", r.module, r.version)); err != nil {
		return err
	}
	return writeSums(r.out)
}

// path is a file of the release.
func (r *release) path(format string, args ...any) string {
	return filepath.Join(r.out, fmt.Sprintf(format, args...))
}

// linux makes what there is for Linux alone.
func (r *release) linux(ctx context.Context, work, machine string, files, common []file, list *bill, box *image) error {
	for _, f := range functions {
		program := filepath.Join(work, "lambda_"+machine, f.program)
		if err := r.compile(ctx, program, "linux", machine, f.program, "-tags", "lambda,lambda.norpc"); err != nil {
			return err
		}
		if err := list.add([]file{{from: program}}); err != nil {
			return err
		}
		if err := r.function(f.name, program, machine); err != nil {
			return err
		}
	}
	if err := box.add(machine, files); err != nil {
		return err
	}
	return r.debian(ctx, work, machine, files, common)
}

// compile builds a program.
func (r *release) compile(ctx context.Context, to, system, machine, name string, flags ...string) error {
	set := fmt.Sprintf("-ldflags=-s -w -buildid= -X %[1]s/internal/cli.release=%[2]s -X %[1]s/internal/cli.commit=%[3]s", r.module, r.version, r.commit)
	args := append([]string{"build", set, "-o", to}, flags...)
	_, err := output(ctx, r.source, append([]string{"GOOS=" + system, "GOARCH=" + machine}, r.env...), "go", append(args, "./cmd/"+name)...)
	return err
}

// programs builds the programs for a platform.
func (r *release) programs(ctx context.Context, work, system, machine string) (files []file, err error) {
	for _, name := range programs {
		to := filepath.Join(work, system+"_"+machine, name)
		if system == "windows" {
			to += ".exe"
		}
		if err := r.compile(ctx, to, system, machine, name); err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Base(to), to, 0o755})
	}
	return files, nil
}

// archive packs the files for a platform.
func (r *release) archive(system, machine string, files []file) error {
	name := r.path("weir_%s_%s_%s", r.version, system, machine)
	if system == "windows" {
		return packZip(name+".zip", r.time, files)
	}
	return packTar(name+".tar.gz", r.time, files)
}

// notices are the files that go with every copy.
func (r *release) notices() []file {
	return []file{{"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644}, {"NOTICE", filepath.Join(r.source, "NOTICE"), 0o644}}
}

// common are the files that every archive has.
func (r *release) common() []file {
	files := r.notices()
	for _, name := range []string{"README.md", "CHANGELOG.md", "SECURITY.md"} {
		files = append(files, file{name, filepath.Join(r.source, name), 0o644})
	}
	return files
}

// function packs a program as Lambda loads it.
func (r *release) function(name, program, machine string) error {
	to := r.path("weir-%s-lambda_%s_%s.zip", name, r.version, machine)
	if err := packZip(to, r.time, append([]file{{"bootstrap", program, 0o755}}, r.notices()...)); err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err == nil && info.Size() > maxFunction {
		err = fmt.Errorf("%s has %d bytes, at most %d are allowed", to, info.Size(), maxFunction)
	}
	return err
}
