package live

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/value"
)

// FuzzSpool damages a segment as a crash of the machine does: it is cut off, a byte
// is flipped, something else stands behind. Every record before the damage is there
// when the spool is opened again, none is there that was not written, and it goes on
// from the last one.
func FuzzSpool(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200}, uint16(0), uint16(0), byte(0), []byte{}, true)
	f.Add([]byte{9, 8, 7, 6, 5}, uint16(30), uint16(0), byte(0), []byte{}, true)
	f.Add([]byte{9, 8, 7, 6, 5}, uint16(0), uint16(50), byte(1), []byte{}, false)
	f.Add([]byte{9, 8}, uint16(1), uint16(0), byte(0), make([]byte, 100), false)
	f.Add([]byte{}, uint16(0), uint16(0), byte(0), []byte("rubbish"), true)
	f.Fuzz(func(t *testing.T, shapes []byte, cut, at uint16, flip byte, tail []byte, ended bool) {
		written := shaped(shapes[:min(len(shapes), 40)])
		var content []byte
		var ends []int
		for i := range written {
			content = appendFrame(content, &written[i])
			ends = append(ends, len(content))
		}
		damage := len(content)
		if cut > 0 {
			damage -= int(cut) % (len(content) + 1)
			content = content[:damage]
		}
		if flip != 0 && len(content) > 0 {
			content[int(at)%len(content)] ^= flip
			damage = min(damage, int(at)%len(content))
		}
		whole := 0
		for whole < len(ends) && ends[whole] <= damage {
			whole++
		}
		reopens(t, append(content, tail...), written, whole, ended)
	})
}

func reopens(t *testing.T, content []byte, written []events.Record, whole int, ended bool) {
	dir := t.TempDir()
	last := events.Position{}
	if len(written) > 0 {
		last = written[len(written)-1].Position
	}
	must(t, os.WriteFile(filepath.Join(dir, padded(events.Position{})+suffix), content, 0o644))
	if ended {
		must(t, os.WriteFile(filepath.Join(dir, endFile), []byte(last.String()), 0o644))
	}
	s := opened(t, dir, 0)
	got, end := all(t, s, 0, 7)
	if len(got) < whole {
		t.Fatalf("%d records of %d before the damage", len(got), whole)
	}
	if whole > 0 {
		same(t, got[:whole], written[:whole])
	}
	var frames []byte
	for i := range got {
		frames = appendFrame(frames, &got[i])
	}
	if !bytes.HasPrefix(content, frames) {
		t.Fatal("what was read is not what stands there")
	}
	reached, says := s.position()
	if says != (ended && reached == last && len(s.segments) > 0) || end && !says {
		t.Fatalf("at %v of %v, ended %v, the page says %v", reached, last, says, end)
	}
	next := events.Record{Table: "t", Keys: row(1)[:1], New: row(1), Position: reached}
	for next.Position == reached {
		next.Position = events.PositionOf(reached.Uint64() + 1)
		if next.Position.Compare(reached) <= 0 {
			return // a position beyond those that were written, from a tail that is a frame
		}
	}
	must(t, s.append([]events.Record{next}))
	s.close()
	again, _ := all(t, opened(t, dir, 0), 0, 100)
	same(t, again, append(got, next))
}

// shaped makes records of many shapes, one for each byte.
func shaped(shapes []byte) (out []events.Record) {
	at := uint64(0)
	for _, b := range shapes {
		at += 1 + uint64(b%5)
		r := events.Record{Table: "t", Keys: row(int(b))[:1], Position: events.PositionOf(at), Expired: b&1 != 0}
		if b&2 != 0 {
			r.Old = row(int(b) + 1)
		}
		if b&4 != 0 {
			r.New = value.NewItem(value.Attr{Name: "pad", Value: value.OfString(string(make([]byte, int(b))))})
		}
		if b&8 != 0 {
			r.Time, r.ID, r.Origin = time.Unix(int64(b), 7).UTC(), "id", events.PositionOf(at*3)
		}
		out = append(out, r)
	}
	return out
}
