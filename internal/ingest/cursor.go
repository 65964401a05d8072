package ingest

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A scan goes over a table once. After each page it saves its cursor and its counts in
// a row of our table, so that an interrupted scan continues there. A page whose cursor
// was not saved is worked on again, which changes nothing.

// cursor is a scan of a table, and how far it is. Only its scan method moves it.
type cursor struct {
	store.Store
	store.Ref // the row that saves it
	table     *model.Table
	dry       bool // save nothing
	rows      int  // of a page
	is        owntable.ScanRow
}

// openScan finds out where a scan continues, and saves that it is under way. on says that the
// scan is a migration's, which is on from then on.
func (c *cursor) openScan(ctx context.Context, plan string, on bool) error {
	c.is = owntable.ScanRow{Counts: map[string]int{}}
	if c.dry {
		return nil
	}
	row, err := store.GetRow(ctx, c.Store, c.Ref)
	if err != nil {
		return err
	}
	was := owntable.ScanFrom(row)
	if _, begun := c.table.KeyOf(was.Cursor); was.Plan == plan && (begun || was.Over) {
		c.is = was
		return nil
	}
	return c.noteState(ctx, owntable.BeginScan(c.Ref, plan, on))
}

// scanPages reads page after page, and saves the counts with the cursor.
// An error of use is returned, and the page is worked on again by the next scan.
func (c *cursor) scanPages(ctx context.Context, use func(rows []value.Item) error) error {
	for !c.is.Over {
		q := store.Query{Table: c.table.Name, Limit: c.rows}
		if key, begun := c.table.KeyOf(c.is.Cursor); begun {
			q.After = &store.Cursor{Key: key}
		}
		page, err := c.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("reading %s: %w", c.table.Name, err)
		}
		if err := use(page.Rows); err != nil {
			return err
		}
		if c.is.Over = page.Next == nil; !c.is.Over {
			c.is.Cursor = c.table.Item(page.Next.Key)
		}
		if err := c.noteState(ctx, c.is.Advance(c.Ref)); err != nil {
			return err
		}
	}
	return nil
}

// forgetPlace makes the next scan start at the beginning.
func (c *cursor) forgetPlace(ctx context.Context) error {
	return c.noteState(ctx, owntable.ForgetScan(c.Ref))
}

// noteState saves a state of the scan in one write, so that a crash leaves the old state or the
// new one.
func (c *cursor) noteState(ctx context.Context, w store.Write) error {
	if c.dry {
		return nil
	}
	_, err := store.WriteRow(ctx, c, w)
	return store.Wrap(err, "noting how far the scan is")
}
