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

// Pebble ends the last log at the first record that it cannot read: that is where a
// crash tore it. It says nothing when the record had been synced, and another was
// after it, unless that one begins in a later block. So each sync writes a mark into
// the log first, which says how many of this log's marks are known to be on disk by
// now, and the last before a store is closed says that. When a log has fewer marks up
// to where it cannot be read than a mark anywhere in it counts, then something is
// damaged that was durable.
//
// The last sync is followed by no mark. Its number is in the file SYNCED, before the sync
// returns: the log's number, how many of its marks are on disk, and their CRC-32C. That
// file is written in place and is not synced itself, which would double what a sync costs.
// It survives the process, so that after kill -9 all that was synced is demanded. After a
// power cut it may be older, and promises less; it never promises more.

// errDamagedLog is about bytes of a log that had been durable.
var errDamagedLog = fmt.Errorf("%w: the log had been durable there", ErrDamaged)

// journal counts the marks of the log that is written now.
type journal struct {
	mu   sync.Mutex
	log  uint64   // its number
	done uint64   // how many of its marks are on disk, at the least
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

const markLen = 5 + 1 + 8 + 8 // what it begins with, kind, log, done

// begin is called before anything is written to another log.
func (j *journal) begin(log uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log, j.done = log, 0
}

// mark is the next mark, for the log given, if it gets there.
func (j *journal) mark(kind byte) (mark []byte, log uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	mark = append(append(mark, markBegin...), kind)
	mark = binary.BigEndian.AppendUint64(mark, j.log)
	return binary.BigEndian.AppendUint64(mark, j.done), j.log
}

// synced says that a mark is on disk. One that may have come into the next log
// instead is not counted.
func (j *journal) synced(log uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log != log {
		return nil
	}
	j.done++
	return j.write()
}

// start makes SYNCED, when what the one before told of is in synced tables.
func (j *journal) start(fs vfs.FS, dir string) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.note, err = fs.Create(fs.PathJoin(dir, syncedFile), vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	return j.write()
}

// write writes SYNCED. The caller holds mu.
func (j *journal) write() error {
	if j.note == nil {
		return nil
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, noteLen), j.log)
	b = binary.BigEndian.AppendUint64(b, j.done)
	_, err := j.note.WriteAt(binary.BigEndian.AppendUint32(b, summed.Sum(b)), 0)
	return err
}

// end removes SYNCED: the files of a closed store are listed.
func (j *journal) end(fs vfs.FS, dir string) error {
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

type mark struct {
	kind byte
	log  uint64
	done uint64
}

// markIn is the mark that a record of the log is.
func markIn(b []byte) (m mark, ok bool) {
	const head = batchrepr.HeaderLen
	if len(b) != head+2+markLen || b[head] != byte(pebble.InternalKeyKindLogData) || b[head+1] != markLen || !bytes.HasPrefix(b[head+2:], markBegin) {
		return m, false
	}
	b = b[head+2+len(markBegin):]
	return mark{b[0], binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])}, true
}

// checkJournal looks at the last log of a store that nobody has open. After a store
// was closed nothing of it may be missing; after a crash, nothing that a mark or SYNCED
// tells of. The logs before the last are Pebble's to check. doubt is what cannot be known
// of a store that may be opened.
func checkJournal(fs vfs.FS, dir string, closed bool) (doubt, err error) {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	var noted, done uint64
	if !closed {
		if noted, done, doubt = readNote(fs, dir); doubt != nil {
			doubt = fmt.Errorf("it cannot be known whether all of the last sync is there: %w", doubt)
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

// checkLog checks a log that has so many marks at the least. torn says what of its end
// is dropped, since no sync is known to have covered it.
func checkLog(fs vfs.FS, log wal.LogicalLog, closed bool, least uint64) (torn, err error) {
	_, path := log.SegmentLocation(log.NumSegments() - 1)
	b, err := readWhole(fs, path)
	if err != nil {
		return nil, err
	}
	seen, good, at, end := readLog(b, uint64(log.Num))
	counted, any := counts(b, uint64(log.Num))
	switch {
	case max(counted, least) > seen:
	case closed && any && !good:
	case closed && !errors.Is(end, io.EOF): // a log that cannot be read to its end
	case errors.Is(end, io.EOF):
		return nil, nil
	default:
		return fmt.Errorf("%s ends in a write that is not whole: %d bytes from about byte %d on, which no sync is known to have covered, are dropped", path, int64(len(b))-at, at), nil
	}
	return nil, fmt.Errorf("%w: %s cannot be read from about byte %d on", errDamagedLog, path, at)
}

// readLog counts the marks up to where the log ends, or cannot be read. It is good
// when the last one says that the store was closed.
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

// numberAs is a number in a type of Pebble's that has no name outside.
func numberAs[T ~uint64](_ T, n uint64) T { return T(n) }

// A log is blocks of chunks, which do not go over the end of a block. A chunk is a
// checksum of all behind the length, the content's length, a kind, the log's number,
// in kinds from 9 on an offset, and the content. Kinds 5 and 9 have a whole record.
const (
	logBlock    = 32 << 10
	chunkFirst  = 5
	chunkOffset = 9
	chunkKinds  = 13
)

// counts is the most that a mark anywhere in a log says, and whether there is any
// mark. It reads what can be read, whatever is between.
func counts(b []byte, log uint64) (most uint64, any bool) {
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

// chunkAt is the content of the log's chunk that begins here, when that is a whole
// record, and what follows it; nil when no chunk does.
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
