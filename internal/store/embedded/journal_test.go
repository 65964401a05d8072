package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store"
)

// lastLog is the bytes of the newest log of the store in "data", to be changed.
func lastLog(t *testing.T, mem *vfs.MemFS) []byte {
	t.Helper()
	names, err := mem.List("data")
	failtest.On(t, err)
	names = slices.DeleteFunc(names, func(n string) bool { return path.Ext(n) != ".log" })
	b, err := mem.UnsafeGetFileDataBuffer("data/" + slices.Max(names))
	failtest.On(t, err)
	return b
}

// logged is a disk on which a store wrote, with a sync after each few writes, and how
// long the log was after each sync. Its last writes are not synced.
func logged(t *testing.T, rows int, closes bool) (mem *vfs.MemFS, synced []int, records int) {
	t.Helper()
	mem = vfs.NewCrashableMem()
	s, err := Open("data", []store.Table{things()}, Options{FS: mem, Logger: quiet, Still: true})
	failtest.On(t, err)
	for n := range rows {
		do(t, s, put("p", fmt.Sprint(n), "kind", "k", "at", fmt.Sprint(n), "pad", pad(n%7*100)))
		if n%5 == 4 && n < rows-5 {
			failtest.On(t, s.Sync(context.Background()))
			synced, records = append(synced, len(lastLog(t, mem))), n+1
		}
	}
	if closes {
		failtest.On(t, s.Close())
		return mem, synced, rows
	}
	return mem, synced, records
}

// TestFlippedLog: a flipped bit in a part of the log that was durable, and that another
// sync followed, never goes unnoticed: the store is refused, or has everything.
func TestFlippedLog(t *testing.T) {
	soaktest.Calm(t)
	for _, rows := range []int{30, 400} {
		for _, closes := range []bool{false, true} {
			mem, synced, _ := logged(t, rows, closes)
			upTo := synced[len(synced)-2] // no mark counts the last sync
			if closes {
				upTo = len(lastLog(t, mem))
			}
			for _, at := range rand.New(rand.NewPCG(1, 1)).Perm(upTo)[:150] {
				disk := mem.CrashClone(vfs.CrashCloneCfg{})
				lastLog(t, disk)[at] ^= 1 << (at % 8)
				s, err := Open("data", []store.Table{things()}, Options{FS: disk, Logger: quiet})
				if err == nil {
					t.Fatalf("%d rows, closed %v: nobody sees that byte %d of %d is another; %d records", rows, closes, at, upTo, len(allRecords(t, s, "things")))
				}
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "put back a copy") {
					t.Fatal(err)
				}
				if _, again := Open("data", []store.Table{things()}, Options{FS: disk, Logger: quiet}); again == nil {
					t.Fatal("the second time it opens")
				}
			}
		}
	}
}

// TestTornLog: wherever the log ends after its synced part, and whatever is there, the
// store opens with everything that was synced.
func TestTornLog(t *testing.T) {
	mem, synced, promised := logged(t, 60, false)
	end := synced[len(synced)-1]
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		disk := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		b := lastLog(t, disk)
		switch rng.IntN(3) {
		case 0:
			clear(b[end+rng.IntN(len(b)-end+1):])
		case 1:
			if at := end + rng.IntN(len(b)-end+1); at < len(b) {
				b[at] ^= 1 << rng.IntN(8)
			}
		default:
			if at := end + rng.IntN(len(b)-end+1); at < len(b) {
				clear(b[at:min(len(b), at+rng.IntN(600))])
			}
		}
		s, err := Open("data", []store.Table{things()}, Options{FS: disk, Logger: quiet})
		failtest.On(t, err)
		verify(t, s)
		if n := len(allRecords(t, s, "things")); n < promised {
			t.Fatalf("%d records, %d were synced", n, promised)
		}
		failtest.On(t, s.Close())
	}
}
