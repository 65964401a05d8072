package owntable

import (
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// Member is a row of a list with the statement of one source row there, and the position of the change that made it or
// withdrew it: facts, subscribers, tombstones, and documents that are pending. Consumers of the source's stream write it, in
// any order; the newest position wins. One that was withdrawn says nothing, and stays until TTL deletes it, so that
// an older change that arrives late does not bring it back. For example,
//
//	k fact|movienight|Round.status|Rounds|r1  s watched|5s…  p 000…12  v {"watched_at": "2026-01-31"}
//
// The zero Member stands for a row that does not exist.
type Member struct {
	Name     string // the sort key
	Position events.Position
	// Says is never nil if the member holds, even if it says nothing. nil if it was withdrawn.
	Says value.Item
	Raw  value.Value // the stored value, for people
	noted
}

const memberSays = "v" // absent once it was withdrawn

// MemberFrom decodes the row of a member, nil if there is none.
func MemberFrom(row value.Item) Member {
	m := Member{Name: row.Get(Sort).Text(), Position: events.PositionFrom(row.Get(Position)), Raw: row.Get(memberSays), noted: noteRead(row, Position)}
	if !m.Raw.IsMissing() {
		if m.Says = m.Raw.Item(); m.Says == nil {
			m.Says = value.Item{}
		}
	}
	return m
}

// Keep stores a member, or that it was withdrawn, unless the row has this position or a newer
// one. expiry is when a withdrawn member may be deleted: once nothing older can arrive.
func (m Member) Keep(at store.Ref, expiry value.Value) store.Write {
	return m.writeIf(at, expiry, store.Cond{store.Below(Position, m.Position.Value())})
}

// Replace stores another member in place of this one, on condition that this one has not
// changed since it was read.
func (m Member) Replace(at store.Ref, next Member, expiry value.Value) store.Write {
	return next.writeIf(at, expiry, m.sameCondition(Position))
}

// Unchanged checks that the member is as it was read.
func (m Member) Unchanged(at store.Ref) store.Write {
	return store.Write{Ref: at, Check: true, If: m.sameCondition(Position)}
}

// Drop deletes the member, on condition that it is as it was read.
func (m Member) Drop(at store.Ref) store.Write {
	return store.Write{Ref: at, Delete: true, If: m.sameCondition(Position)}
}

func (m Member) writeIf(at store.Ref, expiry value.Value, cond store.Cond) store.Write {
	says := value.Value{}
	if m.Says != nil {
		says, expiry = value.OfMap(m.Says), value.Value{}
	}
	return store.Write{Ref: at, If: cond, Ops: []store.Op{
		setAttr(Position, m.Position.Value()), store.Assign(memberSays, says), store.Assign(Expiry, expiry),
	}}
}

// Tombstone refers to the member that says that weir deleted a row that it had made. It is written before the row is
// deleted, so that a delayed worker cannot make the row again. There are as many as weir deleted rows in
// 48 hours, about 200 bytes each.
func Tombstone(row store.Ref) store.Ref { return Ref("tomb|"+RowText(row), "") }
