package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
)

// A table that is replicated has a row, the fence, that says which region derives from it (owntable.RegionFence). --derive-in alone
// cannot: the programs of a region that was away still have the value of before. Each start reads the fence, and so does each
// batch, with the catalog.

// fenced is a fence as this program began with it.
type fenced struct {
	store.Ref
	owntable.RegionFence
	table *store.Table
}

// readFences reads the fences of the tables that are replicated.
func (c *Catalog) readFences(ctx context.Context, found Found) (all []fenced, err error) {
	var refs []store.Ref
	for _, t := range slices.Sorted(maps.Keys(found.Tables)) {
		if def := c.model.Table(t); def != nil && found.Tables[t].Replicas != "" {
			f := fenced{Ref: owntable.RegionFenceOf(&def.Table), table: &def.Table}
			refs, all = append(refs, f.Ref), append(all, f)
		}
	}
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := c.store.Get(ctx, refs)
	for i := range rows {
		all[i].RegionFence = owntable.RegionFenceFrom(rows[i])
	}
	return all, store.Wrap(err, "reading which region derives")
}

// fenceTables enters this region in the fences that do not exist yet, and refuses a table of which another region derives.
func (c *Catalog) fenceTables(ctx context.Context, found Found) error {
	for range attempts {
		all, err := c.readFences(ctx, found)
		if err != nil {
			return err
		}
		fresh := seq.Where(all, func(f fenced) bool { return f.Region == "" })
		if len(fresh) == 0 {
			for _, f := range all {
				if err := c.refuseOtherRegion(f); err != nil {
					return err
				}
			}
			c.mu.Lock()
			c.held = all
			c.mu.Unlock()
			return nil
		}
		if err := c.enterRegion(ctx, fresh); err != nil && !errors.Is(err, store.ErrCondition) {
			return err
		}
	}
	return errBusy
}

// enterRegion makes this region the one that derives, if the fences are still as they were read.
func (c *Catalog) enterRegion(ctx context.Context, all []fenced) error {
	out, err := c.store.Write(ctx, seq.Map(all, func(f fenced) store.Write { return f.Becomes(f.Ref, f.table, c.opts.DeriveIn) }))
	for i := range out {
		err = errors.Join(err, out[i].Err)
	}
	return store.Wrap(err, "noting which region derives")
}

// refuseOtherRegion refuses a table whose fence names another region.
func (c *Catalog) refuseOtherRegion(f fenced) error {
	if f.Region == c.opts.DeriveIn {
		return nil
	}
	return newRefusal(ErrReplica, "table %s is derived in %s, as its row %q says (number %d), and this is %s: another region has taken over, and this one receives what is derived there. "+
		"Stop what derives here. To have it derive here again, stop all programs that derive there first, then run %s (%s)",
		f.Ref.Table, f.Region, f.Key.Partition.Text(), f.Count, c.opts.DeriveIn, c.program.Command("build", "--take-over"), guide)
}

// TakeOver makes this region the one that derives. Its ledgers are older than the values of rows, so all that rows tell has
// to be built before anything is derived: the catalog says so first. It reports whether another region derived before.
func (c *Catalog) TakeOver(ctx context.Context) (taken bool, err error) {
	found, err := c.identifyTables(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range slices.Sorted(maps.Keys(found.Tables)) {
		if err := c.program.derivesHere(t, found.Tables[t], c.opts.DeriveIn); err != nil {
			return false, err
		}
	}
	all, err := c.readFences(ctx, found)
	all = slices.DeleteFunc(all, func(f fenced) bool { return f.Region == "" || f.Region == c.opts.DeriveIn })
	if err != nil || len(all) == 0 {
		return false, err
	}
	_, err = c.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		c.program.makeUnbuilt(&next, c.now(), allLack)
		return next, nil
	})
	if err != nil {
		return false, err
	}
	if err = c.enterRegion(ctx, all); errors.Is(err, store.ErrCondition) {
		err = fmt.Errorf("%w; another region takes over at the same time", err)
	}
	return err == nil, err
}

// elsewhereNow refuses derivations of this region, if a fence said so when the catalog was last read.
func (c *Catalog) elsewhereNow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}
