package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/store"
)

// ownerFile names the process that has the directory open. The lock beside it decides:
// the lock ends with its process, however that ends, and an owner file without a lock
// means nothing.
const ownerFile = "OWNER"

// owner is the content of the file of a directory's owner, for people: another process that finds the
// directory taken prints it. The lock keeps others out, not this file.
type owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// ownDirectory takes the directory for this process, or returns ErrOwned with the owner. It
// returns the resolved name under which the directory is locked. The lock excludes
// other processes; within this process it excludes only callers that use the same name.
//
// A directory with a damaged or missing file is refused before anything is written
// there.
func ownDirectory(o Options, dir string, now time.Time) (string, *pebble.Lock, *files, error) {
	fs := o.FS
	err := makeDir(fs, dir)
	if err == nil && fs == vfs.Default {
		dir, err = realPath(dir)
	}
	if err != nil {
		return dir, nil, nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	lock, err := pebble.LockDirectory(dir, fs)
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return dir, nil, nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	if err != nil {
		return dir, nil, nil, fmt.Errorf("%w: %s is held by %s; stop that process, or use another directory", store.ErrOwned, dir, readOwner(fs, dir))
	}
	me := owner{PID: os.Getpid(), Command: commandLine(), Since: now.UTC().Truncate(time.Second)}
	list, closed, err := checkFiles(fs, dir)
	if err == nil {
		var doubt error
		if doubt, err = checkJournal(fs, dir, closed); doubt != nil {
			o.Logger.Warn("the store was not closed: "+strings.ReplaceAll(doubt.Error(), "\n", "; "), "data", dir)
		}
	}
	if err == nil {
		err = writeOwner(fs, dir, me)
	}
	if err == nil {
		err = list.replaceList(false)
	}
	if err != nil {
		return dir, nil, nil, errors.Join(fmt.Errorf("data directory %s: %w", dir, err), lock.Close())
	}
	return dir, lock, list, nil
}

// makeDir makes the directory and its missing parents, and syncs them, so that they
// survive a crash of the machine.
func makeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeDir(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil || parent == dir {
		return err
	}
	return syncDir(fs, parent)
}

// syncDir makes the names in a directory durable. A file that was synced and whose name was not may
// be gone after a power cut (POSIX).
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// realPath is a directory without symbolic links, so that one directory has one name in this
// process.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, err
	}
	return filepath.EvalSymlinks(abs)
}

// releaseDirectory releases the directory. The next owner relies on the store having been closed.
func releaseDirectory(list *files, lock *pebble.Lock) error {
	fs, dir := list.fs, list.dir
	err := list.listClosed()
	if err == nil {
		err = fs.Remove(fs.PathJoin(dir, ownerFile))
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	return errors.Join(err, lock.Close())
}

// commandLine is the command line of this process, cut to about 120 bytes.
func commandLine() string {
	c := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	if len(c) > 120 {
		c = strings.ToValidUTF8(c[:120], "") + "…"
	}
	return c
}

// writeOwner says who has the directory. It is not synced: after a crash the lock decides, and the
// file is written again.
func writeOwner(fs vfs.FS, dir string, o owner) error {
	f, err := fs.Create(fs.PathJoin(dir, ownerFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	b, err := json.Marshal(o)
	if err == nil {
		_, err = f.Write(append(b, '\n'))
	}
	return errors.Join(err, f.Close())
}

// readOwner says who has the directory open, for the message to the second process. It only
// informs; the lock decides.
func readOwner(fs vfs.FS, dir string) string {
	const unknown = "another process"
	f, err := fs.Open(fs.PathJoin(dir, ownerFile))
	if err != nil {
		return unknown
	}
	defer f.Close()
	var o owner
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return unknown
	}
	return fmt.Sprintf("process %d (%s) since %s", o.PID, o.Command, o.Since.Format(time.RFC3339))
}

// Remove removes the directory of a store that no process has open. One that is open is an error.
func Remove(dir string) error {
	free, err := pebble.LockDirectory(dir, vfs.Default)
	if err != nil {
		return err
	}
	return errors.Join(free.Close(), os.RemoveAll(dir))
}
