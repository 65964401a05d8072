package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestDamagedRow: bytes that are no row are an error that names table and key,
// for that row alone.
func TestDamagedRow(t *testing.T) {
	ctx := context.Background()
	s := openMem(t, things())
	do(t, s, put("a", "good", "kind", "k", "at", "1"), put("b", "bad", "kind", "k", "at", "2"))
	tab := s.tables["things"]
	key := appendRowKey(nil, tab, ref("b", "bad").Key)
	for _, bytes := range []string{"", "\xff", "\x05\x01", "\x01\x02PK\x04\xff"} {
		failtest.On(t, s.db.Set(key, []byte(bytes), pebble.NoSync))
		s.cache.clear()
		_, err := s.Get(ctx, []store.Ref{ref("a", "good"), ref("b", "bad")})
		wantDamage(t, "get", err)
		_, err = s.Query(ctx, store.Query{Table: "things", Partition: val("b")})
		wantDamage(t, "query", err)
		_, err = s.Query(ctx, store.Query{Table: "things", Index: "kind", Partition: val("k")})
		wantDamage(t, "query of an index", err)
		out, err := s.Write(ctx, []store.Write{put("a", "good", "n", 0), put("b", "bad"), put("b", "other")})
		if err != nil || out[0].Err != nil || out[2].Err != nil {
			t.Errorf("writes beside it: %v, %v, %v", err, out[0].Err, out[2].Err)
		}
		wantDamage(t, "write", out[1].Err)
		wantDamage(t, "transact", s.Transact(ctx, []store.Write{put("b", "bad")}))
	}
	if get(t, s, "a", "good") == nil {
		t.Error("a good row is gone")
	}
	do(t, s, put("a", "good", "n", 1))
}

func wantDamage(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, value.ErrCorrupt) || !strings.Contains(err.Error(), "things") || !strings.Contains(err.Error(), `"b", "bad"`) {
		t.Errorf("%s: error %v", what, err)
	}
}

func TestDamagedRecord(t *testing.T) {
	s := open(t, "data", []store.Table{things()}, Options{FS: vfs.NewMem(), Shards: 1})
	do(t, s, put("a", "1"), put("a", "2"))
	sh := shardsOf(t, s)[0].ID
	key := appendRecordKey(nil, s.tables["things"], 1, 2)
	failtest.On(t, s.db.Set(key, []byte("\x03rubbish"), pebble.NoSync))
	s.tail.noteLost(2)
	_, err := s.Read(context.Background(), "things", sh, events.Position{}, 10)
	if !errors.Is(err, errRecordForm) || !strings.Contains(err.Error(), "table things") || !strings.Contains(err.Error(), "record 2") {
		t.Errorf("error %v", err)
	}
	if page, err := s.Read(context.Background(), "things", sh, events.Position{}, 1); err != nil || len(page.Records) != 1 {
		t.Errorf("%d records before it, %v", len(page.Records), err)
	}
}

// TestDamagedFirstRows: nor do rows that cannot be read stop a store from being opened that
// looks whether it has any.
func TestDamagedFirstRows(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, []store.Table{things()}, Options{Logger: quiet})
	failtest.On(t, err)
	for i := range 200 {
		do(t, s, put("a", string(rune('A'+i)), "pad", pad(1000)))
	}
	failtest.On(t, s.db.Flush())
	sound, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	failtest.On(t, err)
	for i := range 20 {
		do(t, s, put("a", string(rune('A'+i)), "pad", pad(900)))
	}
	failtest.On(t, errors.Join(s.db.Flush(), s.Close()))
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(files) <= len(sound) {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if slices.Contains(sound, name) {
			continue
		}
		b, err := os.ReadFile(name)
		failtest.On(t, err)
		b[40] ^= 0x40
		failtest.On(t, os.WriteFile(name, b, 0o644))
	}
	readDamaged(t, dir)
}

// readDamaged opens a store of which some rows cannot be read, and reads those that can.
func readDamaged(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir, []store.Table{things()}, Options{Logger: quiet, Fatal: func(reason string) { t.Error("fatal:", reason) }})
	failtest.On(t, err)
	defer s.Close()
	bad := 0
	for i := range 200 {
		if _, err := s.Get(context.Background(), []store.Ref{ref("a", string(rune('A'+i)))}); err != nil {
			bad++
			if !strings.Contains(err.Error(), "things") {
				t.Errorf("error %v", err)
			}
		}
	}
	if bad == 0 || bad == 200 {
		t.Errorf("%d of 200 reads met the damage", bad)
	}
}

// TestFailingDisk: whatever file the disk refuses to write, to sync or to make, the
// process ends through Fatal, with the reason; nothing is passed over, and nothing is
// said to be on disk from then on.
func TestFailingDisk(t *testing.T) {
	for _, fails := range []struct {
		file string
		ops  []errorfs.OpKind
	}{
		{".log", []errorfs.OpKind{errorfs.OpFileWrite}},
		{".log", []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}},
		{".log", []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}},
		{filesNew, []errorfs.OpKind{errorfs.OpFileWrite}},
		{filesNew, []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}},
		{filesNew, []errorfs.OpKind{errorfs.OpCreate}},
		{".sst", []errorfs.OpKind{errorfs.OpFileWrite}},
		{".sst", []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}},
	} {
		t.Run(fmt.Sprint(fails.file, fails.ops), func(t *testing.T) { failingDisk(t, fails.file, fails.ops) })
	}
}

func failingDisk(t *testing.T, file string, ops []errorfs.OpKind) {
	inject := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, file) && slices.Contains(ops, op.Kind) {
			return syscall.ENOSPC
		}
		return nil
	})}
	reasons := make(chan string, 10)
	s, err := Open("data", []store.Table{things()}, Options{FS: errorfs.Wrap(vfs.NewMem(), inject), Logger: quiet, MemTableBytes: 64 << 10, Fatal: func(reason string) {
		reasons <- reason
		select {} // it must not return
	}})
	failtest.On(t, err)
	do(t, s, put("a", "b"))
	inject.On()
	errs := make(chan error, 1)
	go func() {
		for n := range 1000 {
			ws := []store.Write{put("a", fmt.Sprint(n), "pad", pad(1000))}
			if _, err := s.Write(context.Background(), ws); err != nil {
				errs <- err
				return
			}
		}
		errs <- s.Sync(context.Background())
	}()
	select {
	case err := <-errs:
		if file == ".log" {
			t.Errorf("it goes on: %v", err)
			return
		}
	case reason := <-reasons:
		if !strings.Contains(reason, "no space left on device") || !strings.Contains(reason, file) {
			t.Errorf("reason %q", reason)
		}
		return
	}
	if reason := <-reasons; !strings.Contains(reason, "no space left on device") { // a memtable is written in the background
		t.Errorf("reason %q", reason)
	}
}

// TestDamagedTableIsSaidOnce: a damaged table, which work in the background meets again
// and again, is not said again and again.
func TestDamagedTableIsSaidOnce(t *testing.T) {
	var heard atomic.Int64
	l := &pebbleLog{o: Options{Logger: slog.New(counting{quiet.Handler(), &heard}), Still: true}, said: map[string]time.Time{}}
	for range 50 {
		l.background(errors.New("table 5 is damaged"))
		l.Errorf("table %d is damaged", 7)
	}
	if n := heard.Load(); n != 2 {
		t.Errorf("it was said %d times", n)
	}
	for n := range 3 * maxSaid {
		l.Errorf("table %d", n)
	}
	if len(l.said) > maxSaid {
		t.Errorf("%d texts are kept", len(l.said))
	}
}

// counting counts what is logged.
type counting struct {
	slog.Handler
	n *atomic.Int64
}

func (counting) Enabled(context.Context, slog.Level) bool { return true }

func (c counting) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}
