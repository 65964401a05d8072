package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/store"
	"weir/internal/value"
)

// landFile is the table that is being made. A crash leaves it; the next Open deletes it.
const landFile = "landing.sst"

// Land puts everything that was written since the last Land on disk, rows and index
// entries, in one step. It is durable when Land returns; a crash before leaves all of it or
// nothing. What the store acknowledged before is durable first.
func (l *load) Land(ctx context.Context) error {
	if len(l.rows) == 0 {
		return nil
	}
	if err := l.s.Sync(ctx); err != nil {
		return err
	}
	if err := l.s.enter(ctx); err != nil {
		return fmt.Errorf("land: %w", err)
	}
	defer l.s.gate.RUnlock()
	err := l.parted()
	if err == nil {
		err = l.land(ctx)
	}
	if err != nil {
		return fmt.Errorf("land: %w", err)
	}
	l.forget()
	l.rows, l.bytes = map[string]*loaded{}, 0
	return nil
}

// parted notes, before the first rows land, that the streams of the tables do not have
// every change: Identity tells it from then on.
func (l *load) parted() error {
	changed := false
	for _, r := range l.rows {
		if r.tab.Stream && r.tab.meta.Streamed {
			r.tab.meta.Streamed, changed = false, true
		}
	}
	if !changed {
		return nil
	}
	b := l.s.db.NewBatch()
	defer b.Close()
	if err := l.s.catalog.save(b); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// land puts all that the window has changed into the store, in one change of Pebble's manifest:
// after a crash either all of it is there or none. A table that did not land is deleted when the
// store is opened again. While it lands, the row cache answers for none of the keys.
func (l *load) land(ctx context.Context) error {
	keys := l.changed()
	if len(keys) == 0 {
		return nil
	}
	fs := l.s.po.FS
	path := fs.PathJoin(l.s.files.dir, landFile)
	err := l.table(fs, path, keys)
	if err != nil {
		return errors.Join(err, dropLanding(fs, l.s.files.dir))
	}
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = maphash.String(l.s.seed, key)
		l.s.cache.begin(hashes[i], []byte(key))
	}
	err = l.s.db.Ingest(ctx, []string{path})
	for i, key := range keys {
		if err == nil { // the next window asks for many of them again
			l.s.cache.put(hashes[i], []byte(key), l.rows[key].now)
		} else {
			l.s.cache.drop(hashes[i], []byte(key))
		}
		l.s.cache.end(hashes[i])
	}
	return err
}

// changed returns the keys of the rows that differ from the store's, sorted.
func (l *load) changed() []string {
	keys := make([]string, 0, len(l.rows))
	for key, r := range l.rows {
		if (r.was == nil) != (r.now == nil) || !bytes.Equal(r.was, r.now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// dropLanding deletes a table that did not land.
func dropLanding(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, landFile)
	if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fs.Remove(path)
}

// table writes the sorted table of the rows with these keys and of their index entries.
func (l *load) table(fs vfs.FS, path string, keys []string) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// Options of the lowest level would leave removals out. Level 0 keeps them.
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), l.s.po.MakeWriterOptions(0, l.s.db.TableFormat()))
	var entries []entryChange
	for _, key := range keys {
		r := l.rows[key]
		if r.now == nil {
			err = w.Delete([]byte(key))
		} else {
			err = w.Set([]byte(key), r.now)
		}
		if err == nil {
			entries, err = l.entries(entries, r)
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	slices.SortFunc(entries, func(a, b entryChange) int { return bytes.Compare(a.key, b.key) })
	for _, e := range entries {
		if e.gone {
			err = w.Delete(e.key)
		} else {
			err = w.Set(e.key, nil)
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// entryChange is an index entry that a row gets or loses.
type entryChange struct {
	key  []byte
	gone bool
}

// entries appends the changes of a row's index entries.
func (l *load) entries(to []entryChange, r *loaded) ([]entryChange, error) {
	if len(r.tab.indexes) == 0 {
		return to, nil
	}
	var items [2]value.Item
	for i, stored := range [][]byte{r.was, r.now} {
		var err error
		if items[i], err = decodeRow(stored); err != nil {
			return to, err
		}
	}
	l.values = r.tab.keyValues(l.values[:0], items[0])
	l.values = r.tab.keyValues(l.values, items[1])
	n := len(r.tab.indexed)
	was, is := l.values[:n], l.values[n:]
	add := func(ix *index, entry store.Key, gone bool) {
		l.scratch = appendEntryKey(l.scratch[:0], ix, entry, r.id)
		to = append(to, entryChange{bytes.Clone(l.scratch), gone})
	}
	for _, ix := range r.tab.indexes {
		if ix.same(was, is) {
			continue
		}
		if entry, ok, err := ix.entry(was); ok && err == nil {
			add(ix, entry, true)
		}
		if entry, ok, err := ix.entry(is); ok && err == nil {
			add(ix, entry, false)
		}
	}
	return to, nil
}
