// Command licences writes NOTICE. It lists every module that the released programs link, with its
// licence and the texts that the licence requires to accompany a binary.
//
//	go run ./scripts/licences          writes NOTICE
//	go run ./scripts/licences -check   reports whether NOTICE is up to date
//
// A module without a licence, or with an unknown licence text, is an error: a person has to
// read that text.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/seq"
)

const noticeFile = "NOTICE"

// platforms are the platforms that the programs are built for. The linked packages differ
// between them.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	check := flag.Bool("check", false, "change nothing; exit with 1 when "+noticeFile+" is not current")
	flag.Parse()
	if err := writeNotice(*check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func writeNotice(check bool) error {
	mods, err := linkedModules("./cmd/weir", "./cmd/function")
	if err != nil {
		return err
	}
	want, err := makeNotice(mods)
	if err != nil {
		return err
	}
	if check {
		have, err := os.ReadFile(noticeFile)
		if err != nil {
			return err
		}
		return compareNotice(string(have), string(want))
	}
	return os.WriteFile(noticeFile, want, 0o666)
}

// compareNotice returns an error that names the first line in which NOTICE is out of date.
func compareNotice(have, want string) error {
	if have == want {
		return nil
	}
	is, should := strings.Split(have, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(is) && i < len(should) && is[i] == should[i] {
		i++
	}
	at := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return "the end"
	}
	return fmt.Errorf("%s:%d is %q and should be %q: run make notice and look at what changes", noticeFile, i+1, at(is), at(should))
}

// module is a linked module, with the directories of its linked packages.
type module struct {
	path, version, dir string
	packages           []string
}

// listed has the fields of the report of go list about a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// linkedModules returns the modules of the packages that programs link on any platform, sorted by
// path. The first is Go's standard library.
func linkedModules(programs ...string) ([]*module, error) {
	goroot, err := commandOutput("", "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	by := map[string]*module{}
	for _, platform := range platforms {
		list, err := commandOutput(platform, "go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, programs...)...)
		if err != nil {
			return nil, err
		}
		for dec := json.NewDecoder(strings.NewReader(list)); ; {
			var p listed
			if err := dec.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			addPackage(by, p)
		}
	}
	mods := []*module{{path: "Go's standard library", dir: strings.TrimSpace(goroot)}}
	return append(mods, seq.Map(slices.Sorted(maps.Keys(by)), func(path string) *module { return by[path] })...), nil
}

func addPackage(by map[string]*module, p listed) {
	if p.Standard || p.Module == nil || p.Module.Main {
		return
	}
	m := by[p.Module.Path]
	if m == nil {
		m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir}
		if r := p.Module.Replace; r != nil {
			m.version, m.dir = fmt.Sprintf("%s, replaced by %s %s", m.version, r.Path, r.Version), r.Dir
		}
		by[p.Module.Path] = m
	}
	if !slices.Contains(m.packages, p.Dir) {
		m.packages = append(m.packages, p.Dir)
	}
}

// commandOutput returns the output of a command, run for a platform in the way the programs are built.
func commandOutput(platform, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if goos, goarch, ok := strings.Cut(platform, "/"); ok {
		cmd.Env = append(cmd.Env, "GOOS="+goos, "GOARCH="+goarch)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", cmd, err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return string(out), nil
}

// licenceFolders returns the folders that may hold licence texts for a module's linked packages: its
// root, its folder of licences, and every folder from the root down to a package.
func (m *module) licenceFolders() []string {
	out := []string{m.dir, filepath.Join(m.dir, "licenses")}
	for _, dir := range m.packages {
		for dir != m.dir && strings.HasPrefix(dir, m.dir) {
			out = append(out, dir)
			dir = filepath.Dir(dir)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
