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

	"weir/internal/migrate"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
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
// It does nothing of what weir is for: it does not decode the file, read a row before it is
// written, compare old images, check conditions, keep a stream and ledgers, or combine writes.
// Writes that the embedded store has combined count as one for both.
//
// Some of this every replay must do: it has to decode the file, and it has to write a row with
// its stream record and the ledgers, or the next crash would lose a change. Further lines add
// these to Pebble's work one after the other. The last line is the minimum for any replay,
// without a single read or condition.
//
// extent says how much of what was written the peer writes.
type extent int

const (
	rowsOfTables extent = iota // the application's rows with their index entries
	withOwnRows                // and weir's own: ledgers, guards and checkpoints
	everything                 // and the stream
)

func (e extent) what() string {
	return [...]string{"same rows and index entries", "weir's own rows too", "weir's own rows and stream too"}[e]
}

// way says how the peer writes: which extent, and whether it also decodes the recorded file.
type way struct {
	extent
	decodes bool
}

// ways lists what is measured. The goal applies to the first.
var ways = []way{{extent: rowsOfTables}, {rowsOfTables, true}, {extent: withOwnRows}, {extent: everything}, {everything, true}}

// what describes the way, with its number of operations for each record.
func (y way) what(w *written, records int) string {
	what := y.extent.what()
	if y.decodes {
		what += ", decoding the file"
	}
	return fmt.Sprintf("%s: %.1f writes a record", what, w.operations(y.extent, records))
}

const plainBatch = 1000

// written holds the operations that a replay wrote, each as kind, extent, two lengths, key and
// value. It is kept outside Go's heap: inside, it would change the pace of the garbage
// collector for weir's side.
type written struct {
	ops     []byte
	ends    []int               // where each recording's operations end
	options string              // Pebble's
	counts  [everything + 1]int // of operations
}

func (w *written) free() error { return syscall.Munmap(w.ops[:cap(w.ops)]) }

// capture replays recordings one after the other into a store that keeps its logs, and
// reads what is within an extent.
func (b *bench) capture(most extent, recs ...recording) (*written, error) {
	b.say("recording what a replay writes")
	dir := filepath.Join(b.dir, "captured")
	defer os.RemoveAll(dir)
	var size int64
	for _, rec := range recs {
		size += rec.bytes
	}
	ops, err := syscall.Mmap(-1, 0, int(4*size)+1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	w, r := &written{ops: ops[:0]}, logReader{most: most, catalog: catalog{tables: map[uint16]bool{}, indexes: map[uint16]bool{}}}
	for _, rec := range recs {
		// A store begins another log each time that it is opened.
		err := b.replayKeepingLogs(rec, dir)
		if err == nil {
			err = r.read(w, dir)
		}
		if err != nil {
			return nil, errors.Join(err, w.free())
		}
		w.ends = append(w.ends, len(w.ops))
	}
	if w.options, err = optionsOf(dir); err != nil {
		return nil, errors.Join(err, w.free())
	}
	return w, nil
}

func (b *bench) replayKeepingLogs(rec recording, dir string) error {
	m, err := model.Load(rec.model)
	if err != nil {
		return err
	}
	tables := []store.Table{owntable.Table()}
	for _, t := range m.Tables {
		t.Table.Stream = true
		tables = append(tables, t.Table)
	}
	s, err := embedded.Open(dir, tables, embedded.Options{FS: keepLogs{vfs.Default}})
	if err != nil {
		return err
	}
	run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: s, Now: time.Now, Mover: &migrate.Mover{Model: m, Store: s}}
	return errors.Join(replayInto(b.ctx, m, s, run, rec), s.Close())
}

// keepLogs is a file system that neither deletes nor reuses logs.
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

// optionsOf returns the options of a store as Pebble recorded them.
func optionsOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "OPTIONS-*"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no options in %s (%v)", dir, err)
	}
	text, err := os.ReadFile(files[len(files)-1])
	return string(text), err
}

// logReader reads those of a store's logs that it has not read yet.
type logReader struct {
	most    extent
	catalog catalog
	logs    int // read
}

func (r *logReader) read(w *written, dir string) error {
	logs, err := wal.Scan(wal.Dir{FS: vfs.Default, Dirname: dir})
	if err != nil {
		return err
	}
	for _, l := range logs[r.logs:] {
		if err := r.readLog(w, l); err != nil {
			return err
		}
	}
	r.logs = len(logs)
	if !r.catalog.known {
		return errors.New("the store's log holds no catalogue: has its layout changed?")
	}
	return nil
}

func (r *logReader) readLog(w *written, l wal.LogicalLog) (err error) {
	from := l.OpenForRead()
	defer func() { err = errors.Join(err, from.Close()) }()
	for {
		record, _, err := from.NextRecord()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		repr, err := io.ReadAll(record)
		if err != nil {
			return err
		}
		if err := r.readBatch(w, repr); err != nil {
			return err
		}
	}
}

func (r *logReader) readBatch(w *written, repr []byte) error {
	for ops := batchrepr.Read(repr); ; {
		kind, key, value, ok, err := ops.Next()
		if err != nil || !ok {
			return err
		}
		if string(key) == "mtables" {
			if err := r.catalog.learn(value); err != nil {
				return err
			}
			continue
		}
		e, ours := r.catalog.extent(key)
		if !ours || e > r.most || kind != pebble.InternalKeyKindSet && kind != pebble.InternalKeyKindDelete {
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

// operations returns the number of operations within an extent for each record.
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

// of yields the operations of a recording in their order.
func (w *written) of(recording int) iter.Seq[op] {
	begin := 0
	if recording > 0 {
		begin = w.ends[recording-1]
	}
	return func(yield func(op) bool) {
		for ops := w.ops[begin:w.ends[recording]]; len(ops) > 0; {
			k := int(binary.BigEndian.Uint32(ops[2:]))
			v := int(binary.BigEndian.Uint32(ops[6:]))
			o := op{pebble.InternalKeyKind(ops[0]), extent(ops[1]), ops[10 : 10+k], ops[10+k : 10+k+v]}
			if ops = ops[10+k+v:]; !yield(o) {
				return
			}
		}
	}
}

// write gives Pebble what is within an extent of the first recording, and has it on
// disk at the end. Where it decodes, it does so by weir's decoder, on another processor
// if one is free.
func (w *written) write(b *bench, rec recording, how way) (c cost, err error) {
	err = w.within(b, func(db *pebble.DB) error {
		c, err = measured(func() error {
			decoded := make(chan error, 1)
			go func() {
				if !how.decodes {
					decoded <- nil
					return
				}
				decoded <- b.decodeFile(rec)
			}()
			return errors.Join(w.writeAll(b, db, 0, how.extent), <-decoded)
		})
		return err
	})
	return c, err
}

// within calls run with a new Pebble store. It closes and deletes the store afterwards.
func (w *written) within(b *bench, run func(*pebble.DB) error) error {
	dir, err := os.MkdirTemp(b.dir, "plain-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := w.open(dir)
	if err != nil {
		return err
	}
	defer db.Close()
	return run(db)
}

// open opens a store with the options of the store that the replay wrote into.
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

// writeAll writes the operations of a recording that are within an extent.
func (w *written) writeAll(b *bench, db *pebble.DB, recording int, most extent) error {
	batch, rows := db.NewBatch(), 0
	defer func() { batch.Close() }()
	for o := range w.of(recording) {
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

// catalog tells which keys belong to tables of the application and which to indexes. It is read
// from the embedded store's own catalogue.
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
		if name == owntable.TableName {
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

// extent returns the smallest extent that includes a key.
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

// quiet is a logger that discards everything.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
