package ingest

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// movePlan is how a request is executed, given the rows that it touches.
type movePlan struct {
	MigrationResult
	writes []store.Write
	takes  []Claim   // on the values of rows that it makes
	frees  []Claim   // on values that one of its rows no longer has
	clash  bool      // refused because another row has one of the values
	behind *movePlan // an earlier plan that takes one of the claims

	m     *Mover
	g     *model.Migration
	row   store.Ref
	now   value.Item // the old row; or the row that is now at its key
	isOld bool
	made  []projections.Moved // the new row
	stale []projections.Moved // the former new rows, at other keys
	late  value.Item          // the attributes that an old application wrote on the row that replaced it
	trust bool                // believe the marks of old rows
}

// beginPlan makes the part of a plan that depends on the old row alone.
func (m *Mover) beginPlan(r *Request) movePlan {
	p := movePlan{MigrationResult: MigrationResult{Outcome: There}, m: m, g: r.Migration, row: r.Row, now: r.Now, trust: r.Trust}
	is := p.g.From.Table.Classify(r.Now)
	if p.isOld = is == p.g.From; p.isOld {
		var reason string
		if p.made, reason = movedRows(p.g, r.Now); reason != "" {
			p.MigrationResult = MigrationResult{Refused, reason}
			return p
		}
	}
	switch in := p.g.InPlace(); {
	case in == nil:
		p.findGone(r.Was)
	case is == in.Into:
		p.late = projections.LateAttributes(in, r.Now)
	}
	return p
}

// movedRows is the new rows that the migration makes of an old row, in the form in which a command
// would have written it. The reason says why it cannot.
func movedRows(g *model.Migration, old value.Item) ([]projections.Moved, string) {
	made, reason := projections.MoveRow(g, old)
	for i := range made {
		image, problems := Fit(made[i].Into, made[i].Image)
		if made[i].Image = image; len(problems) > 0 {
			r := Refusal{Problems: problems}
			return nil, made[i].Into.Name + ": " + r.Error()
		}
	}
	return made, reason
}

// findGone finds the rows that the old row's earlier states became and that it no longer becomes.
func (p *movePlan) findGone(was []projections.Moved) {
	for _, b := range was {
		same := func(o projections.Moved) bool { return projections.SameRow(o.Row, b.Row) }
		if !slices.ContainsFunc(p.made, same) && !slices.ContainsFunc(p.stale, same) {
			p.stale = append(p.stale, b)
		}
	}
}

// isCurrent reports whether the old row's mark says that it was moved as it is, and may
// be believed.
func (p *movePlan) isCurrent() bool {
	return p.trust && p.isOld && p.g.InPlace() == nil && p.now.Get(owntable.Moved).Text() == p.oldMark()
}

// oldMark is the mark of an old row that stays: where it went, and its state then.
func (p *movePlan) oldMark() string {
	return markText(p.targetNames(), projections.WrittenState(p.g.From, p.now))
}

// targetNames names the rows that the old row becomes, for its mark.
func (p *movePlan) targetNames() string {
	return strings.Join(seq.Map(p.made, func(d projections.Moved) string { return owntable.RowText(d.Row) }), "\n")
}

// neededRows returns the rows that the plan needs.
func (p *movePlan) neededRows() (refs []store.Ref) {
	refs = seq.Map(p.stale, func(d projections.Moved) store.Ref { return d.Row })
	if p.Outcome == Refused || p.isCurrent() {
		return refs
	}
	for _, d := range p.made {
		if !d.InPlace {
			refs = append(refs, d.Row)
		}
	}
	if len(p.late) > 0 {
		for _, mk := range p.g.Makes {
			if ref, ok := p.siblingOf(mk); ok {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// planWrites plans the writes; rows has the rows that reads returned.
func (p *movePlan) planWrites(rows map[string]value.Item) {
	if p.Outcome == Refused {
		return
	}
	if !p.isCurrent() {
		for _, d := range p.made {
			if !d.InPlace {
				p.planMade(d, rows[d.Row.String()])
			}
		}
		if p.Outcome == Refused {
			p.writes, p.takes, p.frees = nil, nil, nil
			return
		}
	}
	for _, d := range p.stale {
		p.planRemoval(d, rows[d.Row.String()])
	}
	if len(p.late) > 0 {
		p.followOld(rows)
	}
	p.planOld()
}

// planOld plans the write of the old row itself: the row is replaced, or marked, or only
// checked to be as it was read.
func (p *movePlan) planOld() {
	w := store.Write{Ref: p.row, If: asRead(p.g.From, p.now)}
	in := p.g.InPlace()
	switch {
	case p.isOld && in != nil:
		for _, d := range p.made {
			if d.InPlace {
				next := d.Image.With(p.now.Filter(func(name string) bool { return owntable.IsOurs(name) && name != owntable.Moved })...)
				w.Ops = store.Difference(p.now, next.With(markOf(p.row, d)))
				p.noteClaims(p.row, p.g.From, p.now, d.Into, next)
				p.Outcome = Moved
			}
		}
	case len(p.late) > 0:
		w.If = asRead(in.Into, p.now)
		w.Ops = append(w.Ops, seq.Map(p.late, func(a value.Attr) store.Op { return store.Op{Kind: store.Remove, Attr: a.Name} })...)
	case p.isOld && p.now.Get(owntable.Moved).Text() != p.oldMark():
		w.Ops = []store.Op{{Kind: store.Set, Attr: owntable.Moved, Value: value.OfString(p.oldMark())}}
	case len(p.writes) == 0:
		return
	default:
		w.Check = true
	}
	p.writes = append(p.writes, w)
}

// planMade plans a row that the old one becomes; now is the row at its key.
// A row that the application has changed, or deleted, since it was made is kept as it is.
func (p *movePlan) planMade(d projections.Moved, now value.Item) {
	is := d.Into.Table.Classify(now)
	from, as := splitMark(now.Get(owntable.Moved).Text())
	switch {
	case now == nil && p.wasMade():
		p.noteOutcome(Kept)
	case now == nil:
		image := d.Image.With(markOf(p.row, d))
		p.writes = append(p.writes, store.Write{Ref: d.Row, Put: image, If: absentCondition(d.Into.Table)})
		p.noteClaims(d.Row, nil, nil, d.Into, image)
		p.noteOutcome(Moved)
	case is != d.Into:
		p.MigrationResult = MigrationResult{Refused, "a row of another kind stands at the key that it becomes, " + d.Row.String()}
	case from == "":
		p.noteOutcome(There)
	case from != sourceOf(p.row) && p.g.OneOf:
		p.MigrationResult = MigrationResult{Refused, "another old row became the row that it becomes, " + d.Row.String()}
	case from != sourceOf(p.row):
		p.noteOutcome(There)
	case as != projections.WrittenState(d.Into, now):
		p.noteOutcome(Kept)
	case projections.WrittenState(d.Into, d.Image) != as:
		p.planUpdate(d, now)
	}
}

// wasMade reports whether the old row's mark says that these rows were made from it.
func (p *movePlan) wasMade() bool {
	targets, _ := splitMark(p.now.Get(owntable.Moved).Text())
	return targets != "" && targets == owntable.Hash(p.targetNames())
}

// planUpdate plans an update of a row that was made before. Its derived attributes stay as
// they are.
func (p *movePlan) planUpdate(d projections.Moved, now value.Item) {
	derived := projections.OwnRow(d.Into, now).Filter(func(name string) bool {
		return owntable.IsOurs(name) || projections.IsDerived(d.Into, name)
	})
	next := projections.KeepStatuses(d.Into, d.Image.With(derived...), now).With(markOf(p.row, d))
	p.writes = append(p.writes, store.Write{Ref: d.Row, If: asRead(d.Into, now), Ops: store.Difference(now, next)})
	p.noteClaims(d.Row, d.Into, now, d.Into, next)
	p.noteOutcome(Followed)
}

// planRemoval plans the delete of a row that was made from an earlier state of the old row,
// unless the application has changed it.
func (p *movePlan) planRemoval(d projections.Moved, now value.Item) {
	from, as := splitMark(now.Get(owntable.Moved).Text())
	switch {
	case now == nil || from != sourceOf(p.row):
	case as != projections.WrittenState(d.Into, now):
		p.noteOutcome(Kept)
	default:
		p.writes = append(p.writes, store.Write{Ref: d.Row, Delete: true, If: asRead(d.Into, now)})
		p.noteClaims(d.Row, d.Into, now, nil, nil)
		p.noteOutcome(Followed)
	}
}

// followOld handles the changes of an old application on the row that replaced its row: it
// copies that to the other rows made from the same old row, where the attributes are
// now.
func (p *movePlan) followOld(rows map[string]value.Item) {
	for _, mk := range p.g.Makes {
		ref, ok := p.siblingOf(mk)
		now := rows[ref.String()]
		from, as := splitMark(now.Get(owntable.Moved).Text())
		if !ok || from != sourceOf(p.row) {
			continue
		}
		if as != projections.WrittenState(mk.Into, now) {
			p.noteOutcome(Kept)
			continue
		}
		image := projections.WithKeys(mk.Into, projections.WrittenRow(mk.Into, now).With(projections.MoveLate(mk, p.late)...))
		p.planUpdate(projections.Moved{Making: mk, Row: ref, Image: image}, now)
	}
	if p.Outcome == There {
		p.Outcome = Kept // the rows that it was for are gone
	}
}

// siblingOf is a row made from the same old row as the row that replaced it, found by the
// names in its key.
func (p *movePlan) siblingOf(mk *model.Making) (store.Ref, bool) {
	if mk.InPlace {
		return store.Ref{}, false
	}
	key, ok := projections.KeyMade(mk, p.now)
	return store.Ref{Table: mk.Into.Table.Name, Key: key}, ok
}

// noteOutcome keeps the outcome that says most: Moved before Followed, Kept and There.
func (p *movePlan) noteOutcome(o Outcome) {
	rank := []Outcome{There, Kept, Followed, Moved}
	if slices.Index(rank, o) > slices.Index(rank, p.Outcome) {
		p.Outcome = o
	}
}

// sourceOf is the name of an old row in a mark: a hash, so that its length does not depend on the
// key.
func sourceOf(row store.Ref) string { return owntable.Hash(owntable.RowText(row)) }

// markText is the text of a mark: a hash of the rows' names, and their state.
func markText(rows, state string) string { return owntable.Hash(rows) + "." + state }

// markOf is the mark of a row that was made: of which old row, and a hash of the new one. If the
// row no longer fits it, an application has changed the row.
func markOf(source store.Ref, d projections.Moved) value.Attr {
	return value.Attr{Name: owntable.Moved, Value: value.OfString(markText(owntable.RowText(source), projections.WrittenState(d.Into, d.Image)))}
}

// splitMark reads a text of mark.
func splitMark(mark string) (rows, state string) {
	rows, state, _ = strings.Cut(mark, ".")
	return rows, state
}

// asRead is the condition that a row is as it was read, in the application's attributes.
// Declared attributes that it lacked must still be missing.
func asRead(e *model.Entity, row value.Item) store.Cond {
	t := e.Table
	if row == nil {
		return absentCondition(t)
	}
	cond := store.Cond{{{Attr: t.Key.Partition.Name, Is: store.Exists}}}
	for _, a := range row {
		key := a.Name == t.Key.Partition.Name || a.Name == t.Key.Sort.Name
		if !key && (!owntable.IsOurs(a.Name) || a.Name == owntable.Moved) && !projections.IsDerived(e, a.Name) {
			cond = append(cond, []store.Test{{Attr: a.Name, Is: store.Eq, Value: a.Value}})
		}
	}
	missing := func(name string) {
		if !row.Has(name) && !projections.IsDerived(e, name) {
			cond = append(cond, []store.Test{{Attr: name, Is: store.Absent}})
		}
	}
	missing(owntable.Moved)
	for _, a := range e.Attributes {
		missing(a.Name)
	}
	return cond
}

// absentCondition holds if there is no row at the key: the partition key is in every row.
func absentCondition(t *model.Table) store.Cond {
	return store.Cond{{{Attr: t.Key.Partition.Name, Is: store.Absent}}}
}
