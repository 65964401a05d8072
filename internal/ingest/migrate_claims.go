package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Unique values have claims. These are rows of our own table that every command must
// respect. A row that a migration makes takes its claims in the transaction that makes
// it, and gives them back in the one that changes or deletes it. Rows that other
// programs wrote get their claims from a backfill.

// held is the read state of a claim.
type held struct {
	claim value.Item
	by    []store.Ref // rows that have the value, without the claim's own row
}

// readHolders reads claims, and the rows that have their values now: the rows that own the
// claims and, for the first n claims, also the rows that the index returns.
func readHolders(ctx context.Context, db store.Store, now time.Time, claims []Claim, n int) ([]held, error) {
	out := make([]held, len(claims))
	refs := seq.Map(claims, func(c Claim) store.Ref { return c.Ref })
	rows, err := readAll(ctx, db, refs)
	if err != nil {
		return nil, err
	}
	known := make([][]store.Ref, len(claims))
	err = parallel.Do(len(claims), maxAtOnce, func(i int) error {
		c := &claims[i]
		out[i].claim = rows[c.Ref.String()]
		if owner, ok := c.Owner(out[i].claim); ok && !c.IsOurs(out[i].claim) {
			known[i] = append(known[i], owner)
		}
		if i >= n {
			return nil
		}
		had, err := indexedRows(ctx, db, c)
		known[i] = append(known[i], had...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = readAll(ctx, db, slices.Concat(known...)); err != nil {
		return nil, err
	}
	for i := range claims {
		out[i].by = append(out[i].by, seq.Where(known[i], func(ref store.Ref) bool { return claims[i].HasValue(rows[ref.String()], now) })...)
	}
	return out, nil
}

// indexedRows returns the rows that the index has for a claim's value.
// It reads all pages. An index is read eventually, so a row that was just written may be missing.
func indexedRows(ctx context.Context, db store.Store, c *Claim) (out []store.Ref, err error) {
	for rows, err := range store.Pages(ctx, db, c.IndexQuery()) {
		if err != nil {
			return nil, err
		}
		out = append(out, c.HadBy(rows)...)
	}
	return out, nil
}

// sharedMessage is the message that another row has a claim's value.
func sharedMessage(c *Claim, other store.Ref) string {
	return fmt.Sprintf("%s %s belongs to another row too: %s", c.Field, value.AppendPlain(nil, c.Value), other)
}

// noteClaims notes which unique values a row takes and which it gives back when was, a row
// of e, becomes is, a row of into. e is nil if there was no row before, into is nil if
// there is none afterwards.
func (p *movePlan) noteClaims(ref store.Ref, e *model.Entity, was value.Item, into *model.Entity, is value.Item) {
	var before, after []Claim
	if e != nil {
		before = Claims(p.m.Model, e, ref, was)
	}
	if into != nil {
		after = Claims(p.m.Model, into, ref, is)
	}
	in := func(list []Claim) func(Claim) bool {
		return func(c Claim) bool {
			return slices.ContainsFunc(list, func(o Claim) bool { return o.Ref.String() == c.Ref.String() })
		}
	}
	p.frees = append(p.frees, slices.DeleteFunc(slices.Clone(before), in(after))...)
	p.takes = append(p.takes, slices.DeleteFunc(after, in(before))...)
}

// claimValues adds to plans the writes of the claims that their rows take and give back. A
// plan is refused as a whole if another row has one of its values.
func (m *Mover) claimValues(ctx context.Context, plans []*movePlan) error {
	var takes, frees []Claim
	for _, p := range plans {
		takes, frees = append(takes, p.takes...), append(frees, p.frees...)
	}
	if len(takes)+len(frees) == 0 {
		return nil
	}
	known, err := readHolders(ctx, m.Store, m.now(), append(takes, frees...), len(takes))
	if err != nil {
		return fmt.Errorf("reading claims: %w", err)
	}
	taken, freed := known[:len(takes)], known[len(takes):]
	first := map[string]*movePlan{} // by claim, the first plan that takes it
	for _, p := range plans {
		p.settleClaims(taken[:len(p.takes)], freed[:len(p.frees)])
		p.lineUp(first)
		taken, freed = taken[len(p.takes):], freed[len(p.frees):]
	}
	return nil
}

// lineUp puts a plan behind an earlier plan that takes one of the same claims. The plan
// is made again when the earlier one is done.
func (p *movePlan) lineUp(first map[string]*movePlan) {
	if p.Outcome == Refused {
		return
	}
	for _, c := range p.takes {
		if p.behind = first[c.Ref.String()]; p.behind != nil {
			p.writes = nil
			return
		}
	}
	for _, c := range p.takes {
		first[c.Ref.String()] = p
	}
}

// settleClaims makes the writes of the claims that the plan takes and gives back, from the state that
// was read of them. A value that moves from one of the plan's rows to another takes one
// write.
func (p *movePlan) settleClaims(takes, frees []held) {
	var writes []store.Write
	given := map[string]bool{}
	for i, c := range p.takes {
		for _, other := range takes[i].by {
			if j := slices.IndexFunc(p.frees, func(f Claim) bool { return f.Ref.String() == c.Ref.String() && f.Row.String() == other.String() }); j < 0 {
				p.MigrationResult = MigrationResult{Refused, c.Entity() + ": " + sharedMessage(&c, other)}
				p.writes, p.clash = nil, true
				return
			}
		}
		given[c.Ref.String()] = true
		writes = append(writes, c.Take(takes[i].claim, uuid.NewString()))
	}
	for i, c := range p.frees {
		if !given[c.Ref.String()] {
			writes = append(writes, c.Free(frees[i].claim))
		}
	}
	p.writes = append(p.writes, writes...)
}

// claiming is a claim that a backfill takes for the row with the value.
type claiming struct {
	Claim
	of Filling
}

// takeClaims takes the claims that rows lack on their unique values. If two rows have the
// same value, it does not decide between them: it reports the second one.
func (b *Backfill) takeClaims(ctx context.Context, t *model.Table, rows []value.Item, counts map[string]int) error {
	var todo []claiming
	for _, row := range rows {
		e := t.Classify(row)
		key, ok := t.KeyOf(row)
		if e == nil || !ok || !mayLack(e) {
			continue
		}
		ref := store.Ref{Table: t.Name, Key: key}
		for _, c := range Claims(b.Model, e, ref, row) {
			todo = append(todo, claiming{c, Filling{Entity: e, Row: ref}})
		}
	}
	return retryUntilDone(ctx, "claiming for", func() (left string, err error) {
		if len(todo) == 0 {
			return "", nil
		}
		if todo, err = b.claimAll(ctx, todo, counts); err != nil || len(todo) == 0 {
			return "", err
		}
		return todo[0].of.Row.String(), nil
	})
}

// claimAll returns the claims that are to be read again: another writer came in
// between, or an earlier row of the page has the value too.
func (b *Backfill) claimAll(ctx context.Context, todo []claiming, counts map[string]int) (again []claiming, err error) {
	claims := seq.Map(todo, func(c claiming) Claim { return c.Claim })
	// A dry run takes no claims, so the next row has to ask the index.
	n := 0
	if b.DryRun {
		n = len(claims)
	}
	known, err := readHolders(ctx, b.Store, store.Clock(time.Now, b.Store)(), claims, n)
	if err != nil {
		return nil, fmt.Errorf("reading claims: %w", err)
	}
	var take []int
	taken := map[string]bool{}
	for i, c := range todo {
		switch other := b.keeperOf(&c, known[i]); {
		case c.IsOurs(known[i].claim):
		case other != nil:
			counts[sharedCount]++
			if c.of.Reason = sharedMessage(&c.Claim, *other); b.Each != nil {
				b.Each(c.of)
			}
		case taken[c.Ref.String()]:
			again = append(again, c)
		default:
			take, taken[c.Ref.String()] = append(take, i), !b.DryRun
		}
	}
	if b.DryRun {
		counts[claimsCount] += len(take)
		return nil, nil
	}
	more, err := b.takeSome(ctx, todo, known, take, counts)
	return append(again, more...), err
}

// keeperOf is the row that keeps a value which several rows have: the row that owns the
// claim or, in a dry run, the first of the rows by key. It is nil if that is the
// claiming row itself.
func (b *Backfill) keeperOf(c *claiming, known held) *store.Ref {
	if len(known.by) == 0 {
		return nil
	}
	least := slices.MinFunc(known.by, func(x, y store.Ref) int { return cmp.Compare(owntable.RowText(x), owntable.RowText(y)) })
	if _, claimed := c.Owner(known.claim); !claimed && owntable.RowText(c.of.Row) < owntable.RowText(least) {
		return nil
	}
	return &least
}

// takeSome takes claims, a few at a time, for rows that still have their values. It returns
// those that are to be read again, because another writer was faster.
func (b *Backfill) takeSome(ctx context.Context, todo []claiming, known []held, which []int, counts map[string]int) (again []claiming, err error) {
	errs := make([]error, len(which))
	_ = parallel.Do(len(which), maxAtOnce, func(i int) error {
		c := &todo[which[i]]
		errs[i] = b.Store.Transact(ctx, []store.Write{c.StillHasValue(), c.Take(known[which[i]].claim, uuid.NewString())})
		return nil
	})
	var rows []store.Ref
	for i, err := range errs {
		c := todo[which[i]]
		switch {
		case err == nil:
			counts[claimsCount]++
		case errors.Is(err, store.ErrCondition), errors.Is(err, store.ErrConflict):
			again, rows = append(again, c), append(rows, c.of.Row)
		default:
			return nil, fmt.Errorf("claiming for %s: %w", c.of.Row, err)
		}
	}
	now, err := readAll(ctx, b.Store, rows)
	return slices.DeleteFunc(again, func(c claiming) bool { return !c.HasValue(now[c.of.Row.String()], store.Clock(time.Now, b.Store)()) }), err
}
