// Package scripttest has the commands that the scripts of the programs share, beside
// testscript's own.
package scripttest

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

// Exits is exits CODE COMMAND…: like exec, and the exit code is this one.
func Exits(ts *testscript.TestScript, _ bool, args []string) {
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

// Pack is pack FILE PACKED: makes PACKED, .gz or .zst, of FILE.
func Pack(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	var w io.WriteCloser = gzip.NewWriter(f)
	if strings.HasSuffix(args[1], ".zst") {
		w, err = zstd.NewWriter(f)
		ts.Check(err)
	}
	_, err = io.WriteString(w, ts.ReadFile(args[0]))
	ts.Check(errors.Join(err, w.Close()))
}

// Fill is fill FILE BYTES [JSON]: makes a file of JSON, a text with so many bytes, or
// the JSON with the text where it has a #.
func Fill(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := `"` + strings.Repeat("x", n-2) + `"`
	if len(args) > 2 {
		text = strings.Replace(args[2], "#", text, 1)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
