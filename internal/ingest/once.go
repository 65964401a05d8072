package ingest

import (
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// The record of an idempotency key is written in the same transaction as the command's
// writes, so that a command is executed once, however often and by whichever client it
// is sent. The record is a row of our own table. If the model keeps keys in rows of its
// own (once), the record of a create is such a row.

const maxKey = 512 // bytes of an idempotency key

// record is the place where a command's key is kept.
type record struct {
	store.Ref
	row *checked // the row of the model; nil for our table
}

// recordFor is nil for a command without a key. The TTL of a record in a row of the model
// is computed from now, the time when the key is used, whatever times the command's row
// has.
func (c *checked) recordFor(now time.Time) (*record, *Refusal) {
	switch {
	case c.key == "":
		return nil, nil
	case c.Once == nil || c.Op != Create:
		return &record{Ref: owntable.CommandResult(c.model.Name, c.key)}, nil
	}
	is, r := c.imageOf(nil)
	if r != nil {
		return nil, r
	}
	var item []value.Attr
	for _, a := range c.Once.Set {
		v := a.Expr.Const
		if f := a.Expr.Field; f != nil {
			v = c.fieldOf(is, f.Name)
		}
		item = append(item, value.Attr{Name: a.Name, Value: v})
	}
	if name := c.keeps.lifeFrom(); name != "" {
		item = append(item, value.Attr{Name: name, Value: timeStamp(now)})
	}
	row, r := c.keeps.checkItem(Command{Op: Create, Item: value.NewItem(item...)}, env{})
	if r != nil {
		for i := range r.Problems {
			at, reason := c.keptFrom(r.Problems[i])
			r.Problems[i] = Problem{at, "makes no " + c.keeps.Name + ": " + reason}
		}
		return nil, r
	}
	return &record{row.ref, row}, nil
}

// keptFrom translates a problem with the model's row that keeps a key: it returns the
// pointer to the field of the command that the problem comes from.
func (c *checked) keptFrom(p Problem) (at, reason string) {
	for _, a := range c.Once.Set {
		if f := a.Expr.Field; f != nil && p.Pointer == Pointer(a.Name) {
			return c.pointerTo(f.Name), p.Reason
		}
	}
	return "", p.String()
}

// lifeFrom is the attribute from which the TTL of the rows is computed, "" for none.
func (f *form) lifeFrom() string {
	if ttl := f.attrs[f.Table.TTL]; ttl != nil && ttl.Computed != nil {
		return ttl.Computed.From.Name
	}
	return ""
}

// answerRepeated answers a command whose key was used before.
// A key counts for 48 hours from its use. The same key with another command is refused: used is
// true then, and the plan has the error.
func (c *checked) answerRepeated(rec *record, k *known) (p plan, used bool) {
	row, ok := k.knownRow(rec.Ref)
	if !ok || row == nil {
		return plan{}, false
	}
	var target store.Ref
	if rec.row != nil {
		if rec.row.Table.Classify(row) != rec.row.Entity || rec.row.view.Expired(row, k.now) {
			return plan{}, false
		}
		target, ok = c.ledTo(row)
		p.done = Created
	} else {
		was := owntable.OnceFrom(row)
		if was.Expired(k.now) {
			return plan{}, false
		}
		target.Table = was.Table
		target.Key, ok = c.Table.KeyOf(was.Key)
		p.done = Done(was.Done)
	}
	if hash := row.Get(owntable.OnceHash); !hash.IsMissing() && hash.Text() != c.hash {
		return plan{err: newRefusal(Reused, "", "the idempotency key came with another command before")}, true
	}
	if p.repeated = true; ok {
		if there, read := k.knownRow(target); read && there != nil && c.Table.Classify(there) == c.Entity {
			p.row = there
		}
	}
	return p, true
}

// ledTo is the row that was made together with this row of the model, which keeps the
// key.
func (c *checked) ledTo(row value.Item) (store.Ref, bool) {
	key, ok := c.TypedKey(func(name string) value.Value {
		for _, a := range c.Once.Row {
			if a.Name == name {
				return a.Expr.Field.Stored(row)
			}
		}
		return value.Value{}
	})
	return store.Ref{Table: c.Table.Name, Key: key}, ok
}

// planRecord adds the record to a plan.
// The record is written in the transaction of the command, on condition that the key is as it was
// read; so of two requests with one key, one is planned again and finds the other's record.
func (c *checked) planRecord(p *plan, rec *record, k *known) {
	was, _ := k.knownRow(rec.Ref)
	if rec.row == nil {
		is := owntable.OnceRow{Hash: c.hash, Done: string(p.done), Table: c.ref.Table, Key: c.Table.Item(c.ref.Key)}
		p.writes = append(p.writes, owntable.OnceFrom(was).Becomes(rec.Ref, is, k.now))
		return
	}
	is, r := rec.row.imageOf(nil)
	if r != nil {
		p.err = r
		return
	}
	w := store.Write{
		Ref: rec.Ref, Put: is.With(value.Attr{Name: owntable.OnceHash, Value: value.OfString(c.hash)}),
		If: store.Cond{{{Attr: rec.row.Table.Key.Partition.Name, Is: store.Absent}}},
	}
	if was != nil {
		w.If = rec.row.guardCondition(was, rec.row.watchedAttributes())
	}
	p.writes = append(p.writes, w)
}

// takeKey determines a command's idempotency key: from its envelope, or from the
// attribute that holds it.
func (c *checked) takeKey(given string, r *Refusal) {
	c.key = given
	if len(given) > maxKey {
		r.addProblem("", "has an idempotency key of "+formatNumber(len(given))+" bytes, "+formatNumber(maxKey)+" are possible")
		return
	}
	if c.Once == nil || c.Op != Create {
		return
	}
	name := c.Once.Key.Name
	switch in := c.given.get(name).Text(); {
	case given != "" && in != "" && in != given:
		r.addProblem(c.pointerTo(name), "is not the idempotency key that the command came with")
	case given != "":
		c.given.setField(name, value.OfString(given))
	default:
		c.key = in
	}
}
