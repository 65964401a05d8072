package sim

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/scripttest"
)

var update = flag.Bool("update", false, "write what the program prints into the scripts")

// TestScripts runs testdata/script. Beside testscript's own commands there is
//
//	exits CODE COMMAND…          like exec, and the exit code is this one
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": scripttest.Exits},
	})
}
