package owntable

import (
	"strings"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The row of lease|MODEL is a lease: which process reads the model's streams. The reading process
// writes it; nothing deletes it. Each time that a process takes the lease, the lease gets the next fence.
const (
	leaseOwner = "o" // the process; absent once it has released the lease
	leaseFence = "n" // the fence: how often the lease was taken
	leaseBeat  = "b" // heartbeats of the owner under this fence
)

// LeaseRow is the content of a lease. The zero LeaseRow stands for a lease that does not
// exist.
type LeaseRow struct {
	Owner string `row:"o"` // "" if it is free
	Fence int64  `row:"n,1"`
	Beat  int64  `row:"b,0"`
}

const leaseDo = "delete the row while no process reads the shard, and it is made again"

// DecodeLease decodes the row of a lease, nil if there is none. The error wraps ErrRow.
func DecodeLease(row value.Item) (l LeaseRow, err error) {
	if row != nil {
		err = readTagged(row, &l, leaseDo)
	}
	return l, err
}

// Take makes a process the owner under the next fence, on condition that the lease has
// not changed since it was read. The write returns the row.
func (l LeaseRow) Take(at store.Ref, owner string) store.Write {
	w := store.Write{
		Ref: at, Return: true, If: NotThere(),
		Ops: []store.Op{setAttr(leaseOwner, value.OfString(owner)), addTo(leaseFence, 1), setAttr(leaseBeat, value.OfInt(0))},
	}
	if l.Fence > 0 {
		w.If = store.Cond{equalTest(leaseFence, l.Fence), equalTest(leaseBeat, l.Beat)}
	}
	return w
}

// BeatLease renews a lease, on condition that it has no later fence.
func BeatLease(at store.Ref, fence int64) store.Write {
	return store.Write{Ref: at, If: store.Cond{equalTest(leaseFence, fence)}, Ops: []store.Op{addTo(leaseBeat, 1)}}
}

// FreeLease releases a lease, on condition that it has no later fence.
func FreeLease(at store.Ref, fence int64) store.Write {
	return store.Write{Ref: at, If: store.Cond{equalTest(leaseFence, fence)}, Ops: []store.Op{{Kind: store.Remove, Attr: leaseOwner}}}
}

// The rows of stream|MODEL list the streams of a table that must be read. Readers write
// them; nothing deletes them.
const (
	streamLabels = "l" // stream labels (when each was enabled), latest last, separated by spaces
	streamSeen   = "t" // until when all that was written is known to be applied or within reach of a reader, Unix seconds
	streamOpen   = "o" // how many shards got records when that was noted for functions
)

// StreamRow lists the streams of a table by label, and says until when nothing can be lost.
type StreamRow struct {
	Labels []string  // the latest last
	Seen   time.Time `row:"t"` // a process listed the shards then, or all that was written before is applied; zero if that was not noted yet
	Open   int       `row:"o"` // shards that got records when Seen was noted for functions; 0 if it was not
	was    value.Value
	seen   value.Value
}

const streamDo = "delete the row, stop all readers of the table and start them again, and run projector verify MODEL: a gap between two streams is not noticed"

// DecodeStream decodes the row of a table's streams, nil if there is none. The error wraps
// ErrRow.
func DecodeStream(row value.Item) (s StreamRow, err error) {
	labels, err := decodeText(row, streamLabels, streamDo)
	s = StreamRow{Labels: strings.Fields(labels), was: row.Get(streamLabels), seen: row.Get(streamSeen)}
	if err == nil {
		err = readTagged(row, &s, streamDo)
	}
	return s, err
}

// NoteCompleteUntil notes until when nothing can be lost, and how many shards are open unless that is 0, on condition that no other program
// has noted that since the row was read. The zero time notes nothing new.
func (s StreamRow) NoteCompleteUntil(at store.Ref, upTo time.Time, open int) store.Write {
	w := store.Write{Ref: at, If: store.Cond{{store.AsRead(streamSeen, s.seen)}}}
	if !upTo.IsZero() {
		w.Ops = append(w.Ops, setAttr(streamSeen, value.OfInt(upTo.Unix())))
	}
	if open > 0 {
		w.Ops = append(w.Ops, setAttr(streamOpen, value.OfInt(int64(open))))
	}
	return w
}

// Becomes stores other labels, on condition that the stored labels have not changed since
// they were read.
func (s StreamRow) Becomes(at store.Ref, labels []string) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(streamLabels, s.was)}},
		Ops: []store.Op{setAttr(streamLabels, value.OfString(strings.Join(labels, " ")))},
	}
}
