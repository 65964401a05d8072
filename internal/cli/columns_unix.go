//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns returns how many characters a line of a terminal has, 0 for any other file.
func columns(f *os.File) int {
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
		return int(size.Col)
	}
	return 0
}
