package embedded

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/events"
	"weir/internal/value"
)

var genRow = rapid.Custom(func(t *rapid.T) value.Item {
	return item("PK", rapid.String().Draw(t, "pk"), "SK", "s", "pad", pad(rapid.IntRange(0, 300).Draw(t, "pad")), "n", rapid.IntRange(0, 9).Draw(t, "n"))
})

var genRecord = rapid.Custom(func(t *rapid.T) events.Record {
	r := events.Record{Table: "things", Position: events.PositionOf(7), Expired: rapid.Bool().Draw(t, "expired")}
	r.Time = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"), rapid.Int64Range(0, 999999999).Draw(t, "nsec")).UTC()
	if rapid.Bool().Draw(t, "origin") {
		r.Origin = events.PositionOf(rapid.Uint64Min(1).Draw(t, "position"))
	}
	have := rapid.IntRange(1, 3).Draw(t, "images")
	if have&1 != 0 {
		r.Old = genRow.Draw(t, "old")
	}
	if have&2 != 0 {
		r.New = genRow.Draw(t, "new")
	}
	return r
})

func sameRecord(a, b *events.Record) bool {
	return value.EqualItems(a.Old, b.Old) && value.EqualItems(a.New, b.New) && a.Time.Equal(b.Time) && a.Origin == b.Origin &&
		a.Expired == b.Expired && a.Table == b.Table && a.Position == b.Position
}

func TestRecordForm(t *testing.T) {
	tab := &table{Table: things()}
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord.Draw(t, "record")
		form := appendRecord(nil, &r)
		back, err := decodeRecord(form, tab, 7)
		if err != nil || !sameRecord(&r, &back) || len(back.Keys) != 2 {
			t.Fatalf("%+v comes back as %+v, %v", r, back, err)
		}
		cut := rapid.IntRange(0, len(form)-1).Draw(t, "cut")
		if back, err := decodeRecord(form[:cut], tab, 7); err == nil {
			t.Fatalf("%d of %d bytes give %+v", cut, len(form), back)
		}
	})
}

// FuzzRecordForm: any bytes are a record or are refused, without a panic.
func FuzzRecordForm(f *testing.F) {
	row := item("PK", "a", "SK", "b")
	for _, r := range []events.Record{{Old: row}, {New: row, Origin: events.PositionOf(7)}, {Old: row, New: row, Expired: true}} {
		f.Add(appendRecord(nil, &r))
	}
	tab := &table{Table: things()}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b, tab, 7)
		if err != nil {
			return
		}
		back, err := decodeRecord(appendRecord(nil, &r), tab, 7)
		if err != nil || !sameRecord(&r, &back) {
			t.Fatalf("%x: %+v comes back as %+v, %v", b, r, back, err)
		}
	})
}
