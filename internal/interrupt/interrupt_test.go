package interrupt

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

func TestReader(t *testing.T) {
	text := strings.Repeat("what is written is read. ", 10000)
	for _, from := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		b, err := io.ReadAll(Reader(t.Context(), from))
		if err != nil || string(b) != text {
			t.Errorf("%d bytes of %d, %v", len(b), len(text), err)
		}
	}
	if _, err := io.ReadAll(Reader(t.Context(), iotest.ErrReader(io.ErrClosedPipe))); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestLeft: opening a pipe that nobody writes to, and reading from one that nobody
// writes to any more, end with the context, and stay ended.
func TestLeft(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, fifo); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	from, to := io.Pipe()
	go io.WriteString(to, "some")
	ctx, cancel = context.WithCancel(t.Context())
	r := Reader(ctx, from)
	b := make([]byte, 100)
	if n, err := r.Read(b); string(b[:n]) != "some" || err != nil {
		t.Error(string(b[:n]), err)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	for range 2 {
		if _, err := r.Read(b); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
