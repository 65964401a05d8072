package main

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// tryAll tries all files, as far as this machine can: it reads every archive and looks at
// every program, runs those for this machine from the archive, the packages for Lambda, the
// Debian package and the image, and lets crane check the image. It prints a line for each file.
func (r *release) tryAll(ctx context.Context) error {
	work, err := os.MkdirTemp("", "weir-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for i, e := range entries {
		dir := filepath.Join(work, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			return err
		}
		said, err := r.tryFile(ctx, filepath.Join(r.out, e.Name()), dir)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%-44s %5.1f MB  %s\n", e.Name(), float64(info.Size())/(1<<20), said)
	}
	return nil
}

// tryFile tries one file of the release in an empty directory, and returns a text about the trial.
func (r *release) tryFile(ctx context.Context, path, dir string) (said string, err error) {
	name := filepath.Base(path)
	part := strings.Split(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".tar"), ".zip"), ".deb"), "_")
	machine := part[len(part)-1]
	switch {
	case name == sums:
		return "read again", checkSums(r.out)
	case strings.HasSuffix(name, ".spdx.json"), strings.HasSuffix(name, ".rb"):
		return "", nil
	case strings.Contains(name, "-lambda_"):
		if err := unpackZip(path, dir); err != nil {
			return "", err
		}
		return r.tryFunction(ctx, filepath.Join(dir, "bootstrap"), machine)
	case strings.HasSuffix(name, ".deb"):
		return r.tryDebian(ctx, path, dir, machine)
	case strings.HasSuffix(name, "_image.tar"):
		return r.tryImage(ctx, path, dir)
	case strings.HasSuffix(name, ".zip"):
		err = unpackZip(path, dir)
	default:
		err = unpackTarGz(path, dir)
	}
	if err != nil {
		return "", err
	}
	return r.tryPrograms(ctx, dir, part[len(part)-2], machine)
}

// tryPrograms looks at the programs in a folder, and runs them if they are for this machine.
func (r *release) tryPrograms(ctx context.Context, dir, system, machine string) (said string, err error) {
	for _, name := range programs {
		if system == "windows" {
			name += ".exe"
		}
		if err := looksRight(filepath.Join(dir, name), system, machine); err != nil {
			return "", err
		}
	}
	if !runsHere(system, machine) {
		return "looked at", nil
	}
	return "ran", r.runPrograms(ctx, dir, filepath.Join(dir, "data"))
}

func runsHere(system, machine string) bool {
	return system == runtime.GOOS && machine == runtime.GOARCH
}

// runPrograms runs the programs in a folder. They say their version and commit, and a
// recording that weir replays has no wrong value.
func (r *release) runPrograms(ctx context.Context, dir, data string) error {
	for _, name := range programs {
		said, err := commandOutput(ctx, dir, nil, filepath.Join(dir, name), "--version")
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%s %s\ncommit %s\nformats: data directory ", name, r.version, r.commit); !strings.HasPrefix(said, want) {
			return fmt.Errorf("%s --version prints %q, which should begin with %q", name, said, want)
		}
	}
	streams, err := filepath.Abs(filepath.Join(r.source, "testdata", "streams", "gallery"))
	if err != nil {
		return err
	}
	weir := filepath.Join(dir, "weir")
	if _, err := commandOutput(ctx, dir, nil, weir, "replay", "gallery", streams, "--data", data); err != nil {
		return err
	}
	_, err = commandOutput(ctx, dir, nil, weir, "verify", "gallery", "--data", data)
	return err
}

// looksRight reads a program: it is for the platform, and no library or path of this machine is in it.
func looksRight(path, system, machine string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	is := map[string]string{}
	for _, s := range info.Settings {
		is[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": system, "GOARCH": machine, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if is[key] != want {
			return fmt.Errorf("%s has %s=%s, which should be %s", filepath.Base(path), key, is[key], want)
		}
	}
	if stat, err := os.Stat(path); err != nil {
		return err
	} else if system != "windows" && stat.Mode().Perm() != 0o755 {
		return fmt.Errorf("%s is not executable: its mode is %v", filepath.Base(path), stat.Mode())
	}
	if system != "linux" {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Section(".interp") != nil || f.Section(".dynamic") != nil {
		return fmt.Errorf("%s is not static", filepath.Base(path))
	}
	return nil
}

// tryFunction looks at a package for Lambda, and starts its program, which says that Lambda
// starts it, or what it is.
func (r *release) tryFunction(ctx context.Context, bootstrap, machine string) (said string, err error) {
	if err := looksRight(bootstrap, "linux", machine); err != nil {
		return "", err
	}
	if !runsHere("linux", machine) {
		return "looked at", nil
	}
	cmd := exec.CommandContext(ctx, bootstrap, "--version")
	text, err := cmd.CombinedOutput()
	if code := new(exec.ExitError); errors.As(err, &code) && code.ExitCode() == 2 && strings.Contains(string(text), "Lambda starts this program") {
		return "ran", nil
	}
	if err == nil && !strings.HasPrefix(string(text), "ingest "+r.version+"\n") {
		err = fmt.Errorf("it prints %q", text)
	}
	return "ran", err
}

// tryDebian reads the Debian package with dpkg-deb, where it is installed, and runs its programs.
func (r *release) tryDebian(ctx context.Context, path, dir, machine string) (said string, err error) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return "not read: dpkg-deb is not installed", nil
	}
	fields, err := commandOutput(ctx, dir, nil, "dpkg-deb", "--showformat=${Package} ${Architecture} ${Version}", "--show", path)
	if err != nil {
		return "", err
	}
	if version := strings.Replace(r.version, "-", "~", 1); fields != "weir "+machine+" "+version {
		return "", fmt.Errorf("it is %q", fields)
	}
	if _, err := commandOutput(ctx, dir, nil, "dpkg-deb", "--extract", path, dir); err != nil {
		return "", err
	}
	for _, name := range []string{"doc/weir/copyright", "doc/weir/NOTICE"} {
		if _, err := os.Stat(filepath.Join(dir, "usr", "share", name)); err != nil {
			return "", err
		}
	}
	said, err = r.tryPrograms(ctx, filepath.Join(dir, "usr", "bin"), "linux", machine)
	return "unpacked, " + said, err
}
