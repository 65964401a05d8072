package main

import (
	"slices"
	"testing"
)

func TestCommands(t *testing.T) {
	help := "Usage: p <command>\n\nFlags:\n  -h, --help    Show help.\n\nCommands:\n  put          Write rows: commands as JSON lines,\n" +
		"               checked.\n  dead list    List what is kept.\n\nRun \"p <command> --help\" for more.\n"
	if got := listCommands(help); !slices.Equal(got, []string{"put", "dead list"}) {
		t.Errorf("%q", got)
	}
}
