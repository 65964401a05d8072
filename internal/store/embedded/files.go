package embedded

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/summed"
)

// Pebble takes a manifest that it cannot read for one that ends there, and a directory
// without a marker for an empty one. It then deletes every file that the manifest does
// not name. So the store keeps a list of its own, the file FILES. The list has the
// logs, manifests, markers and options that must exist, how much of each is durable,
// and the checksum of that part. checkFiles reads them before Pebble opens anything.
// The list is replaced as a whole (written to another file, synced, renamed), so it is
// never torn: a crash leaves the old list or the new one.
//
// Three rules keep it true at any moment, wherever the process is killed:
//
//   - A file was durable before it was listed.
//   - A file that is to be deleted is removed from the list first.
//   - Before a file is deleted, the list demands the whole manifest that allows the deletion. So
//     if a manifest ends early, after its listed part, then its missing part has had no effect
//     yet: every file that it would have replaced still exists.
//
// A log is listed before its first sync returns. Its length is listed when the log
// ends; the content of the last log is secured by its marks (journal.go). Tables and
// blobs are named by the manifest. When Pebble opens, it compares the sizes in the
// manifest with those of the files. Their blocks have checksums, which every read
// checks, so opening a large store stays cheap.
const (
	filesFile = "FILES"
	filesNew  = "FILES.new"
)

// ErrDamaged is wrapped by the error for a directory in which durable data is missing
// or damaged.
var ErrDamaged = errors.New("the store is damaged")

// listing is the content of FILES, as summed.Marshal writes it.
type listing struct {
	Closed bool                     `json:"closed"` // nothing was written since
	Files  map[string]summed.Prefix `json:"files"`
}

// files keeps the list of one open store.
type files struct {
	fs  vfs.FS // the file system below the guard
	dir string

	mu    sync.Mutex
	known map[string]*tracked
}

// tracked is a file that is listed, or will be.
type tracked struct {
	manifest bool
	listed   atomic.Bool

	mu      sync.Mutex
	written summed.Prefix
	synced  summed.Prefix
	shown   summed.Prefix // as the list has it
	open    bool          // a log that is still being written
}

// durable is how much of a file the list may demand.
func (t *tracked) durable() summed.Prefix {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return summed.Prefix{}
	}
	return t.synced
}

// isListed reports whether the list has files with this name.
func isListed(name string) bool {
	return isManifest(name) || isLog(name) || strings.HasPrefix(name, "marker.") || strings.HasPrefix(name, "OPTIONS-")
}

// isManifest, isLog and isTable tell Pebble's files apart by their names.
func isManifest(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// isLog reports whether a file is one of Pebble's logs, by its name.
func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// isTable reports whether a file holds rows: a sorted table, or values that Pebble keeps beside
// one. Tables are not in the list of durable files, since every read checks their blocks.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// trackFile begins to track a new file; it returns nil for a file that is never listed.
func (l *files) trackFile(path string) *tracked {
	name := l.fs.PathBase(path)
	if isTable(name) {
		return nil
	}
	t := &tracked{manifest: isManifest(name), open: isLog(name)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[name] = t
	return t
}

// trackRenamed tracks a file under its new name.
func (l *files) trackRenamed(from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.known[l.fs.PathBase(from)]; t != nil {
		delete(l.known, l.fs.PathBase(from))
		l.known[l.fs.PathBase(to)] = t
	}
}

// beforeMaking must be called before a file is made. A marker must name a manifest that is
// already listed.
func (l *files) beforeMaking(path string) error {
	if !strings.HasPrefix(l.fs.PathBase(path), "marker.manifest.") {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaceList(false)
}

// beforeRemoving must be called before a file is deleted or renamed.
func (l *files) beforeRemoving(path string) error {
	name := l.fs.PathBase(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.known[name]
	delete(l.known, name)
	if t != nil && t.listed.Load() || l.hasGrown() {
		return l.replaceList(false)
	}
	return nil
}

// hasGrown reports whether more of a manifest is durable than the list demands.
func (l *files) hasGrown() bool {
	for _, t := range l.known {
		t.mu.Lock()
		more := t.manifest && t.synced != t.shown
		t.mu.Unlock()
		if more {
			return true
		}
	}
	return false
}

// noteSynced must be called when the content that a file had at a stage is durable.
func (l *files) noteSynced(path string, t *tracked, at summed.Prefix) error {
	t.mu.Lock()
	t.synced = at
	t.mu.Unlock()
	if t.listed.Load() || !isLog(path) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaceList(false)
}

// noteWritten adds written bytes to the known state of a file.
func (t *tracked) noteWritten(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = t.written.With(p)
}

// ended must be called when nothing more is written to a file.
func (t *tracked) ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = false
}

// stage is the bytes that were written so far. A sync that begins later makes at least those durable.
func (t *tracked) stage() summed.Prefix {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written
}

// replaceList replaces the list. The caller holds mu.
func (l *files) replaceList(closed bool) error {
	list := listing{Closed: closed, Files: map[string]summed.Prefix{}}
	for name, t := range l.known {
		if isListed(name) {
			list.Files[name] = t.durable()
		}
	}
	if err := syncDir(l.fs, l.dir); err != nil { // listed files must be durable in the directory
		return err
	}
	if err := writeList(l.fs, l.dir, list); err != nil {
		return fmt.Errorf("%s: %w", l.fs.PathJoin(l.dir, filesNew), err)
	}
	for name, at := range list.Files {
		t := l.known[name]
		t.mu.Lock()
		t.shown = at
		t.mu.Unlock()
		t.listed.Store(true)
	}
	return nil
}

// listClosed lists the files of a store that Pebble has closed.
// Call it once, when nothing writes any more.
func (l *files) listClosed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaceList(true)
}

// writeList replaces FILES: it writes another file, syncs it and renames it. A crash
// leaves the old list or the new one.
func writeList(fs vfs.FS, dir string, list listing) error {
	b, err := summed.Marshal(list)
	if err != nil {
		return err
	}
	path := fs.PathJoin(dir, filesNew)
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(path, fs.PathJoin(dir, filesFile)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}
