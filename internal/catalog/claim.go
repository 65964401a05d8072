package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/store"
)

// A table belongs to one model of a stage: a row has one version, and each of two models would take the other's for a later
// one of its own. The row stage|TABLE of the own table names the model. A program that derives something claims its tables
// in the transaction that enters the derivations, so of two models that begin at the same time one is refused. A model that
// derives nothing (queries, the write side, search alone) claims nothing.

// claims are the rows that say to which model tables belong.
type claims struct {
	all   []store.Write // claim each table, on condition that its row is as it was read
	fresh []store.Write // those of all that change a row
	left  []store.Write // give up the tables that the model no longer derives from
}

// claimsOf reads to which models tables belong. is has the tables as they are found, by this model's names, and was those of
// its catalog. The error wraps ErrModel if one belongs to another model that still derives something.
func (c *Catalog) claimsOf(ctx context.Context, is, was map[string]owntable.Pin) (out claims, err error) {
	ours := map[string]bool{}
	for _, d := range c.program.Derivations {
		for _, t := range d.Reads {
			ours[t] = true
		}
		if e := c.model.Entity(d.Into); e != nil {
			ours[e.Table.Name] = true
		}
	}
	var refs []store.Ref
	var of []owntable.Pin // of refs; the claimed ones are first
	met := map[string]bool{}
	add := func(pin owntable.Pin) {
		if name := tableName(pin); name != "" && !met[name] {
			met[name], refs, of = true, append(refs, owntable.StageOf(name)), append(of, pin)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(ours)) {
		add(is[t])
	}
	claimed := len(refs)
	for _, t := range slices.Sorted(maps.Keys(was)) {
		add(was[t])
	}
	rows, err := c.store.Get(ctx, refs)
	if err != nil {
		return out, fmt.Errorf("reading which models tables belong to: %w", err)
	}
	for i, row := range rows {
		has, err := owntable.DecodeModel(row)
		switch {
		case err != nil:
			return out, err
		case i >= claimed:
			if has == c.model.Name {
				out.left = append(out.left, owntable.LeaveModel(refs[i], has))
			}
			continue
		case has != "" && has != c.model.Name:
			if err := c.refuseTaken(ctx, of[i], has); err != nil {
				return out, err
			}
		}
		w := owntable.SetModel(refs[i], has, c.model.Name)
		if out.all = append(out.all, w); has != c.model.Name {
			out.fresh = append(out.fresh, w)
		}
	}
	return out, nil
}

// refuseTaken refuses a table that belongs to another model, unless that one derives nothing any more.
func (c *Catalog) refuseTaken(ctx context.Context, pin owntable.Pin, other string) error {
	row, err := store.GetRow(ctx, c.store, owntable.Catalog(other))
	if err != nil {
		return fmt.Errorf("reading the catalog of model %s: %w", other, err)
	}
	is, err := owntable.DecodeCatalog(row)
	if err != nil {
		return fmt.Errorf("the catalog of model %s: %w", other, err)
	}
	has := false // else --tables has moved the other model to another table
	for _, its := range is.Tables {
		has = has || sameTable(its, pin)
	}
	for _, name := range slices.Sorted(maps.Keys(is.Derivations)) {
		if has && isLive(is.Derivations[name]) && !isSearch(name) {
			return newRefusal(ErrModel, "table %s belongs to model %s, which derives %s, and this is model %s: two models on one table would take each other's values for their own. "+
				"Put both into one model file. If model %s is to derive nothing any more, take all of derive out of its file, and build it: projector build FILE (%s)",
				tableName(pin), other, name, c.model.Name, other, guide)
		}
	}
	return nil
}

// TakenBy returns the other model to which a table belongs, "" for none.
func (c *Catalog) TakenBy(ctx context.Context, table string) (other string, err error) {
	found, err := c.store.Identity(ctx, table)
	if err != nil {
		return "", fmt.Errorf("identifying table %s: %w", table, err)
	}
	row, err := store.GetRow(ctx, c.store, owntable.StageOf(tableName(pinOf(found))))
	if err != nil {
		return "", fmt.Errorf("reading which model table %s belongs to: %w", table, err)
	}
	if other, err = owntable.DecodeModel(row); other == c.model.Name {
		other = ""
	}
	return other, err
}

// writeClaims writes claims that are missing, and gives up tables that the model no longer derives from. done is false if another
// program has changed one of the rows: read them again.
func (c *Catalog) writeClaims(ctx context.Context, of claims) (done bool, err error) {
	ws := slices.Concat(of.fresh, of.left)
	if len(ws) == 0 {
		return true, nil
	}
	out, err := c.store.Write(ctx, ws)
	if err != nil {
		return false, fmt.Errorf("noting which tables belong to model %s: %w", c.model.Name, err)
	}
	for i := range out {
		if errors.Is(out[i].Err, store.ErrCondition) {
			return false, nil
		}
		err = errors.Join(err, out[i].Err)
	}
	return true, err
}

// tableName returns the name of a table in the store, its id where the store has no ARNs.
func tableName(pin owntable.Pin) string {
	if _, name, ok := strings.Cut(pin.ARN, ":table/"); ok {
		return name
	}
	return pin.ID
}

// pinsOf returns which tables were found.
func pinsOf(f Found) map[string]owntable.Pin {
	out := map[string]owntable.Pin{}
	for t, is := range f.Tables {
		out[t] = pinOf(is)
	}
	return out
}

// pinOf returns which table was found.
func pinOf(is store.Identity) owntable.Pin { return owntable.Pin{ID: is.ID, ARN: is.ARN} }

// sameTable reports whether two models mean one table. One that was dropped and made again has its ARN.
func sameTable(a, b owntable.Pin) bool {
	if a.ARN != "" && b.ARN != "" {
		return a.ARN == b.ARN
	}
	return a.ID == b.ID
}

// isLive reports whether rows may show a derivation, now or when its build is live.
func isLive(is owntable.Derived) bool {
	return is.State != "" && is.State != owntable.Retired && is.State != owntable.Unbuilt
}

// beginsAnything reports whether something is derived by one catalog that another one does not derive, or derives by another
// definition.
func beginsAnything(was, next owntable.CatalogRow) bool {
	for name, is := range next.Derivations {
		if before := was.Derivations[name]; isLive(is) && (!isLive(before) || before.Hash != is.Hash) {
			return true
		}
	}
	return false
}
