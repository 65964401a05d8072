package replay

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

type window = store.Load // which has a method of the name Load

// empty is a load into which nothing was written.
type empty struct{ window }

func (empty) Bytes() int { return 0 }

// TestBadRecordsTakeNoRoom: of records that cannot be used and of gaps, a window keeps what the caller is told, and no record;
// and it is full once that takes its memory.
func TestBadRecordsTakeNoRoom(t *testing.T) {
	told := 0
	b := &Bulk{load: empty{}, size: Size{Memory: 1 << 20}}
	b.to = &Replay{Runner: &runner.Runner{}, Bad: func(e events.Entry, err error) {
		if told++; e.Line == 0 || e.File != "one" || err.Error() != "no record" {
			t.Errorf("%+v %v", e, err)
		}
	}, Gap: func(Gap) { told++ }}
	b.beginWindow()
	const size, most = 64 << 10, 1000
	before := heap()
	n := 0
	for ; n < most && !b.isFull(); n++ {
		text := strings.Repeat("x", size)
		e := events.Entry{Location: events.Location{File: "one", Line: int64(n) + 1}, Bad: &events.Bad{Raw: []byte(text), Err: errors.New("no record")}}
		b.replay.Bad(e, e.Bad)
		b.replay.Gap(Gap{Row: store.Ref{Table: "t", Key: store.Key{Partition: value.OfString(text[:10])}}})
	}
	if grown := heap() - before; n < most || grown > 8<<20 {
		t.Errorf("%d records take %d KB", n, grown>>10)
	}
	for ; n < 100*most && !b.isFull(); n++ {
		b.replay.Bad(events.Entry{Location: events.Location{File: "one", Line: 1}}, errors.New("no record"))
	}
	if n == 100*most {
		t.Error("the window is never full")
	}
	for _, say := range b.said {
		say()
	}
	if told != n+most {
		t.Errorf("%d of %d are told", told, n+most)
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
