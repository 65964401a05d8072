package embedded

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"go.etcd.io/bbolt"

	"weir/internal/parallel"
	"weir/internal/summed"
)

// Which documents of a segment are deleted, and which segments there are, stands in
// pages of root.bolt that have no checksum. So an index also holds the sum of a hash of
// each id and stamp that it shows, tombstones included (described). A commit writes the
// sum together with the documents, and merging changes neither. An index without the
// checksum of a closed one is read to its last document, and the sum must come out: a
// document that came back, is hidden, or is missing with its segment changes it.

// content is the sum of an index's documents.
type content uint64

// of is the part of a document in the sum.
func (st stamp) of(id string) content {
	sum := sha256.Sum256(append(st.bytes(), id...))
	return content(binary.BigEndian.Uint64(sum[:]))
}

// described is the description that an index has of itself, with a checksum, since its latest commit.
type described struct {
	made
	Content content
	Commits commits
	Filled  bool // it has all rows that existed when it was made
}

// describedBy returns the description that an index has of itself.
func describedBy(snap *scorch.IndexSnapshot) (is described, err error) {
	b, err := snap.GetInternal(keyDescribed)
	if err == nil {
		err = summed.Unmarshal(b, &is)
	}
	return is, err
}

// checkContent opens an index without writing, and compares its content with the one that was
// found in its directory. It reads every document's stamp.
func (c *corpus) checkContent(found inspection) error {
	if err := checkCommits(c.dir, found.Commits); err != nil {
		return c.damaged(err)
	}
	ix, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path": c.dir, "bolt_timeout": lockWait.String(), "read_only": true,
	}, nil)
	if err != nil {
		return err
	}
	s := ix.(*scorch.Scorch)
	if err := s.Open(); err != nil {
		return c.damaged(err)
	}
	return errors.Join(c.compareContent(s, found), s.Close())
}

// compareContent does the work of checkContent on an index that is open for reading.
// It reads every document once, with several goroutines. An index that was closed in order is not
// read: its checksum says the same.
func (c *corpus) compareContent(s *scorch.Scorch, found inspection) error {
	snap, err := snapshotOf(s)
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := c.compareFound(snap, found); err != nil {
		return err
	}
	segments := snap.Segments()
	sums := make([]content, len(segments))
	err = parallel.Do(len(segments), analysts, func(i int) error {
		return c.guardCall(func() (err error) {
			sums[i], err = heldBy(segments[i])
			return err
		})
	})
	if err != nil {
		return err
	}
	var sum content
	for _, n := range sums {
		sum += n
	}
	if sum != found.Content {
		return c.damaged(fmt.Errorf("%s does not say which documents are deleted as the last commit left it", rootFile))
	}
	return nil
}

// heldBy is the sum of the documents that a segment shows.
func heldBy(seg *scorch.SegmentSnapshot) (sum content, err error) {
	err = visitStamps(seg, seg.DocNumbersLive(), func(id string, st stamp) { sum += st.of(id) })
	return sum, err
}

// visitStamps calls yield with the id and the stamp of documents of a segment.
// A stamp that cannot be parsed is yielded as the zero stamp, so it changes the sum and is found.
func visitStamps(seg *scorch.SegmentSnapshot, docs *roaring.Bitmap, yield func(id string, st stamp)) error {
	for it := docs.Iterator(); it.HasNext(); {
		var id string
		var st stamp
		err := seg.VisitDocument(uint64(it.Next()), func(name string, _ byte, b []byte, _ []uint64) bool {
			switch name {
			case "_id":
				id = string(b)
			case fieldStamp:
				st, _ = parseStamp(b)
			}
			return true
		})
		if err != nil {
			return err
		}
		yield(id, st)
	}
	return nil
}

// renewRoot replaces root.bolt by a copy. The list of free pages has no checksum either,
// and a wrong one makes bbolt overwrite pages in use. A copy has a new list. A crash
// leaves the old file or the new one.
func (c *corpus) renewRoot() error {
	from, to := filepath.Join(c.dir, rootFile), filepath.Join(c.dir, rootNew)
	defer os.Remove(to) // after a failure
	err := copyRoot(from, to)
	var disk syscall.Errno
	if err != nil && !errors.As(err, &disk) {
		return c.damaged(err)
	}
	if err == nil {
		err = os.Rename(to, from)
	}
	if err == nil {
		err = syncDir(c.dir)
	}
	return err
}

// copyRoot copies the content of a database.
// The copy has no free pages, so a wrong list of free pages in the original does no harm.
func copyRoot(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	src, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := bbolt.Open(to, 0o600, &bbolt.Options{Timeout: lockWait})
	if err != nil {
		return err
	}
	return errors.Join(bbolt.Compact(dst, src, 0), dst.Close())
}
