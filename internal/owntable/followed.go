package owntable

import (
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of follow|MODEL|E.F|ROW hold, with an empty sort key, the value of one field of
// one row for the rows that follow it. The rows with s HASH are its followers: one entry
// for each attribute of a row that follows the value. Consumers of the streams write the
// value and the entries. TTL deletes the value of a row that is gone once all followers
// know that, or, if some of them keep the last value, once no row follows it any more; a
// follower's entry is deleted when its row follows something else or is deleted. So there
// are as many entries as attributes that follow, about 300 bytes each.
const (
	followedPosition = Position // of the change that set the value, or of its row's deletion
	followedValue    = "v"      // if the row is gone and a follower keeps it, the last value
	followedGone     = "g"
	followedKeeps    = Count // how often a follower began to keep the last value; guards it against expiry
	followTable      = "t"   // this and the next: the row followed; on an entry, the follower
	followKey        = "key"
	followerAttr     = "a" // the attribute that follows
	entriesBegin     = "m" // of the sort keys of followers and of subscribers
)

// FollowedRow is the content of a followed value. The zero FollowedRow stands for a value
// that no row follows.
type FollowedRow struct {
	Value    value.Value // Missing if the field has none
	Position events.Position
	Gone     bool // the row with the field no longer exists; Value is its last one, if a follower keeps that
	Expires  bool // TTL will delete it
	Row      KeyedRow
	keeps    value.Value
	noted
}

// KeyedRow names a row by its table and key attributes. A Key of nil means that the row
// which holds it does not say; another program wrote there.
type KeyedRow struct {
	Table string
	Key   value.Item
}

// keyedFrom reads the row that a followed value or a follower names.
func keyedFrom(row value.Item) KeyedRow {
	return KeyedRow{row.Get(followTable).Text(), row.Get(followKey).Item()}
}

// ops write which row it is. The table has the model's name, not that of a stage.
func (k KeyedRow) ops() []store.Op {
	return []store.Op{setAttr(followTable, value.OfString(k.Table)), setAttr(followKey, value.OfMap(k.Key))}
}

// FollowedFrom decodes a followed value, nil if there is none.
func FollowedFrom(row value.Item) FollowedRow {
	return FollowedRow{
		Value: row.Get(followedValue), Position: events.PositionFrom(row.Get(followedPosition)), Gone: row.Has(followedGone),
		Expires: row.Has(Expiry), Row: keyedFrom(row), keeps: row.Get(followedKeeps), noted: noteRead(row, followedPosition),
	}
}

// Existed reports whether the row existed when it was read.
func (v FollowedRow) Existed() bool { return v.there }

// Keep stores a value, or that its row is gone, unless the position that is stored is the
// same or newer. The write returns the row. A value that was to expire does not any more.
func (v FollowedRow) Keep(at store.Ref) store.Write {
	gone := value.Value{}
	if v.Gone {
		gone = value.OfBool(true)
	}
	ops := []store.Op{
		setAttr(followedPosition, v.Position.Value()), store.Assign(followedValue, v.Value), store.Assign(followedGone, gone), removeAttr(Expiry),
	}
	return store.Write{Ref: at, If: store.Cond{store.Below(followedPosition, v.Position.Value())}, Return: true, Ops: append(ops, v.Row.ops()...)}
}

// Replace stores another value in place of this one, on condition that this one has not
// changed since it was read.
func (v FollowedRow) Replace(at store.Ref, next FollowedRow) store.Write {
	w := next.Keep(at)
	w.If, w.Return = v.sameCondition(followedPosition), false
	return w
}

// Raise gives the value a newer position, on condition that it has not changed since it was
// read.
func (v FollowedRow) Raise(at store.Ref, p events.Position) store.Write {
	return store.Write{Ref: at, If: v.sameCondition(followedPosition), Ops: []store.Op{setAttr(followedPosition, p.Value())}}
}

var isGone = []store.Test{{Attr: followedGone, Is: store.Exists}}

// ExpireGone sets when TTL deletes the value of a row that is gone since the change at a
// position.
func ExpireGone(at store.Ref, p events.Position, expiry value.Value) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{isGone, {{Attr: followedPosition, Is: store.Eq, Value: p.Value()}}},
		Ops: []store.Op{setAttr(Expiry, expiry)},
	}
}

// ExpireLast sets when TTL deletes the last value of a row that is gone, on condition that
// neither the value has changed since it was read nor a follower began to keep it.
func (v FollowedRow) ExpireLast(at store.Ref, expiry value.Value) store.Write {
	return store.Write{
		Ref: at, Ops: []store.Op{setAttr(Expiry, expiry)},
		If: store.Cond{isGone, {store.AsRead(followedPosition, v.was)}, {store.AsRead(followedKeeps, v.keeps)}},
	}
}

// KeepLast notes that a follower, which is on the list, keeps the last value of a row that
// is gone: TTL no longer deletes the value. It is refused if another writer spoilt the
// count that it raises; then write KeepLastFrom.
func KeepLast(at store.Ref) store.Write { return keepLast(at, addTo(followedKeeps, 1)) }

// KeepLastFrom is KeepLast with a new count, which must be higher than any before it.
func KeepLastFrom(at store.Ref, count int64) store.Write {
	return keepLast(at, setAttr(followedKeeps, value.OfInt(count)))
}

// keepLast keeps the last value of a row that is gone, and takes its expiry back, on condition that
// the row is still gone.
func keepLast(at store.Ref, count store.Op) store.Write {
	return store.Write{Ref: at, If: store.Cond{isGone}, Ops: []store.Op{count, removeAttr(Expiry)}}
}

// FollowerRow is the entry of an attribute of a row on the list of the value that it
// follows.
type FollowerRow struct {
	Row  KeyedRow
	Attr string
}

// FollowerFrom decodes a follower's entry, nil if there is none.
func FollowerFrom(row value.Item) FollowerRow {
	return FollowerRow{keyedFrom(row), row.Get(followerAttr).Text()}
}

// Write stores the entry.
func (f FollowerRow) Write(at store.Ref) store.Write {
	return store.Write{Ref: at, Ops: append([]store.Op{setAttr(followerAttr, value.OfString(f.Attr))}, f.Row.ops()...)}
}

// Followed refers to the row that holds a field's value for the rows that follow it. Its
// followers (Follower) are in the same partition.
func Followed(model, field string, source store.Ref) store.Ref {
	return Ref(FollowedOf(model, field)+RowText(source), "")
}

// FollowedOf returns the prefix of the partition keys of a followed field's values.
func FollowedOf(model, field string) string { return FollowedIn(model) + escapeText(field) + "|" }

// FollowedIn returns the prefix of the partition keys of all followed values of a model.
func FollowedIn(model string) string { return "follow|" + model + "|" }

// FollowedList refers to the followed value in a partition.
func FollowedList(partition string) store.Ref { return Ref(partition, "") }

// Follower refers to the entry of a row, whose attribute attr follows, in the partition of
// the followed value. The sort keys of all followers come after the value's own.
func Follower(followed store.Ref, attr string, row store.Ref) store.Ref {
	return Ref(followed.Key.Partition.Text(), entriesBegin+Hash(attr+"|"+RowText(row)))
}

// IsEntry reports whether a row of such a partition is a follower or a subscriber, by its
// sort key, and not the value or the counter of the list.
func IsEntry(sort string) bool { return sort != emptySort }

// UnservedRecord is the content of the dead letter of a follower that refused its value: the
// attribute, and the partition of the list.
func UnservedRecord(attribute, list string) value.Item {
	return value.NewItem(newAttr(followerAttr, value.OfString(attribute)), newAttr(jobList, value.OfString(list)))
}

// UnservedFrom decodes such a record.
func UnservedFrom(record value.Item) (attribute, list string) {
	return record.Get(followerAttr).Text(), record.Get(jobList).Text()
}
