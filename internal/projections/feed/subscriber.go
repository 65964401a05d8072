package feed

import (
	"slices"

	"weir/internal/owntable"
	"weir/internal/value"
)

// Subscriber is one subscriber's entry on a list. Each list counts its moments. A
// subscriber that joined at moment n gets the notifications of later moments, up to and
// including the moment at which it left.
type Subscriber struct{ owntable.SubscriberRow }

// maxSpans is how many earlier subscriptions a row keeps. They matter to notifications
// that are still being written after a subscriber left and came back.
const maxSpans = 50

// SubscriberFrom decodes a subscriber's row. A nil row is one that never subscribed.
func SubscriberFrom(row value.Item) *Subscriber {
	return &Subscriber{owntable.SubscriberFrom(row)}
}

// Take applies a Subscription at the given moment of the list. It changes nothing and
// reports false if the row has already seen this change or a newer one.
func (s *Subscriber) Take(j *Subscription, moment int64) bool {
	if j.Position.Compare(s.Position) <= 0 {
		return false
	}
	s.ApplyAnyway(j, moment)
	return true
}

// ApplyAnyway applies a Subscription as of its position, whatever position the row had.
func (s *Subscriber) ApplyAnyway(j *Subscription, moment int64) {
	s.Position = j.Position
	switch {
	case j.Gone && s.Says != nil:
		if s.Left = s.Says; s.Since < moment {
			s.Spans = append(s.Spans, owntable.Span{Since: s.Since, Until: moment})
			s.Spans = s.Spans[max(0, len(s.Spans)-maxSpans):]
		}
	case !j.Gone && s.Says == nil:
		s.Since = moment
	}
	if s.Says = nil; !j.Gone {
		s.Says, s.Left = append(value.Item{}, j.Fields...), nil
	}
}

// Receives reports whether the row gets the notifications of this moment.
func (s *Subscriber) Receives(moment int64) bool {
	if s.Says != nil && s.Since < moment {
		return true
	}
	return slices.ContainsFunc(s.Spans, func(was owntable.Span) bool { return was.Since < moment && moment <= was.Until })
}
