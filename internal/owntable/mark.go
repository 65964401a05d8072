package owntable

import (
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of mark|MODEL|… are deduplication marks, for sources whose shards are not known:
// which change of a source row was last counted in a ledger or a leaf of a set. Ledger or
// leaf and marks are written in one transaction. TTL deletes a mark once nothing older can
// arrive. There are as many as source rows changed in that time, about 200 bytes each.
const markPosition = Position

// MarkFrom decodes a mark: the position of the last change that was counted, zero if none
// was.
func MarkFrom(row value.Item) events.Position { return events.PositionFrom(row.Get(markPosition)) }

// MoveMark moves a mark to a position, unless it has that position or a newer one.
func MoveMark(at store.Ref, p events.Position, expiry value.Value) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{store.Below(markPosition, p.Value())},
		Ops: []store.Op{set(markPosition, p.Value()), set(Expiry, expiry)},
	}
}
