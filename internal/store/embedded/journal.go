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

// errDamagedLog is about bytes of a log that had been durable.
var errDamagedLog = fmt.Errorf("%w: the log had been durable there", ErrDamaged)

// journal counts the marks of the log that is written now.
type journal struct {
	mu   sync.Mutex
	log  uint64 // its number
	done uint64 // how many of its marks are on disk, at the least
}

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
func (j *journal) synced(log uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log == log {
		j.done++
	}
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
// was closed nothing of it may be missing; after a crash, nothing that a mark tells
// of. The logs before the last are Pebble's to check.
func checkJournal(fs vfs.FS, dir string, closed bool) error {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return err
	}
	last := logs[len(logs)-1]
	_, path := last.SegmentLocation(last.NumSegments() - 1)
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	seen, good, at, err := readLog(b, uint64(last.Num))
	counted, any := counts(b, uint64(last.Num))
	switch {
	case counted > seen:
	case closed && any && !good:
	case closed && !errors.Is(err, io.EOF): // a log that cannot be read to its end
	default:
		return nil
	}
	return fmt.Errorf("%w: %s cannot be read from about byte %d on", errDamagedLog, path, at)
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
