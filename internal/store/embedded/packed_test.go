package embedded

import (
	"fmt"
	"testing"
)

// TestPacked: of rows that are added, it has the newest, as many as fill half the room, and
// not more than fill all; what was asked for lately and added again stays.
func TestPacked(t *testing.T) {
	const room, rows = 10_000, 1000
	var q packedRows
	key := func(i int) string { return fmt.Sprint("key", i) }
	row := func(i int) []byte { return fmt.Appendf(nil, "%0100d", i) }
	has := func(i int) bool {
		got := q.get(uint64(i), []byte(key(i)))
		if got != nil && string(got) != string(row(i)) {
			t.Fatalf("row %d is %q", i, got)
		}
		return got != nil
	}
	for i := range rows {
		q.add(room, uint64(i), key(i), row(i))
		if i > 0 && !has(0) {
			t.Fatalf("row 0 is forgotten after %d others, and was added after each", i)
		}
		q.add(room, 0, key(0), row(0))
	}
	kept := 0
	for i := range rows {
		if has(i) {
			kept++
		} else if kept > 1 {
			t.Errorf("row %d is forgotten, an older one is not", i)
		}
	}
	if size := packedEntry + packedLengths + len(key(rows)) + 100; kept < room/2/size || kept > room/size {
		t.Errorf("%d rows of %d bytes in %d", kept, size, room)
	}
	q.drop(rows - 1)
	if has(rows - 1) {
		t.Error("a row was dropped and is there")
	}
	if q.get(rows-2, []byte("another key")) != nil {
		t.Error("a row for a key whose hash alone is that row's")
	}
	q.add(room, rows, "large", make([]byte, room/4))
	if q.get(rows, []byte("large")) != nil || !has(rows-2) {
		t.Error("a row that takes a quarter of the room drove others out")
	}
	got := q.get(rows-2, []byte(key(rows-2)))
	for i := range rows {
		q.add(room, uint64(2*rows+i), key(2*rows+i), row(2*rows+i))
	}
	if string(got) != string(row(rows-2)) {
		t.Errorf("what it gave out has changed to %q", got)
	}
}
