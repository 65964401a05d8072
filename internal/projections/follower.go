package projections

import (
	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/value"
)

// Follower is a row of our table that keeps a follower's place in a list. Moments
// are counted for each list: a follower that has come since moment n is told what
// has a later one, up to the moment at which it left.
type Follower struct {
	Position events.Position // of the newest change of the row that follows
	Fields   value.Item
	here     bool
	since    int64
	spans    []span // the times that it followed before
}

// span is (since, until]: the moments of a time that is over.
type span struct{ since, until int64 }

// maxSpans is how many earlier times are remembered. They matter to what is still
// being told when somebody has left and come back.
const maxSpans = 50

// Attributes of a follower's row beside its position.
const (
	followerFields = "f"
	followerSince  = "n" // absent: it has left
	followerSpans  = "h"
)

// FollowerFrom reads a follower's row; nil is somebody who never followed.
func FollowerFrom(row value.Item) *Follower {
	f := &Follower{Position: events.PositionFrom(row.Get(book.Position)), Fields: row.Get(followerFields).Item()}
	f.since, f.here = row.Get(followerSince).Int64()
	spans := row.Get(followerSpans)
	for i := 0; i+1 < spans.Len(); i += 2 {
		since, _ := spans.At(i).Int64()
		until, _ := spans.At(i + 1).Int64()
		f.spans = append(f.spans, span{since, until})
	}
	return f
}

// Attrs are the row's attributes but for its key.
func (f *Follower) Attrs() []value.Attr {
	attrs := []value.Attr{{Name: book.Position, Value: f.Position.Value()}}
	if f.here {
		attrs = append(attrs, value.Attr{Name: followerSince, Value: value.OfInt(f.since)})
	}
	if len(f.Fields) > 0 {
		attrs = append(attrs, value.Attr{Name: followerFields, Value: value.OfMap(f.Fields)})
	}
	var spans []value.Value
	for _, s := range f.spans {
		spans = append(spans, value.OfInt(s.since), value.OfInt(s.until))
	}
	if spans != nil {
		attrs = append(attrs, value.Attr{Name: followerSpans, Value: value.OfList(spans...)})
	}
	return attrs
}

// Here reports whether it follows now.
func (f *Follower) Here() bool { return f.here }

// Take makes it what a change says, where the list has come to the moment given. It
// reports false for a change that is not news.
func (f *Follower) Take(j *Join, moment int64) bool {
	if j.Position.Compare(f.Position) <= 0 {
		return false
	}
	f.Mend(j, moment)
	return true
}

// Mend makes it what a Join says, as of its position, whatever it was.
func (f *Follower) Mend(j *Join, moment int64) {
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

// Followed reports whether it is to be told what has the moment.
func (f *Follower) Followed(moment int64) bool {
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
