package main

import (
	"context"
	"fmt"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

const sales = `model: sales
tables: {sales: {key: [PK, SK]}}
entities:
  Order: {where: {type: order}, key: {PK: "SHOP#{shop}", SK: "ORDER#{id}"}, attributes: {at: time, total: number}}
  Day: {where: {type: day}, key: {PK: "DAYS#{shop}", SK: "{day}"}, attributes: {orders: number, total: number}}
derive:
  Day: {group: Order, by: {day: {day: at, zone: Europe/Berlin}}, set: {orders: count, total: {sum: total}}}
`

// benchGroups measures the cost for the row of a group of a source row more or less, by how many there are.
func (b *bench) benchGroups(sizes []int) error {
	l, err := b.newLab(model.Parse("sales.yaml", []byte(sales)))
	if err != nil {
		return err
	}
	defer l.closeLab()
	costs, err := b.measureGrown(l, "group", sizes, func(n int) (keys, row value.Item) {
		keys = stringItem("PK", "SHOP#s", "SK", fmt.Sprintf("ORDER#%08d", n))
		return keys, keys.With(stringItem("type", "order", "at", "2026-01-31T12:00:00Z")...).With(value.Attr{Name: "total", Value: value.OfInt(int64(n % 100))})
	})
	if err != nil {
		return err
	}
	day := store.Ref{Table: "sales", Key: store.Key{Partition: value.OfString("DAYS#s"), Sort: value.OfString("2026-01-31")}}
	row, err := l.GetRow(b.ctx, day)
	if n, _ := row.Get("orders").Int64(); err != nil || n != int64(sizes[len(sizes)-1]) {
		return fmt.Errorf("the row of the group has %v, %v", row, err)
	}
	b.addFlatGoal("cost of an update of the row of a group, by its source rows", sizes, costs)
	b.addBesideByHand("cost of an update of the row of a group, beside a handler that adds", costs, func() error {
		_, err := l.meter.Write(b.ctx, []store.Write{{Ref: day, Ops: []store.Op{{Kind: store.Add, Attr: "byHand", Value: value.OfInt(1)}}}})
		return err
	}, l)
	return nil
}

// benchMembers measures the cost of one message for each member of its channel: with the model of examples/chat, in
// which each has a copy of the channel's last message and the number of messages that are unread.
func (b *bench) benchMembers(sizes []int) error {
	return b.forEach("cost of a message for a member of its channel, by how many there are", sizes, b.measureChannel)
}

// measureChannel returns the cost of a message in a channel of so many members, for each of them. The records of
// what weir wrote are applied as a stream shows them, 1,000 at a time.
func (b *bench) measureChannel(size int) (perUpdate, error) {
	l, err := b.newLab(model.Load("examples/chat/model.yaml"))
	if err != nil {
		return perUpdate{}, err
	}
	defer l.closeLab()
	channel := stringItem("PK", "CHANNEL#c", "SK", "CHANNEL")
	row := channel.With(stringItem("type", "channel", "channel", "c", "topic", "all")...)
	if _, err := l.meter.Write(b.ctx, []store.Write{{Ref: l.rowRef(channel), Put: row}}); err != nil {
		return perUpdate{}, err
	}
	if err := l.applyAndWork(b.ctx, l.changeTo(channel, row)); err != nil {
		return perUpdate{}, err
	}
	joined := func(n int) value.Item { return stringItem("PK", fmt.Sprintf("PERSON#%08d", n), "SK", "CHANNEL#c") }
	was := make([]value.Item, size)
	for n := 0; n < size; n += 1000 {
		var members []projections.Change
		for i := n; i < min(n+1000, size); i++ {
			keys := stringItem("PK", "CHANNEL#c", "SK", fmt.Sprintf("MEMBER#%08d", i))
			members = append(members, l.changeTo(keys, keys.With(stringItem("type", "member", "role", "member")...)))
		}
		if err := l.applyAndWork(b.ctx, members...); err != nil {
			return perUpdate{}, err
		}
	}
	if err := l.followRecords(b.ctx, was, joined); err != nil {
		return perUpdate{}, err
	}
	start, messages := time.Now(), max(2, 400/size)
	for nr := range messages {
		l.meter.on = nr > 0 // the first is the first in everything
		at := time.Unix(1767225600+int64(nr), 0).UTC().Format(time.RFC3339)
		keys := stringItem("PK", "CHANNEL#c", "SK", fmt.Sprintf("MESSAGE#%s#%d", at, nr))
		if err := l.applyAndWork(b.ctx, l.changeTo(keys, keys.With(stringItem("type", "message", "channel", "c", "author", "p", "at", at, "message", fmt.Sprint(nr), "text", "a message of a few words")...))); err != nil {
			return perUpdate{}, err
		}
		now, err := l.GetRow(b.ctx, l.rowRef(channel))
		if err != nil {
			return perUpdate{}, err
		}
		if err := l.applyAndWork(b.ctx, l.recordChange(&events.Record{Keys: channel, Old: row, New: now})); err != nil {
			return perUpdate{}, err
		}
		row = now
		if err := l.followRecords(b.ctx, was, joined); err != nil {
			return perUpdate{}, err
		}
	}
	unread, err := l.GetRow(b.ctx, l.rowRef(stringItem("PK", fmt.Sprintf("UNREAD#%08d", size-1), "SK", "c")))
	if n, _ := unread.Get("unread").Int64(); err != nil || n != int64(messages) {
		return perUpdate{}, fmt.Errorf("the last member has %v unread messages of %d, %v", unread.Get("unread"), messages, err)
	}
	counted := perUpdate{time.Since(start).Seconds() * 1e6 * float64(messages-1) / float64(messages), float64(l.meter.units), float64(l.meter.reads)}
	return counted.over((messages - 1) * size), nil
}

// followRecords applies the records that rows have had since they were as they were.
func (l *lab) followRecords(ctx context.Context, was []value.Item, key func(int) value.Item) error {
	for n := 0; n < len(was); n += 1000 {
		var cs []projections.Change
		for i := n; i < min(n+1000, len(was)); i++ {
			rows, err := l.meter.Store.Get(ctx, []store.Ref{l.rowRef(key(i))}) // the stream has them: not counted
			if err != nil {
				return err
			}
			cs = append(cs, l.recordChange(&events.Record{Keys: key(i), Old: was[i], New: rows[0]}))
			was[i] = rows[0]
		}
		if err := l.applyAndWork(ctx, cs...); err != nil {
			return err
		}
	}
	return nil
}

// applyAndWork applies changes as one batch, and does the jobs that they start.
func (l *lab) applyAndWork(ctx context.Context, cs ...projections.Change) error {
	if err := l.applyChanges(ctx, cs); err != nil {
		return err
	}
	jobs := runner.Jobs{Runner: l.Runner}
	for {
		if left, err := jobs.RunStep(ctx); err != nil || !left {
			return err
		}
	}
}

func (l *lab) rowRef(keys value.Item) store.Ref {
	key, _ := l.table.KeyOf(keys)
	return store.Ref{Table: l.table.Name, Key: key}
}
