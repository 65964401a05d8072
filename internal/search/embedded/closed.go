package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// The pages of root.bolt have no checksums, and what is in them says which documents of
// a segment are deleted: a bit there brings back documents or hides them. So an index that
// is closed leaves a checksum of the whole file. Opening checks it and deletes it before
// scorch may write. An index whose process was killed has none; of that, segments are
// checked, and that all of them are there.

const (
	closedFile = "CLOSED"
	closedNew  = "CLOSED.new"
)

// closing is what the file holds, behind a line with its own checksum.
type closing struct {
	Bytes int64  `json:"bytes"` // of root.bolt
	Sum   uint32 `json:"sum"`   // CRC-32C
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func rootOf(dir string) (c closing, err error) {
	f, err := os.Open(filepath.Join(dir, rootFile))
	if err != nil {
		return c, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, f)
	return closing{n, sum.Sum32()}, err
}

// leave writes the checksum of an index that scorch has closed.
func leave(dir string) error {
	c, err := rootOf(dir)
	if err != nil {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, closedNew)
	if err := writeSynced(path, append(fmt.Appendf(nil, "%08x\n", crc32.Checksum(b, castagnoli)), b...)); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(dir, closedFile)); err != nil {
		return err
	}
	return syncDir(dir)
}

func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkClosed checks the index against what it was when it was closed, if it was.
func checkClosed(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, closedFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var want closing
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	sum, err := strconv.ParseUint(string(line), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(rest, castagnoli) || json.Unmarshal(rest, &want) != nil {
		return fmt.Errorf("%s cannot be read", closedFile)
	}
	got, err := rootOf(dir)
	if err == nil && got != want {
		err = fmt.Errorf("%s is not as it was when the index was closed", rootFile)
	}
	return err
}

// reopened says that the index may be written from now on.
func reopened(dir string) error {
	err := os.Remove(filepath.Join(dir, closedFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}
