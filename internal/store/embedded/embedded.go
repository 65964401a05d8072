// Package embedded is the store driver that needs no server: rows, indexes and streams
// are in one directory, in Pebble, a log-structured key-value store.
//
// Its keys are as follows. Ids are big-endian; keys.go describes the form of KEY and
// ENTRY:
//
//	r ID KEY          row of table ID, as value.AppendItem stores it
//	x ID ENTRY KEY    entry of index ID for the row KEY; no value. ENTRY is the
//	                  index's key; for expiry it is the TTL attribute's seconds
//	s ID NUMBER SHARD NUMBER
//	                  stream record of table ID, as record.go describes it; the first
//	                  NUMBER is the high bits of its sequence number, the last the
//	                  low ones
//	mformat           format version, decimal
//	mtables           catalog: tables, indexes, shards (catalog.go), JSON
//	mtrim SHARD       number of the last record trimmed from the shard
//
// One Pebble batch has a row, its index entries and its stream record. Pebble's log
// keeps batches whole and in order. So a crash at any moment loses at most the last
// batches, and the rest is consistent. Writes are not synced; Sync and Close are.
//
// Beyond the contract, a Store has Split. Expired rows stay until Sweep is called.
//
// The files: batch.go is the write path, from the check of a condition to the commit; read.go,
// query.go and walk.go read; rowcache.go and filter.go save reads. stream.go, shards.go, record.go
// and tail.go are the streams, sequence.go gives records their numbers. files.go, checkfiles.go,
// journal.go and guard.go find damage, and end the process where the disk refuses a write.
// owner.go keeps other processes out. load.go and land.go take in many rows at once. catalog.go
// and build.go change tables and indexes, expiry.go deletes expired rows.
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

// Store is an embedded store. No other process or Store may use its directory.
// Its methods may be called by many goroutines. Close waits for them.
// A Store keeps the tables that it was given at Open; a table that is new needs another Open.
type Store struct {
	db    *pebble.DB
	po    *pebble.Options
	opts  Options
	lock  *pebble.Lock
	files *files

	// gate is held shared by every operation, and exclusively by an operation that
	// changes the shards of tables or closes the store. It guards closed, the catalog
	// and the shards.
	gate     sync.RWMutex
	closed   bool
	catalog  *catalog
	tables   map[string]*table
	expiring []string      // the tables with a TTL
	sweeps   atomic.Int64  // how many sweeps began
	ended    chan struct{} // closed when the store is closed

	locks   rowLocks
	seed    maphash.Seed // for the hashes of row keys
	cache   rowCache
	tail    tail
	numbers sequencer
	journal journal
	synced  atomic.Uint64 // writes up to this number are known to be on disk
	trims   sync.Mutex

	written atomic.Int64   // number of writes, until the filter has all keys
	beside  sync.WaitGroup // background work that must end before the store is closed
}

var _ store.Store = (*Store)(nil)

// table is an open table.
// Everything but freed and changed is fixed while the store is open, but for the shards in meta,
// which the gate guards.
type table struct {
	store.Table
	id      uint16
	indexes []*index // the expiry index is one of them, the last
	indexed []string // the attributes of the indexes' keys, sorted
	meta    *tableMeta
	changed notifier
	freed   uint64 // the stream's first segment that still exists; guarded by trims
}

// Open opens the store in a directory, with the given tables; it makes the directory if
// necessary. It builds a table's new indexes from its rows, and drops those that the
// table no longer has. It refuses a table whose key has changed. Tables in the
// directory that are not given are kept, and cannot be used. ErrOwned says that another
// process has the directory open, ErrDamaged that synced data is missing. A crash
// leaves the directory in a state that the next Open continues from.
func Open(dir string, tables []store.Table, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	dir, lock, list, err := ownDirectory(opts, dir, time.Now())
	if err != nil {
		return nil, withAdvice(err)
	}
	opts.Fatal = onlyOnce(opts.fatalFunc(dir))
	s := &Store{opts: opts, lock: lock, files: list, tables: map[string]*table{}, ended: make(chan struct{})}
	po := opts.pebbleOptions(lock, list, &s.journal)
	s.po = po
	s.db, err = pebble.Open(dir, po)
	po.Cache.Unref() // the open database has it
	if err != nil {
		// The owner file stays. Without it the store would count as closed, and the log
		// would have to be whole.
		return nil, withAdvice(errors.Join(fmt.Errorf("opening the store in %s: %w", dir, isIncomplete(err)), lock.Close()))
	}
	s.seed = maphash.MakeSeed()
	s.cache.share(opts.RowCacheBytes)
	s.tail.room = int(opts.TailBytes)
	if err = s.journal.makeSynced(po.FS, dir); err == nil {
		err = dropLanding(po.FS, dir)
	}
	if err == nil {
		err = s.loadCatalog(tables)
	}
	if err != nil {
		return nil, withAdvice(errors.Join(fmt.Errorf("opening the store in %s: %w", dir, err), s.Close()))
	}
	return s, nil
}

// withAdvice adds the remedy to an error, if that is known.
func withAdvice(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room there and run the same command again", err)
	case errors.Is(err, ErrDamaged), pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: put back a copy of the directory, or move it away and replay the recordings", err)
	}
	return err
}

// isIncomplete marks errors with which Pebble refuses a directory as incomplete: all that
// are not the operating system's.
// A missing file is among them, because Pebble names files that its manifest has.
func isIncomplete(err error) error {
	if no := syscall.Errno(0); errors.As(err, &no) && no != syscall.ENOENT {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// loadCatalog reconciles the catalog with the given tables. A crash leaves either the old
// catalog, or the new one with indexes marked as Building, which the next load builds
// from the beginning.
func (s *Store) loadCatalog(tables []store.Table) error {
	var err error
	if s.catalog, err = loadCatalog(s.db); err != nil {
		return err
	}
	if s.catalog.Store == "" {
		s.catalog.Store = s.opts.ID
	}
	last, err := s.loadShards()
	if err != nil {
		return err
	}
	s.numbers.startAfter(last)
	s.tail.from = last
	s.synced.Store(last) // Pebble has replayed its log into synced files
	b := s.db.NewBatch()
	defer b.Close()
	err = s.catalog.reconcileTables(tables, s.opts.Shards, last, b)
	if err == nil {
		err = s.catalog.saveCatalog(b)
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
	return s.buildIndexes()
}

// openTable opens a table that the catalog has, with its indexes.
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
		s.expiring = append(s.expiring, t.Name)
	}
	s.tables[t.Name] = tab
}

// beginOperation begins an operation. If err is nil, the caller must call s.gate.RUnlock at its
// end.
func (s *Store) beginOperation(ctx context.Context) error {
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

// tableNamed is an open table. The caller holds the gate.
func (s *Store) tableNamed(name string) (*table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("table %q: %w", name, store.ErrNoTable)
}

// Sync returns once everything acknowledged survives a crash; it returns at once if
// that is already known. Callers that wait at the same time share one sync of the disk.
// A mark is written for each sync that reaches the disk, so the log can tell later which writes were durable
// (journal.go).
func (s *Store) Sync(ctx context.Context) error {
	if err := s.beginOperation(ctx); err != nil {
		return err
	}
	defer s.gate.RUnlock()
	if s.numbers.given() <= s.synced.Load() {
		return nil
	}
	upTo := s.numbers.visible.Load()
	mark, log := s.journal.nextMark(markSync)
	if err := s.db.LogData(mark, pebble.Sync); err != nil {
		return fmt.Errorf("syncing the store: %w", err)
	}
	if err := s.journal.noteMark(log); err != nil {
		return fmt.Errorf("syncing the store: %w", err)
	}
	for have := s.synced.Load(); have < upTo && !s.synced.CompareAndSwap(have, upTo); {
		have = s.synced.Load()
	}
	return nil
}

// Options returns the options of the store, with defaults in place of zeros.
func (s *Store) Options() Options { return s.opts }

// Close waits for operations to end and makes everything acknowledged durable. A second
// Close does nothing.
// Waiters on Changed are woken, and get ErrClosed when they ask again. After an error the directory
// is as after a kill: the next Open continues from it.
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
	mark, _ := s.journal.nextMark(markClosed)
	if err := errors.Join(s.db.LogData(mark, pebble.Sync), s.db.Close()); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	if err := s.journal.deleteSynced(s.files.fs, s.files.dir); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	return releaseDirectory(s.files, s.lock)
}

// getCopy reads one key, nil if it does not exist.
// The caller owns the bytes.
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
