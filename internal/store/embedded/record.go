package embedded

import (
	"errors"
	"fmt"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// A stream record is stored as an item of these attributes.
const (
	recordNew     = "n" // the row after the change, as a map; missing if there is none
	recordOld     = "o" // the row before it
	recordOrigin  = "p" // the position of origin, in binary; missing for none
	recordSecond  = "s" // the time
	recordExpired = "x" // true, if TTL deleted the row
	recordNano    = "z" // the nanoseconds of the time
)

var errRecordForm = errors.New("stored stream record is corrupt")

// recordOf is the stream record of a write that makes next of the row old, without its position.
func (s *Store) recordOf(w *store.Write, t *table, old, next value.Item) events.Record {
	r := events.Record{Table: t.Name, Keys: t.Item(w.Key), Old: old, New: next}
	if o := w.Origin; o != nil {
		r.Time, r.Origin, r.Expired = o.Time, o.Position, o.Expired
	}
	if r.Time.IsZero() {
		r.Time = s.opts.Now()
	}
	r.Time = r.Time.Round(0).UTC()
	return r
}

// appendRecord appends the stored form.
func appendRecord(b []byte, r *events.Record) []byte {
	it := make(value.Item, 0, 6)
	if r.New != nil {
		it = append(it, value.Attr{Name: recordNew, Value: value.OfMap(r.New)})
	}
	if r.Old != nil {
		it = append(it, value.Attr{Name: recordOld, Value: value.OfMap(r.Old)})
	}
	if !r.Origin.IsZero() {
		it = append(it, value.Attr{Name: recordOrigin, Value: value.OfBinary(string(r.Origin[:]))})
	}
	it = append(it, value.Attr{Name: recordSecond, Value: value.OfInt(r.Time.Unix())})
	if r.Expired {
		it = append(it, value.Attr{Name: recordExpired, Value: value.OfBool(true)})
	}
	return value.AppendItem(b, append(it, value.Attr{Name: recordNano, Value: value.OfInt(int64(r.Time.Nanosecond()))}))
}

// decodeRecord reads a stored record, whose memory it shares.
func decodeRecord(b []byte, t *table, seq uint64) (events.Record, error) {
	it, err := decodeRow(b)
	if err != nil {
		return events.Record{}, fmt.Errorf("%w: %w", errRecordForm, err)
	}
	r := events.Record{Table: t.Name, Position: events.PositionOf(seq), Expired: it.Get(recordExpired).Bool(), Old: it.Get(recordOld).Item(), New: it.Get(recordNew).Item()}
	copy(r.Origin[:], it.Get(recordOrigin).Text())
	second, hasSecond := it.Get(recordSecond).Int64()
	nano, hasNano := it.Get(recordNano).Int64()
	r.Time = time.Unix(second, nano).UTC()
	row := r.New
	if row == nil {
		row = r.Old
	}
	k, ok := t.KeyOf(row)
	if !ok || !hasSecond || !hasNano {
		return r, errRecordForm
	}
	r.Keys = t.Item(k)
	return r, nil
}

// decodeRow reads the stored form of a row; nil is no row.
func decodeRow(b []byte) (value.Item, error) {
	if b == nil {
		return nil, nil
	}
	it, rest, err := value.DecodeItem(b)
	if err == nil && len(rest) > 0 {
		err = value.ErrCorrupt
	}
	return it, err
}
