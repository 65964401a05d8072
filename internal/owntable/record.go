package owntable

import (
	"weir/internal/events"
	"weir/internal/value"
)

// Attributes of a record in a dead letter.
const (
	recordTable   = "table"
	recordKeys    = "keys"
	recordOld     = "old"
	recordNew     = "new"
	recordExpired = "expired"
)

// RecordItem returns a record as a dead letter keeps it: its table, keys and images, and
// whether TTL deleted the row. The letter keeps position and time separately.
func RecordItem(rec *events.Record) value.Item {
	image := func(it value.Item) value.Value {
		if it == nil {
			return value.Value{}
		}
		return value.OfMap(it)
	}
	var expired, table value.Value
	if rec.Expired {
		expired = value.OfBool(true)
	}
	if rec.Table != "" {
		table = value.OfString(rec.Table)
	}
	return value.NewItem(
		newAttr(recordTable, table), newAttr(recordKeys, image(rec.Keys)), newAttr(recordOld, image(rec.Old)), newAttr(recordNew, image(rec.New)),
		newAttr(recordExpired, expired))
}

// RecordFrom decodes such an item, without position and time. A part that it lacks is zero.
func RecordFrom(it value.Item) events.Record {
	image := func(name string) value.Item {
		if v := it.Get(name); !v.IsMissing() {
			return v.Item()
		}
		return nil
	}
	return events.Record{
		Table: it.Get(recordTable).Text(), Keys: image(recordKeys), Old: image(recordOld), New: image(recordNew),
		Expired: !it.Get(recordExpired).IsMissing(),
	}
}

// withoutImages returns such an item with the table and the keys alone. Keys of more than maxHeadKey are left out too.
func withoutImages(it value.Item) value.Item {
	rec := RecordFrom(it)
	if rec.Old, rec.New = nil, nil; rec.Keys.Size() > maxHeadKey {
		rec.Keys = nil
	}
	return RecordItem(&rec)
}

// The attribute Own of an application's row notes, for each attribute in which a status
// shows another value than the application wrote, both values.
const (
	coveredOwn   = "own" // absent if the application has no such attribute
	coveredShown = "shown"
)

// CoveringNote returns the note for an attribute in which the value shown covers the
// application's own; own is Missing if the application has no such attribute.
func CoveringNote(own, shown value.Value) value.Value {
	return value.OfMap(value.NewItem(newAttr(coveredOwn, own), newAttr(coveredShown, shown)))
}

// CoveredNote returns a row's note for an attribute. ok is false if it notes nothing.
func CoveredNote(row value.Item, name string) (own, shown value.Value, ok bool) {
	note := row.Get(Own).Item().Get(name).Item()
	return note.Get(coveredOwn), note.Get(coveredShown), note != nil
}
