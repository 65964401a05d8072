// Command release builds the files of a release, into a directory:
//
//	weir_VERSION_SYSTEM_MACHINE.tar.gz    the static program and licences (.zip for Windows)
//	weir_VERSION_MACHINE.deb              the same as a Debian package
//	weir_VERSION_image.tar                an image of containers (an OCI layout) for all Linux machines
//	weir-NAME-lambda_VERSION_MACHINE.zip  the functions: projector (cmd/function) and ingest
//	weir_VERSION.spdx.json                a list of all linked modules
//	weir.rb                               a formula for Homebrew, if the module path is where releases are
//	SHA256SUMS                            the checksums of all of these
//
//	go run ./scripts/release -version 0.1.0
//	go run ./scripts/release -version 0.1.0 -twice
//	go run ./scripts/release -try
//
// The commit and the version alone decide each byte. With -twice everything is built again from
// a clone in another place with an empty build cache, and it is an error if a byte differs.
// The built files are tried: see try.go. Uncommitted changes are refused, except with -try, which
// builds and tries the programs for this machine, and leaves nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// everywhere lists the platforms that a release is built for.
const everywhere = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.version, "version", "", "the release, such as 0.1.0")
	flag.StringVar(&o.out, "out", "dist", "the directory, which must not exist")
	flag.StringVar(&o.platforms, "platforms", everywhere, "what to build for")
	flag.BoolVar(&o.twice, "twice", false, "build all a second time elsewhere, and compare")
	flag.BoolVar(&o.try, "try", false, "build for this machine, from what is not committed too, and leave nothing")
	flag.Parse()
	if err := makeRelease(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	version, out, platforms string
	twice, try              bool
}

var versions = regexp.MustCompile(`^\d+\.\d+\.\d+(-[a-z0-9.]+)?$`)

func makeRelease(ctx context.Context, o options) error {
	if o.try {
		dir, err := os.MkdirTemp("", "weir-release-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.version, o.out, o.platforms = "0.0.0-try", filepath.Join(dir, "dist"), "linux/"+runtime.GOARCH
	} else if err := checkCommitted(ctx); err != nil {
		return err
	}
	if !versions.MatchString(o.version) {
		return fmt.Errorf("-version is %q; it is MAJOR.MINOR.PATCH", o.version)
	}
	r, err := newRelease(ctx, ".", o.version, o.out, strings.Split(o.platforms, ","))
	if err != nil {
		return err
	}
	if err := r.buildAll(ctx); err != nil {
		return err
	}
	if err := r.tryAll(ctx); err != nil || !o.twice {
		return err
	}
	return r.buildAgain(ctx)
}

// checkCommitted returns an error that lists uncommitted changes.
func checkCommitted(ctx context.Context) error {
	changed, err := commandOutput(ctx, ".", nil, "git", "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("what is released is a commit; commit or remove first:\n%s", changed)
	}
	return err
}

// buildAgain builds everything from a clone with an empty cache, and compares the checksums.
func (r *release) buildAgain(ctx context.Context) error {
	work, err := os.MkdirTemp("", "weir-again-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source := filepath.Join(work, "clone")
	if _, err := commandOutput(ctx, ".", nil, "git", "clone", "-q", ".", source); err != nil {
		return err
	}
	if _, err := commandOutput(ctx, source, nil, "git", "checkout", "-q", r.commit); err != nil {
		return err
	}
	second, err := newRelease(ctx, source, r.version, filepath.Join(work, "dist"), r.platforms)
	if err != nil {
		return err
	}
	second.env = append(second.env, "GOCACHE="+filepath.Join(work, "cache"))
	if err := second.buildAll(ctx); err != nil {
		return err
	}
	return compareChecksums(r.out, second.out)
}

// compareChecksums compares the checksums of two directories.
func compareChecksums(first, second string) error {
	one, err := os.ReadFile(filepath.Join(first, sums))
	two, err2 := os.ReadFile(filepath.Join(second, sums))
	if err = errors.Join(err, err2); err == nil && string(one) != string(two) {
		err = fmt.Errorf("a second build differs:\n%s\n%s", one, two)
	}
	if err == nil {
		fmt.Printf("a second build has the same bytes: %d files\n", strings.Count(string(one), "\n"))
	}
	return err
}

// commandOutput runs a command and returns its standard output; its standard error is in the error.
func commandOutput(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var talk strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), &talk
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, talk.String())
	}
	return string(out), err
}
