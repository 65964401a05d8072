package owntable

import (
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of feed|MODEL|RULE|KEY are lists of subscribers. The row with an empty sort key
// counts the moments of the list: each notification, or several of one batch, has one.
// The rows with s HASH are the subscribers; one that left stays until TTL deletes it, so
// an older change that arrives late does not bring it back. Consumers of the subscribers'
// and the senders' streams write them. There are as many as rows that subscribe, each as
// large as what the rule takes of it; the counter has about 100 bytes, and 80 for each
// shard that sent to the list, and TTL deletes it when nothing was sent for a while. Moments
// come from the clock, so those of a new counter are behind all earlier ones.
const (
	listMoment = Count
	listFirst  = "f:" // +SHARD: the first change that is being sent; absent when all are sent
	listSends  = "w:" // +SHARD: the moment of these changes
	listPruned = Pruned

	subscriberPosition = Position // of the newest change of the subscriber's row
	subscriberFields   = "f"
	subscriberSince    = Count // absent if it has left
	subscriberSpans    = "h"
)

// ListRow is the counter of a list of subscribers. The zero ListRow stands for a list that
// nothing was sent to.
type ListRow struct{ row value.Item }

// ListFrom decodes the counter of a list, nil if there is none.
func ListFrom(row value.Item) ListRow { return ListRow{row} }

// Moment returns the newest moment of the list, 0 before the first.
func (l ListRow) Moment() int64 {
	n, _ := l.row.Get(listMoment).Int64()
	return n
}

// Shard returns what a shard has sent to the list: up to position last, every change has
// its moment. Those from first on are still being sent, in the given moment; first is zero
// if all are sent.
func (l ListRow) Shard(shardKey string) (first, last events.Position, moment int64) {
	moment, _ = l.row.Get(listSends + shardKey).Int64()
	return events.PositionFrom(l.row.Get(listFirst + shardKey)), events.PositionFrom(l.row.Get(PositionOf(shardKey))), moment
}

// Positions returns the positions of shards that the list holds.
func (l ListRow) Positions() []Applied { return Positions(l.row) }

// Pruned reports whether positions of shards were removed: where one is missing, the shard's
// frontier, read after the list, says what is sent.
func (l ListRow) Pruned() bool { return l.row.Has(listPruned) }

// Next begins the next moment for the changes of a shard from first to last, on condition
// that no other moment has begun since the counter was read. It also removes what is known
// of the shards in redundant. expiry is when the counter may be deleted if nothing more is
// sent. The write returns the row.
func (l ListRow) Next(at store.Ref, shardKey string, first, last events.Position, redundant []string, now time.Time, expiry value.Value) store.Write {
	next := value.OfInt(l.next(now))
	w := store.Write{
		Ref: at, Return: true, If: l.same(),
		Ops: []store.Op{
			set(listMoment, next), set(listSends+shardKey, next), set(listFirst+shardKey, first.Value()), set(PositionOf(shardKey), last.Value()), set(Expiry, expiry),
		},
	}
	for _, key := range redundant {
		w.Ops = append(w.Ops, remove(PositionOf(key)), remove(listFirst+key), remove(listSends+key))
	}
	if len(redundant) > 0 {
		w.Ops = append(w.Ops, set(listPruned, value.OfInt(1)))
	}
	return w
}

// next is the moment of the next addition: later than all before it, and never before the clock, so
// that a list whose row has expired begins above the moments that it gave before.
func (l ListRow) next(now time.Time) int64 { return max(l.Moment()+1, now.UnixMicro()) }

// same holds while no moment was taken since the row was read.
func (l ListRow) same() store.Cond {
	return store.Cond{{store.AsRead(listMoment, l.row.Get(listMoment))}}
}

// EndMoment notes that all changes of a shard up to last are sent, on condition that none
// began to be sent meanwhile.
func EndMoment(at store.Ref, shardKey string, last events.Position) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{{Attr: PositionOf(shardKey), Is: store.Eq, Value: last.Value()}}},
		Ops: []store.Op{remove(listFirst + shardKey), remove(listSends + shardKey)},
	}
}

// SubscriberRow is a subscriber's entry on a list. The zero SubscriberRow stands for a row
// that never subscribed.
type SubscriberRow struct {
	Position events.Position // of the newest change of the subscriber's row
	Fields   value.Item      // what the rows made for it take from it
	Here     bool            // it is subscribed now
	Since    int64           // the moment after which it is, if it is here
	Spans    []Span          // earlier subscriptions, oldest first
	noted
}

// Span is an earlier subscription: the moments in (Since, Until].
type Span struct{ Since, Until int64 }

// SubscriberFrom decodes a subscriber's row, nil if there is none.
func SubscriberFrom(row value.Item) SubscriberRow {
	s := SubscriberRow{Position: events.PositionFrom(row.Get(subscriberPosition)), Fields: row.Get(subscriberFields).Item(), noted: note(row, subscriberPosition)}
	s.Since, s.Here = row.Get(subscriberSince).Int64()
	spans := row.Get(subscriberSpans)
	for i := 0; i+1 < spans.Len(); i += 2 {
		since, _ := spans.At(i).Int64()
		until, _ := spans.At(i + 1).Int64()
		s.Spans = append(s.Spans, Span{since, until})
	}
	return s
}

// Put stores the subscriber, on condition that the row still has the position was; zero
// means that it had none. expiry is when a row of a subscriber that left may be deleted.
func (s *SubscriberRow) Put(at store.Ref, was events.Position, expiry value.Value) store.Write {
	return store.Write{Ref: at, Put: s.item(at, expiry), If: store.Cond{{unmoved(was)}}}
}

// Replace stores the subscriber in place of the row that was read, on condition that the
// row has not changed since.
func (s *SubscriberRow) Replace(at store.Ref, was SubscriberRow, expiry value.Value) store.Write {
	return store.Write{Ref: at, Put: s.item(at, expiry), If: was.same(subscriberPosition)}
}

// item is the row as it is stored. Someone who no longer follows stays until expiry, as a
// tombstone, with the spans in which they did.
func (s *SubscriberRow) item(at store.Ref, expiry value.Value) value.Item {
	it := append(RefItem(at), attr(subscriberPosition, s.Position.Value()))
	if s.Here {
		it = append(it, attr(subscriberSince, value.OfInt(s.Since)))
	} else {
		it = append(it, attr(Expiry, expiry))
	}
	if len(s.Fields) > 0 {
		it = append(it, attr(subscriberFields, value.OfMap(s.Fields)))
	}
	var spans []value.Value
	for _, x := range s.Spans {
		spans = append(spans, value.OfInt(x.Since), value.OfInt(x.Until))
	}
	if spans != nil {
		it = append(it, attr(subscriberSpans, value.OfList(spans...)))
	}
	return value.NewItem(it...)
}

// List names the list of the subscribers that a rule finds by the given values.
func SubscriberList(rule string, by []string) string {
	if len(by) == 0 {
		return rule
	}
	return rule + "|" + Texts(by)
}

// Subscribers refers to the counter of a list of subscribers.
func Subscribers(model, list string) store.Ref { return Ref(SubscriberLists(model)+list, "") }

// SubscriberLists returns the prefix of the partition keys of a model's lists of
// subscribers.
func SubscriberLists(model string) string { return "feed|" + model + "|" }

// Subscriber refers to the entry of one subscriber on a list, by the list's counter. The
// sort keys of all subscribers come after the counter's own.
func Subscriber(list, row store.Ref) store.Ref {
	return Ref(list.Key.Partition.Text(), entriesBegin+Hash(RowText(row)))
}
