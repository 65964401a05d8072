package feed

import (
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/value"
)

// Subscriber is a row of our own table: one subscriber's entry in a list. Each list counts
// its moments. A subscriber that joined at moment n gets the notifications of later
// moments, up to and including the moment at which it left.
type Subscriber struct {
	Position events.Position // of the newest change of the subscriber's row
	Fields   value.Item
	here     bool
	since    int64
	spans    []span // earlier periods in which it was subscribed
}

// span is an earlier subscription: the moments in (since, until].
type span struct{ since, until int64 }

// maxSpans is how many earlier subscriptions a row keeps. They matter to notifications
// that are still being written after a subscriber left and came back.
const maxSpans = 50

// Attributes of a subscriber's row besides its position.
const (
	subscriberFields = "f"
	subscriberSince  = "n" // absent if it has left
	subscriberSpans  = "h"
)

// SubscriberFrom reads a subscriber's row. A nil row is one that never subscribed.
func SubscriberFrom(row value.Item) *Subscriber {
	f := &Subscriber{Position: events.PositionFrom(row.Get(owntable.Position)), Fields: row.Get(subscriberFields).Item()}
	f.since, f.here = row.Get(subscriberSince).Int64()
	spans := row.Get(subscriberSpans)
	for i := 0; i+1 < spans.Len(); i += 2 {
		since, _ := spans.At(i).Int64()
		until, _ := spans.At(i + 1).Int64()
		f.spans = append(f.spans, span{since, until})
	}
	return f
}

// Attrs returns the attributes of the row without its key.
func (f *Subscriber) Attrs() []value.Attr {
	attrs := []value.Attr{{Name: owntable.Position, Value: f.Position.Value()}}
	if f.here {
		attrs = append(attrs, value.Attr{Name: subscriberSince, Value: value.OfInt(f.since)})
	}
	if len(f.Fields) > 0 {
		attrs = append(attrs, value.Attr{Name: subscriberFields, Value: value.OfMap(f.Fields)})
	}
	var spans []value.Value
	for _, s := range f.spans {
		spans = append(spans, value.OfInt(s.since), value.OfInt(s.until))
	}
	if spans != nil {
		attrs = append(attrs, value.Attr{Name: subscriberSpans, Value: value.OfList(spans...)})
	}
	return attrs
}

// Here reports whether the row is subscribed now.
func (f *Subscriber) Here() bool { return f.here }

// Take applies a Subscription at the given moment of the list. It changes nothing and reports
// false if the row has already seen this change or a newer one.
func (f *Subscriber) Take(j *Subscription, moment int64) bool {
	if j.Position.Compare(f.Position) <= 0 {
		return false
	}
	f.Mend(j, moment)
	return true
}

// Mend applies a Subscription as of its position, whatever position the row had.
func (f *Subscriber) Mend(j *Subscription, moment int64) {
	f.Position = j.Position
	switch {
	case j.Gone && f.here:
		if f.here = false; f.since < moment {
			f.spans = append(f.spans, span{f.since, moment})
			f.spans = f.spans[max(0, len(f.spans)-maxSpans):]
		}
	case !j.Gone && !f.here:
		f.here, f.since = true, moment
	}
	if !j.Gone {
		f.Fields = j.Fields
	}
}

// Receives reports whether the row gets the notifications of this moment.
func (f *Subscriber) Receives(moment int64) bool {
	if f.here && f.since < moment {
		return true
	}
	for _, s := range f.spans {
		if s.since < moment && moment <= s.until {
			return true
		}
	}
	return false
}
