package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/book"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

// Unique values have claims, rows of our table that commands are held to. A row that
// a migration makes takes its claims in the transaction that makes it, and gives
// them back in the one that changes or removes it; a row that others wrote has them
// from a backfill.

// held is what was read of a claim.
type held struct {
	claim value.Item
	by    []store.Ref // rows that have the value, other than the claim's own
}

// holders reads claims, and the rows that have their values now: those that the claims
// are given to, and of the first n claims also those that the index knows of.
func holders(ctx context.Context, db store.Store, now time.Time, claims []ingest.Claim, n int) ([]held, error) {
	out := make([]held, len(claims))
	refs := make([]store.Ref, len(claims))
	for i := range claims {
		refs[i] = claims[i].Ref
	}
	rows, err := readAll(ctx, db, refs)
	if err != nil {
		return nil, err
	}
	known := make([][]store.Ref, len(claims))
	err = parallel.Do(len(claims), maxAtOnce, func(i int) error {
		c := &claims[i]
		out[i].claim = rows[c.Ref.String()]
		if owner, ok := c.Owner(out[i].claim); ok && !c.Mine(out[i].claim) {
			known[i] = append(known[i], owner)
		}
		if i >= n {
			return nil
		}
		had, err := indexed(ctx, db, c)
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
		for _, ref := range known[i] {
			if claims[i].Holds(rows[ref.String()], now) {
				out[i].by = append(out[i].by, ref)
			}
		}
	}
	return out, nil
}

// indexed are the rows that the index gives for a claim's value.
func indexed(ctx context.Context, db store.Store, c *ingest.Claim) (out []store.Ref, err error) {
	for q := c.Having(); ; {
		page, err := db.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, c.Had(page.Rows)...)
		if q.After = page.Next; q.After == nil {
			return out, nil
		}
	}
}

// shared says that another row has a claim's value.
func shared(c *ingest.Claim, other store.Ref) string {
	return fmt.Sprintf("%s %s belongs to another row too: %s", c.Field, value.AppendPlain(nil, c.Value), other)
}

// claims notes which values a row takes that becomes another, and which it gives
// back; of what was there before e is nil where there was nothing, and so after.
func (p *plan) claims(ref store.Ref, e *model.Entity, was value.Item, into *model.Entity, is value.Item) {
	var before, after []ingest.Claim
	if e != nil {
		before = ingest.Claims(p.m.Model, e, ref, was)
	}
	if into != nil {
		after = ingest.Claims(p.m.Model, into, ref, is)
	}
	in := func(list []ingest.Claim) func(ingest.Claim) bool {
		return func(c ingest.Claim) bool {
			return slices.ContainsFunc(list, func(o ingest.Claim) bool { return o.Ref.String() == c.Ref.String() })
		}
	}
	p.frees = append(p.frees, slices.DeleteFunc(slices.Clone(before), in(after))...)
	p.takes = append(p.takes, slices.DeleteFunc(after, in(before))...)
}

// claim adds to plans the writes of the claims that their rows take and give back.
// A plan one of whose values another row has is refused as a whole.
func (m *Mover) claim(ctx context.Context, plans []*plan) error {
	var takes, frees []ingest.Claim
	for _, p := range plans {
		takes, frees = append(takes, p.takes...), append(frees, p.frees...)
	}
	if len(takes)+len(frees) == 0 {
		return nil
	}
	known, err := holders(ctx, m.Store, m.now(), append(takes, frees...), len(takes))
	if err != nil {
		return fmt.Errorf("reading claims: %w", err)
	}
	taken, freed := known[:len(takes)], known[len(takes):]
	first := map[string]*plan{} // of those that take a claim
	for _, p := range plans {
		p.settle(taken[:len(p.takes)], freed[:len(p.frees)])
		p.line(first)
		taken, freed = taken[len(p.takes):], freed[len(p.frees):]
	}
	return nil
}

// line puts a plan behind one before it that takes a claim which it takes too. It is
// made anew when that one is done.
func (p *plan) line(first map[string]*plan) {
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

// settle turns what was read of the claims that the plan takes and gives back into
// writes. A value that goes from one of its rows to another is given on.
func (p *plan) settle(takes, frees []held) {
	var writes []store.Write
	given := map[string]bool{}
	for i, c := range p.takes {
		for _, other := range takes[i].by {
			if j := slices.IndexFunc(p.frees, func(f ingest.Claim) bool { return f.Ref.String() == c.Ref.String() && f.Row.String() == other.String() }); j < 0 {
				p.Result = Result{Refused, c.Entity() + ": " + shared(&c, other)}
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

// claiming is a claim that a backfill takes for the row that has the value.
type claiming struct {
	ingest.Claim
	of Filling
}

// claim gives rows the claims on their unique values that they have not. Of two rows
// with one value it decides nothing: the second one is told.
func (b *Backfill) claim(ctx context.Context, t *model.Table, rows []value.Item, counts map[string]int) error {
	var todo []claiming
	for _, row := range rows {
		e := t.Classify(row)
		key, ok := t.KeyOf(row)
		if e == nil || !ok || !fillable(e) {
			continue
		}
		ref := store.Ref{Table: t.Name, Key: key}
		for _, c := range ingest.Claims(b.Model, e, ref, row) {
			todo = append(todo, claiming{c, Filling{Entity: e, Row: ref}})
		}
	}
	return retry(ctx, "claiming for", func() (left string, err error) {
		if len(todo) == 0 {
			return "", nil
		}
		if todo, err = b.claimAll(ctx, todo, counts); err != nil || len(todo) == 0 {
			return "", err
		}
		return todo[0].of.Row.String(), nil
	})
}

// claimAll answers with those that are to be looked at again: others came in between,
// or a row before it on the page has the value too.
func (b *Backfill) claimAll(ctx context.Context, todo []claiming, counts map[string]int) (again []claiming, err error) {
	claims := make([]ingest.Claim, len(todo))
	for i := range todo {
		claims[i] = todo[i].Claim
	}
	// What a dry run does not claim the next row does not find claimed.
	n := 0
	if b.DryRun {
		n = len(claims)
	}
	known, err := holders(ctx, b.Store, time.Now(), claims, n)
	if err != nil {
		return nil, fmt.Errorf("reading claims: %w", err)
	}
	var take []int
	taken := map[string]bool{}
	for i, c := range todo {
		switch other := b.first(&c, known[i]); {
		case c.Mine(known[i].claim):
		case other != nil:
			counts[sharedCount]++
			if c.of.Reason = shared(&c.Claim, *other); b.Each != nil {
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
	more, err := b.take(ctx, todo, known, take, counts)
	return append(again, more...), err
}

// first is the row that keeps a value which several have: that with the claim, or, in
// a dry run, the first of them by its key.
func (b *Backfill) first(c *claiming, known held) *store.Ref {
	if len(known.by) == 0 {
		return nil
	}
	least := slices.MinFunc(known.by, func(x, y store.Ref) int { return cmp.Compare(book.RowText(x), book.RowText(y)) })
	if _, claimed := c.Owner(known.claim); !claimed && book.RowText(c.of.Row) < book.RowText(least) {
		return nil
	}
	return &least
}

// take takes claims, a few at a time, for rows that still have their values. What it
// returns is to be looked at again: somebody else was faster.
func (b *Backfill) take(ctx context.Context, todo []claiming, known []held, which []int, counts map[string]int) (again []claiming, err error) {
	errs := make([]error, len(which))
	_ = parallel.Do(len(which), maxAtOnce, func(i int) error {
		c := &todo[which[i]]
		errs[i] = b.Store.Transact(ctx, []store.Write{c.Still(), c.Take(known[which[i]].claim, uuid.NewString())})
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
	return slices.DeleteFunc(again, func(c claiming) bool { return !c.Holds(now[c.of.Row.String()], time.Now()) }), err
}
