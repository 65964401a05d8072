package summed

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

type list struct {
	Files map[string]Prefix `json:"files"`
}

// TestEveryBit: whichever bit of a list file changes, wherever the file ends, and
// whatever is behind it, it is not read.
func TestEveryBit(t *testing.T) {
	b, err := Marshal(list{map[string]Prefix{"a": {7, 8}, "b": {}}})
	if err != nil {
		t.Fatal(err)
	}
	var got list
	if err := Unmarshal(b, &got); err != nil || got.Files["a"] != (Prefix{7, 8}) || len(got.Files) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	refused := func(what string, at int, b []byte) {
		if Unmarshal(b, &list{}) == nil {
			t.Errorf("%s at %d: %q is read", what, at, b)
		}
	}
	for at := range b {
		for bit := range 8 {
			flipped := slices.Clone(b)
			flipped[at] ^= 1 << bit
			refused("flipped", at, flipped)
		}
		refused("cut", at, b[:at])
		refused("doubled", at, slices.Insert(slices.Clone(b), at, b[at]^1))
	}
	refused("more", len(b), append(slices.Clone(b), '\n'))
	refused("a longer number", 0, append([]byte("0"), b...))
}

// TestFormat: a list is its checksum and its JSON, as files on disks have it.
func TestFormat(t *testing.T) {
	b, err := Marshal(Prefix{3, 907060870})
	if want := "2a6b970e\n{\"bytes\":3,\"sum\":907060870}\n"; err != nil || string(b) != want {
		t.Errorf("%q, %v; want %q", b, err, want)
	}
	var p Prefix
	if err := Unmarshal(b, &p); err != nil || p.Bytes != 3 {
		t.Errorf("%v, %v", p, err)
	}
}

func TestPrefix(t *testing.T) {
	p, err := Read(strings.NewReader("abcdef"), 3)
	if err != nil || p != (Prefix{3, Sum([]byte("abc"))}) || p != (Prefix{}).With([]byte("a")).With([]byte("bc")) {
		t.Errorf("%v, %v", p, err)
	}
	if p, err = Read(bytes.NewReader(nil), 3); err != nil || p != (Prefix{}) {
		t.Errorf("of nothing: %v, %v", p, err)
	}
}
