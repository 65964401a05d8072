package model

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPartOf(t *testing.T) {
	tests := []struct {
		unit           Unit
		zone, at, want string
	}{
		{Hour, "", "2026-03-29T01:59:59Z", "2026-03-29T01Z"},
		{Day, "UTC", "2026-12-31T23:59:59.999999999Z", "2026-12-31"},
		{Day, "", "2026-12-31T23:30:00-01:00", "2027-01-01"},
		{Day, "Europe/Berlin", "2026-12-31T23:00:00Z", "2027-01-01"},
		{Day, "Europe/Berlin", "2026-12-31T22:59:59Z", "2026-12-31"},
		{Month, "America/New_York", "2026-03-01T04:59:59Z", "2026-02"},
		{Month, "America/New_York", "2026-03-01T05:00:00Z", "2026-03"},
		{Year, "Pacific/Kiritimati", "2026-12-31T10:00:00Z", "2027"},

		// The clocks go forward, and back.
		{Hour, "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01+01:00"},
		{Hour, "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03+02:00"},
		{Hour, "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02+02:00"},
		{Hour, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T02+01:00"},
		{Hour, "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05T01+11:00"},
		{Hour, "Australia/Lord_Howe", "2026-04-04T15:15:00Z", "2026-04-05T01+10:30"},

		// Zones with half and quarter hours.
		{Hour, "Asia/Kolkata", "2026-01-05T04:29:59Z", "2026-01-05T09+05:30"},
		{Hour, "Asia/Kolkata", "2026-01-05T04:30:00Z", "2026-01-05T10+05:30"},
		{Hour, "Asia/Kathmandu", "2026-01-05T18:15:00Z", "2026-01-06T00+05:45"},
		{Day, "Asia/Kolkata", "2026-01-05T18:29:59Z", "2026-01-05"},
		{Day, "Asia/Kolkata", "2026-01-05T18:30:00Z", "2026-01-06"},

		// Weeks of ISO 8601 around the new year.
		{Week, "", "2026-12-31T00:00:00Z", "2026-W53"},
		{Week, "", "2027-01-03T23:59:59Z", "2026-W53"},
		{Week, "", "2027-01-04T00:00:00Z", "2027-W01"},
		{Week, "", "2024-12-30T00:00:00Z", "2025-W01"},
		{Week, "", "2021-01-03T00:00:00Z", "2020-W53"},
		{Week, "Europe/Berlin", "2027-01-03T23:00:00Z", "2027-W01"},

		{Year, "", "0000-01-01T00:00:00Z", "0000"},
		{Year, "Europe/Berlin", "9999-12-31T23:30:00Z", ""},
		{Year, "America/New_York", "0000-01-01T00:00:00Z", ""},
		{Week, "", "0000-01-01T00:00:00Z", ""}, // a Saturday of the year before
	}
	for _, tt := range tests {
		zone, err := zoneOf(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := partOf(tt.unit, zone, at)
		if begin, is := beginOf(tt.unit, zone, got); is != ok || ok && begin.After(at) {
			t.Errorf("%s begins at %v, %v", got, begin, is)
		} else if part, _ := partOf(tt.unit, zone, begin); ok && part != got && tt.zone != "Australia/Lord_Howe" {
			t.Errorf("%s begins at %v, which is in %s", got, begin, part)
		} else if part, _ := partOf(tt.unit, zone, begin.Add(-1)); ok && part == got {
			t.Errorf("%s begins before %v", got, begin)
		}
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s of %s in %q is %q, want %q", tt.unit, tt.at, tt.zone, got, tt.want)
		}
	}
}

// TestLongDays counts the hours of the days on which clocks change.
func TestLongDays(t *testing.T) {
	zone, err := zoneOf("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	hours := map[string]map[string]int{}
	for at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2026; at = at.Add(15 * time.Minute) {
		day, _ := partOf(Day, zone, at)
		hour, _ := partOf(Hour, zone, at)
		if hours[day] == nil {
			hours[day] = map[string]int{}
		}
		hours[day][hour]++
	}
	for day, of := range hours {
		want := 24
		switch day {
		case "2026-03-29":
			want = 23
		case "2026-10-25":
			want = 25
		case "2027-01-01": // the year begins there an hour early
			want = 1
		case "2026-01-01":
			want = 23
		}
		if len(of) != want {
			t.Errorf("%s has %d hours, want %d", day, len(of), want)
		}
		for hour, n := range of {
			if n != 4 {
				t.Errorf("%s has %d quarters", hour, n)
			}
		}
	}
}

// TestZones reads every zone of the database, and tells their rules apart.
func TestZones(t *testing.T) {
	names := zoneNames()
	if len(names) < 400 {
		t.Fatalf("%d zones", len(names))
	}
	for _, name := range names {
		if _, err := zoneOf(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	rules := func(name string) string {
		zone, err := zoneOf(name)
		if err != nil {
			t.Fatal(err)
		}
		return rulesOf(zone)
	}
	if rules("Europe/Berlin") == rules("Europe/London") || rules("Europe/London") != rules("GB") || rules("") != rules("Etc/UTC") {
		t.Error("rules are not those of the zones")
	}
	for _, name := range []string{"Europe/Nowhere", "europe/berlin", "Europe/", "Local", "../etc/passwd"} {
		if _, err := zoneOf(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
}

// TestOwnRules checks that the zones of the machine have no say.
func TestOwnRules(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "zoneinfo.zip"), data[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZONEINFO", filepath.Join(dir, "zoneinfo.zip"))
	if _, err := zoneOf("Asia/Tokyo"); err != nil {
		t.Error(err)
	}
}
