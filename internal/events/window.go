package events

import (
	"bytes"
	"io"
)

const (
	// chunkSize is how much is read, and by a record kept alive, together.
	chunkSize = 256 << 10
	// maxUnit bounds what one record may take: far above what two images of
	// 400 KB can come to, in any way of writing them.
	maxUnit = 32 << 20
)

// window is the stretch of a file that is being looked at. Records share its
// memory, so bytes once read are never written to again: a window that moves on
// goes into a new buffer.
type window struct {
	src  io.Reader // nil when buf is all there is
	buf  []byte
	base int64 // where buf begins in the file
	err  error // why src ended, nil for its proper end

	line    int64 // of the byte at counted
	counted int64
}

// more drops what is before keep and reads on. It reports false when there is
// nothing more.
func (w *window) more(keep int) bool {
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
		w.move(len(held) + want)
	}
	return w.read(max(want, 1))
}

// move puts what is held into a buffer of its own, with room for n bytes.
func (w *window) move(n int) {
	w.buf = append(make([]byte, 0, max(chunkSize, n)), w.buf...)
}

// leave drops what is before keep, and lets go of a buffer that had to be large
// for it.
func (w *window) leave(keep int) {
	w.lineAt(w.base + int64(keep))
	w.buf = w.buf[keep:]
	w.base += int64(keep)
	w.move(len(w.buf))
}

func (w *window) read(want int) bool {
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

// end is the offset after the last byte that was read.
func (w *window) end() int64 { return w.base + int64(len(w.buf)) }

// lineAt is the line of the byte at offset, which is not before the last one
// asked for.
func (w *window) lineAt(offset int64) int64 {
	if offset > w.counted {
		w.line += int64(bytes.Count(w.buf[w.counted-w.base:offset-w.base], []byte{'\n'}))
		w.counted = offset
	}
	return w.line
}
