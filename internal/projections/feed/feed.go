package feed

import (
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Subscription enters a row in a list of subscribers, as of Position.
// If Gone is set, it removes the row from the list.
type Subscription struct {
	Change   int // index into the batch
	Rule     string
	List     string     // see owntable.List
	Row      store.Ref  // the subscriber
	Fields   value.Item // the fields that the rows made for the subscriber take from it, by name
	Gone     bool
	Position events.Position
}

// Notification makes a row for each subscriber in a list. The subscribers are those at the
// moment at which the runner handles the Notification.
type Notification struct {
	Change   int // index into the batch
	List     string
	Rule     *model.RowRule
	Fields   value.Item // of the rows made, except those that come from the subscriber
	Position events.Position
}

// Fold returns the subscriptions that a change makes or ends: a subscriber contributes its
// place in the list that its fields name.
func Fold(c *projections.Change, f *projections.Faults) (out []Subscription) {
	if c.Was != nil {
		for _, rule := range c.Was.Subscribes {
			was, ok := subscriptionOf(f, rule, c.Was, c.Row, c.Old, true)
			if is, has := SubscriptionOf(rule, c.Is, c.Row, c.New); ok && (!has || was.List != is.List) {
				was.Gone, was.Fields, was.Position = true, nil, c.Position
				out = append(out, was)
			}
		}
	}
	if c.Is == nil {
		return out
	}
	for _, rule := range c.Is.Subscribes {
		was, had := SubscriptionOf(rule, c.Was, c.Row, c.Old)
		is, has := subscriptionOf(f, rule, c.Is, c.Row, c.New, false)
		if has && !(had && was.List == is.List && value.EqualItems(was.Fields, is.Fields)) {
			is.Position = c.Position
			out = append(out, is)
		}
	}
	return out
}

// FoldNotifications returns the notifications that a change asks for.
func FoldNotifications(c *projections.Change, f *projections.Faults) (out []Notification) {
	c.EachSent(f, func(as *projections.Change, rule *model.RowRule, row value.Item) {
		if t, ok := foldNotification(as, f, rule, row); ok {
			out = append(out, t)
		}
	})
	return out
}

// rawName begins the name of the attribute that holds a field's text as it stands in a
// key, where that differs from the field's value. No field name begins with it.
const rawName = "%"

// subscriptionOf is SubscriptionOf, and notes a fault if the rule's part of the row is too large
// for a row of our own table.
func subscriptionOf(f *projections.Faults, rule *model.RowRule, of *model.Entity, ref store.Ref, row value.Item, old bool) (Subscription, bool) {
	j, ok := placeOf(f, rule, of, ref, row, old)
	return j, ok && f.FitsOwnTable(rule.Name, "what it takes of a follower", j.Fields.Size(), old)
}

// SubscriptionOf returns the place that a row of entity e has in a list of subscribers under a
// rule. ok is false if the rule does not select the row, or if the part that the rule takes from
// it is too large for a row of our own table.
func SubscriptionOf(rule *model.RowRule, e *model.Entity, ref store.Ref, row value.Item) (Subscription, bool) {
	return subscriptionOf(nil, rule, e, ref, row, false)
}

// placeOf is SubscriptionOf without the limit on size.
func placeOf(f *projections.Faults, rule *model.RowRule, e *model.Entity, ref store.Ref, row value.Item, old bool) (_ Subscription, ok bool) {
	if e != rule.Subscribers.Of || row == nil || !f.IsUsable(&rule.Subscribers.Input, row, old) {
		return Subscription{}, false
	}
	j := Subscription{Rule: rule.Name, Row: ref}
	if j.List, ok = listName(rule, func(m *model.Match) value.Value { return m.Field.Stored(row) }); !ok {
		return j, false
	}
	var attrs []value.Attr
	for i := range rule.Fields {
		if f := &rule.Fields[i]; f.Expr.Subscriber != nil {
			attrs = append(attrs, inKeys(f.Name, f.Expr.Subscriber, row)...)
		}
	}
	j.Fields = value.NewItem(attrs...)
	return j, true
}

// inKeys returns a field's value, and its text in the row's key where the two differ.
func inKeys(name string, f *model.Field, row value.Item) []value.Attr {
	v, raw := f.Get(row), f.Raw(row)
	if value.Equal(v, raw) {
		raw = value.Value{}
	}
	return []value.Attr{{Name: name, Value: v}, {Name: rawName + name, Value: raw}}
}

// listName returns the name of the list of the subscribers whose fields have these values.
// Two values are the same here if they are the same in a key. ok is false if a value is
// missing.
func listName(rule *model.RowRule, val func(*model.Match) value.Value) (string, bool) {
	var by []string
	for i := range rule.Subscribers.By {
		s := value.Scalar(val(&rule.Subscribers.By[i]))
		if s == "" {
			return "", false
		}
		by = append(by, s)
	}
	return owntable.SubscriberList(rule.Name+"<"+rule.Source.Name, by), true
}

// sendsTo returns the list of subscribers that a history rule's row is for. ok is false unless the row passes
// the rule's tests and names a list.
func sendsTo(f *projections.Faults, rule *model.RowRule, row value.Item) (to string, ok bool) {
	if !f.IsUsable(&rule.Input, row, false) {
		return "", false
	}
	return listName(rule, func(m *model.Match) value.Value { return projections.ScalarOf(&m.Expr, row) })
}

// foldNotification returns the notification that a history rule asks for, if its row is for a list (sendsTo).
func foldNotification(c *projections.Change, f *projections.Faults, rule *model.RowRule, row value.Item) (_ Notification, ok bool) {
	to, ok := sendsTo(f, rule, row)
	if !ok {
		return Notification{}, false
	}
	var attrs []value.Attr
	for i := range rule.Fields {
		if f := &rule.Fields[i]; f.Expr.Subscriber == nil {
			if attrs = append(attrs, value.Attr{Name: f.Name, Value: projections.EvaluateExpr(c, &f.Expr, row)}); f.Expr.Field != nil {
				attrs = append(attrs, inKeys(f.Name, f.Expr.Field, row)...)
			}
		}
	}
	return Notification{List: to, Rule: rule, Fields: value.NewItem(attrs...), Position: c.Position}, true
}

// RowFor returns the row that a subscriber gets. ok is false if the row would have no key.
func (t *Notification) RowFor(follower value.Item) (projections.Put, bool) {
	get := func(f *model.Assign, name string) value.Value {
		if f.Expr.Subscriber != nil {
			return follower.Get(name)
		}
		return t.Fields.Get(name)
	}
	p, ok := projections.BuildRow(t.Rule, func(f *model.Assign) value.Value { return get(f, f.Name) }, func(f *model.Assign) value.Value {
		if raw := get(f, rawName+f.Name); !raw.IsMissing() {
			return raw
		}
		return get(f, f.Name)
	})
	p.Position = t.Position
	return p, ok
}

// Order cuts a run of changes into phases where the order of subscriptions and
// notifications matters. Within a phase, no list gets a notification and also changes its
// subscribers. The zero Order is at the beginning of a run.
type Order struct {
	subscribed, notified map[string]bool
}

// BeginsPhase reports whether the given change, which is the next in the run, begins a new
// phase.
func (o *Order) BeginsPhase(c *projections.Change) bool {
	if !o.ConcernsOrder(c.Was, c.Is) {
		return false
	}
	subscriptions, notifications := Fold(c, nil), notifiedLists(c)
	begins := slices.ContainsFunc(subscriptions, func(s Subscription) bool { return o.notified[s.List] }) ||
		slices.ContainsFunc(notifications, func(list string) bool { return o.subscribed[list] })
	if begins || o.notified == nil {
		o.subscribed, o.notified = map[string]bool{}, map[string]bool{}
	}
	for _, s := range subscriptions {
		o.subscribed[s.List] = true
	}
	for _, list := range notifications {
		o.notified[list] = true
	}
	return begins
}

// notifiedLists returns the lists to which a change sends notifications.
func notifiedLists(c *projections.Change) (out []string) {
	c.EachSent(nil, func(_ *projections.Change, rule *model.RowRule, row value.Item) {
		if to, ok := sendsTo(nil, rule, row); ok {
			out = append(out, to)
		}
	})
	return out
}

// ConcernsOrder reports whether the order of a change among the changes of other rows matters,
// given the row's old and new entity: the row may be a subscriber, or may send
// notifications.
func (*Order) ConcernsOrder(was, is *model.Entity) bool {
	for _, e := range [...]*model.Entity{was, is} {
		if e == nil {
			continue
		}
		if len(e.Subscribes) > 0 {
			return true
		}
		for _, r := range e.Rules {
			if r.Subscribers != nil {
				return true
			}
		}
	}
	return false
}
