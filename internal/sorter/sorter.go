// Package sorter sorts more than there is memory for. Pieces that fill the memory are sorted and
// written to a file, one after the other, and are merged when they are read.
package sorter

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// File is where a Sorter keeps values for which it has no memory. Writes append.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Sorter takes values under keys, in any order, and gives them back in the order of their keys,
// and those of one key in the order in which they were added. It belongs to one goroutine.
type Sorter struct {
	// Shorten, if set, is asked of a value that another of the same key follows in its piece how
	// many of its first bytes are needed. The rest may be left out.
	Shorten func(val, next []byte) int

	most int // bytes of a piece
	make func() (File, error)

	buf  []byte // keys and values that are in memory
	refs []ref

	file   File // nil while all is in memory
	out    *bufio.Writer
	at     int64
	pieces []span
}

// ref is a key, and its value behind it, in the buffer. first is bytes of the key, as a number.
type ref struct {
	first    uint64
	at       uint32
	key, val uint32
}

// span is a piece of the file.
type span struct{ from, to int64 }

// refBytes is the memory of a value beside its key and its bytes.
const refBytes = 24

// writeBytes and readBytes are the sizes of buffers: of the file, and of each piece when it is read.
const writeBytes, readBytes = 256 << 10, 32 << 10

// New returns an empty Sorter that has about so many bytes in memory, at most, while it is added
// to. newFile is called when that is not enough; the Sorter closes the file.
func New(most int, newFile func() (File, error)) *Sorter {
	return &Sorter{most: min(most, math.MaxInt32), make: newFile}
}

// Len is how many bytes were added, and are in memory or in the file.
func (s *Sorter) Len() int64 { return s.at + int64(s.Bytes()) }

// Bytes is about how many bytes are in memory.
func (s *Sorter) Bytes() int { return len(s.buf) + refBytes*len(s.refs) }

// Add adds a value, of which it keeps a copy. Call it no more once Sorted was called.
func (s *Sorter) Add(key, val []byte) error {
	if n := len(key) + len(val) + refBytes; s.Bytes()+n > s.most && len(s.refs) > 0 {
		if err := s.writeRun(); err != nil {
			return err
		}
	}
	s.refs = append(s.refs, ref{at: uint32(len(s.buf)), key: uint32(len(key)), val: uint32(len(val))})
	s.buf = append(append(s.buf, key...), val...)
	return nil
}

func (s *Sorter) key(r *ref) []byte { return s.buf[r.at : r.at+r.key] }
func (s *Sorter) val(r *ref) []byte { return s.buf[r.at+r.key : r.at+r.key+r.val] }

// sort sorts the values in memory.
func (s *Sorter) sort() { s.sortFrom(s.refs, 0) }

// sortFrom sorts values whose keys have their first bytes in common. It compares eight bytes at a
// time, which it has beside each other.
// Equal keys stay in the order in which they were added.
func (s *Sorter) sortFrom(refs []ref, skip uint32) {
	for i := range refs {
		refs[i].first = firstOf(s.key(&refs[i])[min(skip, refs[i].key):])
	}
	slices.SortFunc(refs, func(a, b ref) int {
		switch ends, other := a.key <= skip+8, b.key <= skip+8; {
		case a.first != b.first:
			return cmp.Compare(a.first, b.first)
		case ends && other && a.key != b.key:
			return cmp.Compare(a.key, b.key)
		case ends != other:
			if ends {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.at, b.at)
	})
	for from := 0; from < len(refs); {
		to := from + 1
		for to < len(refs) && refs[to].first == refs[from].first {
			to++
		}
		more := from // behind those that end here
		for more < to && refs[more].key <= skip+8 {
			more++
		}
		if to-more > 1 {
			s.sortFrom(refs[more:to], skip+8)
		}
		from = to
	}
}

// firstOf is the first bytes of a key as a number that compares as they do.
func firstOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// writeRun writes the values in memory to the file, sorted.
// The memory is free for the next values. After an error the Sorter is of no more use but to be closed.
func (s *Sorter) writeRun() error {
	if s.file == nil {
		f, err := s.make()
		if err != nil {
			return fmt.Errorf("a file to sort in: %w", err)
		}
		s.file, s.out = f, bufio.NewWriterSize(f, writeBytes)
	}
	s.sort()
	from := s.at
	var head [2 * binary.MaxVarintLen32]byte
	for i := range s.refs {
		r := &s.refs[i]
		if s.Shorten != nil && i+1 < len(s.refs) && bytes.Equal(s.key(r), s.key(&s.refs[i+1])) {
			r.val = uint32(s.Shorten(s.val(r), s.val(&s.refs[i+1])))
		}
		h := binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(r.key)), uint64(r.val))
		if _, err := s.out.Write(h); err != nil {
			return fmt.Errorf("sorting: %w", err)
		}
		if _, err := s.out.Write(s.buf[r.at : r.at+r.key+r.val]); err != nil {
			return fmt.Errorf("sorting: %w", err)
		}
		s.at += int64(len(h)) + int64(r.key) + int64(r.val)
	}
	s.pieces = append(s.pieces, span{from, s.at})
	s.buf, s.refs = s.buf[:0], s.refs[:0]
	return nil
}

// Sorted begins to give back the added values. Close the Sorter afterwards. Of each piece it has 32 KB in
// memory, and not its memory while it was added to. It may be called again.
func (s *Sorter) Sorted() (*Reader, error) {
	if s.file == nil {
		s.sort()
		return &Reader{in: s}, nil
	}
	if len(s.refs) > 0 {
		if err := s.writeRun(); err != nil {
			return nil, err
		}
	}
	s.buf, s.refs = nil, nil
	if s.out != nil {
		if err := s.out.Flush(); err != nil {
			return nil, fmt.Errorf("sorting: %w", err)
		}
		s.out = nil
	}
	r := &Reader{}
	for i, p := range s.pieces {
		c := &cursor{order: i, in: bufio.NewReaderSize(io.NewSectionReader(s.file, p.from, p.to-p.from), readBytes)}
		if err := c.readNext(); err != nil {
			return nil, err
		}
		r.heap = append(r.heap, c)
	}
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.siftDown(i)
	}
	return r, nil
}

// Close gives up the memory and the file.
func (s *Sorter) Close() error {
	s.buf, s.refs, s.pieces, s.at = nil, nil, nil, 0
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file, s.out = nil, nil
	return err
}

// Reader gives back the values of a Sorter.
type Reader struct {
	in *Sorter // in memory
	at int

	heap  []*cursor // the least key first
	begun bool
}

// Next returns the next value and its key, which are valid until the call after it; io.EOF ends them. Another
// error means that the file could not be read, and that values are missing.
func (r *Reader) Next() (key, val []byte, err error) {
	if r.in != nil {
		if r.at == len(r.in.refs) {
			return nil, nil, io.EOF
		}
		ref := &r.in.refs[r.at]
		r.at++
		return r.in.key(ref), r.in.val(ref), nil
	}
	if r.begun && len(r.heap) > 0 {
		switch err := r.heap[0].readNext(); {
		case errors.Is(err, io.EOF):
			last := len(r.heap) - 1
			r.heap[0], r.heap[last] = r.heap[last], nil
			r.heap = r.heap[:last]
		case err != nil:
			return nil, nil, err
		}
		r.siftDown(0)
	}
	r.begun = true
	if len(r.heap) == 0 {
		return nil, nil, io.EOF
	}
	c := r.heap[0]
	return c.key, c.val, nil
}

// siftDown moves a cursor to its place among those below it.
func (r *Reader) siftDown(i int) {
	for {
		least := i
		for _, k := range [...]int{2*i + 1, 2*i + 2} {
			if k < len(r.heap) && r.heap[k].before(r.heap[least]) {
				least = k
			}
		}
		if least == i {
			return
		}
		r.heap[i], r.heap[least] = r.heap[least], r.heap[i]
		i = least
	}
}

// cursor reads one piece.
type cursor struct {
	order    int // of the piece
	in       *bufio.Reader
	both     []byte
	key, val []byte
}

func (c *cursor) before(o *cursor) bool {
	d := bytes.Compare(c.key, o.key)
	return d < 0 || d == 0 && c.order < o.order
}

// readNext reads the next value, io.EOF after the last.
func (c *cursor) readNext() error {
	key, err := binary.ReadUvarint(c.in)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	val := uint64(0)
	if err == nil {
		val, err = binary.ReadUvarint(c.in)
	}
	if err == nil {
		c.both = slices.Grow(c.both[:0], int(key+val))[:key+val]
		_, err = io.ReadFull(c.in, c.both)
	}
	if err != nil {
		return fmt.Errorf("reading what was sorted: %w", err)
	}
	c.key, c.val = c.both[:key], c.both[key:]
	return nil
}
