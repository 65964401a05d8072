package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/sorter"
	"weir/internal/store"
)

// landing is how the names of tables begin that are being made. A crash leaves them; the next Open
// deletes them.
const landing = "landing-"

// landBytes is about how large a table becomes before another one is begun.
const landBytes = 64 << 20

// staged is the part of a Load that is on disk and not in the store yet: sorted tables of the rows
// that have streams, and of everything else the values that are sorted first.
type staged struct {
	paths  []string
	w      *sstable.Writer // of the last path, nil for none
	last   []byte          // the last key in w's table
	size   int
	own    *sorter.Sorter // rows of tables without a stream, as change encodes them
	index  *sorter.Sorter // index entries
	parted []*table       // tables with rows

	buf []byte
}

// Stage puts everything that was written since the last Stage into tables beside the store. It goes on
// after it has returned: its error may be that of the next Stage, or of Land.
func (l *load) Stage(ctx context.Context) error {
	err := l.staging.Wait()
	if err == nil {
		err = l.s.beginOperation(ctx)
	}
	if err == nil {
		rows := l.takeRows()
		err = l.staging.Go(func() error {
			defer l.s.gate.RUnlock()
			return l.stageRows(rows)
		})
	}
	return store.Wrap(err, "stage")
}

// takeRows returns the rows of the load, and begins without any. They have to be cleared before it is called
// again.
func (l *load) takeRows() map[string]*loaded {
	clear(l.known)
	clear(l.parts)
	l.known, l.bytes = l.known[:0], 0
	l.rows, l.spare = l.spare, l.rows
	return l.spare
}

// stageRows stages rows, inside the gate, and clears them.
func (l *load) stageRows(rows map[string]*loaded) error {
	defer clear(rows)
	for _, key := range changedKeys(rows) {
		r := rows[key]
		l.s.cache.keys.addKey(maphash.String(l.s.seed, key)) // before it lands
		var err error
		if r.tab.Stream {
			err = l.appendKey([]byte(key), r.now, r.now == nil)
			if !slices.Contains(l.staged.parted, r.tab) {
				l.staged.parted = append(l.staged.parted, r.tab)
			}
		} else {
			l.staged.buf = appendChange(l.staged.buf[:0], r.now, r.now == nil)
			err = l.staged.own.Add([]byte(key), l.staged.buf)
		}
		if err == nil {
			err = l.sortEntries(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendChange appends a row as it becomes, or that it is gone.
func appendChange(b, stored []byte, gone bool) []byte {
	if gone {
		return append(b, 0)
	}
	return append(append(b, 1), stored...)
}

// appendKey adds a key to the table that is being made. Keys must ascend, so those that are derived from a
// row is staged with it or before it.
func (l *load) appendKey(key, stored []byte, gone bool) (err error) {
	g := &l.staged
	if g.w != nil {
		switch c := bytes.Compare(key, g.last); {
		case c <= 0 && len(g.last) > 0:
			return fmt.Errorf("%w: a row changes again, or out of order: key %x", store.ErrLoading, key)
		case g.size >= landBytes || !bytes.Equal(key[:spaceLen], g.last[:spaceLen]):
			if err := g.end(); err != nil {
				return err
			}
		}
	}
	if g.w == nil {
		fs := l.s.po.FS
		path := fs.PathJoin(l.s.files.dir, fmt.Sprintf("%s%d.sst", landing, len(g.paths)))
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		// Options of the lowest level would leave removals out. Level 0 keeps them.
		g.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), l.s.po.MakeWriterOptions(0, l.s.db.TableFormat()))
		g.paths, g.size = append(g.paths, path), 0
	}
	g.last, g.size = append(g.last[:0], key...), g.size+len(key)+len(stored)
	if gone {
		return g.w.Delete(key)
	}
	return g.w.Set(key, stored)
}

// end finishes the table that is being made, if there is one.
func (g *staged) end() error {
	if g.w == nil {
		return nil
	}
	w := g.w
	g.w = nil
	return w.Close()
}

// Land stages the rest, and puts everything that is staged into the store: rows and index
// entries, in one step. It is durable when Land returns; a crash before leaves all of it or
// nothing. Writes that the store acknowledged before are durable first.
func (l *load) Land(ctx context.Context) error {
	if err := l.s.Sync(ctx); err != nil {
		return err
	}
	if err := l.s.beginOperation(ctx); err != nil {
		return fmt.Errorf("land: %w", err)
	}
	defer l.s.gate.RUnlock()
	return store.Wrap(l.landStaged(ctx), "land")
}

// landStaged puts all that is staged into the store, in one change of Pebble's manifest: after a crash
// either all of it is there or none. Tables that did not land are deleted when the store is opened
// again. While they land, the row cache answers for no row.
func (l *load) landStaged(ctx context.Context) error {
	err := l.staging.Wait()
	if err == nil {
		err = l.stageRows(l.takeRows())
	}
	g := &l.staged
	for _, rest := range []*sorter.Sorter{g.own, g.index} {
		if err == nil {
			err = g.end()
		}
		if err == nil {
			g.last = g.last[:0]
			err = l.mergeTable(rest)
		}
	}
	if err == nil {
		err = g.end()
	}
	if err == nil {
		err = l.noteIncomplete()
	}
	if err != nil || len(g.paths) == 0 {
		return errors.Join(err, l.giveUp())
	}
	l.s.cache.beginAll()
	err = l.s.db.Ingest(ctx, g.paths)
	l.s.cache.endAll()
	if err == nil {
		g.paths = nil // they are the store's
		l.s.numbers.skip(l.last)
	}
	return errors.Join(err, l.giveUp())
}

// mergeTable makes a table of sorted keys. A key that comes twice is an error: a row was read again
// after it was staged.
func (l *load) mergeTable(sorted *sorter.Sorter) error {
	r, err := sorted.Sorted()
	for err == nil {
		var key, val []byte
		if key, val, err = r.Next(); err == nil {
			err = l.appendKey(key, val[1:], val[0] == 0)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// giveUp deletes rows that did not land. It may be called again.
func (l *load) giveUp() error {
	_ = l.staging.Wait() // its files are deleted
	g := &l.staged
	err := errors.Join(g.end(), g.own.Close(), g.index.Close())
	for _, path := range g.paths {
		err = errors.Join(err, l.s.po.FS.Remove(path))
	}
	l.forgetDecoded()
	clear(l.rows)
	l.bytes = 0
	err = errors.Join(err, l.endQueries())
	l.clearStaged()
	return err
}

// clearStaged has nothing staged. Numbers of a window that did not land are not used again by this Load.
func (l *load) clearStaged() {
	l.last = max(l.last, l.s.numbers.given())
	l.first = l.last
	most := max(l.opts.Memory/2, minStaged)
	l.staged = staged{own: sorter.New(most, l.scratchFile), index: sorter.New(most, l.scratchFile)}
}

// minStaged is the least memory for sorting.
const minStaged = 64 << 10

// scratchName is how the names of files begin that are sorted in.
const scratchName = "scratch-"

// scratchFile makes a file that is gone when it is closed. Where an open file can lose its name it is also gone
// when the process ends; elsewhere, as on Windows, the next Open deletes it.
func (l *load) scratchFile() (sorter.File, error) {
	fs := l.s.files.fs // below the guard: a full disk ends the load, not the process
	l.scratches++
	path := fs.PathJoin(l.s.files.dir, fmt.Sprint(scratchName, l.scratches))
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if fs.Remove(path) == nil {
		return f, nil
	}
	return &namedScratch{f, func() error { return fs.Remove(path) }}, nil
}

// namedScratch is a file that is removed when it is closed.
type namedScratch struct {
	vfs.File
	remove func() error
}

func (f *namedScratch) Close() error { return errors.Join(f.File.Close(), f.remove()) }

// Scratch makes a file beside the store that is gone when it is closed, or the process ends.
func (l *load) Scratch() (store.Scratch, error) { return l.scratchFile() }

// noteIncomplete notes, before rows land, that the streams of the tables do not have every change: Identity
// tells it from then on. It also notes the numbers that the rows may carry, so that no record gets
// one of them, whatever lands.
func (l *load) noteIncomplete() error {
	changed := l.last > l.first
	if changed {
		l.s.catalog.Numbered = l.last
	}
	for _, tab := range l.staged.parted {
		if tab.meta.Streamed {
			tab.meta.Streamed, changed = false, true
		}
	}
	if !changed {
		return nil
	}
	b := l.s.db.NewBatch()
	defer b.Close()
	if err := l.s.catalog.saveCatalog(b); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// changedKeys returns the keys of the rows that differ from the store's, sorted.
func changedKeys(rows map[string]*loaded) []string {
	keys := make([]string, 0, len(rows))
	for key, r := range rows {
		if (r.was == nil) != (r.now == nil) || !bytes.Equal(r.was, r.now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// dropLanding deletes tables that did not land.
func dropLanding(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, landing) || strings.HasPrefix(name, scratchName) {
			err = errors.Join(err, fs.Remove(fs.PathJoin(dir, name)))
		}
	}
	return err
}

// sortEntries sorts in the changes of a row's index entries. Each is staged once in a window, as a row is.
func (l *load) sortEntries(r *loaded) error {
	if len(r.tab.indexes) == 0 {
		return nil
	}
	was, err := decodeRow(r.was)
	is := r.item
	if err == nil && !r.known {
		is, err = decodeRow(r.now)
	}
	if err != nil {
		return err
	}
	g := &l.staged
	g.buf, err = r.tab.eachEntry(r.id, was, is, g.buf, func(key []byte, gone bool) error { return g.index.Add(key, appendChange(nil, nil, gone)) })
	return err
}

// Free is the free space of the directory's file system.
func (l *load) Free() int64 {
	free, err := freeIn(l.s.files.fs, l.s.files.dir)
	if err != nil {
		return 0
	}
	return free
}

// Free returns the bytes that the file system of a directory has for more.
func Free(dir string) (int64, error) { return freeIn(vfs.Default, dir) }

func freeIn(fs vfs.FS, dir string) (int64, error) {
	is, err := fs.GetDiskUsage(dir)
	return int64(min(is.AvailBytes, math.MaxInt64)), err
}
