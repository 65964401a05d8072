package migrate

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// A scan goes over a table once. After each page it saves its cursor and its counts in
// a row of our table, so that an interrupted scan continues there. A page whose cursor
// was not saved is worked on again, which changes nothing.

// Attributes of the row in which a scan saves its place.
const (
	cursorAttr = "cursor" // the key after which it continues; absent at the beginning
	planAttr   = "plan"   // of what it was a scan; a scan of something else starts at the beginning
	countAttr  = "counts"
	overAttr   = "over" // it has reached the end
)

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

// open finds out where a scan continues, and saves that it is under way.
func (p *place) open(ctx context.Context, plan string, also ...value.Attr) error {
	p.counts = map[string]int{}
	if p.dry {
		return nil
	}
	rows, err := p.Get(ctx, []store.Ref{p.Ref})
	if err != nil {
		return err
	}
	row := rows[0]
	key, begun := p.table.KeyOf(row.Get(cursorAttr).Item())
	p.over = row.Get(overAttr).Bool()
	if row.Get(planAttr).Text() == plan && (begun || p.over) {
		if begun {
			p.after = &store.Cursor{Key: key}
		}
		for _, a := range row.Get(countAttr).Item() {
			n, _ := a.Value.Int64()
			p.counts[a.Name] = int(n)
		}
		return nil
	}
	p.over = false
	ops := []store.Op{remove(cursorAttr), remove(countAttr), remove(overAttr), set(planAttr, value.OfString(plan))}
	for _, a := range also {
		ops = append(ops, set(a.Name, a.Value))
	}
	return p.note(ctx, ops)
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
		var attrs []value.Attr
		for name, n := range p.counts {
			attrs = append(attrs, value.Attr{Name: name, Value: value.OfInt(int64(n))})
		}
		ops := []store.Op{set(countAttr, value.OfMap(value.NewItem(attrs...)))}
		if p.over {
			ops = append(ops, remove(cursorAttr), set(overAttr, value.OfBool(true)))
		} else {
			ops = append(ops, set(cursorAttr, value.OfMap(p.table.Item(p.after.Key))))
		}
		if err := p.note(ctx, ops); err != nil {
			return err
		}
	}
	return nil
}

// forget makes the next scan start at the beginning.
func (p *place) forget(ctx context.Context) error {
	return p.note(ctx, []store.Op{remove(planAttr), remove(cursorAttr), remove(countAttr), remove(overAttr)})
}

// note saves the place in one write, so that a crash leaves the old place or the new
// one.
func (p *place) note(ctx context.Context, ops []store.Op) error {
	if p.dry {
		return nil
	}
	out, err := p.Write(ctx, []store.Write{{Ref: p.Ref, Ops: ops}})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return fmt.Errorf("noting how far the scan is: %w", err)
	}
	return nil
}

func set(name string, v value.Value) store.Op {
	return store.Op{Kind: store.Set, Attr: name, Value: v}
}

func remove(name string) store.Op { return store.Op{Kind: store.Remove, Attr: name} }
