package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Two models show nothing on one row: the row has one version, and each would take the other's for
// a later one of its own and leave its value as it is.

// shapesOf returns, by table, the rows on which a model shows values, or which it makes.
func shapesOf(m *model.Model) map[string][]owntable.Shape {
	by := map[string]*owntable.Shape{}
	for _, d := range m.Derivations() {
		e := m.Entity(d.Into)
		if e == nil || isSearch(d.Name) {
			continue
		}
		if by[e.Name] == nil {
			s := ShapeOf(e)
			s.Attrs = e.DerivedAttributes()
			by[e.Name] = &s
		}
		by[e.Name].Of = append(by[e.Name].Of, d.Name)
	}
	out := map[string][]owntable.Shape{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		t := m.Entity(name).Table.Name
		slices.Sort(by[name].Of)
		out[t] = append(out[t], *by[name])
	}
	return out
}

// named is what a key template has in place of any text.
var named = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`)

// ShapeOf returns the shape of an entity's rows. It is of no derivation. Only tests of an attribute for
// single values are in it, so it may also fit rows that the entity's where leaves out.
func ShapeOf(e *model.Entity) owntable.Shape {
	s := owntable.Shape{Is: map[string][]string{}}
	for _, k := range e.Keys {
		pattern := named.ReplaceAllString(k.Template.String(), "*")
		switch k.Attr.Name {
		case e.Table.Key.Partition.Name:
			s.Partition = pattern
		case e.Table.Key.Sort.Name:
			s.Sort = pattern
		}
	}
	for i := range e.Where {
		if f := e.Where[i].Field; f.Key == nil {
			for _, v := range e.Where[i].Listed() {
				s.Is[f.Attr] = append(s.Is[f.Attr], value.Scalar(v))
			}
		}
	}
	return s
}

// beside refuses to begin where another model shows values on the same rows. With write, it notes
// which rows this model has.
func (c *Catalog) beside(ctx context.Context, write bool) error {
	shapes := shapesOf(c.model)
	for _, t := range slices.Sorted(maps.Keys(shapes)) {
		if err := c.besideOn(ctx, t, shapes[t], write); err != nil {
			return err
		}
	}
	return nil
}

// besideOn is beside for one table. The row that says which models show values there is written under its
// version, so of two models that begin together the second sees the first. A crash leaves the row without
// this model, which is the same as before it began.
func (c *Catalog) besideOn(ctx context.Context, t string, ours []owntable.Shape, write bool) error {
	at := owntable.Shown(t)
	for range attempts {
		is, err := c.shown(ctx, t)
		if err != nil {
			return err
		}
		for _, other := range slices.Sorted(maps.Keys(is.Models)) {
			if other == c.model.Name {
				continue
			}
			if err := c.besideModel(ctx, t, other, is.Models[other], ours); err != nil {
				return err
			}
		}
		w, differs := is.With(at, c.model.Name, ours)
		if !differs || !write {
			return nil
		}
		out, err := c.store.Write(ctx, []store.Write{w})
		if err == nil {
			err = out[0].Err
		}
		if !errors.Is(err, store.ErrCondition) {
			return err
		}
	}
	return errBusy
}

// besideModel refuses what shows values on rows on which another model's derivations do that are
// not retired.
func (c *Catalog) besideModel(ctx context.Context, t, other string, theirs, ours []owntable.Shape) error {
	for _, their := range theirs {
		at := slices.IndexFunc(ours, their.Meets)
		if at < 0 {
			continue
		}
		live, err := c.liveOf(ctx, other, their.Of)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			return refuse(ErrModel, "model %s shows %s on rows of table %s, and model %s shows %s there: a row has one version, so each would take the other's for a later one of its own, and leave values as they are. "+
				"Put both into one model; or take %s out of the file of model %s and say so: projector retire FILE '%s'; or, if nothing runs that model any more, retire all of it: projector retire %s --all (%s)",
				c.model.Name, strings.Join(ours[at].Of, ", "), t, other, strings.Join(live, ", "), strings.Join(live, ", "), other, strings.Join(live, "' '"), other, guide)
		}
	}
	return nil
}

// shown reads which models show values on rows of a table.
func (c *Catalog) shown(ctx context.Context, table string) (is owntable.ShownRow, err error) {
	row, err := store.GetRow(ctx, c.store, owntable.Shown(table))
	if err != nil {
		return is, fmt.Errorf("reading which models show values on table %s: %w", table, err)
	}
	return owntable.DecodeShown(row)
}

// liveOf returns which derivations of another model are neither retired nor unbuilt. A name that its
// catalog does not have is one that no program of it has applied yet, and is left out too.
func (c *Catalog) liveOf(ctx context.Context, other string, names []string) ([]string, error) {
	row, err := store.GetRow(ctx, c.store, owntable.Catalog(other))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog of model %s: %w", other, err)
	}
	is, err := owntable.DecodeCatalog(row)
	if err != nil {
		return nil, fmt.Errorf("the catalog of model %s: %w", other, err)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		s := is.Derivations[name].State
		return s == "" || s == owntable.Retired || s == owntable.Unbuilt
	}), nil
}

// ShownByOthers returns, by model, the rows of a table on which other models show values or which
// they make, with the derivations that are neither retired nor unbuilt. A model whose derivations
// there are all retired is not in the result, which belongs to the caller.
func (c *Catalog) ShownByOthers(ctx context.Context, table string) (map[string][]owntable.Shape, error) {
	is, err := c.shown(ctx, table)
	if err != nil {
		return nil, err
	}
	out := map[string][]owntable.Shape{}
	for other, shapes := range is.Models {
		for _, shape := range shapes {
			if other == c.model.Name {
				continue
			}
			if shape.Of, err = c.liveOf(ctx, other, shape.Of); err != nil {
				return nil, err
			}
			if len(shape.Of) > 0 {
				out[other] = append(out[other], shape)
			}
		}
	}
	return out, nil
}
