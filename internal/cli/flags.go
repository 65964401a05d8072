package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"weir/internal/model"
	"weir/internal/seq"
)

// otherFlags are flags of other programs, with those for them here.
var otherFlags = map[string]string{
	"directory": "data", "dir": "data", "path": "data", "store": "data", "db": "data",
	"format": "output", "out": "output", "dryrun": "dry-run", "simulate": "dry-run",
}

// withFlag is the text of a mistake in the arguments. Of an unknown flag it says which flag is meant, or which command has it, if
// that is to be told.
func withFlag(err error, all *kong.Application, args []string) string {
	wrong := (*kong.ParseError)(nil)
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag -")
	if !unknown || !errors.As(err, &wrong) {
		return err.Error()
	}
	known := seq.Map(wrong.Context.Flags(), func(f *kong.Flag) string { return f.Name })
	name, long := strings.CutPrefix(name, "-")
	if !long { // -data is read as -d
		for _, arg := range args {
			if arg, _, _ = strings.Cut(arg, "="); len(arg) > 2 && slices.Contains(known, arg[1:]) {
				return fmt.Sprintf("unknown flag %s, did you mean \"-%[1]s\"?", arg)
			}
		}
		return err.Error()
	}
	meant := ""
	switch of := otherFlags[name]; {
	case strings.Contains(name, ","): // it is said
	case slices.Contains([]string{"json", "jsonl", "text"}, name) && slices.Contains(known, "output"):
		meant = "output " + name
	case slices.Contains(known, of):
		meant = of
	default:
		_, near, _ := strings.Cut(model.Meant(name, known), `"`)
		meant = strings.TrimSuffix(near, `"?`)
	}
	if meant != "" {
		return fmt.Sprintf("%v, did you mean \"--%s\"?", err, meant)
	}
	for _, n := range all.Leaves(true) {
		if slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			return fmt.Sprintf("%v, which %s has", err, n.FullPath())
		}
	}
	return err.Error()
}
