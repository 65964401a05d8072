package owntable

import (
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of tomb|ROW are tombstones: weir made the row and deleted it. The consumer that
// deletes a row writes its tombstone first, so a delayed worker cannot make the row again.
// TTL deletes a tombstone once nothing older than the deletion can arrive. There are as
// many as weir deleted rows in that time, about 200 bytes each.
const tombPosition = Position

// TombstoneFrom decodes a tombstone: the position at which its row was deleted. ok is
// false if there is no tombstone.
func TombstoneFrom(row value.Item) (p events.Position, ok bool) {
	return events.PositionFrom(row.Get(tombPosition)), row != nil
}

// LeaveTombstone stores that a row was deleted at a position, unless the tombstone has that
// position or a newer one.
func LeaveTombstone(row store.Ref, p events.Position, expiry value.Value) store.Write {
	return store.Write{
		Ref: Tombstone(row), If: store.Cond{store.Below(tombPosition, p.Value())},
		Ops: []store.Op{set(tombPosition, p.Value()), set(Expiry, expiry)},
	}
}

// TombstoneAsRead checks that a tombstone is as it was read; read is nil if there was none.
func TombstoneAsRead(row store.Ref, read value.Item) store.Write {
	return store.Write{Ref: Tombstone(row), Check: true, If: store.Cond{{store.AsRead(tombPosition, read.Get(tombPosition))}}}
}

// Tombstone refers to the row that records the deletion of a row that weir made.
func Tombstone(row store.Ref) store.Ref { return Ref("tomb|"+RowText(row), "") }
