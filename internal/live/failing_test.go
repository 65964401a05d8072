package live

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// failing is a disk of which something fails for a while, and that knows how many of its
// files are open.
type failing struct {
	machine
	fails string // read, cut or sync
	open  int
}

var errDisk = errors.New("the disk says no")

func (d *failing) may(what string) error {
	if d.fails == what {
		return errDisk
	}
	return nil
}

func (d *failing) Create(path string) (File, error) { return d.file(d.machine.Create(path)) }
func (d *failing) Open(path string) (File, error)   { return d.file(d.machine.Open(path)) }

func (d *failing) file(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	d.open++
	return failingFile{f, d}, nil
}

type failingFile struct {
	File
	on *failing
}

func (f failingFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.on.may("read"); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

func (f failingFile) Truncate(size int64) error {
	return errors.Join(f.on.may("cut"), f.File.Truncate(size))
}

func (f failingFile) Sync() error { return errors.Join(f.on.may("sync"), f.File.Sync()) }

func (f failingFile) Close() error {
	f.on.open--
	return f.File.Close()
}

// TestSpoolThatCannotBeRead: what a disk does not read for a moment is not thrown away;
// the stream may have forgotten it. However often a spool cannot be opened, none of its
// files stays open.
func TestSpoolThatCannotBeRead(t *testing.T) {
	disk, dir := &failing{}, filepath.Join(t.TempDir(), "t", "s")
	s, err := openSpool(disk, dir, 0, at(0), quiet)
	must(t, err)
	must(t, s.append(records(1, 100)))
	s.close()
	cannot := func(what string) {
		t.Helper()
		disk.fails = what
		if _, err := openSpool(disk, dir, 0, at(0), quiet); !errors.Is(err, errDisk) {
			t.Errorf("with a disk that fails to %s: %v", what, err)
		}
		if disk.fails = ""; disk.open != 0 {
			t.Errorf("%d files are left open by a disk that fails to %s", disk.open, what)
		}
	}
	cannot("read")
	cannot("sync")
	s, err = openSpool(disk, dir, 0, at(0), quiet)
	must(t, err)
	got, _ := all(t, s, 0, 1000)
	same(t, got, records(1, 100))
	seg := s.segments[0]
	_, err = seg.file.WriteAt([]byte("torn"), seg.size)
	must(t, err)
	s.close()
	cannot("cut")
}

// unbegun is a store in which nobody can note that a shard was begun.
type unbegun struct{ store.Store }

func (s unbegun) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	for i := range ws {
		if strings.HasPrefix(ws[i].Ref.Key.Partition.Text(), "check|") {
			return nil, errDisk
		}
	}
	return s.Store.Write(ctx, ws)
}

// TestShardThatCannotBeBegun says that of a shard that was taken and given back no file
// of its spool stays open.
func TestShardThatCannotBeBegun(t *testing.T) {
	m, err := model.Load("gallery")
	must(t, err)
	table := m.Tables[0].Table
	table.Stream = true
	db, err := embedded.Open("store", []store.Table{owntable.Table(), table}, embedded.Options{FS: vfs.NewMem(), Shards: 1})
	must(t, err)
	defer db.Close()
	disk := &failing{}
	r := New(&runner.Runner{Kinds: kinds.All(), Model: m, Store: unbegun{db}, Now: time.Now}, Options{Dir: t.TempDir(), Disk: disk, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	shards, err := db.Shards(t.Context(), table.Name)
	must(t, err)
	s, err := openSpool(disk, r.spoolDir(place{table.Name, shards[0].ID}), 0, at(0), quiet)
	must(t, err)
	must(t, s.append(records(1, 3)))
	s.close()
	if err := r.round(t.Context()); !errors.Is(err, errDisk) {
		t.Errorf("begun: %v", err)
	}
	if disk.open != 0 {
		t.Errorf("%d files are left open", disk.open)
	}
}
