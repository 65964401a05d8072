package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/scripttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main})
}

// TestScripts runs testdata: the programs as commands of weir, whose messages name them so.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			action, err := filepath.Abs("../../scripts/action.sh")
			e.Setenv("ACTION", action)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": scripttest.Exits},
	})
}
