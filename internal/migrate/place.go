package migrate

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

// place is how far a scan has come, as saved in a row of our table.
type place struct {
	store.Store
	store.Ref
	table  *model.Table
	dry    bool // save nothing
	rows   int
	after  *store.Cursor
	over   bool
	counts map[string]int
}

// open finds out where a scan continues, and saves that it is under way. on says that the
// scan is a migration's, which is on from then on.
func (p *place) open(ctx context.Context, plan string, on bool) error {
	p.counts = map[string]int{}
	if p.dry {
		return nil
	}
	rows, err := p.Get(ctx, []store.Ref{p.Ref})
	if err != nil {
		return err
	}
	was := owntable.ScanFrom(rows[0])
	key, begun := p.table.KeyOf(was.Cursor)
	if p.over = was.Over; was.Plan == plan && (begun || p.over) {
		if p.counts = was.Counts; begun {
			p.after = &store.Cursor{Key: key}
		}
		return nil
	}
	p.over = false
	return p.note(ctx, owntable.BeginScan(p.Ref, plan, on))
}

// scan reads page after page, and saves the counts with the cursor.
func (p *place) scan(ctx context.Context, use func(rows []value.Item) error) error {
	for !p.over {
		page, err := p.Query(ctx, store.Query{Table: p.table.Name, After: p.after, Limit: p.rows})
		if err != nil {
			return fmt.Errorf("reading %s: %w", p.table.Name, err)
		}
		if err := use(page.Rows); err != nil {
			return err
		}
		p.after, p.over = page.Next, page.Next == nil
		row := owntable.ScanRow{Counts: p.counts, Over: p.over}
		if !p.over {
			row.Cursor = p.table.Item(p.after.Key)
		}
		if err := p.note(ctx, row.Advance(p.Ref)); err != nil {
			return err
		}
	}
	return nil
}

// forget makes the next scan start at the beginning.
func (p *place) forget(ctx context.Context) error {
	return p.note(ctx, owntable.ForgetScan(p.Ref))
}

// note saves the place in one write, so that a crash leaves the old place or the new
// one.
func (p *place) note(ctx context.Context, w store.Write) error {
	if p.dry {
		return nil
	}
	out, err := p.Write(ctx, []store.Write{w})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return fmt.Errorf("noting how far the scan is: %w", err)
	}
	return nil
}
