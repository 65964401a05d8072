package embedded

import (
	"bytes"
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
	"weir/internal/openfiles"
)

// Options of a store; the zero Options are good for production.
type Options struct {
	// FS is where the directory is; nil is the file system. With vfs.NewMem()
	// nothing outlives the process.
	FS vfs.FS
	// Now dates stream records; nil is the clock.
	Now func() time.Time
	// Shards is how many shards a new stream gets; 0 is 4. A stream that exists
	// keeps those it has.
	Shards int
	// Memory is what the process may have; 0 is memory.Default. Caches that are not
	// given are shares of it.
	Memory memory.Size
	// CacheBytes holds blocks read from disk; 0 is 12 of every 256 MB.
	CacheBytes int64
	// RowCacheBytes holds rows that were written or read last, and which keys have
	// rows; 0 is 24 of every 256 MB.
	RowCacheBytes int64
	// TailBytes holds the newest stream records; 0 is 12 of every 256 MB.
	TailBytes int64
	// MemTableBytes holds what was written last, up to four times over; 0 is 16 of every
	// 256 MB, and 1 GB at the most.
	MemTableBytes uint64
	// Logger gets what the key-value store reports; nil is slog.Default().
	Logger *slog.Logger
	// Fatal is called once, with the reason, when the disk refuses to write or to
	// sync: what the store does from then on is worth nothing. nil says so on stderr
	// and exits with status 3; the directory then is as after kill -9.
	Fatal func(reason string)
	// Still has nothing happen beside what is asked for, so that the same calls write
	// the same files: nothing is compacted. It is for simulations.
	Still bool
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Now == nil {
		o.Now = time.Now
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

// fatal is what ends the process when the disk of the directory fails.
func (o Options) fatal(dir string) func(reason string) {
	if o.Fatal != nil {
		return o.Fatal
	}
	return func(reason string) {
		fmt.Fprintf(os.Stderr, "\n%s: the store in %s cannot go on: %s\nNothing that was durable is lost. Make room, or mend the disk, and run the same command again.\n",
			filepath.Base(os.Args[0]), dir, reason)
		os.Exit(3)
	}
}

// once calls f for the first of several reasons, which come of it. The others wait for
// it to end.
func once(f func(string)) func(string) {
	var first sync.Once
	return func(reason string) { first.Do(func() { f(reason) }) }
}

// memTables is how many memtables there may be, in use and being flushed.
const memTables = 4

// pebble is the key-value store's configuration. Its memory is the cache, two to
// four memtables and a few MB; L0 may grow far before it slows writers, because a
// load writes faster than two cores compact.
func (o Options) pebble(lock *pebble.Lock, list *files, j *journal) *pebble.Options {
	log := &pebbleLog{o: o, said: map[string]time.Time{}}
	po := &pebble.Options{
		FS:                          guard{o.FS, o.Fatal, list},
		Lock:                        lock,
		CacheSize:                   o.CacheBytes + 2*int64(o.MemTableBytes), // memtables count against it
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       16,
		L0StopWritesThreshold:       64,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                openfiles.Tables(),
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      log,
		DisableAutomaticCompactions: o.Still,
		EventListener: &pebble.EventListener{
			DataCorruption:  log.corrupt,
			BackgroundError: log.background,
			WALCreated:      func(info pebble.WALCreateInfo) { j.begin(uint64(info.FileNum)) },
		},
	}
	if o.Still {
		po.DisableTableStats = true
		po.L0StopWritesThreshold = 1 << 20
	}
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		// The last level has nearly all the bytes, those before it nearly all the work.
		cs := pebble.DBCompressionNone
		cs.Levels[len(cs.Levels)-1] = pebble.DBCompressionFastest.Levels[len(cs.Levels)-1]
		return cs
	})
	po.Experimental.SpanPolicyFunc = ownTables
	for i := range po.Levels {
		po.Levels[i].BlockSize = 8 << 10
		po.Levels[i].IndexBlockSize = 64 << 10
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return po
}

// ownTables keeps each stream in files of its own. They follow each other without
// overlap, so that compactions move them instead of rewriting them.
func ownTables(start []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	switch {
	case len(start) == 0 || start[0] < spaceStream:
		end = []byte{spaceStream}
	case start[0] == spaceStream && len(start) >= 3:
		end = after(bytes.Clone(start[:3]))
	}
	return policy, end, nil
}

// pebbleLog passes on what the key-value store says, the same thing once a minute.
type pebbleLog struct {
	o Options

	mu   sync.Mutex
	said map[string]time.Time
}

// What is said again within a minute is not said. So many different things are kept.
const (
	sayAgain = time.Minute
	maxSaid  = 1000
)

func (l *pebbleLog) Infof(string, ...any) {}

func (l *pebbleLog) Errorf(format string, args ...any) {
	l.say(fmt.Sprintf(format, args...))
}

func (l *pebbleLog) Fatalf(format string, args ...any) { l.o.Fatal(fmt.Sprintf(format, args...)) }

func (l *pebbleLog) say(text string, more ...any) {
	if l.news(text + fmt.Sprint(more...)) {
		l.o.Logger.Error("embedded store: "+text, more...)
	}
}

// news reports whether a text was not said lately.
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

// corrupt only logs: whoever reads the damaged block gets the error, everybody
// else goes on.
func (l *pebbleLog) corrupt(info pebble.DataCorruptionInfo) {
	l.say("damaged file", "path", info.Path, "error", info.Details.Error())
}

// background hears of work beside the calls that failed. Pebble begins it again at once,
// and for ever where a table is damaged: the pause keeps that from costing a processor.
func (l *pebbleLog) background(err error) {
	l.say("background error: " + err.Error())
	if !l.o.Still {
		time.Sleep(backgroundPause)
	}
}

const backgroundPause = 100 * time.Millisecond
