// Package verify recounts every derived value from the source rows and reports the
// differences. It reads rows, ledgers and indexes, and writes nothing.
//
// The recount does not use the stream. It applies f, the contribution of one row, to every
// existing row and adds up the results. It scans the tables twice, first to recount and then
// to compare, so that it keeps the accumulators of the targets in memory and not the rows.
// Each projection kind has its part (runner.Recount); this package knows none of them.
package verify

import (
	"context"
	"fmt"
	"time"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// Difference is a derived value that differs from what the source rows give.
type Difference = runner.Difference

// Unshown is a correct gap, which is no Difference.
type Unshown = runner.Unshown

// Verify checks one model. Set Model, Store and, to check search indexes, Index; then call
// Run. One Verify runs once at a time.
type Verify struct {
	Model *model.Model
	Store store.Store
	Index search.Index     // nil leaves search out
	Now   func() time.Time // tells which rows TTL may have deleted; nil is time.Now
	// Progress, if set, is called with the number of rows read so far.
	Progress func(rows int)

	read    int
	Checked int       // derived values compared
	Unshown []Unshown // what the last Run found that cannot be computed or derived
	// Missing has the targets that the last Run found missing, which is no difference.
	Missing []projections.Missing
}

// Run calls yield for every difference. If other processes write meanwhile, it may also find
// differences that are only due to that; an embedded store has no other writers.
func (v *Verify) Run(ctx context.Context, yield func(Difference)) error {
	of, err := v.of(ctx)
	if err != nil {
		return err
	}
	of.Index, of.Now, of.Yield = v.Index, v.Now, yield
	recounts := v.begin(of)
	defer func() {
		v.Checked += of.Checked
		v.Unshown = of.Unshown
	}()
	if err := v.count(ctx, recounts, of.Cannot); err != nil {
		return err
	}
	if err := v.compare(ctx, recounts); err != nil {
		return err
	}
	if err := v.ownRows(ctx, recounts); err != nil {
		return err
	}
	for _, r := range recounts {
		if err := r.End(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Meanwhile is how long what is derived may take to follow what was written.
const Meanwhile = 5 * time.Second

// Twice recounts while others write and derive. If something differs, it recounts once more
// after Meanwhile, and yields what differs in the same way both times: that is no write that is
// still on its way. It compares at most so many differences, 0 for all; more reports that the
// first recount found others.
func (v *Verify) Twice(ctx context.Context, most int, yield func(Difference)) (more bool, err error) {
	first := map[Difference]bool{}
	err = v.Run(ctx, func(d Difference) {
		if most > 0 && len(first) == most {
			more = true
			return
		}
		first[d.Plain()] = true
	})
	if err != nil || len(first) == 0 {
		return false, err
	}
	select {
	case <-time.After(Meanwhile):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	v.Checked = 0
	return more, v.Run(ctx, func(d Difference) {
		if first[d.Plain()] {
			yield(d)
		}
	})
}

// Count recounts from every row without comparing anything. Changes that are written
// meanwhile may or may not be included.
func (v *Verify) Count(ctx context.Context) ([]runner.Recount, error) {
	of, err := v.of(ctx)
	if err != nil {
		return nil, err
	}
	recounts := v.begin(of)
	return recounts, v.count(ctx, recounts, nil)
}

// of returns what recounts read from, with the catalog: it says which ledgers rows show.
func (v *Verify) of(ctx context.Context) (*runner.Verification, error) {
	row, err := catalog.New(v.Model, v.Store, time.Now, catalog.Options{}).Row(ctx)
	return &runner.Verification{Model: v.Model, Store: v.Store, Catalog: row}, err
}

// begin makes the recount of each kind, in the order in which kinds apply a batch.
func (v *Verify) begin(of *runner.Verification) (out []runner.Recount) {
	for _, k := range kinds.All() {
		out = append(out, k.Recount(of))
	}
	return out
}

// count adds the contributions of all rows, and reports what a row cannot contribute if
// cannot is set.
func (v *Verify) count(ctx context.Context, recounts []runner.Recount, cannot func(derivation string, row store.Ref, why string)) error {
	var targets projections.MissingTargets
	err := v.scan(ctx, func(rows []projections.Change) error {
		for i := range rows {
			targets.Add(rows[i].Is, rows[i].New)
			var faults *projections.Faults
			if cannot != nil {
				faults = &projections.Faults{}
			}
			for _, r := range recounts {
				r.Add(&rows[i], faults)
			}
			if cannot == nil {
				continue
			}
			for _, f := range faults.New() {
				cannot(f.Derivation, rows[i].Row, "cannot be derived: "+f.Reason)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range recounts {
		r.Added()
	}
	v.Missing = targets.Missing()
	return nil
}

// compare compares what all rows show with the recount.
func (v *Verify) compare(ctx context.Context, recounts []runner.Recount) error {
	return v.scan(ctx, func(rows []projections.Change) error {
		for _, r := range recounts {
			if err := r.Compare(ctx, rows); err != nil {
				return err
			}
		}
		return nil
	})
}

// scan calls use with all rows of the model's tables, one page after the other. Rows of no
// entity are included.
func (v *Verify) scan(ctx context.Context, use func([]projections.Change) error) error {
	for _, t := range v.Model.Tables {
		err := v.pages(ctx, t.Name, func(page []value.Item) error {
			rows := make([]projections.Change, 0, len(page))
			for _, row := range page {
				if key, ok := t.KeyOf(row); ok {
					rows = append(rows, projections.Change{Table: t, Row: store.Ref{Table: t.Name, Key: key}, New: row, Is: t.Classify(row)})
				}
			}
			if err := use(rows); err != nil {
				return err
			}
			v.read += len(page)
			if v.Progress != nil {
				v.Progress(v.read)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ownRows compares all rows of our own table.
func (v *Verify) ownRows(ctx context.Context, recounts []runner.Recount) error {
	return v.pages(ctx, owntable.TableName, func(page []value.Item) error {
		for _, row := range page {
			for _, r := range recounts {
				if err := r.OwnRow(ctx, row); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// pages calls use with the rows of a table, one page after the other.
func (v *Verify) pages(ctx context.Context, table string, use func([]value.Item) error) error {
	for rows, err := range store.Pages(ctx, v.Store, store.Query{Table: table}) {
		if err != nil {
			return fmt.Errorf("reading %s: %w", table, err)
		}
		if err := use(rows); err != nil {
			return err
		}
	}
	return nil
}
