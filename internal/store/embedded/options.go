package embedded

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/memory"
	"weir/internal/store"
)

// Options of a store. The zero Options are good for production.
// The caller may use its Options again: Open copies them.
type Options struct {
	// FS is the file system of the directory; nil is the operating system's. With
	// vfs.NewMem() nothing outlives the process.
	FS vfs.FS
	// InMemory is FS with vfs.NewMem().
	InMemory bool
	// Observe, when set, is told of each call.
	Observe store.Observer
	// Now is the clock for the times of stream records; nil is time.Now.
	Now func() time.Time
	// Shards is the number of shards of a new stream; 0 is 4. An existing stream keeps
	// its shards.
	Shards int
	// Memory is the memory that the process may use; 0 is memory.Default. It decides
	// the size of caches that are not given.
	Memory memory.Size
	// CacheBytes is for blocks read from disk; 0 is 12 of every 256 MB.
	CacheBytes int64
	// RowCacheBytes is for the rows that were written or read last, and for the filter
	// of keys; 0 is 24 of every 256 MB.
	RowCacheBytes int64
	// TailBytes is for the newest stream records; 0 is 12 of every 256 MB.
	TailBytes int64
	// MemTableBytes is the size of a memtable, of which there are up to four; 0 is 16
	// of every 256 MB, and at most 1 GB.
	MemTableBytes uint64
	// Logger gets Pebble's messages; nil is slog.Default().
	Logger *slog.Logger
	// Fatal is called once, with the reason, when the disk refuses a write or a sync.
	// From then on no result of the store can be relied on. nil prints the reason to
	// stderr and exits with status 3; the directory is then as after kill -9.
	Fatal func(reason string)
	// ID is the id of a store that is made; "" is a random one. An existing store keeps
	// its id.
	ID string
	// Still switches off background work such as compactions, so that the same calls
	// write the same files. It is for simulations.
	Still bool
}

// withDefaults fills in zero options. Sizes of caches are shares of Memory: of every 256 MB, 12 for
// blocks, 24 for rows, 12 for the newest stream records, and 16 for each memtable.
func (o Options) withDefaults() Options {
	if o.InMemory {
		o.FS = vfs.NewMem()
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ID == "" {
		o.ID = rand.Text()
	}
	if o.Shards <= 0 {
		o.Shards = 4
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = o.Memory.Share(12 * memory.MB)
	}
	if o.RowCacheBytes <= 0 {
		o.RowCacheBytes = o.Memory.Share(24 * memory.MB)
	}
	if o.TailBytes <= 0 {
		o.TailBytes = o.Memory.Share(12 * memory.MB)
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = uint64(min(o.Memory.Share(16*memory.MB), 1<<30)) // Pebble takes less than 4 GB
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// fatalFunc returns the function that ends the process when the disk of the directory
// fails.
func (o Options) fatalFunc(dir string) func(reason string) {
	if o.Fatal != nil {
		return o.Fatal
	}
	return func(reason string) {
		fmt.Fprintf(os.Stderr, "\n%s: the store in %s cannot go on: %s\nNothing that was durable is lost. Make room, or mend the disk, and run the same command again.\n",
			filepath.Base(os.Args[0]), dir, reason)
		os.Exit(3)
	}
}

// onlyOnce returns a function that calls f only for its first call, since later reasons
// follow from the first one. Later calls wait until f returns.
func onlyOnce(f func(string)) func(string) {
	var first sync.Once
	return func(reason string) { first.Do(func() { f(reason) }) }
}

// memTables is the maximum number of memtables, in use or being flushed.
const memTables = 4

// pebbleOptions is Pebble's configuration. Its memory is the cache, two to four memtables and
// a few MB. L0 may grow large before it slows writers down, because a bulk load writes
// faster than two cores can compact.
func (o Options) pebbleOptions(lock *pebble.Lock, list *files, j *journal) *pebble.Options {
	log := &pebbleLog{o: o, said: map[string]time.Time{}}
	po := &pebble.Options{
		FS:                          &guard{o.FS, o.Fatal, list}, // by pointer: Pebble compares file systems
		Lock:                        lock,
		Cache:                       pebble.NewCache(o.CacheBytes + 2*int64(o.MemTableBytes)), // memtables count against it
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       16,
		L0StopWritesThreshold:       64,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                memory.Tables(),
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      log,
		DisableAutomaticCompactions: o.Still,
		EventListener: &pebble.EventListener{
			DataCorruption:  log.corrupt,
			BackgroundError: log.background,
			WALCreated:      func(info pebble.WALCreateInfo) { j.beginLog(uint64(info.FileNum)) },
		},
	}
	if o.Still {
		po.DisableTableStats = true
		po.L0StopWritesThreshold = 1 << 20
	}
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		// The last level has nearly all the bytes; the levels before it have nearly all
		// the work.
		cs := pebble.DBCompressionNone
		cs.Levels[len(cs.Levels)-1] = pebble.DBCompressionFastest.Levels[len(cs.Levels)-1]
		return cs
	})
	po.Experimental.SpanPolicyFunc = ownTables
	// Landed rows are in a synced manifest when Land returns, and never in the log.
	po.Experimental.DisableIngestAsFlushable = func() bool { return true }
	for i := range po.Levels {
		po.Levels[i].BlockSize = 8 << 10
		po.Levels[i].IndexBlockSize = 64 << 10
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return po
}

// ownTables keeps each stream in files of its own. These do not overlap, so compactions
// move them instead of rewriting them.
func ownTables(start []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	switch {
	case len(start) == 0 || start[0] < spaceStream:
		end = []byte{spaceStream}
	case start[0] == spaceStream && len(start) >= 3:
		end = keyAfter(bytes.Clone(start[:3]))
	}
	return policy, end, nil
}

// pebbleLog passes on Pebble's messages, but each message at most once a minute.
type pebbleLog struct {
	o Options

	mu   sync.Mutex
	said map[string]time.Time
}

// A message that is repeated within a minute is dropped. So many different messages are
// remembered.
const (
	sayAgain = time.Minute
	maxSaid  = 1000
)

// Infof drops Pebble's messages of its own work.
func (l *pebbleLog) Infof(string, ...any) {}

// Errorf logs an error, once for each text within a while.
func (l *pebbleLog) Errorf(format string, args ...any) {
	l.logOnce(fmt.Sprintf(format, args...))
}

// Fatalf ends the process by Options.Fatal. Pebble calls it where it cannot continue, and expects
// that it does not return.
func (l *pebbleLog) Fatalf(format string, args ...any) { l.o.Fatal(fmt.Sprintf(format, args...)) }

// logOnce logs a message unless the same one was logged a moment ago: a disk that refuses repeats
// itself.
func (l *pebbleLog) logOnce(text string, more ...any) {
	if l.news(text + fmt.Sprint(more...)) {
		l.o.Logger.Error("embedded store: "+text, more...)
	}
}

// news reports whether a message was not logged recently.
func (l *pebbleLog) news(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if at, ok := l.said[text]; ok && now.Sub(at) < sayAgain {
		return false
	}
	if len(l.said) >= maxSaid {
		clear(l.said)
	}
	l.said[text] = now
	return true
}

// corrupt only logs. An operation that reads the damaged block gets the error; all
// others continue.
func (l *pebbleLog) corrupt(info pebble.DataCorruptionInfo) {
	l.logOnce("damaged file", "path", info.Path, "error", info.Details.Error())
}

// background is called when background work has failed. Pebble retries at once, and for
// ever if a table is damaged. background pauses, so that the retries do not keep a
// processor busy.
func (l *pebbleLog) background(err error) {
	l.logOnce("background error: " + err.Error())
	if !l.o.Still {
		time.Sleep(backgroundPause)
	}
}

const backgroundPause = 100 * time.Millisecond
