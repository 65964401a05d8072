package live

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// A spool keeps the records that were read of one shard until every group has applied them.
// It is a directory of segment files. Each is named by the position after which it begins
// and consists of frames (frame.go), each record once and in order:
//
//	000…0123.seg  000…4711.seg  end
//
// The file end exists if the shard was read to its end. What append wrote survives a crash
// of the machine. A page that the crash tore, or that is damaged otherwise, is cut off
// together with all that follows it when the spool is opened; these records are read from
// the stream again. If they have expired there, that is a gap.
// A spool has one writer, its holding; consumers read it at the same time.
type spool struct {
	disk    Disk
	dir     string
	segment int64 // size at which a segment is full
	log     *slog.Logger
	begun   bool // it had been written to before it was opened

	mu       sync.Mutex
	segments []*segment
	last     events.Position // of the last record, or the one after which the first comes
	// applied only rises. Segments that end at or before it are deleted, except the last.
	applied events.Position // up to which every group has applied
	// ended says that the shard's end was read and is durable; nothing is appended after it.
	ended  bool
	closed bool
}

// segment is one file of a spool. Its marks are the offsets of some of its frames.
// A segment is never changed but at its end, and not at all once another follows it.
type segment struct {
	path  string
	after events.Position
	last  events.Position
	file  File
	size  int64
	// marks are some positions with their offsets in the file, ascending, so a read begins near its
	// place.
	marks []mark
}

// mark is the offset of a frame and the position after which that frame's record comes.
type mark struct {
	after  events.Position
	offset int64
}

const (
	segmentBytes = 32 << 20
	suffix       = ".seg"
	endFile      = "end"
)

// openSpool opens the spool of a shard that every group has applied up to a position. It
// removes files that do not continue from that position without a gap. What it keeps is
// durable when it returns. A segment grows to about the given number of bytes, 0 for
// segmentBytes.
func openSpool(disk Disk, dir string, segment int64, applied events.Position, log *slog.Logger) (*spool, error) {
	s := &spool{disk: disk, dir: dir, segment: cmp.Or(segment, segmentBytes), log: log}
	if err := s.load(applied); err != nil {
		s.close()
		return nil, fmt.Errorf("opening the spool %s: %w", dir, err)
	}
	if n := len(s.segments); n > 0 && s.segments[0].after.Compare(applied) <= 0 && applied.Compare(s.last) <= 0 {
		s.applied = applied
		return s, nil
	}
	if len(s.segments) > 0 {
		log.Info("a spool does not go on from what is applied; it is removed, and the stream is read from there",
			"dir", dir, "from", s.segments[0].after, "to", s.last, "applied", applied)
	}
	s.close()
	if err := disk.RemoveAll(dir); err != nil {
		return nil, err
	}
	return &spool{disk: disk, dir: dir, segment: s.segment, log: log, begun: s.begun, last: applied, applied: applied}, disk.MkdirAll(dir)
}

// load opens the segments, beginning with the one that contains the position, as long as
// each continues where the one before it ends. It removes the others.
func (s *spool) load(applied events.Position) error {
	names, err := s.disk.List(s.dir)
	if err != nil {
		return err
	}
	var afters []events.Position // sorted, as their names are
	for _, name := range names {
		if text, ok := strings.CutSuffix(name, suffix); ok {
			after, err := events.ParsePosition(text)
			if err != nil {
				return err
			}
			afters = append(afters, after)
		}
	}
	first := sort.Search(len(afters), func(i int) bool { return afters[i].Compare(applied) > 0 }) - 1
	whole := true
	s.begun = first >= 0
	for i, after := range afters {
		path := s.path(after)
		if i < first || !whole || len(s.segments) > 0 && after != s.last {
			if i >= first {
				s.log.Warn("a file of a spool does not go on from the one before it; it is removed, and the stream is read again from there",
					"file", path, "begins after", after, "read again after", s.last)
			}
			whole = whole && i < first
			if err := s.disk.Remove(path); err != nil {
				return err
			}
			continue
		}
		seg, good, err := openSegment(s.disk, path, after)
		if err != nil {
			return err
		}
		if !good {
			s.log.Warn("a file of a spool is torn or damaged; it is cut off there, and the stream is read again from there",
				"file", path, "offset", seg.size, "read again after", seg.last)
		}
		s.segments, s.last, whole = append(s.segments, seg), seg.last, good
	}
	if n := len(s.segments); n > 0 { // the process that wrote it may have died before its sync
		if err := s.segments[n-1].file.Sync(); err != nil {
			return err
		}
	}
	s.ended, err = s.hasEnd()
	return err
}

// hasEnd reports whether the shard was read to its end: the file end exists and names the
// last record. If it names another one, the spool was cut off, and reading goes on.
func (s *spool) hasEnd() (bool, error) {
	if len(s.segments) == 0 {
		return false, nil
	}
	f, err := s.disk.Open(filepath.Join(s.dir, endFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	at, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	if err == nil {
		err = f.Sync()
	}
	ended := err == nil && string(at) == s.last.String()
	if err == nil && !ended {
		s.log.Warn("a spool is not read to the end that its file names, or that file is damaged; the stream is read again",
			"file", filepath.Join(s.dir, endFile), "offset", 0, "names", string(at), "read again after", s.last)
	}
	return ended, errors.Join(err, f.Close())
}

// path is the file of a segment, named by the position behind which it begins, so that names sort
// as positions do.
func (s *spool) path(after events.Position) string { return filepath.Join(s.dir, padded(after)+suffix) }

// openSegment reads through a segment. good is false if the file was cut off behind its
// last whole frame. A file whose read fails is left as it is.
func openSegment(disk Disk, path string, after events.Position) (seg *segment, good bool, err error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, false, err
	}
	seg = &segment{path: path, after: after, last: after, file: f}
	if good, err = seg.load(); err == nil && !good {
		if err = f.Truncate(seg.size); err == nil {
			err = f.Sync() // else the bytes may reappear, with durable segments behind them
		}
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return seg, good, nil
}

// load reads a segment up to its end, or up to the first frame that is damaged or out of
// order; then good is false.
func (seg *segment) load() (good bool, err error) {
	r := frameReader{r: bufio.NewReaderSize(io.NewSectionReader(seg.file, 0, math.MaxInt64), 1<<20)}
	for {
		rec, err := r.next()
		switch {
		case err == io.EOF:
			return true, nil
		case errors.Is(err, errFrame), err == nil && rec.Position.Compare(seg.last) <= 0:
			return false, nil
		case err != nil:
			return false, err
		}
		if n := len(seg.marks); n == 0 || seg.size-seg.marks[n-1].offset > markBytes {
			seg.marks = append(seg.marks, mark{seg.last, seg.size})
		}
		seg.last, seg.size = rec.Position, r.offset
	}
}

// markBytes is the approximate distance between the marks of a segment.
const markBytes = 256 << 10

// append adds records that come after all others in the spool. They are durable when it
// returns; after an error none of them is in the spool.
func (s *spool) append(records []events.Record) error {
	seg, err := s.current()
	if err != nil {
		return err
	}
	var b []byte
	for i := range records {
		b = appendFrame(b, &records[i])
	}
	if _, err = seg.file.WriteAt(b, seg.size); err == nil {
		err = seg.file.Sync()
	}
	if err != nil {
		return errors.Join(err, seg.file.Truncate(seg.size))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(seg.marks); n == 0 || seg.size-seg.marks[n-1].offset > markBytes {
		seg.marks = append(seg.marks, mark{seg.last, seg.size})
	}
	seg.size += int64(len(b))
	seg.last = records[len(records)-1].Position
	s.last = seg.last
	return nil
}

// current is the segment to write to; it begins a new one if the last is full. Only the
// reader of the shard calls it.
func (s *spool) current() (*segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.segments); n > 0 && s.segments[n-1].size < s.segment {
		return s.segments[n-1], nil
	}
	path := s.path(s.last)
	f, err := s.disk.Create(path)
	if err != nil {
		return nil, err
	}
	seg := &segment{path: path, after: s.last, last: s.last, file: f}
	s.segments = append(s.segments, seg)
	return seg, nil
}

// padded writes a position so that file names sort as positions do.
func padded(p events.Position) string {
	s := p.String()
	return strings.Repeat("0", max(0, 40-len(s))) + s
}

// end records that the shard was read to its end. That is durable when end returns without
// an error.
func (s *spool) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.disk.Create(filepath.Join(s.dir, endFile))
	if err != nil {
		return err
	}
	if _, err = f.WriteAt([]byte(s.last.String()), 0); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	s.ended = err == nil
	return err
}

// position is the position of the last record.
func (s *spool) position() (last events.Position, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.ended
}

// kept returns after which record the files begin, and up to which one every group has applied.
func (s *spool) kept() (after, applied events.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 {
		return s.applied, s.applied
	}
	return s.segments[0].after, s.applied
}

// read returns records after a position, from one segment at a time. The error is
// runner.ErrElsewhere if the spool is closed, and wraps store.ErrTrimmed if the spool
// begins later than the position.
func (s *spool) read(table string, after events.Position, limit int) (out store.Records, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return out, runner.ErrElsewhere
	}
	if after.Compare(s.last) >= 0 {
		return store.Records{End: s.ended}, nil
	}
	at := sort.Search(len(s.segments), func(i int) bool { return s.segments[i].last.Compare(after) > 0 })
	if at == len(s.segments) || after.Compare(s.segments[0].after) < 0 {
		return out, fmt.Errorf("the spool %s has nothing after %v: %w", s.dir, after, store.ErrTrimmed)
	}
	seg := s.segments[at]
	from := sort.Search(len(seg.marks), func(i int) bool { return seg.marks[i].after.Compare(after) > 0 }) - 1
	offset := seg.marks[max(from, 0)].offset
	r := frameReader{r: bufio.NewReaderSize(io.NewSectionReader(seg.file, offset, seg.size-offset), int(min(256<<10, seg.size-offset)))}
	for size := 0; len(out.Records) < limit && size < store.PageBytes; {
		rec, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", seg.path, err)
		}
		if rec.Position.Compare(after) > 0 {
			rec.Table = table
			out.Records = append(out.Records, rec)
			size += rec.Size()
		}
	}
	if n := len(out.Records); n > 0 {
		last := out.Records[n-1].Position == s.last
		out.End, out.More = s.ended && last, !last
	}
	return out, nil
}

// spooled returns the records behind a position and up to another one that are in the files of a
// directory, as far as these go on from each other. all says that they go on at least that far.
// It changes no file, and the spool may be open.
func spooled(disk Disk, dir, table string, after, to events.Position) (out []events.Record, all bool, err error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, false, err
	}
	var begin []events.Position // where each segment begins, sorted, as their names are
	for _, name := range names {
		if text, ok := strings.CutSuffix(name, suffix); ok {
			at, err := events.ParsePosition(text)
			if err != nil {
				return nil, false, err
			}
			begin = append(begin, at)
		}
	}
	last := after
	for i, at := range begin {
		if i+1 < len(begin) && begin[i+1].Compare(after) <= 0 {
			continue // all of it comes before
		}
		if at.Compare(last) > 0 || all {
			break
		}
		if out, all, err = segmentRange(disk, filepath.Join(dir, padded(at)+suffix), last, to, out); err != nil {
			return nil, false, err
		}
		if len(out) > 0 {
			last = out[len(out)-1].Position
		}
	}
	for i := range out {
		out[i].Table = table
	}
	return out, all, nil
}

// segmentRange adds the records of a segment in a range, up to the first frame that is damaged
// or out of order. all says that the segment has a record at the end of the range or behind it.
// It adds none if the file has been removed.
func segmentRange(disk Disk, path string, after, to events.Position, out []events.Record) (_ []events.Record, all bool, err error) {
	f, err := disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	r := frameReader{r: bufio.NewReaderSize(io.NewSectionReader(f, 0, math.MaxInt64), 256<<10)}
	for last := (events.Position{}); ; {
		rec, err := r.next()
		switch {
		case err == io.EOF, errors.Is(err, errFrame):
			return out, false, nil
		case err != nil:
			return nil, false, err
		case rec.Position.Compare(last) <= 0:
			return out, false, nil
		}
		last = rec.Position
		if last.Compare(after) > 0 && last.Compare(to) <= 0 {
			out = append(out, rec)
		}
		if last.Compare(to) >= 0 {
			return out, true, nil
		}
	}
}

// trim removes the segments, except the last, of which every group has applied every record.
func (s *spool) trim(upTo events.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = upTo
	for len(s.segments) > 1 && s.segments[0].last.Compare(upTo) <= 0 {
		if err := s.disk.Remove(s.segments[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.segments[0].file.Close()
		s.segments = slices.Delete(s.segments, 0, 1)
	}
	return nil
}

// close closes the files. Later reads return runner.ErrElsewhere.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segments {
		seg.file.Close()
	}
	s.segments, s.closed = nil, true
}
