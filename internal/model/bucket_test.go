package model

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/value"
)

// TestEpoch: which values are times for a bucket of numbers, and the day that each is in.
func TestEpoch(t *testing.T) {
	num := value.MustNumber
	for _, tt := range []struct {
		epoch As
		v     value.Value
		want  string // "" if the value has no day and is unfit
	}{
		{AsSeconds, num("0"), "1970-01-01"},
		{AsSeconds, num("-1"), "1969-12-31"},
		{AsSeconds, num("-0.5"), "1969-12-31"},
		{AsSeconds, num("0.5"), "1970-01-01"},
		{AsSeconds, num("1767225599"), "2025-12-31"},
		{AsSeconds, num("1767225599.999999"), "2025-12-31"},
		{AsSeconds, num("1767225600"), "2026-01-01"},
		{AsSeconds, num("17672256E2"), "2026-01-01"},
		{AsSeconds, num("253402300799"), "9999-12-31"},
		{AsSeconds, num("253402300800"), ""},
		{AsSeconds, num("1767225600000"), ""}, // milliseconds, taken for seconds
		{AsSeconds, num("1E20"), ""},
		{AsSeconds, num("-1E120"), ""},
		{AsSeconds, num("1E-120"), "1970-01-01"},
		{AsSeconds, num("-1E-120"), "1969-12-31"},
		{AsSeconds, num("-62167219200"), "0000-01-01"},
		{AsSeconds, num("-62167219201"), ""},
		{AsMilliseconds, num("1767225599999"), "2025-12-31"},
		{AsMilliseconds, num("1767225600000"), "2026-01-01"},
		{AsMilliseconds, num("-1"), "1969-12-31"},
		{AsMilliseconds, num("253402300799999.9"), "9999-12-31"},
		{AsMilliseconds, num("253402300800000"), ""},
		{AsSeconds, value.OfString("1767225600"), "2026-01-01"},
		{AsSeconds, value.OfString("01767225600"), "2026-01-01"},
		{AsSeconds, value.OfString("2026-01-01T00:00:00Z"), ""},
		{AsSeconds, value.OfString(""), ""},
		{AsSeconds, value.OfBool(true), ""},
		{AsSeconds, value.OfList(num("1")), ""},
		{"", num("1767225600"), ""},
		{"", value.OfString("2026-01-01T00:00:00Z"), "2026-01-01"},
		{"", value.OfString("2026-01-01"), "2026-01-01"},
		{"", value.OfString("2026-01-01T00:30:00+01:00"), "2025-12-31"},
		{"", value.OfString("2025-12-31T23:59:59.999999999999Z"), "2025-12-31"},
		{"", value.OfString("2026-02-30"), ""},
		{"", value.OfString("2026-01-01T00:00:00"), ""},
		{"", value.OfString("2026-01-01T0:00:00Z"), ""},
		{"", value.OfString("2026-01"), ""},
		{"", value.OfString("9999-12-31"), "9999-12-31"},
		{"", value.OfString("9999-12-31T23:00:00-02:00"), ""},
	} {
		b := &Bucket{Of: &Field{Name: "at", Attr: "at", Type: TypeAny}, Unit: Day, Zone: time.UTC, Epoch: tt.epoch}
		got, unfit := b.value(value.NewItem(value.Attr{Name: "at", Value: tt.v}))
		if got.Text() != tt.want || (unfit != nil) != (tt.want == "") {
			t.Errorf("%q of %v is in %q, unfit %v; want %q", tt.epoch, tt.v, got.Text(), unfit, tt.want)
		}
	}
}

// TestEpochRoundsDown compares with fractions: the second of any number within the calendar.
func TestEpochRoundsDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{1,14}(\.[0-9]{1,6})?(E-?[0-9])?`).Draw(t, "number")
		v := value.MustNumber(text)
		for _, e := range forms[TypeTime] {
			r, _ := new(big.Rat).SetString(v.Text())
			if e == AsMilliseconds {
				r.Quo(r, big.NewRat(1000, 1))
			}
			want := new(big.Int).Div(r.Num(), r.Denom())
			got := e.second(v)
			if bound := int64(1e12); want.CmpAbs(big.NewInt(bound)) < 0 && got != want.Int64() || want.CmpAbs(big.NewInt(bound)) >= 0 && max(got, -got) < bound {
				t.Fatalf("%s %s: second %d, want %s", text, e, got, want)
			}
		}
	})
}

// TestEpochDefinition: what a number counts is part of a group's definition, so that a change of
// the unit is built again. Counted in another unit, rows are in other groups.
func TestEpochDefinition(t *testing.T) {
	seen := map[string]string{}
	for _, epoch := range []string{"", ", epoch: seconds", ", epoch: milliseconds"} {
		m := mustParse(t, "days.yaml", `model: days
tables: {days: {key: [PK, SK]}}
entities:
  Note: {where: {t: Note}, key: {PK: "NOTE#{at}", SK: NOTE}, attributes: {size: number}}
  Day: {where: {t: Day}, key: {PK: "DAY#{day}", SK: DAY}, attributes: {day: string, notes: number}}
derive:
  Day: {group: Note, by: {day: {day: at`+epoch+`}}, set: {notes: count}}
`)
		for name, hash := range hashesOf(m) {
			if was, met := seen[name+hash]; met {
				t.Errorf("%s: %q has the definition of %q", name, epoch, was)
			}
			seen[name+hash] = epoch
		}
	}
	if len(seen) == 0 {
		t.Error("nothing is derived")
	}
}
