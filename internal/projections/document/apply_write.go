// Documents are written into the search indexes behind their rows, so that no row waits for an index. A document that an index
// does not take in time becomes pending: our own table has a row for it until it is written (apply_pending.go). An index
// takes the newest position of a document, so everything here may be repeated, and done by several programs at a time.

package document

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
)

// WriteDocuments applies the documents of batches whose rows are applied to the search indexes. In an index the
// newest change of a document wins, in whatever order changes arrive, so a batch may be
// applied any number of times. It notes those as pending that an index does not take until writing ends, or all of them
// if that is nil (pending.go). A document that the index refuses becomes a dead letter; a
// later change of its row that the index accepts puts the index right. It returns the additions to the result of each batch: its
// searches, and the changes that became dead.
func WriteDocuments(ctx context.Context, r *runner.Runner, bs []runner.Batch, writing context.Context) (of []runner.Result, pending int, err error) {
	var all asked
	of = make([]runner.Result, len(bs))
	for i, b := range bs {
		for j := range b.Changes {
			docs := r.DocumentsOf(&b.Changes[j])
			for _, name := range derivationsOf(r.Model, docs) {
				of[i].Count(name, runner.Counts{Applied: 1})
			}
			for _, d := range docs {
				all.addNewest(d, changeOf{i, j})
			}
		}
	}
	errs, pending, err := offerDocuments(ctx, r, all.docs, writing)
	if err != nil {
		return nil, 0, err
	}
	var ds []deadletter.Letter
	lost := map[changeOf][]string{}
	for i, e := range errs {
		if e == nil {
			continue
		}
		at := all.of[i]
		if name := derivationOf(r.Model, all.docs[i].Index); !slices.Contains(lost[at], name) {
			of[at.batch].Count(name, runner.Counts{Applied: -1, Dead: 1})
			if len(lost[at]) == 0 && !slices.Contains(bs[at.batch].DeadAt, bs[at.batch].Changes[at.change].Position) {
				of[at.batch].Counts.Add(runner.Counts{Applied: -1, Dead: 1})
			}
			lost[at] = append(lost[at], name)
		}
		ds = append(ds, deadDocument(&all.docs[i], &bs[at.batch].Changes[at.change], bs[at.batch].ShardKey, e))
	}
	return of, pending, r.Letters().KeepAll(ctx, ds)
}

// derivationOf is the derivation whose documents an index has: the model's name is in the name of an index, and not in that
// of a derivation.
func derivationOf(m *model.Model, index string) string {
	return model.SearchDerivation(strings.TrimPrefix(index, m.Name+"-"))
}

// derivationsOf are the derivations whose documents a change asks for, each once.
func derivationsOf(m *model.Model, docs []search.Document) (out []string) {
	for i := range docs {
		if name := derivationOf(m, docs[i].Index); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// changeOf names a change by the indexes of its batch and of the change in that batch.
type changeOf struct{ batch, change int }

// asked collects the newest version of each document that changes ask for, and the change
// that each comes from.
type asked struct {
	docs []search.Document
	of   []changeOf
	at   map[documentName]int
}

// documentName names a document over all indexes of the model.
type documentName struct{ index, id string }

// addNewest takes in a document unless it has a newer version of it.
func (a *asked) addNewest(d search.Document, of changeOf) {
	name := documentName{d.Index, d.ID}
	at, ok := a.at[name]
	if !ok {
		if a.at == nil {
			a.at = map[documentName]int{}
		}
		a.at[name] = len(a.docs)
		a.docs, a.of = append(a.docs, d), append(a.of, of)
		return
	}
	if a.docs[at].Position.Compare(d.Position) <= 0 {
		a.docs[at], a.of[at] = d, of
	}
}

// deadDocument returns the dead letter for a document that the index refused.
func deadDocument(d *search.Document, c *projections.Change, shardKey string, reason error) deadletter.Letter {
	return deadletter.Letter{
		Kind: deadletter.Document, Target: d.Index + " " + d.ID, Row: c.Row, Reason: reason.Error(),
		ShardKey: shardKey, Position: c.Position, Record: deadletter.RecordOf(c), Time: c.Time,
	}
}

// ApplyDocuments applies documents together, and then retries those that failed one by one,
// because a failure of the whole request, or of another document, says nothing about a
// document. It returns an error for each document that the index refuses. If it returns an error beside these, the others of them are of
// documents that were not taken. The caller's
// changes must be durable first, and ApplyDocuments waits for that: otherwise an index could keep
// documents of rows that the store lost, under positions that the store assigns again.
func ApplyDocuments(ctx context.Context, r *runner.Runner, docs []search.Document) (errs []error, err error) {
	if len(docs) == 0 {
		return nil, nil
	}
	err = r.RunTraced(ctx, runner.Span{Name: runner.SpanIndex, Items: len(docs)}, func(ctx context.Context) (err error) {
		errs, err = applyUntraced(ctx, r, docs)
		return err
	})
	return errs, err
}

// applyUntraced is ApplyDocuments without its span.
func applyUntraced(ctx context.Context, r *runner.Runner, docs []search.Document) ([]error, error) {
	if err := r.Store.Sync(ctx); err != nil {
		return nil, err
	}
	errs, err := r.Index.Apply(ctx, docs)
	if err != nil {
		return nil, err
	}
	for i, e := range errs {
		if e == nil || errors.Is(e, search.ErrRefused) {
			continue
		}
		again, err := r.Index.Apply(ctx, docs[i:i+1])
		if err == nil && again[0] != nil && !errors.Is(again[0], search.ErrRefused) {
			err = fmt.Errorf("index %s: %w", docs[i].Index, again[0])
		}
		if err != nil {
			return errs, err
		}
		errs[i] = again[0]
	}
	return errs, nil
}
