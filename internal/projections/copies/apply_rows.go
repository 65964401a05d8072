package copies

import (
	"context"
	"errors"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// writeRows writes and deletes the rows that only weir writes (copies and history). Such a row
// carries the position of its source's change, and the newest change wins. A deletion
// leaves a tombstone with its position. The tombstone is written first, and after a crash
// between the two writes the repeated batch does both again. A row that follows another
// row's field is entered on the list of followers before it is written, and compared with
// the value afterwards, so a value that changes meanwhile reaches it in one of the two ways.
func (w *work) writeRows(ctx context.Context) error {
	repeated, err := w.KeepValues(ctx)
	if err != nil {
		return err
	}
	var gone, made []*projections.Put
	for i := range w.puts {
		if p := &w.puts[i]; p.Image == nil {
			gone = append(gone, p)
		} else {
			made = append(made, p)
		}
	}
	if err := w.removeRows(ctx, gone); err != nil {
		return err
	}
	if err := w.makeRows(ctx, made); err != nil {
		return err
	}
	if err := w.UpdateFollowers(ctx, repeated); err != nil {
		return err
	}
	if _, err := w.SettleRows(ctx, w.Unsettled); err != nil {
		return err
	}
	return w.LeaveLists(ctx)
}

// removeRows deletes rows: first it writes all tombstones, then it deletes the rows that
// carry no newer position.
func (w *work) removeRows(ctx context.Context, puts []*projections.Put) error {
	tombs := make([]store.Write, len(puts))
	for i, p := range puts {
		tombs[i] = owntable.Member{Position: p.Position}.Keep(owntable.Tombstone(p.Row), w.OwnRowExpiry())
	}
	if _, err := w.Write(ctx, tombs); err != nil {
		return err
	}
	dels := make([]store.Write, len(puts))
	for i, p := range puts {
		dels[i] = removeUpTo(p.Row, p.Position)
		dels[i].Return = true
	}
	out, err := w.Write(ctx, dels)
	if err != nil {
		return err
	}
	return w.applyNewest(ctx, w.refusedPuts(puts, out))
}

// removeUpTo returns the write that deletes a row unless it carries a position behind p. A row that another program
// wrote there, without our mark, is deleted too: its key belongs to the copy.
func removeUpTo(row store.Ref, p events.Position) store.Write {
	return store.Write{Ref: row, Delete: true, If: store.Cond{
		{{Attr: owntable.Version, Is: store.Absent}, {Attr: owntable.Version, Is: store.Le, Value: p.Value()}},
	}}
}

// makeRows writes rows. A row that existed before this change is updated. A row that did
// not exist is created only if its tombstone allows it.
func (w *work) makeRows(ctx context.Context, puts []*projections.Put) error {
	if len(puts) == 0 {
		return nil
	}
	if err := w.EnterLists(ctx, puts); err != nil {
		return err
	}
	values, err := w.ReadValues(ctx, puts)
	if err != nil {
		return err
	}
	late := map[*projections.Put]bool{} // rows whose value must be checked again
	var create []*projections.Put
	ws := make([]store.Write, 0, len(puts))
	var of []*projections.Put
	for _, p := range puts {
		if p.Existed {
			ws, of = append(ws, w.rowWrite(p, values, true)), append(of, p)
		} else {
			create = append(create, p)
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return err
	}
	above := w.refusedPuts(of, out)
	for i, p := range of {
		switch e := out[i].Err; {
		case errors.Is(e, store.ErrRefused):
			err = w.parkRow(ctx, p, p.Position, e.Error())
		case e != nil && out[i].Row == nil: // the row does not exist: another program deleted it
			p.Entered = false
			create = append(create, p)
		case e != nil:
			late[p] = true
		}
		if err != nil {
			return err
		}
	}
	more, err := w.createRows(ctx, create, values, late)
	if err != nil {
		return err
	}
	if err := w.applyNewest(ctx, append(above, more...)); err != nil {
		return err
	}
	return w.CompareAgain(ctx, puts, values, late, events.Position{})
}

// createRows writes rows that did not exist, unless a tombstone has the same position or a
// newer one. It adds rows to late if they have that position or a newer one already. It returns those that a position
// kept from being made as they are to be.
func (w *work) createRows(ctx context.Context, puts []*projections.Put, values follow.Values, late map[*projections.Put]bool) (above []*projections.Put, err error) {
	refs := make([]store.Ref, len(puts))
	for i, p := range puts {
		refs[i] = owntable.Tombstone(p.Row)
	}
	tombs, err := w.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	var ws []store.Write
	var of []*projections.Put
	for i, p := range puts {
		if runner.IsLapsed(w.Runner, p) {
			continue
		}
		if tomb := owntable.MemberFrom(tombs[i]); tomb.Position.Compare(p.Position) < 0 {
			wr := w.rowWrite(p, values, false)
			wr.Return = true
			ws, of = append(ws, wr), append(of, p)
		} else if len(p.Rule.Keep) == 0 {
			above = append(above, p)
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i, p := range of {
		switch e := out[i].Err; {
		case errors.Is(e, store.ErrRefused):
			if err := w.parkRow(ctx, p, p.Position, e.Error()); err != nil {
				return nil, err
			}
		case e != nil:
			late[p] = true
		}
	}
	return append(above, w.refusedPuts(of, out)...), nil
}

// rowWrite returns the write that sets the rule's attributes and removes those that it no longer
// makes. It leaves the values that the row follows, and attributes that other programs
// wrote.
func (w *work) rowWrite(p *projections.Put, values follow.Values, there bool) store.Write {
	version := p.Version()
	wr := store.Write{Ref: p.Row, If: store.Cond{store.Below(owntable.Version, version)}, Return: there}
	if there {
		wr.If = append(wr.If, w.ExistsCondition(p.Row.Table))
	}
	wr.Ops = w.Model.Table(p.Row.Table).AssignRow(p.Image)
	wr.Ops = append(wr.Ops, seq.Map(absentNames(p), func(name string) store.Op { return store.Op{Kind: store.Remove, Attr: name} })...)
	for i := range p.Rule.Fields {
		if f := p.Rule.Fields[i].Expr.Follow; f != nil {
			wr.Ops = append(wr.Ops, w.FollowOps(p, f, values)...)
		}
	}
	wr.Ops = append(wr.Ops, store.Assign(owntable.Version, version))
	return wr
}

// absentNames returns the attributes that the rule could have made and did not: those that it
// assigns, and keys of indexes.
func absentNames(p *projections.Put) []string {
	var names []string
	miss := func(name string) {
		if name != "" && !p.Image.Has(name) {
			names = append(names, name)
		}
	}
	into := p.Rule.Into
	for i := range p.Rule.Fields {
		if f := &p.Rule.Fields[i]; f.Expr.Follow == nil && (into.Attribute(f.Name) != nil || into.Spells(f.Name)) {
			miss(f.Name)
		}
	}
	for _, k := range into.Keys[len(into.PrimaryKey()):] {
		if into.Attribute(k.Attr.Name) == nil {
			miss(k.Attr.Name)
		}
	}
	for _, a := range into.Attributes {
		if a.Computed != nil {
			miss(a.Name)
		}
	}
	return names
}

// mendRows checks copies that another writer touched, and restores them.
func (w *work) mendRows(ctx context.Context) error {
	for i := range w.mends {
		if err := w.mendCopy(ctx, &w.mends[i]); err != nil {
			return err
		}
	}
	return nil
}

// mendCopy checks the copy as its record shows it. If the copy was deleted since, it checks
// it again as a deleted one. It must not leave that to the record of the deletion: that
// record may carry an older position than this one, at which a deletion by weir itself is
// recorded.
func (w *work) mendCopy(ctx context.Context, m *Mend) error {
	removed := m.Change.New == nil
	missing, err := w.mendAs(ctx, m, removed)
	if missing && !removed {
		_, err = w.mendAs(ctx, m, true)
	}
	return err
}

// mendAs compares the copy with its tombstone. If a delayed worker brought the row back
// after weir had deleted it, mendAs deletes it again. If weir itself deleted the row, or
// wrote it and has not deleted it since, there is nothing to do. Otherwise mendAs makes
// the row from its source again. The row keeps the position that it had, so a newer
// change of the source still wins. mendAs reports whether the row is missing.
func (w *work) mendAs(ctx context.Context, m *Mend, removed bool) (missing bool, err error) {
	row := m.Change.Row
	tomb, err := w.GetRow(ctx, owntable.Tombstone(row))
	if err != nil {
		return false, err
	}
	last := owntable.MemberFrom(tomb).Position
	buried := tomb != nil && last.Compare(m.Ours) >= 0
	switch {
	case m.Back && buried:
		_, err = w.Write(ctx, []store.Write{removeUpTo(row, last)})
		return false, err
	case m.Back || buried && removed:
		return false, nil
	}
	image := m.Change.New
	if image == nil {
		image = m.Change.Old
	}
	for rule, source := range Makers(m.Entity, image) {
		gone, err := w.restoreCopy(ctx, m, rule, source, removed)
		if err != nil {
			return false, err
		}
		missing = missing || gone
	}
	return missing, nil
}

// restoreCopy makes the row again from a rule's source as the source is now. If the source makes
// no such row, restore leaves the row alone, because it belongs to another program. It
// reports whether the row is missing.
func (w *work) restoreCopy(ctx context.Context, m *Mend, rule *model.RowRule, source store.Ref, removed bool) (missing bool, err error) {
	is, err := w.GetRow(ctx, source)
	p, made := makesAt(rule, is, m.Change.Row)
	if err != nil || !made {
		return false, err
	}
	if removed && !m.Change.Time.IsZero() && w.Model.Table(p.Row.Table).Expired(p.Image, m.Change.Time) {
		return false, nil // TTL would delete it again, for as long as the source stands
	}
	p.Position = m.Ours
	if err := w.EnterLists(ctx, []*projections.Put{&p}); err != nil {
		return false, err
	}
	values, err := w.ReadValues(ctx, []*projections.Put{&p})
	if err != nil {
		return false, err
	}
	wr := w.rowWrite(&p, values, true)
	wr.If = w.restoreCond(m, removed)
	out, err := store.WriteOnce(ctx, w.Store, []store.Write{wr})
	switch {
	case err != nil:
		return false, err
	case errors.Is(out[0].Err, store.ErrRefused):
		return false, w.parkRow(ctx, &p, m.Change.Position, out[0].Err.Error())
	case out[0].Err != nil:
		return out[0].Row == nil, nil
	}
	return false, w.CompareAgain(ctx, []*projections.Put{&p}, values, nil, m.Change.Position)
}

// restoreCond returns the condition that the row is as the mend found it, so that a
// change of the source that was applied meanwhile stays.
func (w *work) restoreCond(m *Mend, removed bool) store.Cond {
	is := m.Change.New.Get(owntable.Version)
	switch {
	// Or another program restored an older copy, or one that it had spoilt: both look
	// like ours.
	case removed:
		return store.Cond{{
			{Attr: w.Model.Table(m.Change.Row.Table).Key.Partition.Name, Is: store.Absent}, {Attr: owntable.Version, Is: store.Le, Value: m.Ours.Value()},
		}}
	case is.IsMissing():
		return store.Cond{w.ExistsCondition(m.Change.Row.Table), {{Attr: owntable.Version, Is: store.Absent}}}
	case is.Kind() != value.Binary: // the application wrote something of its own there
		return store.Cond{{{Attr: owntable.Version, Is: store.Eq, Value: is}}}
	}
	return store.Cond{{{Attr: owntable.Version, Is: store.Le, Value: m.Ours.Value()}}}
}

// parkRow keeps a dead letter for a copy or history row that its table refuses, with the
// change at the position, which asked for the row. Such rows need no queue: the newest
// change of the source wins, and the next one that the table accepts puts the row right.
func (w *work) parkRow(ctx context.Context, p *projections.Put, at events.Position, reason string) error {
	i := slices.IndexFunc(w.Changes, func(c projections.Change) bool { return c.Position == at })
	c := &w.Changes[i]
	w.CountKept(i, p.Rule.Name)
	_, err := w.Letters().Keep(ctx, deadletter.Letter{
		Kind: deadletter.Row, Target: p.Rule.Name + " " + w.DescribeRow(p.Row), Row: p.Row, Reason: reason,
		ShardKey: w.ShardKey, Position: at, Record: deadletter.RecordOf(c), Time: c.Time,
	})
	return err
}
