package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// The peer of a replay is Pebble alone. It gets the very keys and values that the
// embedded store wrote during one replay of the same recording, read back from the
// store's log: each core row with its index entries, entries that moved deleted, and
// each write of a derived value with the whole row that it makes, in their order.
// It has them in memory, encoded, and commits them in batches of 1,000 rows without
// sync, to a store with the same options, and syncs once at the end, as a replay does.
//
// What it does not do is what weir is for: decode the file, read the row before it
// is written, compare old images, check conditions, keep a stream and books, fold.
// Writes that the embedded store has already folded together are one for both.
//
// Some of that the contract asks for whatever else weir does: the file has to be
// decoded, and a row, its stream record and the books are written or the next crash
// loses a change. Further lines show Pebble with these, one after the other; the
// last is the least that any replay has to do, without a single read or condition.
//
// extent says how much of what was written the peer writes.
type extent int

const (
	rowsOfTables extent = iota // the application's rows with their index entries
	withOwnRows                // and weir's own: books, guards and checkpoints
	everything                 // and the stream
)

func (e extent) what() string {
	return [...]string{"same rows and index entries", "weir's own rows too", "weir's own rows and stream too"}[e]
}

// way is how the peer writes: so much, and decoding the recorded file beside it or not.
type way struct {
	extent
	decodes bool
}

// ways begins with the one that the goal is about.
var ways = []way{{extent: rowsOfTables}, {rowsOfTables, true}, {extent: withOwnRows}, {extent: everything}, {everything, true}}

// what says it, with the operations that come on a record.
func (y way) what(w *written, records int) string {
	what := y.extent.what()
	if y.decodes {
		what += ", decoding the file"
	}
	return fmt.Sprintf("%s: %.1f writes a record", what, w.operations(y.extent, records))
}

const plainBatch = 1000

// written is what a replay wrote: each a kind, an extent, two lengths, key and
// value. It is kept outside of Go's heap, which weir's side would otherwise have
// for its collector's pace.
type written struct {
	ops     []byte
	options string              // Pebble's
	counts  [everything + 1]int // of operations
}

func (w *written) free() error { return syscall.Munmap(w.ops[:cap(w.ops)]) }

// capture replays a recording once into a store that keeps its logs, and reads them.
func (b *bench) capture(rec recording) (*written, error) {
	b.say("recording what a replay writes")
	dir := filepath.Join(b.dir, "captured")
	defer os.RemoveAll(dir)
	if err := b.replayKeepingLogs(rec, dir); err != nil {
		return nil, err
	}
	options, err := optionsOf(dir)
	if err != nil {
		return nil, err
	}
	ops, err := syscall.Mmap(-1, 0, int(4*rec.bytes)+1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	w := &written{ops: ops[:0], options: options}
	return w, w.read(dir)
}

func (b *bench) replayKeepingLogs(rec recording, dir string) error {
	m, err := model.Load(rec.model)
	if err != nil {
		return err
	}
	tables := []store.Table{book.Table()}
	for _, t := range m.Tables {
		t.Table.Stream = true
		tables = append(tables, t.Table)
	}
	s, err := embedded.Open(dir, tables, embedded.Options{FS: keepLogs{vfs.Default}})
	if err != nil {
		return err
	}
	run := &runner.Runner{Model: m, Store: s, Now: time.Now}
	return errors.Join(replayInto(b.ctx, m, s, run, rec), s.Close())
}

// keepLogs is a file system on which logs are neither deleted nor used again.
type keepLogs struct{ vfs.FS }

func (k keepLogs) Remove(name string) error {
	if strings.HasSuffix(name, ".log") {
		return nil
	}
	return k.FS.Remove(name)
}

func (k keepLogs) ReuseForWrite(_, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return k.Create(name, c)
}

// optionsOf is what Pebble noted of the options of a store.
func optionsOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "OPTIONS-*"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no options in %s (%v)", dir, err)
	}
	text, err := os.ReadFile(files[len(files)-1])
	return string(text), err
}

// read takes the operations out of all logs in a directory.
func (w *written) read(dir string) error {
	logs, err := wal.Scan(wal.Dir{FS: vfs.Default, Dirname: dir})
	if err != nil {
		return err
	}
	c := catalog{tables: map[uint16]bool{}, indexes: map[uint16]bool{}}
	for _, l := range logs {
		r := l.OpenForRead()
		for {
			record, _, err := r.NextRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			repr, err := io.ReadAll(record)
			if err != nil {
				return err
			}
			if err := w.readBatch(repr, &c); err != nil {
				return err
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	if !c.known {
		return errors.New("the store's log holds no catalogue: has its layout changed?")
	}
	return nil
}

func (w *written) readBatch(repr []byte, c *catalog) error {
	for r := batchrepr.Read(repr); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		if string(key) == "mtables" {
			if err := c.learn(value); err != nil {
				return err
			}
			continue
		}
		e, ours := c.extent(key)
		if !ours || kind != pebble.InternalKeyKindSet && kind != pebble.InternalKeyKindDelete {
			continue
		}
		if len(w.ops)+10+len(key)+len(value) > cap(w.ops) {
			return errors.New("a replay wrote more than was expected")
		}
		w.counts[e]++
		w.ops = append(w.ops, byte(kind), byte(e))
		w.ops = binary.BigEndian.AppendUint32(w.ops, uint32(len(key)))
		w.ops = binary.BigEndian.AppendUint32(w.ops, uint32(len(value)))
		w.ops = append(append(w.ops, key...), value...)
	}
}

// operations is how many there are within an extent for each record.
func (w *written) operations(most extent, records int) float64 {
	n := 0
	for _, c := range w.counts[:most+1] {
		n += c
	}
	return float64(n) / float64(records)
}

// op is an operation of a replay.
type op struct {
	kind       pebble.InternalKeyKind
	extent     extent
	key, value []byte
}

// all gives the operations in their order.
func (w *written) all() iter.Seq[op] {
	return func(yield func(op) bool) {
		for ops := w.ops; len(ops) > 0; {
			k := int(binary.BigEndian.Uint32(ops[2:]))
			v := int(binary.BigEndian.Uint32(ops[6:]))
			o := op{pebble.InternalKeyKind(ops[0]), extent(ops[1]), ops[10 : 10+k], ops[10+k : 10+k+v]}
			if ops = ops[10+k+v:]; !yield(o) {
				return
			}
		}
	}
}

// write gives Pebble what is within an extent, and has it on disk at the end. Where it
// decodes, it does so by weir's decoder, on another processor if one is free.
func (w *written) write(b *bench, rec recording, how way) (cost, error) {
	return w.measure(b, func(db *pebble.DB) error {
		decoded := make(chan error, 1)
		go func() {
			if !how.decodes {
				decoded <- nil
				return
			}
			decoded <- b.decodeFile(rec)
		}()
		return errors.Join(w.writeAll(b, db, how.extent), <-decoded)
	})
}

func (w *written) measure(b *bench, run func(*pebble.DB) error) (c cost, err error) {
	dir, err := os.MkdirTemp(b.dir, "plain-")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	db, err := w.open(dir)
	if err != nil {
		return c, err
	}
	defer db.Close()
	return measured(func() error { return run(db) })
}

// open opens a store with the options of the one that was replayed into.
func (w *written) open(dir string) (*pebble.DB, error) {
	o := pebble.Options{Logger: quiet{}}
	err := o.Parse(w.options, &pebble.ParseHooks{
		NewFilterPolicy: func(string) (pebble.FilterPolicy, error) { return bloom.FilterPolicy(10), nil },
		SkipUnknown:     func(string, string) bool { return true },
	})
	if err != nil {
		return nil, err
	}
	return pebble.Open(dir, &o)
}

func (w *written) writeAll(b *bench, db *pebble.DB, most extent) error {
	batch, rows := db.NewBatch(), 0
	defer func() { batch.Close() }()
	for o := range w.all() {
		if o.extent > most {
			continue
		}
		if o.kind == pebble.InternalKeyKindSet {
			_ = batch.Set(o.key, o.value, nil) // fails only on indexed batches
		} else {
			_ = batch.Delete(o.key, nil)
		}
		if o.key[0] == 'r' {
			rows++
		}
		if rows < plainBatch {
			continue
		}
		rows = 0
		if err := errors.Join(batch.Commit(pebble.NoSync), batch.Close(), b.ctx.Err()); err != nil {
			return err
		}
		batch = db.NewBatch()
	}
	return errors.Join(batch.Commit(pebble.NoSync), db.LogData(nil, pebble.Sync))
}

// catalog tells whose keys are whose, by the embedded store's own catalogue.
type catalog struct {
	known   bool
	tables  map[uint16]bool // of the application
	indexes map[uint16]bool
}

func (c *catalog) learn(doc []byte) error {
	type index struct{ ID uint16 }
	var stored struct {
		Tables map[string]struct {
			ID      uint16
			Indexes map[string]index
			Expiry  *index
		}
	}
	if err := json.Unmarshal(doc, &stored); err != nil {
		return err
	}
	for name, t := range stored.Tables {
		if name == book.TableName {
			continue
		}
		c.known = true
		c.tables[t.ID] = true
		for _, ix := range t.Indexes {
			c.indexes[ix.ID] = true
		}
		if t.Expiry != nil {
			c.indexes[t.Expiry.ID] = true
		}
	}
	return nil
}

// extent is the least that a key belongs to.
func (c *catalog) extent(key []byte) (extent, bool) {
	if len(key) < 3 {
		return 0, false
	}
	id := binary.BigEndian.Uint16(key[1:])
	switch key[0] {
	case 'r':
		return pickExtent(c.tables[id]), true
	case 'x':
		return pickExtent(c.indexes[id]), true
	case 's':
		return everything, true
	}
	return 0, false
}

func pickExtent(application bool) extent {
	if application {
		return rowsOfTables
	}
	return withOwnRows
}

// quiet says nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
