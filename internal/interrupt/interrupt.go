// Package interrupt lets work that cannot be told to stop be left: a read of a pipe
// without a writer, or of a terminal without input. A reader that is left ends with the
// process.
package interrupt

import (
	"context"
	"io"
	"os"
)

// Do does something, and gives ctx's error instead when ctx is done before. The work then goes on in its
// goroutine, and its result is dropped, so it must hold nothing that the caller frees.
func Do[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Open opens a file to be read until ctx is done. Files of a disk are read as they
// are; opening a pipe, and each reading of one, ends with ctx.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return os.Open(path)
	}
	f, err := Do(ctx, func() (*os.File, error) { return os.Open(path) })
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{Reader(ctx, f), f}, nil
}

// Reader reads from r until ctx is done. A reading that is under way then is left, with
// the bytes that it may still get.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	return &reader{ctx: ctx, from: r}
}

// reader reads ahead into a buffer of its own: a reading that is left may still write into it,
// but never into its caller's buffer. One goroutine may call Read at a time.
type reader struct {
	ctx  context.Context // of the one who reads: io.Reader has no place for it
	from io.Reader
	buf  [32 << 10]byte // of the reading that is under way
	left []byte         // read and not yet given
	err  error          // behind the rest
}

// Read gives bytes that were read and not yet given, and reads again only when there are none. An error,
// also that of the context, comes after all that was read before it, and is the answer from then on.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := Do(r.ctx, func() (int, error) { return r.from.Read(r.buf[:]) })
		r.left, r.err = r.buf[:n], err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}
