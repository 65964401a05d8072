package ingest

import (
	"context"
	"errors"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Started says which of the model's migrations are on. A migration that is off moves
// nothing.
func (m *Mover) Started(ctx context.Context) (map[*model.Migration]bool, error) {
	all := m.Model.Migrations
	refs := make([]store.Ref, len(all))
	for i, g := range all {
		refs[i] = owntable.Migration(m.Model.Name, g.Name)
	}
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := m.Store.Get(ctx, refs)
	on := map[*model.Migration]bool{}
	for i, row := range rows {
		on[all[i]] = owntable.ScanFrom(row).On
	}
	return on, err
}

// End ends a migration: from now on no made row follows its old row, and old rows may
// be deleted.
func (m *Mover) End(ctx context.Context, g *model.Migration) error {
	_, err := store.WriteRow(ctx, m.Store, store.Write{Ref: owntable.Migration(m.Model.Name, g.Name), Delete: true})
	return err
}

// Counts are the outcomes of a scan, by how many rows had them.
type Counts map[Outcome]int

// Scan moves the old rows that exist. Before it reads the first one it saves that the
// migration is on. The follower of the stream moves later changes from then on.
type Scan struct {
	*Mover
	Migration *model.Migration
	DryRun    bool // only count; a Kept or Followed row is counted as There
	// Taken, when set, is where a dry run notes which unique values it would have
	// taken. It must be a store with our own table that no other program uses. Without
	// it, a value that two old rows want is reported only if both are on one page.
	Taken store.Store
	Rows  int // the maximum of rows in a page; 0 is as many as the store returns
	// Each, when set, is called with each old row.
	Each func(row store.Ref, old value.Item, r MigrationResult)
	// Page, when set, is called after each page with the number of rows read.
	Page func(rows int)
}

// Run scans from where an interrupted scan stopped. It returns the counts of all rows
// since the beginning. After an error or a crash, run it again.
func (s *Scan) Run(ctx context.Context) (Counts, error) {
	t := s.Migration.From.Table
	at := &cursor{Ref: owntable.Migration(s.Model.Name, s.Migration.Name), table: t, Store: s.Store, dry: s.DryRun, rows: s.Rows}
	if err := at.openScan(ctx, s.Migration.Name, true); err != nil {
		return nil, err
	}
	err := at.scanPages(ctx, func(rows []value.Item) error {
		err := s.movePage(ctx, rows, at.is.Counts)
		if err == nil && s.Page != nil {
			s.Page(len(rows))
		}
		return err
	})
	if err == nil {
		err = at.forgetPlace(ctx)
	}
	counts := Counts{}
	for o, n := range at.is.Counts {
		counts[Outcome(o)] = n
	}
	return counts, err
}

// movePage moves the old rows of a page and adds their outcomes to counts.
func (s *Scan) movePage(ctx context.Context, rows []value.Item, counts map[string]int) error {
	var requests []Request
	for _, row := range rows {
		if r, ok := s.requestFor(row); ok {
			requests = append(requests, r)
		}
	}
	var results []MigrationResult
	var err error
	if s.DryRun {
		results, err = s.planOnly(ctx, requests)
	} else {
		results, err = s.Move(ctx, requests)
	}
	if err != nil {
		return err
	}
	for i, r := range results {
		counts[string(r.Outcome)]++
		if s.Each != nil {
			s.Each(requests[i].Row, requests[i].Now, r)
		}
	}
	return nil
}

// requestFor is the request for a row, as if it had just been written; false if the
// migration does not concern it.
func (s *Scan) requestFor(row value.Item) (Request, bool) {
	t := s.Migration.From.Table
	key, ok := t.KeyOf(row)
	if !ok {
		return Request{}, false
	}
	c, ok := projections.NewChange(t, &events.Record{Keys: t.Item(key), New: row})
	if !ok {
		return Request{}, false
	}
	for _, r := range projections.OldRows(&c) {
		if r.Migration == s.Migration {
			return Request{OldRow: r, Now: row, Trust: true}, true
		}
	}
	return Request{}, false
}

// planOnly plans the requests and writes nothing.
// It says what would happen if nothing else wrote.
func (s *Scan) planOnly(ctx context.Context, requests []Request) ([]MigrationResult, error) {
	plans := make([]*movePlan, len(requests))
	for i := range requests {
		p := s.beginPlan(&requests[i])
		plans[i] = &p
	}
	if err := s.finishPlans(ctx, plans); err != nil {
		return nil, err
	}
	out := make([]MigrationResult, len(requests))
	for i, p := range plans {
		out[i] = p.MigrationResult
		first, err := s.takenBefore(ctx, p)
		if err != nil {
			return nil, err
		}
		if first != "" {
			out[i] = MigrationResult{Refused, "another old row has a value that only one row may have: " + first}
		}
	}
	return out, nil
}

// takenBefore is the old row, if any, that would have taken one of the plan's unique values
// before it. If there is none, the plan takes them, all at once.
func (s *Scan) takenBefore(ctx context.Context, p *movePlan) (string, error) {
	if s.Taken == nil {
		if p.behind != nil {
			return p.behind.row.String(), nil
		}
		return "", nil
	}
	if p.Outcome == Refused || len(p.takes) == 0 {
		return "", nil
	}
	var refs []store.Ref
	var ws []store.Write
	for _, c := range p.takes {
		if slices.ContainsFunc(refs, func(r store.Ref) bool { return r.String() == c.Ref.String() }) {
			continue
		}
		refs = append(refs, c.Ref)
		ws = append(ws, owntable.TakeDry(c.Ref, p.row.String()))
	}
	err := s.Taken.Transact(ctx, ws)
	if !errors.Is(err, store.ErrCondition) {
		return "", err
	}
	rows, err := s.Taken.Get(ctx, refs)
	for _, row := range rows {
		if row != nil {
			return owntable.DryTaker(row), nil
		}
	}
	return "", err
}
