// Package embedded is the store driver with nothing to install: rows, indexes and
// streams in one directory, over Pebble, a log-structured key-value store.
//
// The keys it reads and writes, ids big-endian, KEY and ENTRY in the form that
// keys.go describes:
//
//	r ID KEY          row of table ID, as value.AppendItem stores it
//	x ID ENTRY KEY    entry of index ID for the row KEY; no value. ENTRY is the
//	                  index's key; for expiry it is the TTL attribute's seconds
//	s ID NUMBER SHARD NUMBER
//	                  stream record of table ID, as record.go describes it; the first
//	                  NUMBER is the high bits of its sequence number, the last the
//	                  low ones
//	mformat           format version, decimal
//	mtables           catalogue: tables, indexes, shards (catalog.go), JSON
//	mtrim SHARD       number of the last record trimmed from the shard
//
// One Pebble batch holds a row, its entries and its stream record, and Pebble's
// log keeps batches whole and in order: a crash at any moment loses at most a
// suffix of them, and what is left agrees with itself. Writes are not synced, Sync
// and Close are.
//
// Beyond the contract a Store has Split. It keeps expired rows until Sweep is called,
// as often as the caller likes.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// Store is an embedded store. It has its directory to itself.
type Store struct {
	db    *pebble.DB
	opts  Options
	lock  *pebble.Lock
	files *files

	// gate is held shared by every operation, and alone by what changes tables'
	// shards or closes the store. It guards closed, the catalogue and shards.
	gate    sync.RWMutex
	closed  bool
	catalog *catalog
	tables  map[string]*table
	ended   chan struct{} // closed with the store

	locks   rowLocks
	seed    maphash.Seed // of the hashes of row keys
	cache   rowCache
	tail    tail
	numbers sequencer
	journal journal
	synced  atomic.Uint64 // writes with numbers up to here are known to be on disk
	trims   sync.Mutex
	batches sync.Pool // of *batch

	written atomic.Int64   // writes, until the keys are known
	beside  sync.WaitGroup // what ends before the store is closed
}

var _ store.Store = (*Store)(nil)

// table is an open table.
type table struct {
	store.Table
	id      uint16
	indexes []*index // expiry too, last
	indexed []string // the attributes of the indexes' keys, sorted
	meta    *tableMeta
	changed notifier
	freed   uint64 // the stream's first segment that is there; under trims
}

// Open opens the store in a directory, which it makes if need be, with the tables
// given. A table's new indexes are built over its rows, those it no longer has
// are dropped; a changed key is refused. Tables that are in the directory and not
// given are kept and cannot be reached. ErrOwned says that another process has the
// directory.
func Open(dir string, tables []store.Table, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	dir, lock, list, err := own(opts, dir, time.Now())
	if err != nil {
		return nil, withAdvice(err)
	}
	opts.Fatal = once(opts.fatal(dir))
	s := &Store{opts: opts, lock: lock, files: list, tables: map[string]*table{}, ended: make(chan struct{})}
	po := opts.pebble(lock, list, &s.journal)
	if s.db, err = pebble.Open(dir, po); err != nil {
		// The owner file stays: without it the log would have to be whole.
		return nil, withAdvice(errors.Join(fmt.Errorf("opening the store in %s: %w", dir, refused(err)), lock.Close()))
	}
	if err := s.journal.start(po.FS, dir); err != nil {
		return nil, withAdvice(errors.Join(fmt.Errorf("opening the store in %s: %w", dir, err), s.Close()))
	}
	s.seed = maphash.MakeSeed()
	s.cache.share(opts.RowCacheBytes)
	s.tail.room = int(opts.TailBytes)
	s.batches.New = func() any { return newBatch(s) }
	if err := s.load(tables); err != nil {
		return nil, withAdvice(errors.Join(fmt.Errorf("opening the store in %s: %w", dir, err), s.Close()))
	}
	return s, nil
}

// withAdvice adds what to do to an error for which that is known.
func withAdvice(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room there and run the same command again", err)
	case errors.Is(err, ErrDamaged), pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: put back a copy of the directory, or move it away and replay the recordings. "+
			"If an older version of weir wrote there last, delete %s in it: the rest is checked without", err, filesFile)
	}
	return err
}

// refused marks what Pebble says of a directory that lacks something: all that the
// system did not say.
func refused(err error) error {
	if no := syscall.Errno(0); errors.As(err, &no) && no != syscall.ENOENT {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// load brings catalogue and tables together. A crash within leaves either the old
// catalogue, or the new one with indexes marked as Building, which the next load
// builds from the beginning.
func (s *Store) load(tables []store.Table) error {
	err := checkSchemas(tables)
	if err != nil {
		return err
	}
	if s.catalog, err = loadCatalog(s.db); err != nil {
		return err
	}
	last, err := s.loadShards()
	if err != nil {
		return err
	}
	s.numbers.start(last)
	s.tail.from = last
	s.synced.Store(last) // Pebble has replayed its log into synced files
	b := s.db.NewBatch()
	defer b.Close()
	err = s.catalog.reconcile(tables, s.opts.Shards, last, b)
	if err == nil {
		err = s.catalog.save(b)
	}
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	if err != nil {
		return err
	}
	for i := range tables {
		s.openTable(tables[i])
	}
	s.addKeys(0)
	return s.build()
}

func (s *Store) openTable(t store.Table) {
	t.Indexes = slices.Clone(t.Indexes)
	meta := s.catalog.Tables[t.Name]
	tab := &table{Table: t, id: meta.ID, meta: meta}
	for _, ix := range t.Indexes {
		tab.addIndex(ix, meta.Indexes[ix.Name].ID)
	}
	if t.TTL != "" {
		key := store.KeySchema{Partition: store.KeyAttr{Name: t.TTL, Type: value.Number}}
		tab.addIndex(store.Index{Key: key, KeysOnly: true}, meta.Expiry.ID)
	}
	s.tables[t.Name] = tab
}

// enter begins an operation; the caller leaves with s.gate.RUnlock when err is nil.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (s *Store) table(name string) (*table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("table %q: %w", name, store.ErrNoTable)
}

// Sync returns when all that was acknowledged survives a crash, at once when that
// is known. Pebble lets those who wait for the disk at the same time share a sync.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.RUnlock()
	if s.numbers.given() <= s.synced.Load() {
		return nil
	}
	upTo := s.numbers.visible.Load()
	mark, log := s.journal.mark(markSync)
	if err := s.db.LogData(mark, pebble.Sync); err != nil {
		return fmt.Errorf("syncing the store: %w", err)
	}
	if err := s.journal.synced(log); err != nil {
		return fmt.Errorf("syncing the store: %w", err)
	}
	for have := s.synced.Load(); have < upTo && !s.synced.CompareAndSwap(have, upTo); {
		have = s.synced.Load()
	}
	return nil
}

// Options is what the store was opened with, and what took the place of zeros.
func (s *Store) Options() Options { return s.opts }

// Close waits for operations to end and makes everything acknowledged durable. A
// second Close does nothing.
func (s *Store) Close() error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.ended)
	s.beside.Wait()
	for _, t := range s.tables {
		t.changed.wake()
	}
	mark, _ := s.journal.mark(markClosed)
	if err := errors.Join(s.db.LogData(mark, pebble.Sync), s.db.Close()); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	if err := s.journal.end(s.files.fs, s.files.dir); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	return disown(s.files, s.lock)
}

// getCopy reads one key, nil where there is none.
func getCopy(db *pebble.DB, key []byte) ([]byte, error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(v)), v...), closer.Close()
}
