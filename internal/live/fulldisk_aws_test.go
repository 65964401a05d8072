package live

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// filling is a disk that is full for a while.
type filling struct {
	machine
	full atomic.Bool
}

func (d *filling) Create(path string) (File, error) { return d.file(d.machine.Create(path)) }
func (d *filling) Open(path string) (File, error)   { return d.file(d.machine.Open(path)) }

func (d *filling) file(f File, err error) (File, error) {
	if err == nil && d.full.Load() {
		f.Close()
		return nil, syscall.ENOSPC
	}
	return fillingFile{f, d}, err
}

type fillingFile struct {
	File
	on *filling
}

func (f fillingFile) WriteAt(b []byte, at int64) (int, error) {
	if f.on.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

// heard is what was logged. It may be written and read at the same time.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// TestFullDiskOnDynamoDB follows the recipe of a full disk: the process says so, counts nothing twice and nothing
// short, and goes on by itself once there is room.
func TestFullDiskOnDynamoDB(t *testing.T) {
	m, err := model.Load("gallery")
	must(t, err)
	table := m.Tables[0]
	table.Stream = true
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), []store.Table{owntable.Table(), table.Table}, dynamodb.Options{})
	run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	disk, said := &filling{}, &heard{}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- Follow(ctx, run, Options{Dir: t.TempDir(), Disk: disk, Lease: time.Second, Poll: 20 * time.Millisecond, List: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(said, nil))})
	}()
	put := func(attrs ...string) {
		t.Helper()
		var row value.Item
		for i := 0; i < len(attrs); i += 2 {
			row = row.With(value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
		}
		key, _ := table.KeyOf(row)
		out, err := db.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}})
		must(t, err)
		must(t, out[0].Err)
	}
	picture := func(id int) {
		t.Helper()
		put("PK", "ALBUM#a", "SK", fmt.Sprint("MEDIA#", id), "EntityType", "AlbumMedia", "albumId", "a", "mediaId", fmt.Sprint(id), "addedAt", "2025-01-01T00:00:00Z")
	}
	album := store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString("ALBUM#a"), Sort: value.OfString("METADATA")}}
	shows := func() string {
		row, err := store.GetRow(t.Context(), db, album)
		must(t, err)
		return value.Scalar(row.Get("mediaCount"))
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s; the album shows %q\n%s", what, shows(), said.text())
			}
		}
	}
	put("PK", "ALBUM#a", "SK", "METADATA", "EntityType", "Album", "id", "a", "title", "A", "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z")
	picture(1)
	await("the first picture does not count", func() bool { return shows() == "1" })
	disk.full.Store(true)
	picture(2)
	picture(3)
	await("it does not say that the disk is full", func() bool { return strings.Contains(said.text(), syscall.ENOSPC.Error()) })
	disk.full.Store(false)
	await("it does not go on", func() bool { return shows() == "3" })
	cancel()
	must(t, <-over)
}
