package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"weir/internal/summed"
)

// Pebble ends the last log at the first record that it cannot read, because that is
// where a crash cuts a log off. It does so even if that record had been synced and
// another record follows, unless the next one begins in a later block. So each sync
// first writes a mark into the log. The mark says how many of this log's marks are
// known to be on disk by now. The last mark before a store is closed says that it was
// closed. If any mark in a log counts more marks than there are in the readable part of
// the log, then durable data is damaged.
//
// No mark follows the last sync. So before a sync returns, the file SYNCED gets the
// log's number, how many of its marks are on disk, and their CRC-32C. SYNCED is written
// in place and is not synced itself, which would double the cost of a sync. It survives
// the process: after kill -9, all synced data is demanded. After a power failure it may
// be older and then demands less, but never too much.

// errDamagedLog is wrapped by the error for a log whose durable bytes cannot be read.
var errDamagedLog = fmt.Errorf("%w: the log had been durable there", ErrDamaged)

// journal counts the marks of the current log.
type journal struct {
	mu   sync.Mutex
	log  uint64   // its number
	done uint64   // at least this many of its marks are on disk
	note vfs.File // SYNCED, nil until the store is open
}

const (
	syncedFile = "SYNCED"
	noteLen    = 8 + 8 + 4 // log, done, checksum
)

const (
	markSync   = 's'
	markClosed = 'c'
)

var markBegin = []byte("weir ")

const markLen = 5 + 1 + 8 + 8 // markBegin, kind, log, done

// beginLog must be called before anything is written to another log.
func (j *journal) beginLog(log uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log, j.done = log, 0
}

// nextMark is the next mark, and the number of the log for which it was made. By the time
// it is written, Pebble may have switched to another log.
func (j *journal) nextMark(kind byte) (mark []byte, log uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	mark = append(append(mark, markBegin...), kind)
	mark = binary.BigEndian.AppendUint64(mark, j.log)
	return binary.BigEndian.AppendUint64(mark, j.done), j.log
}

// noteMark says that a mark is on disk. A mark that may have been written to the next log
// instead is not counted.
func (j *journal) noteMark(log uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log != log {
		return nil
	}
	j.done++
	return j.writeSynced()
}

// makeSynced makes SYNCED. Call it once the data that the old SYNCED counted is in synced
// tables.
func (j *journal) makeSynced(fs vfs.FS, dir string) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.note, err = fs.Create(fs.PathJoin(dir, syncedFile), vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	return j.writeSynced()
}

// writeSynced writes SYNCED. The caller holds mu.
func (j *journal) writeSynced() error {
	if j.note == nil {
		return nil
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, noteLen), j.log)
	b = binary.BigEndian.AppendUint64(b, j.done)
	_, err := j.note.WriteAt(binary.BigEndian.AppendUint32(b, summed.Sum(b)), 0)
	return err
}

// deleteSynced deletes SYNCED: the list has the files of a closed store.
func (j *journal) deleteSynced(fs vfs.FS, dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.note == nil {
		return nil
	}
	return errors.Join(j.note.Close(), fs.Remove(fs.PathJoin(dir, syncedFile)))
}

// readNote reads SYNCED.
func readNote(fs vfs.FS, dir string) (log, done uint64, err error) {
	path := fs.PathJoin(dir, syncedFile)
	b, err := readWhole(fs, path)
	if err != nil {
		return 0, 0, err
	}
	if len(b) != noteLen || binary.BigEndian.Uint32(b[16:]) != summed.Sum(b[:16]) {
		return 0, 0, fmt.Errorf("%s cannot be read", path)
	}
	return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), nil
}

// mark is a sync's entry in the log: the number of the log, and how many of its marks are
// known to be on disk. A mark of kind markClosed is the last of a store that was closed in order.
type mark struct {
	kind byte
	log  uint64
	done uint64
}

// markIn is the mark in a record of the log; ok is false if the record is no mark.
func markIn(b []byte) (m mark, ok bool) {
	const head = batchrepr.HeaderLen
	if len(b) != head+2+markLen || b[head] != byte(pebble.InternalKeyKindLogData) || b[head+1] != markLen || !bytes.HasPrefix(b[head+2:], markBegin) {
		return m, false
	}
	b = b[head+2+len(markBegin):]
	return mark{b[0], binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])}, true
}

// checkJournal checks the last log of a store that no process has open. After the store
// was closed, nothing of it may be missing; after a crash, nothing that a mark or
// SYNCED counts. Pebble itself checks the logs before the last. doubt says which bytes cannot
// be known, although the store may be opened.
func checkJournal(fs vfs.FS, dir string, closed bool) (doubt, err error) {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	var noted, done uint64
	if !closed {
		if noted, done, doubt = readNote(fs, dir); doubt != nil {
			doubt = fmt.Errorf("whether all of the last sync reached the disk is unknown: %w", doubt)
		}
	}
	last := logs[len(logs)-1]
	if noted > uint64(last.Num) {
		return nil, fmt.Errorf("%w: log %d is missing, which had been synced", errDamagedLog, noted)
	}
	for _, log := range logs {
		least := uint64(0)
		if uint64(log.Num) == noted {
			least = done
		}
		if log.Num != last.Num && least == 0 {
			continue
		}
		torn, err := checkLog(fs, log, closed && log.Num == last.Num, least)
		if err != nil {
			return nil, err
		}
		doubt = errors.Join(doubt, torn)
	}
	return doubt, nil
}

// checkLog checks a log that must have at least this many marks. torn says which part is
// dropped at its end, which no sync is known to have covered.
func checkLog(fs vfs.FS, log wal.LogicalLog, closed bool, least uint64) (torn, err error) {
	_, path := log.SegmentLocation(log.NumSegments() - 1)
	b, err := readWhole(fs, path)
	if err != nil {
		return nil, err
	}
	seen, good, at, end := readLog(b, uint64(log.Num))
	counted, any := markCounts(b, uint64(log.Num))
	switch {
	case max(counted, least) > seen:
	case closed && any && !good:
	case closed && !errors.Is(end, io.EOF): // the log cannot be read to its end
	case errors.Is(end, io.EOF):
		return nil, nil
	default:
		return fmt.Errorf("%s ends in a write that is not whole: %d bytes from about byte %d on, which no sync is known to have covered, are dropped", path, int64(len(b))-at, at), nil
	}
	return nil, fmt.Errorf("%w: %s cannot be read from about byte %d on", errDamagedLog, path, at)
}

// readLog counts the marks up to the place where the log ends or cannot be read. good
// says that the last mark says that the store was closed.
func readLog(b []byte, log uint64) (marks uint64, good bool, at int64, err error) {
	r := record.NewReader(bytes.NewReader(b), numberAs(pebble.WALCreateInfo{}.FileNum, log))
	var one bytes.Buffer
	for {
		at = r.Offset()
		next, err := r.Next()
		if err == nil {
			one.Reset()
			_, err = one.ReadFrom(next)
		}
		if err != nil {
			return marks, good, at, err
		}
		m, ok := markIn(one.Bytes())
		if good = ok && m.kind == markClosed; ok {
			marks++
		}
	}
}

// numberAs converts a number to a type of Pebble's that is not exported.
func numberAs[T ~uint64](_ T, n uint64) T { return T(n) }

// A log consists of blocks. A block consists of chunks, which never cross its end. A
// chunk has a checksum of everything after the length, the length of the content, a
// kind, the log's number, an offset (kinds from 9 on), and the content. Chunks of kinds
// 5 and 9 hold a whole record.
const (
	logBlock    = 32 << 10
	chunkFirst  = 5
	chunkOffset = 9
	chunkKinds  = 13
)

// markCounts returns the highest count in any mark of a log, and whether there is a mark at
// all. It reads every chunk that is readable, and skips the others.
func markCounts(b []byte, log uint64) (most uint64, any bool) {
	for ; len(b) > 0; b = b[min(len(b), logBlock):] {
		block := b[:min(len(b), logBlock)]
		for len(block) > 0 {
			content, rest := chunkAt(block, uint32(log))
			if rest == nil {
				block = block[1:]
				continue
			}
			if m, ok := markIn(content); ok {
				any = true
				if m.log == log {
					most = max(most, m.done)
				}
			}
			block = rest
		}
	}
	return most, any
}

// chunkAt returns the content of the chunk of the log that begins here, and the place that
// follows it. The result is nil if no chunk with a whole record begins here.
func chunkAt(b []byte, log uint32) (content, rest []byte) {
	if len(b) < 11 || b[6] < chunkFirst || b[6] >= chunkKinds || binary.LittleEndian.Uint32(b[7:]) != log {
		return nil, nil
	}
	head := 11
	if b[6] >= chunkOffset {
		head = 19
	}
	n := head + int(binary.LittleEndian.Uint16(b[4:]))
	if n > len(b) {
		return nil, nil
	}
	c := summed.Sum(b[6:n])
	if (c>>15|c<<17)+0xa282ead8 != binary.LittleEndian.Uint32(b) {
		return nil, nil
	}
	if b[6] == chunkFirst || b[6] == chunkOffset {
		content = b[head:n]
	}
	return content, b[n:]
}
