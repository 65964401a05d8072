package feed

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/value"
)

// Limits notes the writes for the notifications that a row sends or gets that would exceed a limit and never
// can.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	for _, rule := range c.Is.Rules {
		if rule.Subscribers != nil {
			x.SetDerivation(rule.Name).CheckRule(rule, c, from, func(one *projections.Change, row value.Item) (projections.Put, bool) {
				t, ok := foldNotification(one, nil, rule, row)
				if !ok {
					return projections.Put{}, false
				}
				return t.RowFor(unknownValues(rule, true))
			})
		}
	}
	for _, rule := range c.Is.Subscribes {
		subscriberLimits(x.SetDerivation(rule.Name), rule, c, from)
	}
}

// unknownValues stands in for values that are not known here: those that a rule's rows take
// from subscribers, or, if subscribers is false, those that they take from the row that
// sends the notification. Each is as short as such a value may be.
func unknownValues(rule *model.RowRule, subscribers bool) value.Item {
	var attrs []value.Attr
	for i := range rule.Fields {
		if f := &rule.Fields[i]; (f.Expr.Subscriber != nil) == subscribers {
			attrs = append(attrs, value.Attr{Name: f.Name, Value: value.OfString("1")})
		}
	}
	return value.NewItem(attrs...)
}

// subscriberLimits checks the rows that a rule makes for a subscriber.
func subscriberLimits(x *projections.Limits, rule *model.RowRule, c *projections.Change, from projections.Origin) {
	j, ok := SubscriptionOf(rule, c.Is, c.Row, c.New)
	if !ok {
		return
	}
	t := Notification{Rule: rule, Fields: unknownValues(rule, false)}
	p, ok := t.RowFor(j.Fields)
	if ok {
		x.CheckKey(rule.Into, p.Row.Key, func(name string) []string {
			for i := range rule.Fields {
				if f := &rule.Fields[i]; f.Name == name && f.Expr.Subscriber != nil {
					return projections.Origins(f.Expr.Subscriber.Names(), from)
				}
			}
			return nil
		})
	}
}
