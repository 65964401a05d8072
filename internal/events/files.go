package events

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"

	"weir/internal/interrupt"
)

// Files are recorded files that are read one after another.
type Files struct {
	from []source
	size int64
	read atomic.Int64
}

// Open looks at the files, so that a wrong path is said before anything is read. The
// manifests of an export stand for its data files, all of which must be there.
func Open(paths ...string) (*Files, error) {
	from, err := sources(paths)
	if err != nil {
		return nil, err
	}
	f := &Files{from: from}
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

// Size is how many bytes the files have, as they are stored; pipes count nothing.
func (f *Files) Size() int64 { return f.size }

// Consumed is how many of those bytes were read; it may be asked at any time.
func (f *Files) Consumed() int64 { return f.read.Load() }

const (
	batchEntries = 256
	batchBytes   = 1 << 20
	batchesAhead = 4
)

// Batches gives the entries of all files in order, in batches that nobody else
// has. They are decoded in a goroutine of their own, a few batches ahead. An
// error, of the kinds that Read returns or the context's, comes last.
func (f *Files) Batches(ctx context.Context) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		b := batcher{ctx: ctx, out: make(chan []Entry, batchesAhead)}
		var err error
		go func() {
			defer close(b.out)
			err = f.decode(&b)
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

func (f *Files) decode(b *batcher) error {
	for _, s := range f.from {
		if err := f.decodeOne(s, b); err != nil {
			return err
		}
	}
	return b.flush()
}

func (f *Files) decodeOne(s source, b *batcher) error {
	file, err := interrupt.Open(b.ctx, s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := s.reader(countingReader{file, &f.read})
	if err = Read(in, s.path, in.add(b.add)); err == nil {
		err = in.end()
	}
	if err != nil {
		if ferr := b.flush(); ferr != nil {
			return ferr
		}
		return err
	}
	return nil
}

// batcher gathers entries and sends them on.
type batcher struct {
	ctx   context.Context // of the one iteration that this serves
	out   chan []Entry
	batch []Entry
	bytes int64
	last  Location
}

func (b *batcher) add(e Entry) error {
	if b.batch == nil {
		b.batch = make([]Entry, 0, batchEntries)
	}
	b.batch = append(b.batch, e)
	// What lies between the beginnings of entries is what they take, nearly.
	if n := e.Offset - b.last.Offset; n > 0 {
		b.bytes += n
	}
	b.last = e.Location
	if len(b.batch) < batchEntries && b.bytes < batchBytes {
		return nil
	}
	return b.flush()
}

func (b *batcher) flush() error {
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

// countingReader adds what is read to a count.
type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}
