//go:build unix

package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"weir/internal/store"
)

// own creates a directory and locks it for this process until unlock is called or the
// process ends. The error wraps store.ErrOwned if another process has the lock.
func own(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the spools' directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("the spools' directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s is another process's; give this one a directory of its own with --data", store.ErrOwned, dir)
	}
	return func() { f.Close() }, nil
}

// syncDir makes the entries created and removed in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
