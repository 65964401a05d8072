package model

// This file says in which hour, day, week, month or year a time is, in a zone. It has
// the rules of the zones with it, so that every machine that runs one version of weir agrees,
// whatever its operating system has installed.

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// zones is the IANA time zone database as Go's distribution has it (lib/time/zoneinfo.zip).
//
//go:embed zoneinfo.zip
var zones []byte

// Unit is a part of the calendar.
type Unit string

// The units.
const (
	Hour  Unit = "hour"
	Day   Unit = "day"
	Week  Unit = "week" // of ISO 8601
	Month Unit = "month"
	Year  Unit = "year"
)

// zoneOf returns a zone by its name in the IANA database, or UTC for "" and "UTC".
func zoneOf(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	z, err := zip.NewReader(bytes.NewReader(zones), int64(len(zones)))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == name && !strings.HasSuffix(name, "/") })
	if i < 0 {
		return nil, fmt.Errorf("there is no time zone %q", name)
	}
	f, err := z.File[i].Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

// zoneNames returns the names of all zones.
func zoneNames() (out []string) {
	z, err := zip.NewReader(bytes.NewReader(zones), int64(len(zones)))
	if err != nil {
		return nil
	}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") {
			out = append(out, f.Name)
		}
	}
	return out
}

// rulesOf returns a hash of everything that decides how a zone reads the times that partOf takes:
// when its distance from UTC changes, and to which.
func rulesOf(zone *time.Location) string {
	h := sha256.New()
	at, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for at.Before(last) {
		_, offset := at.In(zone).Zone()
		_, end := at.In(zone).ZoneBounds()
		fmt.Fprintln(h, at.Unix(), offset)
		if end.IsZero() || !end.After(at) {
			break
		}
		at = end
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// layouts are how a part of the calendar is written, but for a week. An hour has its
// distance from UTC with it: of the two hours from 2 to 3 on the day on which clocks go back,
// each is an hour of its own. Texts of one unit sort by time, but for these two.
var layouts = map[Unit]string{Hour: "2006-01-02T15Z07:00", Day: "2006-01-02", Month: "2006-01", Year: "2006"}

// beginOf returns when a part of the calendar begins, which partOf says. ok is false of another text.
func beginOf(unit Unit, zone *time.Location, text string) (t time.Time, ok bool) {
	if unit != Week {
		t, err := time.ParseInLocation(layouts[unit], text, zone)
		return t, err == nil
	}
	var year, week int
	if n, err := fmt.Sscanf(text, "%4d-W%2d", &year, &week); n < 2 || err != nil {
		return t, false
	}
	first := time.Date(year, 1, 4, 0, 0, 0, 0, zone) // is always in the first week
	return time.Date(year, 1, 4-(int(first.Weekday())+6)%7+7*(week-1), 0, 0, 0, 0, zone), true
}

// partOf returns the part of the calendar that a time is in. ok is false if the part has no year
// of four digits.
func partOf(unit Unit, zone *time.Location, t time.Time) (text string, ok bool) {
	t = t.In(zone)
	year, week := t.Year(), 0
	if unit == Week {
		year, week = t.ISOWeek()
	}
	switch {
	case year < 0 || year > 9999:
		return "", false
	case unit == Week:
		return fmt.Sprintf("%04d-W%02d", year, week), true
	}
	return t.Format(layouts[unit]), true
}
