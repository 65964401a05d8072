package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// bbolt believes the pages of its file. A page that lies below itself makes it read in a
// circle, and a wrong length makes it read past a page, until the memory is full. So all pages
// that are in use are walked before their content is read: each lies within the file, has its
// own number, is used once, and its keys and values are in order and apart.

const (
	pageHead     = 16 // id uint64, flags uint16, count uint16, overflow uint32
	pageElement  = 16 // of a leaf: flags, pos, ksize, vsize uint32; of a branch: pos, ksize uint32, page uint64
	bucketHead   = 16 // page uint64, sequence uint64; of page 0, the page follows
	branchPage   = 0x01
	leafPage     = 0x02
	bucketOfLeaf = 0x01
)

// pages walks the pages of a bbolt file.
type pages struct {
	file     io.ReaderAt
	pageSize uint64
	end      uint64          // the first page that is not in use
	seen     map[uint64]bool // the pages that were walked
}

// checkPages walks the pages that a transaction can reach, without bbolt.
// It reads by ReadAt and follows no pointer out of the file. bbolt maps the file and trusts the bytes that it
// finds there.
func checkPages(db *bbolt.DB, tx *bbolt.Tx) error {
	f, err := os.Open(db.Path())
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := uint64(db.Info().PageSize)
	p := pages{f, size, min(uint64(tx.Size()), uint64(info.Size())) / size, map[uint64]bool{}}
	return p.checkPage(uint64(tx.Cursor().Bucket().Root()))
}

// checkPage checks a page, and those below it.
// A page that is met twice is an error, so a circle ends. Each page is read once.
func (p *pages) checkPage(id uint64) error {
	head := make([]byte, pageHead)
	if id < 2 || id >= p.end { // the first two are not of the tree
		return fmt.Errorf("%s has no page %d", rootFile, id)
	}
	if _, err := p.file.ReadAt(head, int64(id*p.pageSize)); err != nil {
		return err
	}
	many := 1 + uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head) != id || many > p.end-id {
		return fmt.Errorf("page %d of %s is none", id, rootFile)
	}
	for n := id; n < id+many; n++ {
		if p.seen[n] {
			return fmt.Errorf("page %d of %s is in two places", n, rootFile)
		}
		p.seen[n] = true
	}
	b := make([]byte, many*p.pageSize)
	if _, err := p.file.ReadAt(b, int64(id*p.pageSize)); err != nil {
		return err
	}
	if err := p.checkElements(b); err != nil {
		return fmt.Errorf("page %d of %s: %w", id, rootFile, err)
	}
	return nil
}

// checkElements checks the content of a page, and the pages below it.
// Keys lie behind one another in the page, in their order and without overlaps, as bbolt writes
// them; other layouts that bbolt could read are refused.
func (p *pages) checkElements(b []byte) error {
	kind, count := binary.NativeEndian.Uint16(b[8:]), uint64(binary.NativeEndian.Uint16(b[10:]))
	if kind != branchPage && kind != leafPage || kind == branchPage && count == 0 {
		return fmt.Errorf("kind %d with %d keys", kind, count)
	}
	from := pageHead + count*pageElement // where the next key may begin
	if from > uint64(len(b)) {
		return fmt.Errorf("%d keys", count)
	}
	var last []byte
	for n := range count {
		at := pageHead + n*pageElement
		e := b[at : at+pageElement]
		word := func(i int) uint64 { return uint64(binary.NativeEndian.Uint32(e[4*i:])) }
		flags, pos, key, size := word(0), word(1), word(2), word(3)
		if kind == branchPage {
			flags, pos, key, size = 0, word(0), word(1), 0
		}
		begin := at + pos
		if flags > bucketOfLeaf || key == 0 || begin < from || begin+key+size > uint64(len(b)) {
			return fmt.Errorf("key %d lies elsewhere", n)
		}
		name, held := b[begin:begin+key], b[begin+key:begin+key+size]
		if n > 0 && bytes.Compare(last, name) >= 0 {
			return fmt.Errorf("key %d is out of order", n)
		}
		last, from = name, begin+key+size
		var err error
		switch {
		case kind == branchPage:
			err = p.checkPage(binary.NativeEndian.Uint64(e[8:]))
		case flags == bucketOfLeaf:
			err = p.checkBucket(held)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBucket checks a bucket, which has pages or, if it is small, lies in the page of its name.
func (p *pages) checkBucket(b []byte) error {
	if len(b) < bucketHead {
		return fmt.Errorf("a bucket of %d bytes", len(b))
	}
	if id := binary.NativeEndian.Uint64(b); id != 0 {
		return p.checkPage(id)
	}
	if b = b[bucketHead:]; len(b) < pageHead {
		return fmt.Errorf("a bucket of %d bytes", len(b))
	}
	return p.checkElements(b)
}
