package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
)

// FootprintsOf returns the footprint of each derivation of a model, without search indexes.
func FootprintsOf(m *model.Model) (out []owntable.Footprint) {
	history := map[string]bool{}
	ds := m.Derivations()
	for _, d := range ds {
		history[d.Name] = d.History
	}
	for _, d := range ds {
		e := m.Entity(d.Into)
		if e == nil || isSearch(d.Name) {
			continue
		}
		rule, _, _ := strings.Cut(d.Name, ".")
		f := owntable.Footprint{Name: d.Name, Hash: d.Hash, Table: e.Table.Name, Made: e.Derived, History: d.History || history[rule]}
		footprintOfTally(m, &f)
		footprintOfRules(m, &f)
		if len(f.Rows) == 0 {
			f.Rows = []owntable.Shape{ShapeOf(e)}
		}
		out = append(out, f)
	}
	return out
}

// footprintOfTally notes the footprint of a derivation that is shown by a ledger.
func footprintOfTally(m *model.Model, f *owntable.Footprint) {
	for _, t := range m.Tallies {
		if t.Name != f.Name {
			continue
		}
		f.Counts, f.Makes = true, t.IsSet() || t.Group != nil && t == t.Group.Rows
		if !f.Makes && t.Shows() {
			f.Attrs = append(f.Attrs, t.Attr)
		}
		if t.Kind == aggregate.Distinct {
			f.Values = t.Attr
		}
	}
	for _, s := range m.Statuses {
		if s.Name != f.Name {
			continue
		}
		f.Counts, f.Covers, f.Facts = true, s.Attributes(), []string{owntable.FactList(s.Name, "")}
		for _, st := range s.Stages {
			if st.List != nil && st.List.Others != nil {
				f.Facts = append(f.Facts, owntable.FactList(st.List.Others.Name, ""))
			}
		}
	}
	for _, l := range m.Latest {
		if l.Name == f.Name {
			f.Counts, f.Covers, f.Facts = true, l.Covers(), []string{owntable.FactList(l.Name, "")}
			f.Attrs = slices.DeleteFunc(l.Attributes(), func(name string) bool { return slices.Contains(f.Covers, name) })
		}
	}
}

// footprintOfRules notes the footprint of a derivation whose rows rules make.
func footprintOfRules(m *model.Model, f *owntable.Footprint) {
	for _, r := range m.Rows {
		if r.Name != f.Name {
			continue
		}
		f.Makes, f.Rows = true, append(f.Rows, shapeOfRule(r))
		if r.Subscribers != nil {
			f.Lists = append(f.Lists, owntable.SubscriberLists(m.Name)+r.Name+"<")
		}
	}
	for _, l := range m.Follows {
		if l.Name == f.Name {
			f.Attrs = []string{l.Attr, owntable.FollowsAttr(l.Attr), owntable.FollowVersion(l.Attr)}
			if l.Rule != nil {
				f.Rows = append(f.Rows, shapeOfRule(l.Rule))
			}
			f.Lists = append(f.Lists, owntable.FollowedOf(m.Name, l.Source.Name+"."+l.Field.Name))
		}
	}
}

// shapeOfRule is the shape of the rows that a rule makes, with the constants that it puts into their keys.
func shapeOfRule(r *model.RowRule) owntable.Shape { return shapeOf(r.Into, r.KeyConstants()) }

// Footprints returns the footprints of all derivations that the model has or has had.
func (c *Catalog) Footprints(ctx context.Context) (out []owntable.Footprint, err error) {
	for row, err := range store.EachRow(ctx, c.store, owntable.Footprints(c.model.Name)) {
		if err != nil {
			return nil, fmt.Errorf("reading what derivations of model %s leave: %w", c.model.Name, err)
		}
		f, err := owntable.DecodeFootprint(row)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// writeFootprints writes the footprints of derivations that begin by the next catalog.
func (c *Catalog) writeFootprints(ctx context.Context, was, next owntable.CatalogRow) error {
	var ws []store.Write
	for _, f := range FootprintsOf(c.model) {
		is, before := next.Derivations[f.Name], was.Derivations[f.Name]
		if isLive(is) && is.Hash == f.Hash && (!isLive(before) || before.Hash != f.Hash) {
			ws = append(ws, f.Put(c.model.Name))
		}
	}
	out, err := c.store.Write(ctx, ws)
	if i := slices.IndexFunc(out, func(o store.Outcome) bool { return o.Err != nil }); err == nil && i >= 0 {
		err = out[i].Err
	}
	return store.Wrap(err, "noting what derivations of model %s leave", c.model.Name)
}

// removedLife is how long removed values are still taken for weir's: a stream has the changes that removed it for 24 hours.
const removedLife = retention + 2*time.Hour

// readLeft reads the footprints of retired derivations on rows of the model's entities, so that nothing takes their values for the
// application's. An attribute that the model declares today is the application's.
func (c *Catalog) readLeft(ctx context.Context, row owntable.CatalogRow) error {
	left, err := c.LeftAttributes(ctx, row)
	if err != nil {
		return err
	}
	for _, e := range c.model.Entities {
		if !e.Derived {
			e.Left.Set(left[e])
		}
	}
	return nil
}

// LeftAttributes returns the attributes that retired derivations have left on rows, by entity of the model.
func (c *Catalog) LeftAttributes(ctx context.Context, row owntable.CatalogRow) (map[*model.Entity][]string, error) {
	prints, err := c.Footprints(ctx)
	if err != nil {
		return nil, err
	}
	left := map[*model.Entity][]string{}
	for _, e := range c.model.Entities {
		shape := ShapeOf(e)
		for _, f := range prints {
			is := row.Derivations[f.Name]
			over := !f.Removed.IsZero() && c.now().Sub(f.Removed) > removedLife
			if f.Table != e.Table.Name || over || isLive(is) && is.Hash == f.Hash || !slices.ContainsFunc(f.Rows, shape.Overlaps) {
				continue
			}
			left[e] = append(left[e], seq.Where(f.Attrs, func(name string) bool { return e.Attribute(name) == nil })...)
		}
	}
	return left, nil
}
