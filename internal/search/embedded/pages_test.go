package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"weir/internal/failtest"
)

// manyPages makes a database with pages of every kind: branches, buckets with pages of their
// own, small buckets, and a value that is longer than a page.
func manyPages(t *testing.T) (path string, b []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), rootFile)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: 1024, InitialMmapSize: 1 << 16})
	failtest.On(t, err)
	defer db.Close()
	for round := range 2 { // the second one frees pages
		err = db.Update(func(tx *bbolt.Tx) error {
			top, err := tx.CreateBucketIfNotExists([]byte("top"))
			for n := range 12 {
				if err == nil {
					err = top.Put(fmt.Appendf(nil, "key%02d", n), bytes.Repeat([]byte{byte(round)}, 200))
				}
			}
			if err != nil {
				return err
			}
			under, err := top.CreateBucketIfNotExists([]byte("under"))
			if err != nil {
				return err
			}
			little, err := under.CreateBucketIfNotExists([]byte("little"))
			if err != nil {
				return err
			}
			return errors.Join(little.Put([]byte("a"), []byte("b")), under.Put([]byte("long"), bytes.Repeat([]byte("x"), 1500)))
		})
		failtest.On(t, err)
	}
	if b, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, b
}

// errMuch says that bbolt reads more than the file has.
var errMuch = errors.New("it reads more than the file has")

// readAll reads all that bbolt finds in a bucket, and no more than left bytes.
func readAll(b *bbolt.Bucket, left *int) error {
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if *left -= 1 + len(k) + len(v); *left < 0 {
			return errMuch
		}
		if v == nil {
			if under := b.Bucket(k); under != nil {
				if err := readAll(under, left); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestFlippedPages: whichever bit of a bbolt file is wrong, its pages are refused, or bbolt
// reads no more than the file has. WEIR_TEST_EVERY_BYTE=1 flips every bit.
func TestFlippedPages(t *testing.T) {
	path, whole := manyPages(t)
	refused, read := 0, 0
	for bit := 0; bit < 8*len(whole); bit += 1 + 12*(step(true, whole)/65) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		failtest.On(t, os.WriteFile(path, b, 0o600))
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			refused++
			continue
		}
		err = db.View(func(tx *bbolt.Tx) error {
			if err := checkPages(db, tx); err != nil {
				refused++
				return nil
			}
			read++
			left := len(whole)
			return readAll(tx.Cursor().Bucket(), &left)
		})
		if err = errors.Join(err, db.Close()); err != nil {
			t.Errorf("bit %d of byte %d: %v", bit%8, bit/8, err)
		}
	}
	t.Logf("%d bytes: %d refused, %d read", len(whole), refused, read)
	if refused == 0 || read == 0 {
		t.Error("nothing was refused, or nothing was read")
	}
}

// TestPageCircle: a page that lies below itself is refused.
func TestPageCircle(t *testing.T) {
	path, whole := manyPages(t)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	failtest.On(t, err)
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		if err := checkPages(db, tx); err != nil {
			t.Errorf("a file without damage: %v", err)
		}
		root, top := uint64(tx.Cursor().Bucket().Root()), uint64(tx.Bucket([]byte("top")).Root())
		p := pages{bytes.NewReader(whole), 1024, uint64(len(whole)) / 1024, map[uint64]bool{}}
		page := whole[top*1024 : (top+1)*1024]
		if page[8] != branchPage {
			t.Fatalf("page %d has flags %d", top, page[8])
		}
		copy(page[pageHead+8:], whole[top*1024:top*1024+8]) // its first page is itself
		if err := p.checkPage(root); err == nil {
			t.Error("it is not refused")
		}
		return nil
	})
	failtest.On(t, err)
}
