package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// reopen closes a store and opens its directory with other tables.
func reopen(t *testing.T, s *Store, tables ...store.Table) *Store {
	t.Helper()
	failtest.On(t, s.Close())
	return open(t, "data", tables, s.opts)
}

func openMem(t *testing.T, tables ...store.Table) *Store {
	return open(t, "data", tables, Options{FS: vfs.NewMem(), Logger: quiet})
}

func find(t *testing.T, s *Store, index string, partition string) (sks []string) {
	t.Helper()
	p, err := s.Query(context.Background(), store.Query{Table: "things", Index: index, Partition: val(partition)})
	failtest.On(t, err)
	for _, row := range p.Rows {
		sks = append(sks, row.Get("SK").Text())
	}
	return sks
}

func TestNewIndexOverExistingRows(t *testing.T) {
	bare := things()
	bare.Indexes, bare.TTL = nil, ""
	s := openMem(t, bare)
	do(t, s, put("a", "1", "kind", "k", "at", "2", "score", 1, "ttl", 5), put("a", "2", "kind", "k"), put("b", "3", "kind", "k", "at", "1"),
		put("b", "4", "kind", 7, "at", "x", "ttl", "soon"), put("b", "5", "kind", "k", "at", ""))
	s = reopen(t, s, things())
	verify(t, s)
	if got := fmt.Sprint(find(t, s, "kind", "k")); got != "[3 1]" {
		t.Errorf("index kind holds %s", got)
	}
	if got := fmt.Sprint(find(t, s, "score", "k")); got != "[1]" {
		t.Errorf("index score holds %s", got)
	}
	// A row that could not be written today is not in the index, and goes in
	// when it is mended.
	do(t, s, put("b", "4", "kind", "k", "at", "9"))
	verify(t, s)
	if got := fmt.Sprint(find(t, s, "kind", "k")); got != "[3 1 4]" {
		t.Errorf("index kind holds %s", got)
	}
}

func TestDroppedIndex(t *testing.T) {
	s := openMem(t, things())
	do(t, s, put("a", "1", "kind", "k", "at", "2", "ttl", 3))
	bare := things()
	bare.Indexes, bare.TTL = nil, ""
	s = reopen(t, s, bare)
	n := 0
	scan(t, s, []byte{spaceIndex}, func(_, _ []byte) { n++ })
	if n != 0 {
		t.Errorf("%d entries are left", n)
	}
	do(t, s, del("a", "1"), put("a", "2", "kind", "k", "at", "3"))
	s = reopen(t, s, things())
	verify(t, s)
	if got := fmt.Sprint(find(t, s, "kind", "k")); got != "[2]" {
		t.Errorf("index kind holds %s", got)
	}
}

func TestChangedIndex(t *testing.T) {
	s := openMem(t, things())
	do(t, s, put("a", "1", "kind", "k", "at", "2", "other", "1"), put("a", "2", "kind", "k", "at", "1", "other", "2"), put("a", "3", "kind", "k", "other", "0"))
	changed := things()
	changed.Indexes[0].Key.Sort = str("other")
	changed.TTL = "expires"
	s = reopen(t, s, changed)
	verify(t, s)
	if got := fmt.Sprint(find(t, s, "kind", "k")); got != "[3 1 2]" {
		t.Errorf("index kind holds %s", got)
	}
}

func TestChangedKeyIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*store.Table)
		want   string
	}{
		"another sort key": {func(t *store.Table) { t.Key.Sort.Name = "RANGE" }, "[PK (S) SK (S)] in this directory and [PK (S) RANGE (S)]"},
		"another type":     {func(t *store.Table) { t.Key.Sort.Type = value.Number }, "[PK (S) SK (N)]"},
		"no sort key":      {func(t *store.Table) { t.Key.Sort = store.KeyAttr{} }, "[PK (S)]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openMem(t, things())
			do(t, s, put("a", "b"))
			failtest.On(t, s.Close())
			changed := things()
			c.change(&changed)
			_, err := Open("data", []store.Table{changed}, s.opts)
			if err == nil || !strings.Contains(err.Error(), "table things") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
			s = open(t, "data", []store.Table{things()}, s.opts)
			if get(t, s, "a", "b") == nil {
				t.Error("the row is gone")
			}
		})
	}
}

func TestTablesKeepTheirRowsWhileNotGiven(t *testing.T) {
	other := things()
	other.Name = "others"
	s := openMem(t, things(), other)
	do(t, s, put("a", "b", "kind", "k", "at", "1"))
	s = reopen(t, s, other)
	if _, err := s.Get(context.Background(), []store.Ref{ref("a", "b")}); !errors.Is(err, store.ErrNoTable) {
		t.Errorf("error %v", err)
	}
	third := things()
	third.Name = "a third"
	s = reopen(t, s, third, things())
	verify(t, s)
	if get(t, s, "a", "b") == nil {
		t.Error("the row is gone")
	}
	if n := len(allRecords(t, s, "a third")); n != 0 {
		t.Errorf("a new table has %d records", n)
	}
}

func TestNumbersGoOnAfterReopening(t *testing.T) {
	other := things()
	other.Name = "others"
	s := openMem(t, things(), other)
	do(t, s, put("a", "b"), put("a", "c"))
	w := put("x", "y")
	w.Table = "others"
	do(t, s, w)
	last := allRecords(t, s, "others")[0].Position
	// The other table's stream is not open now, and still counts.
	s = reopen(t, s, things())
	do(t, s, put("a", "d"))
	rs := allRecords(t, s, "things")
	if got := rs[len(rs)-1].Position; got.Compare(last) <= 0 {
		t.Errorf("position %v after %v", got, last)
	}
}

func TestStreamSwitchedOffAndOn(t *testing.T) {
	s := openMem(t, things())
	do(t, s, put("a", "1"))
	off := things()
	off.Stream = false
	s = reopen(t, s, off)
	do(t, s, put("a", "2"))
	shards, err := s.Shards(context.Background(), "things")
	if err != nil || len(shards) != 4 || !shards[0].Closed {
		t.Errorf("shards %v, %v", shards, err)
	}
	if n := len(allRecords(t, s, "things")); n != 1 {
		t.Errorf("%d records", n)
	}
	s = reopen(t, s, things())
	do(t, s, put("a", "3"))
	rs := allRecords(t, s, "things")
	if len(rs) != 2 || rs[1].New.Get("SK").Text() != "3" {
		t.Errorf("%d records", len(rs))
	}
	if shards, _ := s.Shards(context.Background(), "things"); len(shards) != 8 {
		t.Errorf("%d shards", len(shards))
	}
}

func TestOtherFormatIsRefused(t *testing.T) {
	s := openMem(t, things())
	do(t, s, put("a", "b"))
	failtest.On(t, s.db.Set(keyFormat, []byte("2"), pebble.Sync))
	failtest.On(t, s.Close())
	_, err := Open("data", []store.Table{things()}, s.opts)
	if err == nil || !strings.Contains(err.Error(), "format version 2") || !strings.Contains(err.Error(), "another directory") {
		t.Errorf("error %v", err)
	}
}
