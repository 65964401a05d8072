package embedded

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// FuzzReopen damages the end of the log as a power cut does, behind what was synced
// or inside it: it is cut off, a byte of it is flipped, something else stands there.
// The store opens with a beginning of what was written, in which rows, indexes and
// streams agree, and with all that was synced before the damage; or it says that its
// files are damaged.
func FuzzReopen(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, byte(4), uint16(0), uint16(0), byte(0), []byte{})
	f.Add([]byte{9, 19, 29, 39, 49, 1, 11}, byte(2), uint16(40), uint16(0), byte(0), []byte{})
	f.Add([]byte{200, 100, 50, 25, 12, 6, 3}, byte(7), uint16(0), uint16(10), byte(1), []byte{})
	f.Add([]byte{5, 5, 5, 5}, byte(0), uint16(7), uint16(0), byte(0), []byte("rubbish"))
	f.Add([]byte{5, 5, 5, 5}, byte(9), uint16(0), uint16(0), byte(0), make([]byte, 64))
	f.Fuzz(func(t *testing.T, script []byte, synced byte, cut, at uint16, flip byte, tail []byte) {
		script = script[:min(len(script), 30)]
		disk := vfs.NewMem()
		sizes := runScript(t, disk, script, int(synced))
		log, content := newestLog(t, disk)
		content = content[:sizes[len(script)]] // what Close adds is not of the crash
		damage := len(content)
		if n := damage - sizes[0]; cut > 0 && n > 0 {
			damage -= int(cut) % (n + 1)
			content = content[:damage]
		}
		if n := len(content) - sizes[0]; flip != 0 && n > 0 {
			place := len(content) - 1 - int(at)%n
			content[place] ^= flip
			damage = min(damage, place)
		}
		rewrite(t, disk, log, append(content, tail...))
		kept := 0
		for i := range script {
			if i < int(synced) && sizes[i+1] <= damage {
				kept = i + 1
			}
		}
		checkReopened(t, disk, script, kept)
	})
}

// runScript makes a write of each byte, syncs after so many, and tells how long the
// log was after each.
func runScript(t *testing.T, disk vfs.FS, script []byte, synced int) []int {
	t.Helper()
	s, err := Open("data", []store.Table{things()}, Options{FS: disk, Logger: quiet, Shards: 1})
	failtest.On(t, err)
	ctx := context.Background()
	failtest.On(t, s.Sync(ctx))
	length := func() int { _, b := newestLog(t, disk); return len(b) }
	sizes := []int{length()}
	for i, b := range script {
		do(t, s, scripted(b))
		if i < synced {
			failtest.On(t, s.Sync(ctx))
		}
		sizes = append(sizes, length())
	}
	failtest.On(t, s.Close())
	return sizes
}

func scripted(b byte) store.Write {
	pk, sk := fmt.Sprint("p", b%3), fmt.Sprint("s", b/3%3)
	if b%5 == 0 {
		return del(pk, sk)
	}
	return put(pk, sk, "kind", fmt.Sprint("k", b%2), "at", fmt.Sprint(b), "pad", strings.Repeat("x", int(b)))
}

func newestLog(t *testing.T, disk vfs.FS) (name string, content []byte) {
	t.Helper()
	names, err := disk.List("data")
	failtest.On(t, err)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(names)
	name = path.Join("data", names[len(names)-1])
	f, err := disk.Open(name)
	failtest.On(t, err)
	defer f.Close()
	if content, err = io.ReadAll(f); err != nil {
		t.Fatal(err)
	}
	return name, content
}

func rewrite(t *testing.T, disk vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	failtest.On(t, err)
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	failtest.On(t, f.Close())
}

func checkReopened(t *testing.T, disk vfs.FS, script []byte, kept int) {
	t.Helper()
	s, err := Open("data", []store.Table{things()}, Options{FS: disk, Logger: quiet})
	if err != nil {
		if !strings.Contains(err.Error(), "data") {
			t.Fatalf("the error does not say where: %v", err)
		}
		return
	}
	defer s.Close()
	verify(t, s)
	rows := map[string]value.Item{}
	same := func() bool {
		there := allRows(t, s, s.tables["things"])
		for id, row := range there {
			if !value.EqualItems(rows[id], row) {
				return false
			}
		}
		return len(there) == len(rows)
	}
	found := kept == 0 && same()
	for i, b := range script {
		w := scripted(b)
		id := string(appendRowKey(nil, s.tables["things"], w.Ref.Key))
		if rows[id] = w.Put; w.Delete {
			delete(rows, id)
		}
		found = found || i+1 >= kept && same()
	}
	if !found {
		t.Fatalf("%d writes were synced before the damage, and the rows are none of a later state", kept)
	}
	do(t, s, put("after", "crash"))
	verify(t, s)
}
