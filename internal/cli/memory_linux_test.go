package cli

import (
	"os"
	"runtime/debug"
	"syscall"
	"testing"

	"weir/internal/memory"
	"weir/internal/soaktest"
)

// TestMemoryOutside: what is resident and not Go's, as Pebble's caches are with cgo, is taken from the
// heap; Go's own memory is not.
func TestMemoryOutside(t *testing.T) {
	soaktest.Calm(t) // the race detector has memory that is not Go's, and grows with what is Go's
	limit, growth := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer debug.SetMemoryLimit(limit)
	defer debug.SetGCPercent(growth)
	t.Setenv("GOMEMLIMIT", "")
	touch := func(b []byte) {
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
	}
	const bytes = 64 << 20
	own := make([]byte, bytes)
	touch(own)
	if _, outside := beside(); outside > bytes/4 {
		t.Errorf("%d bytes of Go's memory count as others", outside)
	}
	l := &Limit{}
	l.To(memory.GB)
	before := debug.SetMemoryLimit(-1)
	b, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(b)
	touch(b)
	l.setLimit()
	if less := before - debug.SetMemoryLimit(-1); less < bytes/2 || less > 2*bytes {
		t.Errorf("the heap has %d bytes less beside %d of others", less, bytes)
	}
	own[0] = 2 // it lives until here
}
