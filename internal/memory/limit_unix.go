//go:build unix

package memory

import "syscall"

// limit returns how many files the process may have open. Go's runtime has raised the soft
// limit to the hard limit at start.
func limit() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(uint64(r.Cur), unlimited))
}
