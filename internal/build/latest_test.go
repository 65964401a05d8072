package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
)

// talk is a model without the latest of rows, and talkLatest one with it.
const (
	talk = `model: talk
tables:
  talk: {key: [PK, SK]}
entities:
  Room: {where: {type: Room}, key: {PK: "ROOM#{room}", SK: ABOUT}, attributes: {name: string}}
  Line: {where: {type: Line}, key: {PK: "LINE#{id}", SK: LINE}, attributes: {room: string, at: number, text: string}}
derive:
  Room.lines: {count: Line}
`
	talkLatest = talk + `  Room.last: {latest: Line.text, by: at, also: {lastAt: at}}
  Room.least: {min: Line.at}
`
)

// TestLatestBuilt: the latest of rows is derived from rows that are there. A dry run says what
// rows will show; a changed definition, the stream afterwards and the audit make it right.
func TestLatestBuilt(t *testing.T) { open(t, load(t, talk)).latestBuilt() }

// TestLatestBuiltOnDynamoDB is the same on DynamoDB.
func TestLatestBuiltOnDynamoDB(t *testing.T) { openOnDynamoDB(t, load(t, talk)).latestBuilt() }

func (f *fixture) latestBuilt() {
	line := func(id, room, at int) {
		f.write("PK", fmt.Sprint("LINE#", id), "SK", "LINE", "type", "Line", "room", fmt.Sprint(room), "at", at, "text", fmt.Sprint("t", id))
	}
	shows := func(when string, want ...string) {
		f.Helper()
		for room, want := range want {
			row := f.rows(f.table)[fmt.Sprintf("ROOM#%d ABOUT", room)]
			if row == nil {
				for name, r := range f.rows(f.table) {
					if strings.Contains(name, fmt.Sprint("ROOM#", room)) {
						row = r
					}
				}
			}
			got := fmt.Sprintf("%s %s %s %s", row.Get("lines").Text(), row.Get("last").Text(), row.Get("lastAt").Text(), row.Get("least").Text())
			if got != want {
				f.Errorf("%s: room %d shows %q, want %q", when, room, got, want)
			}
		}
		f.verified()
	}
	f.read()
	for room := range 3 {
		f.write("PK", fmt.Sprint("ROOM#", room), "SK", "ABOUT", "type", "Room")
	}
	for id := range 20 {
		line(id, id%2, id)
	}
	f.catchUp()
	f.with(load(f.TB, talkLatest))
	b := f.builder("Room")
	b.Again = false
	said := map[string]string{}
	for _, p := range f.previews(b) {
		said[p.Derivation] = fmt.Sprint(p.Rows, p.Differ)
		for _, x := range p.Some {
			said[p.Derivation] += fmt.Sprintf(" %s>%s", x.Is, x.Will)
		}
	}
	if want := `3 2 {}>{"last":"t18","lastAt":18} {}>{"last":"t19","lastAt":19}`; said["Room.last"] != want {
		f.Errorf("the dry run says %q, want %q", said["Room.last"], want)
	}
	if want := "3 2 nothing>0 nothing>1"; said["Room.least"] != want {
		f.Errorf("the dry run says %q, want %q", said["Room.least"], want)
	}
	f.build(owntable.BuildLive, "Room")
	f.catchUp()
	shows("built", "10 t18 18 0", "10 t19 19 1", "0   ")
	line(18, 2, 18)
	f.write("PK", "LINE#19", "SK", "LINE")
	line(0, 0, 7)
	f.catchUp()
	shows("after the stream", "9 t16 16 2", "9 t17 17 1", "1 t18 18 18")

	f.with(load(f.TB, strings.ReplaceAll(talkLatest, "latest: Line.text, by: at", "earliest: Line.text, by: at, where: {at: {above: 2}}")))
	f.build(owntable.BuildLive, "Room")
	f.catchUp()
	shows("built again", "9 t4 4 2", "9 t3 3 1", "1 t18 18 18")
	for id := range 19 {
		f.write("PK", fmt.Sprint("LINE#", id), "SK", "LINE")
	}
	f.catchUp()
	shows("without lines", "0   ", "0   ", "0   ")
}
