package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/util"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"weir/internal/summed"
)

// Scorch's file root.bolt says which segment files make up the index. If scorch cannot
// load the newest such snapshot, it silently takes an older one or starts empty, and
// deletes the other files. So every file of the directory is checked before scorch
// opens it, and the segments that scorch has opened are compared with that afterwards.

const (
	rootFile = "root.bolt"
	rootNew  = "root.bolt.new" // being written
)

// lockWait is how long to wait while another process has the index open.
const lockWait = 2 * time.Second

// inspection is the state of an index's directory.
type inspection struct {
	exists bool
	closed bool // and root.bolt is as closing left it
	described
	files []string // the segment files, sorted
}

// inspectDirectory reads the state of an index's directory, and checks every segment file.
// It writes nothing.
func inspectDirectory(dir string) (inspection, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return inspection{}, nil
	}
	if err != nil {
		return inspection{}, damage(dir, err)
	}
	closed, err := checkClosed(dir)
	if err != nil {
		return inspection{}, damage(dir, err)
	}
	path := filepath.Join(dir, rootFile)
	info, err := os.Stat(path)
	if err != nil {
		return inspection{}, damage(dir, err)
	}
	if info.Size() == 0 { // a crash while the file was made
		return inspection{}, checkBegun(dir)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return inspection{}, fmt.Errorf("another process has it open")
	}
	if err != nil {
		return inspection{}, damage(dir, err)
	}
	defer db.Close()
	found := inspection{closed: closed}
	err = db.View(func(tx *bbolt.Tx) error {
		if err := checkPages(db, tx); err != nil {
			return err
		}
		return found.read(tx)
	})
	if err != nil {
		return inspection{}, damage(dir, err)
	}
	if !found.exists {
		return inspection{}, checkBegun(dir)
	}
	for _, f := range found.files {
		if err := checksum(filepath.Join(dir, f)); err != nil {
			return inspection{}, damage(dir, err)
		}
	}
	return found, nil
}

// checkBegun checks a directory in which the very first commit was interrupted. It has no
// segments: that commit has no documents.
func checkBegun(dir string) error {
	segments, err := filepath.Glob(filepath.Join(dir, "*.zap"))
	if err == nil && len(segments) > 0 {
		err = fmt.Errorf("%s says nothing of %s", rootFile, filepath.Base(segments[0]))
	}
	if err != nil {
		return damage(dir, err)
	}
	return nil
}

// damage is the error for a directory that could not be read: a DamageError, unless the
// cause says nothing about the content.
func damage(dir string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return err
	}
	return &DamageError{dir, err}
}

// checksum checks a segment file, which ends in the CRC-32 of the rest of it. Scorch
// does not check it, and reads files in goroutines whose panics no caller can recover.
func checksum(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyBuffer(sum, io.LimitReader(f, info.Size()-crc32.Size), make([]byte, 256<<10)); err != nil {
		return err
	}
	var want [crc32.Size]byte
	if _, err := io.ReadFull(f, want[:]); err != nil || binary.BigEndian.Uint32(want[:]) != sum.Sum32() {
		return fmt.Errorf("the checksum of %s is wrong", filepath.Base(path))
	}
	return nil
}

// read reads the newest snapshot. There is none if the very first commit was
// interrupted.
func (n *inspection) read(tx *bbolt.Tx) error {
	snapshots := tx.Bucket(util.BoltSnapshotsBucket)
	if snapshots == nil {
		return nil
	}
	newest, _ := snapshots.Cursor().Last()
	if newest == nil {
		return nil
	}
	snapshot := snapshots.Bucket(newest)
	if snapshot == nil {
		return errors.New("no snapshot")
	}
	internal := snapshot.Bucket(util.BoltInternalKey)
	if internal == nil || internal.Get(keyDescribed) == nil {
		return errors.New("it holds other documents")
	}
	n.exists = true
	if err := summed.Unmarshal(internal.Get(keyDescribed), &n.described); err != nil {
		return fmt.Errorf("its definition cannot be read: %w", err)
	}
	return snapshot.ForEachBucket(func(k []byte) error {
		if bytes.Equal(k, util.BoltInternalKey) || bytes.Equal(k, util.BoltMetaDataKey) {
			return nil
		}
		path := snapshot.Bucket(k).Get(util.BoltPathKey)
		if path == nil {
			return errors.New("a segment without its file")
		}
		n.files = append(n.files, string(path))
		return nil
	})
}

// compareFound checks that scorch has opened everything that was found.
// The documents of a segment that scorch leaves out would be missing without an error.
func (c *corpus) compareFound(snap *scorch.IndexSnapshot, found inspection) error {
	var files []string
	for _, s := range snap.Segments() {
		if p, ok := s.Segment().(segment.PersistedSegment); ok {
			files = append(files, filepath.Base(p.Path()))
		}
	}
	slices.Sort(files)
	slices.Sort(found.files)
	if !slices.Equal(files, found.files) {
		return c.damaged(fmt.Errorf("of its files %s only %s can be read", strings.Join(found.files, " "), strings.Join(files, " ")))
	}
	return nil
}
