package ingest

import (
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/status"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// plan is the writes of a command, on the condition that the rows that it was made from
// have not changed. A plan without writes does nothing.
type plan struct {
	writes   []store.Write // one transaction
	own      bool          // the first is of the command's row; else the row stays as it is
	done     Done
	repeated bool
	row      value.Item // as it is afterwards
	err      error      // a *Refusal
}

// writeOwn adds the write of the command's own row, before all others.
func (p *plan) writeOwn(w store.Write) { p.own, p.writes = true, slices.Insert(p.writes, 0, w) }

// planCommand decides the command by the known rows.
// It is pure: it does no I/O, and the same known rows give the same plan. It may ask for more in k,
// and is then called again.
func (c *checked) planCommand(k *known) plan {
	rec, r := c.recordFor(k.now)
	if r != nil {
		return plan{err: r}
	}
	if rec != nil {
		if p, used := c.answerRepeated(rec, k); used || k.isWaiting() {
			return p
		}
	}
	p := c.planRow(k)
	if p.err == nil && rec != nil {
		c.planRecord(&p, rec, k)
	}
	if _, read := k.rows[c.name]; p.err != nil && !read {
		k.open = append(k.open, c.ref) // that the row exists comes before any other refusal
	}
	return p
}

// planRow plans the command's own row, without its idempotency key. The plan is
// incomplete if k.waiting reports true afterwards.
func (c *checked) planRow(k *known) plan {
	row, ok := c.rowAtKey(k)
	if !ok {
		return plan{}
	}
	if row != nil && c.Table.Classify(row) != c.Entity {
		return c.planForeign(row)
	}
	live := row
	if row != nil && c.view.Expired(row, k.now) {
		live = nil
	}
	if r := c.checkIfMatch(live); r != nil {
		return plan{err: r}
	}
	switch {
	case c.Op == Delete && row == nil:
		return plan{done: Unchanged}
	case c.Op == Delete:
		return c.planDelete(k, row, live)
	case c.Op == Update && live == nil:
		return plan{err: newRefusal(Missing, "", "there is no such row of %s", c.Name)}
	case c.Op == Create && live != nil:
		return c.refuseExisting(k, live)
	}
	return c.planChange(k, row, live)
}

// refuseExisting refuses a create of a row that exists. It says so if the row that the create
// would have superseded still exists, too: then the table is not as if the create had
// made the row.
func (c *checked) refuseExisting(k *known, live value.Item) plan {
	p := plan{err: newRefusal(Exists, "", "there is such a row of %s already", c.Name), row: live}
	ref, supersedes := c.supersededBy(projections.OwnRow(c.Entity, live))
	if !supersedes {
		return p
	}
	switch other, read := k.knownRow(ref); {
	case !read:
		return plan{}
	case c.isOvertaken(other, c.Supersede.Time.Get(live)):
		p = plan{err: newRefusal(Exists, "", "there is such a row of %s already, and beside it one that it supersedes; put it to remove that one", c.Name)}
	}
	return p
}

// planDelete plans the delete of the row, and gives its claims back.
func (c *checked) planDelete(k *known, row, live value.Item) plan {
	p := plan{done: Deleted}
	p.writeOwn(store.Write{Ref: c.ref, If: c.guardCondition(row, c.watchedAttributes()), Delete: true})
	if r := c.planClaims(&p, k, row, live, nil); r != nil {
		return plan{err: r}
	}
	return p
}

// planForeign is the plan for a key at which a row of another entity is stored.
func (c *checked) planForeign(row value.Item) plan {
	what := "a row that " + c.model.Name + " does not know"
	if e := c.Table.Classify(row); e != nil {
		what = "a row of " + e.Name
	}
	switch c.Op {
	case Delete:
		return plan{done: Unchanged}
	case Update:
		return plan{err: newRefusal(Missing, "", "there is no such row of %s: %s stands at its key", c.Name, what)}
	}
	return plan{err: newRefusal(Exists, "", "%s stands at the key", what)}
}

// checkIfMatch refuses the command if the row is not the one that IfMatch names.
func (c *checked) checkIfMatch(live value.Item) *Refusal {
	switch {
	case c.IfMatch == "" || live != nil && (c.IfMatch == "*" || c.IfMatch == c.revisionOf(live)):
		return nil
	case live == nil && c.Op == Update:
		return newRefusal(Missing, "", "there is no such row of %s", c.Name)
	case live == nil:
		return newRefusal(Stale, "", "there is no such row of %s any more", c.Name)
	}
	return newRefusal(Stale, "", "the row has changed: its revision is %s now", c.revisionOf(live))
}

// planChange plans the row that the command asks for. Attributes that are not the
// application's stay. Of an expired row, only these stay.
func (c *checked) planChange(k *known, row, live value.Item) plan {
	was := projections.OwnRow(c.Entity, live)
	is, r := c.imageOf(was)
	if r == nil {
		r = c.checkForward(live, was, is)
	}
	if r != nil {
		return plan{err: r}
	}
	p := plan{done: Replaced}
	switch {
	case live == nil:
		p.done = Created
	case c.Op == Update:
		p.done = Updated
	}
	is, before := c.applySupersede(&p, k, was, is)
	if before {
		return plan{done: Unchanged, row: row}
	}
	if r := c.planClaims(&p, k, row, live, is); r != nil {
		return plan{err: r}
	}
	if row == nil {
		p.row = is
		p.writeOwn(store.Write{Ref: c.ref, If: c.absent, Put: is})
		if r := c.checkDerivable(nil, is); r != nil {
			return plan{err: r}
		}
		return p
	}
	if live == nil {
		is = is.With(row.Filter(c.isDerived)...)
	}
	p.row = projections.KeepStatuses(c.Entity, is, row)
	if r := c.checkDerivable(row, p.row); r != nil {
		return plan{err: r}
	}
	if ops := store.Difference(row, p.row); len(ops) > 0 {
		p.writeOwn(store.Write{Ref: c.ref, If: c.guardCondition(row, c.watchedAttributes()), Ops: ops})
	} else if len(p.writes) == 0 {
		p.done = Unchanged
	}
	return p
}

// checkForward refuses to move a status back, behind the status that the application wrote
// or the one that the row shows. Writing the application's own status again is allowed.
func (c *checked) checkForward(live, was, is value.Item) *Refusal {
	for _, a := range c.Attributes {
		now := is.Get(a.Name)
		if !a.Forward || live == nil || value.Equal(now, was.Get(a.Name)) {
			continue
		}
		shown := live.Get(a.Name)
		if a.Rank(now) < max(a.Rank(shown), a.Rank(was.Get(a.Name))) {
			is := describeValue(shown)
			if a.Hidden {
				is = "further"
			}
			return newRefusal(Backward, c.pointerTo(a.Name), "is %s and does not go back to %s", is, describeValue(now))
		}
	}
	return nil
}

// watchedAttributes returns the attributes that the plan was made from, beside the command.
// The write of the plan holds only while these are as they were read. Attributes that do not matter
// to it may change meanwhile.
func (c *checked) watchedAttributes() []string {
	var out []string
	if c.IfMatch != "" && c.IfMatch != "*" {
		out = append(out, seq.Map(c.Attributes, func(a *model.Attribute) string { return a.Name })...)
	}
	if ttl := c.Table.TTL; ttl != "" {
		out = append(out, ttl)
	}
	if c.Expires != nil && (c.Expires.Key == nil || c.Expires.Sparse) {
		out = append(out, c.Expires.Attrs()...)
	}
	out = append(out, seq.Map(c.Unique, func(u *model.Unique) string { return u.Field.Attr })...)
	for _, a := range c.Attributes {
		if a.Forward {
			out = append(out, a.Name)
		}
		if a.Computed != nil && c.Op == Update && c.givesAny(a.Computed.Fields()) {
			out = append(out, a.Computed.Fields()...)
		}
	}
	if s := c.Supersede; s != nil {
		out = append(append(out, s.List.Name), s.Time.Attrs()...)
	}
	if len(c.Covered()) > 0 {
		out = append(out, status.BasisAttributes(c.Entity)...)
	}
	if c.Op == Update {
		for _, k := range c.Keys {
			if c.isTouched(k) {
				out = append(append(out, k.Template.Names()...), k.Attr.Name) // names that stand only there are read from it
			}
		}
	}
	return out
}

// guardCondition is the condition that the row exists, belongs to the entity, and has the named
// attributes as they were read.
func (c *checked) guardCondition(row value.Item, names []string) store.Cond {
	cond := store.Cond{{{Attr: c.Table.Key.Partition.Name, Is: store.Exists}}}
	names = slices.Clone(names)
	for _, t := range c.Where {
		if t.Field.Key == nil {
			names = append(names, t.Field.Attr)
		}
	}
	if c.IfMatch != "" && c.IfMatch != "*" {
		names = append(names, seq.Map(c.applicationRow(row), func(a value.Attr) string { return a.Name })...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.ContainsFunc(c.PrimaryKey(), func(k *model.KeyTemplate) bool { return k.Attr.Name == name }) {
			continue
		}
		cond = append(cond, []store.Test{store.AsRead(name, row.Get(name))})
	}
	return cond
}
