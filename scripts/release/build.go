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

// programs are those that a person runs.
var programs = []string{"weir"}

// functions are those that Lambda runs, by name in a release, with the program of each.
var functions = []struct{ name, program string }{{"projector", "function"}, {"ingest", "ingest"}}

// maxFunction is the largest size of a package for Lambda.
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

// newRelease reads the source, and makes the directory for it, which must not exist.
func newRelease(ctx context.Context, source, version, out string, platforms []string) (*release, error) {
	commit, err := commandOutput(ctx, source, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	module, err := commandOutput(ctx, source, nil, "go", "list", "-m")
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

// buildAll makes all files.
func (r *release) buildAll(ctx context.Context) error {
	work, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	common := r.commonFiles()
	list, box := newBill(r), newImage(r)
	if err := box.writeAuthorities(ctx, work); err != nil {
		return err
	}
	for _, p := range r.platforms {
		began := time.Now()
		system, machine, ok := strings.Cut(p, "/")
		if !ok {
			return fmt.Errorf("-platforms has %q; a platform is such as linux/arm64", p)
		}
		files, err := r.buildPrograms(ctx, work, system, machine)
		if err != nil {
			return err
		}
		if err := list.addPrograms(files); err != nil {
			return err
		}
		if system == "linux" {
			if err := r.buildLinux(ctx, work, machine, files, common, list, box); err != nil {
				return err
			}
		}
		if err := r.packArchive(system, machine, append(files, common...)); err != nil {
			return err
		}
		fmt.Printf("built %s in %d s\n", p, int(time.Since(began).Seconds()))
	}
	if err := box.writeLayout(r.releaseFile("weir_%s_image.tar", r.version)); err != nil {
		return err
	}
	if err := list.writeBill(r.releaseFile("weir_%s.spdx.json", r.version)); err != nil {
		return err
	}
	if err := r.writeFormula(fmt.Sprintf("https://%s/releases/download/v%s", r.module, r.version)); err != nil {
		return err
	}
	return writeSums(r.out)
}

// releaseFile is a file of the release.
func (r *release) releaseFile(format string, args ...any) string {
	return filepath.Join(r.out, fmt.Sprintf(format, args...))
}

// buildLinux makes the files that only Linux has.
func (r *release) buildLinux(ctx context.Context, work, machine string, files, common []file, list *bill, box *image) error {
	for _, f := range functions {
		program := filepath.Join(work, "lambda_"+machine, f.program)
		if err := r.compileProgram(ctx, program, "linux", machine, f.program, "-tags", "lambda,lambda.norpc"); err != nil {
			return err
		}
		if err := list.addPrograms([]file{{from: program}}); err != nil {
			return err
		}
		if err := r.packFunction(f.name, program, machine); err != nil {
			return err
		}
	}
	if err := box.addMachine(machine, files); err != nil {
		return err
	}
	return r.packDebian(ctx, work, machine, files, common)
}

// compileProgram builds a program.
func (r *release) compileProgram(ctx context.Context, to, system, machine, name string, flags ...string) error {
	set := fmt.Sprintf("-ldflags=-s -w -buildid= -X %[1]s/internal/cli.release=%[2]s -X %[1]s/internal/cli.commit=%[3]s", r.module, r.version, r.commit)
	args := append([]string{"build", set, "-o", to}, flags...)
	_, err := commandOutput(ctx, r.source, append([]string{"GOOS=" + system, "GOARCH=" + machine}, r.env...), "go", append(args, "./cmd/"+name)...)
	return err
}

// buildPrograms builds the programs for a platform.
func (r *release) buildPrograms(ctx context.Context, work, system, machine string) (files []file, err error) {
	for _, name := range programs {
		to := filepath.Join(work, system+"_"+machine, name)
		if system == "windows" {
			to += ".exe"
		}
		if err := r.compileProgram(ctx, to, system, machine, name); err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Base(to), to, 0o755})
	}
	return files, nil
}

// packArchive packs the files for a platform.
func (r *release) packArchive(system, machine string, files []file) error {
	name := r.releaseFile("weir_%s_%s_%s", r.version, system, machine)
	if system == "windows" {
		return packZip(name+".zip", r.time, files)
	}
	return packTar(name+".tar.gz", r.time, files)
}

// noticeFiles are the files that go with every copy.
func (r *release) noticeFiles() []file {
	return []file{{"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644}, {"NOTICE", filepath.Join(r.source, "NOTICE"), 0o644}}
}

// commonFiles are the files that every archive has.
func (r *release) commonFiles() []file {
	files := r.noticeFiles()
	for _, name := range []string{"README.md", "CHANGELOG.md", "SECURITY.md"} {
		files = append(files, file{name, filepath.Join(r.source, name), 0o644})
	}
	return files
}

// packFunction packs a program as Lambda loads it.
func (r *release) packFunction(name, program, machine string) error {
	to := r.releaseFile("weir-%s-lambda_%s_%s.zip", name, r.version, machine)
	if err := packZip(to, r.time, append([]file{{"bootstrap", program, 0o755}}, r.noticeFiles()...)); err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err == nil && info.Size() > maxFunction {
		err = fmt.Errorf("%s has %d bytes, at most %d are allowed", to, info.Size(), maxFunction)
	}
	return err
}
