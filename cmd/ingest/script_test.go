package main

import (
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/web/webtest"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ingest": main, "http": webtest.HTTP, "query": queryRows, "raw": rawRow, "foreign": foreign, "rows": rows, "follow": follow,
	})
}

// TestScripts runs testdata/script: what a person types, and what comes of it.
// Beside testscript's own commands there are
//
//	exits CODE COMMAND…          like exec, and the exit code is this one
//	http METHOD PATH …           asks the server on $ADDR; see webtest.HTTP
//	query MODEL NAME key=value…  the rows of a query
//	raw MODEL PARTITION SORT     a row as it stands in the table
//	foreign MODEL TABLE FILE     writes a row as others do, past everything
//	fill FILE BYTES              makes a file of JSON with so many bytes
//	rows MODEL FILE              writes rows as an application does; see rows
//	follow MODEL QUERY …         what projector run does, and a query; see follow
//	keep NAME REGEXP             sets $NAME from what was printed last
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("ADDR", l.Addr().String())
			return l.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "keep": webtest.Keep, "fill": fill},
	})
}

func fill(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`"`+strings.Repeat("x", n-2)+`"`), 0o600))
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, not %d", code, want)
	}
}
