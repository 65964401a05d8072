package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/search"
)

// Documents applies several batches to the search indexes together. In an index the
// newest change of a document wins, in whatever order changes arrive, so a batch may be
// applied any number of times. A document that the index refuses becomes a dead letter; a
// later change of its row that the index accepts puts the index right.
func (r *Runner) Documents(ctx context.Context, bs []Batch) ([]Result, error) {
	var all asked[changeOf]
	counts := make([]Result, len(bs))
	touched, kept := make([][]bool, len(bs)), make([][]bool, len(bs))
	for i, b := range bs {
		touched[i], kept[i] = make([]bool, len(b.Changes)), make([]bool, len(b.Changes))
		for j := range b.Changes {
			docs := r.documents(&b.Changes[j])
			counts[i].searched(r.searchings(docs))
			for _, d := range docs {
				touched[i][j] = true
				all.add(d, changeOf{i, j})
			}
		}
	}
	errs, err := r.ApplyDocuments(ctx, all.docs)
	if err != nil {
		return nil, err
	}
	var ds []Dead
	lost := map[changeOf][]string{}
	for i, e := range errs {
		if e != nil {
			of := all.of[i]
			kept[of.batch][of.change] = true
			lost[of] = counts[of.batch].unsearched(lost[of], r.searching(all.docs[i].Index))
			ds = append(ds, deadDocument(&all.docs[i], &bs[of.batch].Changes[of.change], bs[of.batch].ShardKey, e))
		}
	}
	for i := range bs {
		counts[i].Counts = count(touched[i], kept[i])
	}
	return counts, r.KeepAll(ctx, ds)
}

// documents returns what a change asks of the search indexes.
func (r *Runner) documents(c *projections.Change) (docs []search.Document) {
	for _, k := range r.Kinds {
		docs = append(docs, k.Documents(r.Model, c)...)
	}
	return docs
}

// searching is the derivation whose documents an index has: the model's name is in the name of an index, and not in that
// of a derivation.
func (r *Runner) searching(index string) string {
	return model.SearchDerivation(strings.TrimPrefix(index, r.Model.Name+"-"))
}

// searchings are the derivations whose documents a change asks for, each once.
func (r *Runner) searchings(docs []search.Document) (out []string) {
	for i := range docs {
		if name := r.searching(docs[i].Index); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// searched counts a change as applied to search indexes.
func (r *Result) searched(derivations []string) {
	for _, name := range derivations {
		r.of(name, Counts{Applied: 1})
	}
}

// unsearched counts a change of which an index refuses a document as dead for it, once, and returns for which ones that is
// done.
func (r *Result) unsearched(done []string, derivation string) []string {
	if !slices.Contains(done, derivation) {
		r.of(derivation, Counts{Applied: -1, Dead: 1})
		done = append(done, derivation)
	}
	return done
}

// changeOf names a change by the indexes of its batch and of the change in that batch.
type changeOf struct{ batch, change int }

// asked collects the newest version of each document that changes ask for, and the change
// that each comes from.
type asked[T any] struct {
	docs []search.Document
	of   []T
	at   map[documentName]int
}

// documentName names a document over all indexes of the model.
type documentName struct{ index, id string }

// add takes in a document unless it has a newer version of it. It returns the older of
// the two versions, if there were two.
func (a *asked[T]) add(d search.Document, of T) (old search.Document) {
	name := documentName{d.Index, d.ID}
	at, ok := a.at[name]
	if !ok {
		if a.at == nil {
			a.at = map[documentName]int{}
		}
		a.at[name] = len(a.docs)
		a.docs, a.of = append(a.docs, d), append(a.of, of)
		return old
	}
	if old = a.docs[at]; old.Position.Compare(d.Position) > 0 {
		return d
	}
	a.docs[at], a.of[at] = d, of
	return old
}

// deadDocument returns the dead letter for a document that the index refused.
func deadDocument(d *search.Document, c *projections.Change, shardKey string, reason error) Dead {
	return Dead{
		Kind: DeadDocument, Target: d.Index + " " + d.ID, Row: c.Row, Reason: reason.Error(),
		ShardKey: shardKey, Position: c.Position, Record: RecordOf(c), Time: c.Time,
	}
}

// ApplyDocuments applies documents together, and then retries those that failed one by one,
// because a failure of the whole request, or of another document, says nothing about a
// document. It returns an error for each document that the index refuses. The caller's
// changes must be durable first, and ApplyDocuments waits for that: otherwise an index could keep
// documents of rows that the store lost, under positions that the store assigns again.
func (r *Runner) ApplyDocuments(ctx context.Context, docs []search.Document) (errs []error, err error) {
	if len(docs) == 0 {
		return nil, nil
	}
	err = r.Traced(ctx, Span{Name: SpanIndex, Group: GroupSearch, Items: len(docs)}, func(ctx context.Context) (err error) {
		errs, err = r.applyDocuments(ctx, docs)
		return err
	})
	return errs, err
}

// applyDocuments is ApplyDocuments without its span.
func (r *Runner) applyDocuments(ctx context.Context, docs []search.Document) ([]error, error) {
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
		if err != nil {
			return nil, err
		}
		if e := again[0]; e != nil && !errors.Is(e, search.ErrRefused) {
			return nil, fmt.Errorf("index %s: %w", docs[i].Index, e)
		}
		errs[i] = again[0]
	}
	return errs, nil
}
