package embedded

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/events"
)

var genRow = rapid.OneOf(
	rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 1, 40),
	rapid.SliceOfN(rapid.Byte(), 0, 60))

var genChange = rapid.Custom(func(t *rapid.T) change {
	c := change{expired: rapid.Bool().Draw(t, "expired")}
	c.time = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"), rapid.Int64Range(0, 999999999).Draw(t, "nsec")).UTC()
	if rapid.Bool().Draw(t, "origin") {
		c.origin = events.PositionOf(rapid.Uint64Min(1).Draw(t, "position"))
	}
	have := rapid.IntRange(1, 3).Draw(t, "images")
	if have&1 != 0 {
		c.old = genRow.Draw(t, "old")
	}
	if have&2 != 0 {
		c.new = genRow.Draw(t, "new")
	}
	return c
})

func sameChange(a, b *change) bool {
	return bytes.Equal(a.old, b.old) && (a.old == nil) == (b.old == nil) && bytes.Equal(a.new, b.new) && (a.new == nil) == (b.new == nil) &&
		a.time.Equal(b.time) && a.origin == b.origin && a.expired == b.expired
}

func TestRecordForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genChange.Draw(t, "change")
		form := appendRecord(nil, &c)
		back, err := decodeRecord(form)
		if err != nil || !sameChange(&c, &back) {
			t.Fatalf("%+v comes back as %+v, %v", c, back, err)
		}
		cut := rapid.IntRange(0, len(form)-1).Draw(t, "cut")
		if back, err := decodeRecord(form[:cut]); err == nil && c.new == nil {
			t.Fatalf("%d of %d bytes give %+v", cut, len(form), back)
		}
	})
}

func TestRecordFormIsSmall(t *testing.T) {
	old := bytes.Repeat([]byte("0123456789"), 100)
	changed := bytes.Clone(old)
	changed[500] = 'x'
	form := appendRecord(nil, &change{old: old, new: changed, time: time.Unix(1e9, 0)})
	if len(form) > len(old)+20 {
		t.Errorf("%d bytes for a row of %d and one changed byte", len(form), len(old))
	}
}

// FuzzRecordForm: any bytes are a record or are refused, without a panic.
func FuzzRecordForm(f *testing.F) {
	for _, c := range []change{{old: []byte("a")}, {new: []byte("bc"), origin: events.PositionOf(7)}, {old: []byte("abcd"), new: []byte("abxd"), expired: true}} {
		f.Add(appendRecord(nil, &c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeRecord(b)
		if err != nil {
			return
		}
		back, err := decodeRecord(appendRecord(nil, &c))
		if err != nil || !sameChange(&c, &back) {
			t.Fatalf("%x: %+v comes back as %+v, %v", b, c, back, err)
		}
		tab := benchTable()
		if _, err := c.event(&table{Table: tab}, 1); err != nil {
			return
		}
	})
}
