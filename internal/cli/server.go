package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/store"
)

// serverFile has the URL at which the process serves that has a data directory. The lock of the store says whether there is such
// a process: without it, the file means nothing. The process that takes the lock next removes the file of one that was killed.
const serverFile = "SERVER"

// Serves says in a data directory, which this process has open, at which URL it serves, until end is called.
func Serves(dir, url string) (end func(), err error) {
	path := filepath.Join(dir, serverFile)
	if err := os.WriteFile(path, []byte(url+"\n"), 0o644); err != nil {
		return nil, err
	}
	return func() { os.Remove(path) }, nil
}

// noServer removes the file that a killed process has left in a data directory.
func noServer(dir string) { os.Remove(filepath.Join(dir, serverFile)) }

// ServerOf returns the URL of the server that has a data directory, if err says that another process has it; otherwise "".
func ServerOf(err error, dir string) string {
	if !errors.Is(err, store.ErrOwned) {
		return ""
	}
	url, _ := os.ReadFile(filepath.Join(dir, serverFile))
	return strings.TrimSpace(string(url))
}
