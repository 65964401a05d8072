//go:build !unix

package live

import (
	"fmt"
	"os"
)

// own creates the directory. This system has no lock for it: the operator must see to it
// that only one process uses the directory.
func own(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the spools' directory: %w", err)
	}
	return func() {}, nil
}

// syncDir does nothing: it relies on the operating system.
func syncDir(string) error { return nil }
