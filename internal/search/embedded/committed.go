package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/internal/summed"
)

// root.bolt keeps the snapshot before the newest one too. If damage hides the newest as a
// whole, the one before it looks like an index that was killed earlier. So each commit has a
// number, which the index holds (described), and the file COMMITTED has the number of the
// last commit that was acknowledged. After a kill the index must not be behind the file.
//
// The file is overwritten in place, in one write, and not synced: after a power cut it may be
// behind the index, which says nothing, but it is never ahead of it.

const committedFile = "COMMITTED"

// commits numbers the commits of an index; 0 is the one that makes it.
type commits uint64

// note is the content of the file.
func (n commits) note() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(n))
	return binary.BigEndian.AppendUint32(b, summed.Sum(b))
}

// noteCommits makes the file durable before the index is written, and keeps it open.
func (c *corpus) noteCommits() (err error) {
	if c.options.InMemory {
		return nil
	}
	if err := replaceFile(c.dir, committedFile, c.commits.note()); err != nil {
		return err
	}
	c.committed, err = os.OpenFile(filepath.Join(c.dir, committedFile), os.O_WRONLY, 0)
	return err
}

// writeCommitNumber writes the number of the last commit, before its changes are acknowledged.
func (c *corpus) writeCommitNumber() error {
	if c.committed == nil {
		return nil
	}
	_, err := c.committed.WriteAt(c.commits.note(), 0)
	return err
}

// checkCommits checks that an index that was not closed has the last commit that was
// acknowledged. A crash before the file was made leaves an index without a commit.
func checkCommits(dir string, found commits) error {
	b, err := os.ReadFile(filepath.Join(dir, committedFile))
	if errors.Is(err, os.ErrNotExist) && found == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if len(b) != 12 || summed.Sum(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return fmt.Errorf("the checksum of %s is wrong", committedFile)
	}
	if last := commits(binary.BigEndian.Uint64(b)); found < last {
		return fmt.Errorf("%s has the commit %d, and the last one was %d", rootFile, found, last)
	}
	return nil
}
