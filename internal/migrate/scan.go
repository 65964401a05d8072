package migrate

import (
	"context"
	"fmt"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A scan goes over a table once, and keeps its cursor and its counts in a row of our
// table after each page: one that was broken off goes on there. A page that was
// worked on and not yet noted is worked on again, which changes nothing.

// Attributes of the row that keeps a scan's place.
const (
	cursorAttr = "cursor" // the key behind which it goes on; absent at the beginning
	planAttr   = "plan"   // of what it was a scan; one of something else begins anew
	countAttr  = "counts"
	onAttr     = "on" // of a migration: that it is on
)

// Started says which of the model's migrations are on. One that is not moves nothing.
func Started(ctx context.Context, db store.Store, m *model.Model) (map[*model.Migration]bool, error) {
	refs := make([]store.Ref, len(m.Migrations))
	for i, g := range m.Migrations {
		refs[i] = book.Migration(m.Name, g.Name)
	}
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := db.Get(ctx, refs)
	on := map[*model.Migration]bool{}
	for i, row := range rows {
		on[m.Migrations[i]] = row.Get(onAttr).Bool()
	}
	return on, err
}

// End ends a migration: from now on nothing follows old rows, and they may go.
func (m *Mover) End(ctx context.Context, g *model.Migration) error {
	out, err := m.Store.Write(ctx, []store.Write{{Ref: book.Migration(m.Model.Name, g.Name), Delete: true}})
	if err == nil {
		err = out[0].Err
	}
	return err
}

// Counts are what became of the rows of a scan.
type Counts map[Outcome]int

// Scan moves the old rows that are there. Before it reads the first one it says
// that the migration is on; what changes from then on the follower of the stream
// sees to.
type Scan struct {
	*Mover
	Migration *model.Migration
	DryRun    bool // only count; a Kept or Followed row is counted as There
	Rows      int  // how many rows a page has at the most; 0 is as many as the store gives
	// Each, when set, is told of each old row.
	Each func(row store.Ref, old value.Item, r Result)
	// Page, when set, is told after each page how many rows were read.
	Page func(rows int)
}

// Run scans from where the last one was broken off, and says what became of all
// rows since the beginning.
func (s *Scan) Run(ctx context.Context) (Counts, error) {
	t := s.Migration.From.Table
	place := &place{Ref: book.Migration(s.Model.Name, s.Migration.Name), table: t, Store: s.Store, dry: s.DryRun, rows: s.Rows}
	if err := place.open(ctx, s.Migration.Name, value.Attr{Name: onAttr, Value: value.OfBool(true)}); err != nil {
		return nil, err
	}
	counts := Counts{}
	for _, a := range place.counts {
		n, _ := a.Value.Int64()
		counts[Outcome(a.Name)] = int(n)
	}
	err := place.scan(ctx, func(rows []value.Item) (value.Item, error) {
		if err := s.page(ctx, rows, counts); err != nil {
			return nil, err
		}
		var attrs []value.Attr
		for o, n := range counts {
			attrs = append(attrs, value.Attr{Name: string(o), Value: value.OfInt(int64(n))})
		}
		if s.Page != nil {
			s.Page(len(rows))
		}
		return value.NewItem(attrs...), nil
	})
	return counts, err
}

func (s *Scan) page(ctx context.Context, rows []value.Item, counts Counts) error {
	var requests []Request
	for _, row := range rows {
		if r, ok := s.request(row); ok {
			requests = append(requests, r)
		}
	}
	var results []Result
	var err error
	if s.DryRun {
		results, err = s.look(ctx, requests)
	} else {
		results, err = s.Move(ctx, requests)
	}
	if err != nil {
		return err
	}
	for i, r := range results {
		counts[r.Outcome]++
		if s.Each != nil {
			s.Each(requests[i].Row, requests[i].Now, r)
		}
	}
	return nil
}

// request is what a row asks for as if it had just been written.
func (s *Scan) request(row value.Item) (Request, bool) {
	t := s.Migration.From.Table
	key, ok := t.KeyOf(row)
	if !ok {
		return Request{}, false
	}
	c, ok := projections.NewChange(t, &events.Record{Keys: t.Item(key), New: row})
	if !ok {
		return Request{}, false
	}
	for _, r := range Requests(&c) {
		if r.Migration == s.Migration {
			r.Now, r.Trust = row, true
			return r, true
		}
	}
	return Request{}, false
}

// look plans and writes nothing.
func (s *Scan) look(ctx context.Context, requests []Request) ([]Result, error) {
	out := make([]Result, len(requests))
	plans := make([]plan, len(requests))
	var refs []store.Ref
	for i := range requests {
		plans[i] = s.begin(&requests[i])
		refs = append(refs, plans[i].reads()...)
	}
	rows, err := s.rows(ctx, refs)
	for i := range plans {
		if err == nil {
			plans[i].finish(rows)
			out[i] = plans[i].Result
		}
	}
	return out, err
}

// place is where a scan is, in a row of our table.
type place struct {
	store.Store
	store.Ref
	table  *model.Table
	dry    bool
	rows   int
	after  *store.Cursor
	counts value.Item
}

// open finds out where a scan goes on, and says that it is under way.
func (p *place) open(ctx context.Context, plan string, also ...value.Attr) error {
	if p.dry {
		return nil
	}
	rows, err := p.Get(ctx, []store.Ref{p.Ref})
	if err != nil {
		return err
	}
	row := rows[0]
	if key, ok := p.table.KeyOf(row.Get(cursorAttr).Item()); ok && row.Get(planAttr).Text() == plan {
		p.after, p.counts = &store.Cursor{Key: key}, row.Get(countAttr).Item()
		return nil
	}
	ops := []store.Op{{Kind: store.Set, Attr: planAttr, Value: value.OfString(plan)}, {Kind: store.Remove, Attr: cursorAttr}, {Kind: store.Remove, Attr: countAttr}}
	for _, a := range also {
		ops = append(ops, store.Op{Kind: store.Set, Attr: a.Name, Value: a.Value})
	}
	return p.note(ctx, ops)
}

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

// scan reads page after page. What use answers is kept with the cursor; at the end
// both are forgotten.
func (p *place) scan(ctx context.Context, use func(rows []value.Item) (counts value.Item, err error)) error {
	for {
		page, err := p.Query(ctx, store.Query{Table: p.table.Name, After: p.after, Limit: p.rows})
		if err != nil {
			return fmt.Errorf("reading %s: %w", p.table.Name, err)
		}
		counts, err := use(page.Rows)
		if err != nil {
			return err
		}
		if p.after = page.Next; p.after == nil {
			return p.note(ctx, []store.Op{{Kind: store.Remove, Attr: cursorAttr}, {Kind: store.Remove, Attr: countAttr}})
		}
		err = p.note(ctx, []store.Op{
			{Kind: store.Set, Attr: cursorAttr, Value: value.OfMap(p.table.Item(p.after.Key))},
			{Kind: store.Set, Attr: countAttr, Value: value.OfMap(counts)},
		})
		if err != nil {
			return err
		}
	}
}
