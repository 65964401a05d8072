package ingest_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// BenchmarkWrites writes pictures into albums, 256 at once: as commands that are
// read, checked, planned and written, and as rows that are ready.
func BenchmarkWrites(b *testing.B) {
	b.Run("commands", func(b *testing.B) {
		s, m := benchStore(b)
		w := &ingest.Writer{Model: m, Store: s, Brief: true}
		lines := make([][]byte, b.N)
		for i := range lines {
			lines[i] = benchLine(i)
		}
		var cs []ingest.Command
		each256(b, func(from, to int) {
			cs = cs[:0]
			for i := from; i < to; i++ {
				c, err := ingest.ReadCommand(lines[i])
				if err != nil {
					b.Fatal(err)
				}
				cs = append(cs, c)
			}
			for _, r := range w.Do(b.Context(), cs) {
				if r.Err != nil || r.Done != ingest.Created {
					b.Fatal(r)
				}
			}
		})
		must(b, w.Sync(b.Context()))
	})
	b.Run("rows", func(b *testing.B) {
		s, m := benchStore(b)
		table := m.Table("gallery")
		rows := make([]value.Item, b.N)
		for i := range rows {
			rows[i] = benchRow(i)
		}
		each256(b, func(from, to int) {
			ws := make([]store.Write, to-from)
			for i := range ws {
				row := rows[from+i]
				key, _ := table.KeyOf(row)
				ws[i] = store.Write{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}
			}
			out, err := s.Write(b.Context(), ws)
			must(b, err)
			for _, o := range out {
				must(b, o.Err)
			}
		})
		must(b, s.Sync(b.Context()))
	})
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func each256(b *testing.B, do func(from, to int)) {
	b.ReportAllocs()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ResetTimer()
	before := threadTime(b)
	for from := 0; from < b.N; from += 256 {
		do(from, min(b.N, from+256))
	}
	b.ReportMetric(float64(threadTime(b)-before)/float64(b.N), "cpu-ns/op") // of the writer alone
}

func threadTime(b *testing.B) time.Duration {
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_THREAD, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchStore(b *testing.B) (store.Store, *model.Model) {
	m, err := model.Load("gallery")
	must(b, err)
	tables, err := system.Tables([]*model.Model{m})
	must(b, err)
	s, err := embedded.Open(b.TempDir(), tables, embedded.Options{})
	must(b, err)
	b.Cleanup(func() { s.Close() })
	return s, m
}

func benchLine(n int) []byte {
	return fmt.Appendf(nil, `{"op":"create","entity":"AlbumMedia","item":{"albumId":"album-%06d","mediaId":"media-%08d","addedAt":"2026-01-31T12:00:00Z","addedBy":"user-%05d"}}`, n/50, n, n%977)
}

// benchRow is the row that the command makes.
func benchRow(n int) value.Item {
	text := func(name, format string, args ...any) value.Attr {
		return value.Attr{Name: name, Value: value.OfString(fmt.Sprintf(format, args...))}
	}
	return value.NewItem(
		text("PK", "ALBUM#album-%06d", n/50), text("SK", "MEDIA#media-%08d", n), text("GSI1PK", "MEDIA#media-%08d", n), text("GSI1SK", "ALBUM#album-%06d", n/50),
		text("GSI2PK", "MEDIA_ID"), text("GSI2SK", "2026-01-31T12:00:00Z#media-%08d", n),
		text("EntityType", "AlbumMedia"), text("albumId", "album-%06d", n/50), text("mediaId", "media-%08d", n), text("addedAt", "2026-01-31T12:00:00Z"), text("addedBy", "user-%05d", n%977))
}
