package events

import (
	"bytes"
	"io"
)

const (
	// chunkSize is how many bytes are read together. A record keeps its chunk in memory.
	chunkSize = 256 << 10
	// maxUnit limits the size of one record. It is far more than two images of 400 KB take
	// in any form.
	maxUnit = 32 << 20
)

// window is the part of a file that is in memory. Records share this memory, so bytes that
// were read are never overwritten: a window that moves on uses a new buffer.
type window struct {
	src  io.Reader // nil when buf is all there is
	buf  []byte
	base int64 // where buf begins in the file
	err  error // why src ended, nil for its proper end

	line    int64 // of the byte at counted
	counted int64
}

// readMore drops the bytes before keep and reads more of the file. It reports false at the end of
// the file.
func (w *window) readMore(keep int) bool {
	w.lineAt(w.base + int64(keep))
	held := w.buf[keep:]
	w.base += int64(keep)
	if w.buf = held; w.src == nil {
		return false
	}
	// Reading a quarter more at least bounds the cost of units that are read again
	// from their beginning each time.
	want := len(held) / 4
	if cap(held)-len(held) < max(want, 4<<10) {
		w.moveKept(len(held) + want)
	}
	return w.readBytes(max(want, 1))
}

// moveKept copies the kept bytes into a new buffer with room for n bytes.
func (w *window) moveKept(n int) {
	w.buf = append(make([]byte, 0, max(chunkSize, n)), w.buf...)
}

// dropBefore drops the bytes before keep, and releases a buffer that had to be large for them.
func (w *window) dropBefore(keep int) {
	w.lineAt(w.base + int64(keep))
	w.buf = w.buf[keep:]
	w.base += int64(keep)
	w.moveKept(len(w.buf))
}

// readBytes reads at least want more bytes, if there are that many. It reports false at the end of the
// file or after an error, which it keeps in err.
func (w *window) readBytes(want int) bool {
	before := len(w.buf)
	for idle := 0; len(w.buf)-before < want; idle++ {
		n, err := w.src.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		if err == nil && idle > 100 {
			err = io.ErrNoProgress
		}
		if err != nil {
			w.src = nil
			if err != io.EOF {
				w.err = err
			}
			break
		}
		if n > 0 {
			idle = 0
		}
	}
	return len(w.buf) > before
}

// endOffset returns the offset after the last byte that was read.
func (w *window) endOffset() int64 { return w.base + int64(len(w.buf)) }

// lineAt returns the line of the byte at offset. offset must not be before that of the
// previous call.
func (w *window) lineAt(offset int64) int64 {
	if offset > w.counted {
		w.line += int64(bytes.Count(w.buf[w.counted-w.base:offset-w.base], []byte{'\n'}))
		w.counted = offset
	}
	return w.line
}
