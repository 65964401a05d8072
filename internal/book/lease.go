package book

import (
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of lease|MODEL: which process reads a shard. A process that reads it writes
// them, and the one that finds the shard over removes them.
const (
	leaseOwner = "o" // the process; absent when it let go
	leaseHold  = "n" // how often the shard was taken
	leaseBeat  = "b" // how often the process that has it said so
)

// LeaseRow is what a lease says. The zero row stands for a lease that is not there.
type LeaseRow struct {
	Owner      string // "" when the shard is free
	Hold, Beat int64
}

const leaseDo = "delete the row while no process reads the shard, and it is made again"

// DecodeLease reads the row of a lease, nil for one that is not there.
func DecodeLease(row value.Item) (l LeaseRow, err error) {
	if row == nil {
		return l, nil
	}
	if l.Owner, err = text(row, leaseOwner, leaseDo); err != nil {
		return LeaseRow{}, err
	}
	if l.Hold, err = whole(row, leaseHold, 1, leaseDo); err != nil {
		return LeaseRow{}, err
	}
	if l.Beat, err = whole(row, leaseBeat, 0, leaseDo); err != nil {
		return LeaseRow{}, err
	}
	return l, nil
}

// Take begins a hold for a process, on condition that the lease is still as it was
// read. It returns the row.
func (l LeaseRow) Take(at store.Ref, owner string) store.Write {
	w := store.Write{
		Ref: at, Return: true, If: NotThere(),
		Ops: []store.Op{set(leaseOwner, value.OfString(owner)), plus(leaseHold, 1), set(leaseBeat, value.OfInt(0))},
	}
	if l.Hold > 0 {
		w.If = store.Cond{equal(leaseHold, l.Hold), equal(leaseBeat, l.Beat)}
	}
	return w
}

// BeatLease says that a hold lasts, on condition that it does.
func BeatLease(at store.Ref, hold int64) store.Write {
	return store.Write{Ref: at, If: store.Cond{equal(leaseHold, hold)}, Ops: []store.Op{plus(leaseBeat, 1)}}
}

// FreeLease ends a hold, on condition that it lasts.
func FreeLease(at store.Ref, hold int64) store.Write {
	return store.Write{Ref: at, If: store.Cond{equal(leaseHold, hold)}, Ops: []store.Op{{Kind: store.Remove, Attr: leaseOwner}}}
}

// DropLease removes the row of a lease, on condition that no other hold began.
func DropLease(at store.Ref, hold int64) store.Write {
	return store.Write{Ref: at, Delete: true, If: store.Cond{equal(leaseHold, hold)}}
}

// The rows of stream|MODEL: the streams of a table that are to be read. Readers write
// them; nothing removes them.
const streamLabels = "l" // of each stream the moment it was switched on, the latest last, with spaces between

// StreamRow is what is kept of the streams of a table.
type StreamRow struct {
	Labels []string // the latest last
	was    value.Value
}

const streamDo = "delete the row, stop all readers of the table and start them again, and run projector verify: a gap between two streams is not noticed"

// DecodeStream reads the row of a table's streams, nil for one that is not there.
func DecodeStream(row value.Item) (s StreamRow, err error) {
	labels, err := text(row, streamLabels, streamDo)
	return StreamRow{Labels: strings.Fields(labels), was: row.Get(streamLabels)}, err
}

// Becomes has other labels kept, on condition that those kept are still as they were
// read.
func (s StreamRow) Becomes(at store.Ref, labels []string) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(streamLabels, s.was)}},
		Ops: []store.Op{set(streamLabels, value.OfString(strings.Join(labels, " ")))},
	}
}
