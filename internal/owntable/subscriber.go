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
// large as the part of it that the rule takes; the counter has about 100 bytes, and 80 for each
// shard that sent to the list, and TTL deletes it when nothing was sent for a while. Moments
// come from the clock, so those of a new counter are behind all earlier ones.
const (
	listMoment = Count
	listFirst  = "f:" // +SHARD: the first change that is being sent; absent when all are sent
	listSends  = "w:" // +SHARD: the moment of these changes
	listPruned = Pruned

	subscriberSince = Count // absent if it has left
	subscriberSpans = "h"
	subscriberLeft  = "f"
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

// ShardProgress returns how far a shard has sent to the list: up to position last, every change has
// its moment. Those from first on are still being sent, in the given moment; first is zero
// if all are sent.
func (l ListRow) ShardProgress(shardKey string) (first, last events.Position, moment int64) {
	moment, _ = l.row.Get(listSends + shardKey).Int64()
	return events.PositionFrom(l.row.Get(listFirst + shardKey)), events.PositionFrom(l.row.Get(PositionOf(shardKey))), moment
}

// Positions returns the positions of shards that the list holds.
func (l ListRow) Positions() []Applied { return Positions(l.row) }

// Pruned reports whether positions of shards were removed: where one is missing, the shard's
// frontier, read after the list, says which changes are sent.
func (l ListRow) Pruned() bool { return l.row.Has(listPruned) }

// BeginMoment begins the next moment for the changes of a shard from first to last, on condition
// that no other moment has begun since the counter was read. It also removes the entries that are known
// of the shards in redundant. expiry is when the counter may be deleted if nothing more is
// sent. The write returns the row.
func (l ListRow) BeginMoment(at store.Ref, shardKey string, first, last events.Position, redundant []string, now time.Time, expiry value.Value) store.Write {
	next := value.OfInt(l.nextMoment(now))
	w := store.Write{
		Ref: at, Return: true, If: store.Cond{{store.AsRead(listMoment, l.row.Get(listMoment))}},
		Ops: []store.Op{
			setAttr(listMoment, next), setAttr(listSends+shardKey, next), setAttr(listFirst+shardKey, first.Value()), setAttr(PositionOf(shardKey), last.Value()), setAttr(Expiry, expiry),
		},
	}
	for _, key := range redundant {
		w.Ops = append(w.Ops, removeAttr(PositionOf(key)), removeAttr(listFirst+key), removeAttr(listSends+key))
	}
	if len(redundant) > 0 {
		w.Ops = append(w.Ops, setAttr(listPruned, value.OfInt(1)))
	}
	return w
}

// nextMoment is the moment of the next addition: later than all before it, and never before the clock, so
// that a list whose row has expired begins above the moments that it gave before.
func (l ListRow) nextMoment(now time.Time) int64 { return max(l.Moment()+1, now.UnixMicro()) }

// EndMoment notes that all changes of a shard up to last are sent, on condition that none
// began to be sent meanwhile.
func EndMoment(at store.Ref, shardKey string, last events.Position) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{{Attr: PositionOf(shardKey), Is: store.Eq, Value: last.Value()}}},
		Ops: []store.Op{removeAttr(listFirst + shardKey), removeAttr(listSends + shardKey)},
	}
}

// SubscriberRow is a subscriber's entry on a list: a Member, which says the values that the rows made for it take from it. One that
// left stays as a tombstone, with the spans in which it subscribed.
type SubscriberRow struct {
	Member
	Since int64      // the moment after which it is subscribed, if it is
	Spans []Span     // earlier subscriptions, oldest first
	Left  value.Item // Says as it was when it left
}

// Span is an earlier subscription: the moments in (Since, Until].
type Span struct{ Since, Until int64 }

// SubscriberFrom decodes a subscriber's row, nil if there is none.
func SubscriberFrom(row value.Item) SubscriberRow {
	s := SubscriberRow{Member: MemberFrom(row), Left: row.Get(subscriberLeft).Item()}
	s.Since, _ = row.Get(subscriberSince).Int64()
	spans := row.Get(subscriberSpans)
	for i := 0; i+1 < spans.Len(); i += 2 {
		since, _ := spans.At(i).Int64()
		until, _ := spans.At(i + 1).Int64()
		s.Spans = append(s.Spans, Span{since, until})
	}
	return s
}

// Replace is Member.Replace for a subscriber.
func (s SubscriberRow) Replace(at store.Ref, next SubscriberRow, expiry value.Value) store.Write {
	var since, spans, left value.Value
	if next.Says != nil {
		since = value.OfInt(next.Since)
	}
	var all []value.Value
	for _, x := range next.Spans {
		all = append(all, value.OfInt(x.Since), value.OfInt(x.Until))
	}
	if all != nil {
		spans = value.OfList(all...)
	}
	if len(next.Left) > 0 {
		left = value.OfMap(next.Left)
	}
	w := s.Member.Replace(at, next.Member, expiry)
	w.Ops = append(w.Ops, store.Assign(subscriberSince, since), store.Assign(subscriberSpans, spans), store.Assign(subscriberLeft, left))
	return w
}

// List names the list of the subscribers that a rule finds by the given values.
func SubscriberList(rule string, by []string) string {
	if len(by) == 0 {
		return rule
	}
	return rule + "|" + JoinTexts(by)
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
