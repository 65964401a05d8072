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
	made  []projections.Moved // what it becomes
	stale []projections.Moved // what it became before, at other keys
	late  value.Item          // what an old application wrote on the row that replaced it
	trust bool                // believe the marks of old rows
}

// begin makes the part of a plan that depends on the old row alone.
func (m *Mover) begin(r *Request) movePlan {
	p := movePlan{MigrationResult: MigrationResult{Outcome: There}, m: m, g: r.Migration, row: r.Row, now: r.Now, trust: r.Trust}
	is := p.g.From.Table.Classify(r.Now)
	if p.isOld = is == p.g.From; p.isOld {
		var reason string
		if p.made, reason = becomes(p.g, r.Now); reason != "" {
			p.MigrationResult = MigrationResult{Refused, reason}
			return p
		}
	}
	switch in := p.g.InPlace(); {
	case in == nil:
		p.gone(r.Was)
	case is == in.Into:
		p.late = projections.LateAttributes(in, r.Now)
	}
	return p
}

// becomes is what the migration makes of an old row, in the form in which a command
// would have written it. The reason says why it cannot.
func becomes(g *model.Migration, old value.Item) ([]projections.Moved, string) {
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

// gone finds the rows that the old row's earlier states became and that it no longer becomes.
func (p *movePlan) gone(was []projections.Moved) {
	for _, b := range was {
		same := func(o projections.Moved) bool { return projections.SameRow(o.Row, b.Row) }
		if !slices.ContainsFunc(p.made, same) && !slices.ContainsFunc(p.stale, same) {
			p.stale = append(p.stale, b)
		}
	}
}

// current reports whether the old row's mark says that it was moved as it is, and may
// be believed.
func (p *movePlan) current() bool {
	return p.trust && p.isOld && p.g.InPlace() == nil && p.now.Get(owntable.Moved).Text() == p.oldMark()
}

// oldMark is the mark of an old row that stays: where it went, and what it was then.
func (p *movePlan) oldMark() string {
	return mark(p.targets(), projections.WrittenState(p.g.From, p.now))
}

// targets names the rows that the old row becomes, for its mark.
func (p *movePlan) targets() string {
	return strings.Join(seq.Map(p.made, func(d projections.Moved) string { return owntable.RowText(d.Row) }), "\n")
}

// reads returns the rows that the plan needs.
func (p *movePlan) reads() (refs []store.Ref) {
	refs = seq.Map(p.stale, func(d projections.Moved) store.Ref { return d.Row })
	if p.Outcome == Refused || p.current() {
		return refs
	}
	for _, d := range p.made {
		if !d.InPlace {
			refs = append(refs, d.Row)
		}
	}
	if len(p.late) > 0 {
		for _, mk := range p.g.Makes {
			if ref, ok := p.sibling(mk); ok {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// finish plans the writes; rows has the rows that reads returned.
func (p *movePlan) finish(rows map[string]value.Item) {
	if p.Outcome == Refused {
		return
	}
	if !p.current() {
		for _, d := range p.made {
			if !d.InPlace {
				p.make(d, rows[d.Row.String()])
			}
		}
		if p.Outcome == Refused {
			p.writes, p.takes, p.frees = nil, nil, nil
			return
		}
	}
	for _, d := range p.stale {
		p.remove(d, rows[d.Row.String()])
	}
	if len(p.late) > 0 {
		p.follow(rows)
	}
	p.old()
}

// old plans the write of the old row itself: the row is replaced, or marked, or only
// checked to be as it was read.
func (p *movePlan) old() {
	w := store.Write{Ref: p.row, If: asRead(p.g.From, p.now)}
	in := p.g.InPlace()
	switch {
	case p.isOld && in != nil:
		for _, d := range p.made {
			if d.InPlace {
				next := d.Image.With(p.now.Filter(func(name string) bool { return owntable.IsOurs(name) && name != owntable.Moved })...)
				w.Ops = store.Difference(p.now, next.With(markOf(p.row, d)))
				p.claims(p.row, p.g.From, p.now, d.Into, next)
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

// make plans a row that the old one becomes; now is the row at its key.
// A row that the application has changed, or deleted, since it was made is kept as it is.
func (p *movePlan) make(d projections.Moved, now value.Item) {
	is := d.Into.Table.Classify(now)
	from, as := split(now.Get(owntable.Moved).Text())
	switch {
	case now == nil && p.wasMade():
		p.note(Kept)
	case now == nil:
		image := d.Image.With(markOf(p.row, d))
		p.writes = append(p.writes, store.Write{Ref: d.Row, Put: image, If: absent(d.Into.Table)})
		p.claims(d.Row, nil, nil, d.Into, image)
		p.note(Moved)
	case is != d.Into:
		p.MigrationResult = MigrationResult{Refused, "a row of another kind stands at the key that it becomes, " + d.Row.String()}
	case from == "":
		p.note(There)
	case from != sourceOf(p.row) && p.g.OneOf:
		p.MigrationResult = MigrationResult{Refused, "another old row became the row that it becomes, " + d.Row.String()}
	case from != sourceOf(p.row):
		p.note(There)
	case as != projections.WrittenState(d.Into, now):
		p.note(Kept)
	case projections.WrittenState(d.Into, d.Image) != as:
		p.change(d, now)
	}
}

// wasMade reports whether the old row's mark says that these rows were made from it.
func (p *movePlan) wasMade() bool {
	targets, _ := split(p.now.Get(owntable.Moved).Text())
	return targets != "" && targets == owntable.Hash(p.targets())
}

// change plans an update of a row that was made before. Its derived attributes stay as
// they are.
func (p *movePlan) change(d projections.Moved, now value.Item) {
	derived := projections.OwnRow(d.Into, now).Filter(func(name string) bool {
		return owntable.IsOurs(name) || projections.IsDerived(d.Into, name)
	})
	next := projections.KeepStatuses(d.Into, d.Image.With(derived...), now).With(markOf(p.row, d))
	p.writes = append(p.writes, store.Write{Ref: d.Row, If: asRead(d.Into, now), Ops: store.Difference(now, next)})
	p.claims(d.Row, d.Into, now, d.Into, next)
	p.note(Followed)
}

// remove plans the delete of a row that was made from an earlier state of the old row,
// unless the application has changed it.
func (p *movePlan) remove(d projections.Moved, now value.Item) {
	from, as := split(now.Get(owntable.Moved).Text())
	switch {
	case now == nil || from != sourceOf(p.row):
	case as != projections.WrittenState(d.Into, now):
		p.note(Kept)
	default:
		p.writes = append(p.writes, store.Write{Ref: d.Row, Delete: true, If: asRead(d.Into, now)})
		p.claims(d.Row, d.Into, now, nil, nil)
		p.note(Followed)
	}
}

// follow handles what an old application wrote on the row that replaced its row: it
// copies that to the other rows made from the same old row, where the attributes are
// now.
func (p *movePlan) follow(rows map[string]value.Item) {
	for _, mk := range p.g.Makes {
		ref, ok := p.sibling(mk)
		now := rows[ref.String()]
		from, as := split(now.Get(owntable.Moved).Text())
		if !ok || from != sourceOf(p.row) {
			continue
		}
		if as != projections.WrittenState(mk.Into, now) {
			p.note(Kept)
			continue
		}
		image := projections.WithKeys(mk.Into, projections.WrittenRow(mk.Into, now).With(projections.MoveLate(mk, p.late)...))
		p.change(projections.Moved{Making: mk, Row: ref, Image: image}, now)
	}
	if p.Outcome == There {
		p.Outcome = Kept // the rows that it was for are gone
	}
}

// sibling is a row made from the same old row as the row that replaced it, found by the
// names in its key.
func (p *movePlan) sibling(mk *model.Making) (store.Ref, bool) {
	if mk.InPlace {
		return store.Ref{}, false
	}
	key, ok := projections.KeyMade(mk, p.now)
	return store.Ref{Table: mk.Into.Table.Name, Key: key}, ok
}

// note keeps the outcome that says most: Moved before Followed, Kept and There.
func (p *movePlan) note(o Outcome) {
	rank := []Outcome{There, Kept, Followed, Moved}
	if slices.Index(rank, o) > slices.Index(rank, p.Outcome) {
		p.Outcome = o
	}
}

// sourceOf is the name of an old row in a mark: a hash, so that its length does not depend on the
// key.
func sourceOf(row store.Ref) string { return owntable.Hash(owntable.RowText(row)) }

// mark is the text of a mark: a hash of the rows' names, and their state.
func mark(rows, state string) string { return owntable.Hash(rows) + "." + state }

// markOf is the mark of a row that was made: of which old row, and a hash of what was made. If the
// row no longer fits it, an application has changed the row.
func markOf(source store.Ref, d projections.Moved) value.Attr {
	return value.Attr{Name: owntable.Moved, Value: value.OfString(mark(owntable.RowText(source), projections.WrittenState(d.Into, d.Image)))}
}

// split reads what mark wrote.
func split(mark string) (rows, state string) {
	rows, state, _ = strings.Cut(mark, ".")
	return rows, state
}

// asRead is the condition that a row is as it was read, in what the application writes.
// Declared attributes that it lacked must still be missing.
func asRead(e *model.Entity, row value.Item) store.Cond {
	t := e.Table
	if row == nil {
		return absent(t)
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

// absent holds if there is no row at the key: the partition key is in every row.
func absent(t *model.Table) store.Cond {
	return store.Cond{{{Attr: t.Key.Partition.Name, Is: store.Absent}}}
}
