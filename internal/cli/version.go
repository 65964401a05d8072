package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"weir/internal/system"
)

// The version and the commit of a released program, which the linker sets. Go itself notes the
// commit of others that are built in a repository.
var release, commit string

// Extras are the flags that each program has beside its work: a program's commands embed it.
type Extras struct {
	Version VersionFlag `env:"-" help:"Print the version and the formats of stored data."`
}

// VersionFlag prints the version.
type VersionFlag bool

// BeforeReset prints the version, instead of a command.
func (VersionFlag) BeforeReset(k *kong.Kong) error {
	if err := printVersion(k.Stdout, k.Model.Name); err != nil {
		return err
	}
	k.Exit(Good)
	return nil
}

// Version is the version of the program, "unreleased" for one that is none.
func Version() string {
	version, _ := built()
	return version
}

// built returns version and commit of the program.
func built() (version, from string) {
	version, from = release, commit
	if info, ok := debug.ReadBuildInfo(); ok && from == "" {
		// go install of a released module says its version; a build in a repository says one with a
		// commit in it, which is no release.
		if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok && !strings.ContainsAny(v, "-+") {
			version = cmp.Or(version, v)
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				from = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				from += " with changes"
			}
		}
	}
	return cmp.Or(version, "unreleased"), cmp.Or(from, "unknown")
}

// printVersion prints the facts that a report of a fault needs: version, commit, the formats of stored data, and the platform.
func printVersion(to io.Writer, program string) error {
	version, from := built()
	_, err := fmt.Fprintf(to, "%s %s\ncommit %s\nformats: %s\n%s %s/%s\n", program, version, from,
		system.Formats(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
