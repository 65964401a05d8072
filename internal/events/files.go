package events

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"

	"weir/internal/interrupt"
)

// Files reads recorded files one after another.
// A Files is read once. Its methods other than Consumed are for one goroutine.
type Files struct {
	from    []source
	exports []*Export
	size    int64
	read    atomic.Int64
}

// Open looks the files up, so that a wrong path is an error before anything is read. A
// manifest of an export stands for the export's data files, all of which must exist.
func Open(paths ...string) (*Files, error) {
	from, exports, err := filesOf(paths)
	if err != nil {
		return nil, err
	}
	f := &Files{from: from, exports: exports}
	for _, s := range from {
		path := s.path
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, fmt.Errorf("%s is a directory; name the files in it", path)
		case info.Mode().IsRegular():
			f.size += info.Size()
		}
	}
	return f, nil
}

// Exports returns the exports whose time is known, also those without entries.
func (f *Files) Exports() []*Export { return f.exports }

// Size returns the total size of the files in bytes, as they are stored. Pipes count as 0.
func (f *Files) Size() int64 { return f.size }

// Consumed returns how many of those bytes were read so far. It is safe to call from any
// goroutine.
func (f *Files) Consumed() int64 { return f.read.Load() }

const (
	// A batch has at most so many entries, and about so many bytes; so many batches are decoded ahead. Together they
	// bound the memory that a replay holds of its files.
	batchEntries = 256
	batchBytes   = 1 << 20
	batchesAhead = 4
)

// Batches yields the entries of all files in order, in batches that the caller owns. A
// separate goroutine decodes a few batches ahead; it has ended when the iteration ends. An
// error of Read, or the context's error, comes last.
func (f *Files) Batches(ctx context.Context) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		b := batcher{ctx: ctx, out: make(chan []Entry, batchesAhead)}
		var err error
		go func() {
			defer close(b.out)
			err = f.decodeFiles(&b)
		}()
		defer func() {
			cancel()
			for range b.out { // until the goroutine has ended
			}
		}()
		for batch := range b.out {
			if !yield(batch, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// decodeFiles decodes the files in their order. An error ends it; batches that were sent before stay
// valid.
func (f *Files) decodeFiles(b *batcher) error {
	for _, s := range f.from {
		if err := f.decodeOne(s, b); err != nil {
			return err
		}
	}
	return b.sendBatch()
}

// decodeOne decodes one file into batches. On an error it sends the entries read so far first.
// The file is closed when it returns.
func (f *Files) decodeOne(s source, b *batcher) error {
	file, err := interrupt.Open(b.ctx, s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := s.checkingReader(countingReader{file, &f.read})
	if err = Read(in, s.path, in.countEntry(b.addEntry)); err == nil {
		err = in.checkManifest()
	}
	if err != nil {
		return cmp.Or(b.sendBatch(), err)
	}
	return nil
}

// batcher collects entries into batches and sends them to the iteration.
type batcher struct {
	ctx   context.Context // of the one iteration that this serves
	out   chan []Entry
	batch []Entry
	bytes int64
	last  Location
}

// addEntry adds an entry to the batch and sends the batch when it is full.
// The entries of a batch that was sent belong to its receiver.
func (b *batcher) addEntry(e Entry) error {
	if b.batch == nil {
		b.batch = make([]Entry, 0, batchEntries)
	}
	b.batch = append(b.batch, e)
	// The distance between the beginnings of two entries is nearly the first one's size.
	if n := e.Offset - b.last.Offset; n > 0 {
		b.bytes += n
	}
	b.last = e.Location
	if len(b.batch) < batchEntries && b.bytes < batchBytes {
		return nil
	}
	return b.sendBatch()
}

// sendBatch hands the batch to the reader, and waits while the channel is full. It ends with the
// context.
func (b *batcher) sendBatch() error {
	if len(b.batch) == 0 {
		return b.ctx.Err()
	}
	select {
	case b.out <- b.batch:
		b.batch, b.bytes = nil, 0
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// countingReader adds the number of bytes read to a count.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

// Read counts the records that it read also where it ends with an error.
func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}
