package sorter_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/internal/sorter"
)

// memory is a file in memory. It can be made to fail.
type memory struct {
	buf    []byte
	closed bool
	full   int // bytes from which on writes fail, 0 for never
}

var errFull = errors.New("full")

func (m *memory) Write(p []byte) (int, error) {
	if m.full > 0 && len(m.buf)+len(p) > m.full {
		return 0, errFull
	}
	m.buf = append(m.buf, p...)
	return len(p), nil
}

func (m *memory) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(m.buf).ReadAt(p, at)
}

func (m *memory) Close() error { m.closed = true; return nil }

type pair struct{ key, val string }

func read(t *testing.T, s *sorter.Sorter) (out []pair) {
	t.Helper()
	r, err := s.Sorted()
	for err == nil {
		var key, val []byte
		if key, val, err = r.Next(); err == nil {
			out = append(out, pair{string(key), string(val)})
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("behind the end: %v", err)
	}
	return out
}

// TestSorter: values come back in the order of their keys, and those of one key in the order in
// which they were added, whatever the memory, which is not exceeded.
func TestSorter(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		most := 1 << r.IntN(16)
		var files []*memory
		s := sorter.New(most, func() (sorter.File, error) {
			files = append(files, &memory{})
			return files[len(files)-1], nil
		})
		var want []pair
		for i := range r.IntN(3000) {
			p := pair{fmt.Sprintf("%.*s%d", r.IntN(12), "a common beginning", r.IntN(40)), fmt.Sprint(i)}
			if r.IntN(9) == 0 {
				p.key += string(make([]byte, r.IntN(9)))
			}
			if r.IntN(9) == 0 {
				p.key, p.val = p.key[:r.IntN(len(p.key)+1)], ""
			}
			want = append(want, p)
			if err := s.Add([]byte(p.key), []byte(p.val)); err != nil {
				t.Fatal(err)
			}
			if s.Bytes() > max(most, 100) {
				t.Fatalf("seed %d: %d bytes in memory, %d are allowed", seed, s.Bytes(), most)
			}
		}
		slices.SortStableFunc(want, func(a, b pair) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
		if got := read(t, s); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %d bytes of memory: wrong order", seed, most)
		}
		if len(files) > 1 || (len(files) == 1) != (s.Len() > int64(s.Bytes())) {
			t.Fatalf("seed %d: %d files, %d bytes of %d in memory", seed, len(files), s.Bytes(), s.Len())
		}
		if err := s.Close(); err != nil || len(files) == 1 && !files[0].closed || s.Len() != 0 {
			t.Fatalf("seed %d: after Close: %v, %d bytes", seed, err, s.Len())
		}
	}
}

// TestShorten: a value is shortened before the next of its key in the same piece, and no other.
func TestShorten(t *testing.T) {
	s := sorter.New(150, func() (sorter.File, error) { return &memory{}, nil })
	s.Shorten = func(val, next []byte) int {
		if string(next) == "long 3" {
			return len(val)
		}
		return 4
	}
	for i, key := range []string{"b", "a", "b", "b", "c", "b", "a"} {
		if err := s.Add([]byte(key), []byte(fmt.Sprint("long ", i))); err != nil {
			t.Fatal(err)
		}
	}
	want := []pair{{"a", "long 1"}, {"a", "long 6"}, {"b", "long"}, {"b", "long 2"}, {"b", "long 3"}, {"b", "long 5"}, {"c", "long 4"}}
	if got := read(t, s); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// TestNoRoom: a file that takes no more is an error of Add or Sorted.
func TestNoRoom(t *testing.T) {
	s := sorter.New(100, func() (sorter.File, error) { return &memory{full: 1000}, nil })
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		err = s.Add([]byte(fmt.Sprint(i)), make([]byte, 10))
	}
	if err == nil {
		_, err = s.Sorted()
	}
	if !errors.Is(err, errFull) {
		t.Errorf("a full file: %v", err)
	}
	s = sorter.New(1, func() (sorter.File, error) { return nil, errFull })
	if err = s.Add([]byte("a"), nil); err == nil {
		err = s.Add([]byte("b"), nil)
	}
	if !errors.Is(err, errFull) {
		t.Errorf("no file: %v", err)
	}
}
