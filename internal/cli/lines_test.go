package cli_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/cli"
)

// TestLines: blank lines are passed over, and counted; a line that is too long ends the file, in words.
func TestLines(t *testing.T) {
	for file, want := range map[string]string{
		"":                                      "",
		"\ufeff{1}\r\n\n  \n{2}":                "1 {1} 4 {2} ",
		"{1}\n" + strings.Repeat("x", 4<<20):    "1 {1} line 2 has more than 4194304 bytes",
		"PK\x03\x04":                            "holds no stream records: it is a zip archive; unpack it first",
		strings.Repeat("x", 1<<20) + "\n{stop}": "1 1048576 stopped",
	} {
		got, stop := "", errors.New("stopped")
		err := cli.Lines(strings.NewReader(file), func(n int, line []byte) error {
			if string(line) == "{stop}" {
				return stop
			}
			if len(line) > 100 {
				line = fmt.Append(nil, len(line))
			}
			got += fmt.Sprintf("%d %s ", n, line)
			return nil
		})
		if err != nil {
			got += err.Error()
		}
		if got != want || err != nil && err != stop && !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%.20q: %q, not %q", file, got, want)
		}
	}
}
