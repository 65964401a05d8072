package embedded

import (
	"context"

	"github.com/blevesearch/bleve/v2/index/scorch"
	bsearch "github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/searcher"

	"weir/internal/search"
)

func (c *corpus) search(ctx context.Context, q search.Query) (hits []search.Hit, err error) {
	err = c.guard(func() error {
		plan, err := c.schema.Plan(q)
		if err != nil || plan.Nothing {
			return err
		}
		snap, err := c.snapshot()
		if err != nil {
			return err
		}
		defer snap.Close()
		hits, err = answer(ctx, snap, &plan)
		return err
	})
	return hits, err
}

func answer(ctx context.Context, snap *scorch.IndexSnapshot, p *search.Plan) ([]search.Hit, error) {
	b := builder{ctx: ctx, snap: snap}
	if p.Every() || p.Sort != "" {
		b.options.Score = unscored
	}
	s, err := b.build(p)
	if err != nil {
		b.closeAll()
		return nil, err
	}
	defer s.Close()
	return collect(ctx, snap, s, p)
}

// unscored spares the work of scores that nobody looks at.
const unscored = "none"

// builder makes scorch's searchers of a plan.
type builder struct {
	ctx     context.Context
	snap    *scorch.IndexSnapshot
	options bsearch.SearcherOptions
	open    []bsearch.Searcher // made, and not part of another yet
}

func (b *builder) closeAll() {
	for _, s := range b.open {
		s.Close()
	}
}

// add keeps a searcher that was made without error.
func (b *builder) add(s bsearch.Searcher, err error) error {
	if err == nil {
		b.open = append(b.open, s)
	}
	return err
}

func (b *builder) build(p *search.Plan) (bsearch.Searcher, error) {
	for _, w := range p.Words {
		if err := b.word(w, p.Fuzzy, false); err != nil {
			return nil, err
		}
	}
	if !p.Every() {
		if err := b.word(p.Last, p.Fuzzy, true); err != nil {
			return nil, err
		}
	}
	for _, f := range p.Filters {
		s, err := searcher.NewTermSearcher(b.ctx, b.snap, f.Term, prefilter+f.Field, 1, bsearch.SearcherOptions{Score: unscored})
		if err := b.add(s, err); err != nil {
			return nil, err
		}
	}
	switch len(b.open) {
	case 0:
		return b.everything()
	case 1:
		return b.open[0], nil
	}
	return searcher.NewConjunctionSearcher(b.ctx, b.snap, b.open, b.options)
}

// everything is what is not a tombstone.
func (b *builder) everything() (bsearch.Searcher, error) {
	all, err := searcher.NewMatchAllSearcher(b.ctx, b.snap, 1, b.options)
	if err := b.add(all, err); err != nil {
		return nil, err
	}
	gone, err := searcher.NewTermSearcher(b.ctx, b.snap, termGone, fieldGone, 1, b.options)
	if err := b.add(gone, err); err != nil {
		return nil, err
	}
	return searcher.NewBooleanSearcher(b.ctx, b.snap, all, nil, gone, b.options)
}

// word adds a searcher of a word: whole, with a typo in it, or as a beginning,
// whatever applies.
func (b *builder) word(w string, fuzzy, beginning bool) error {
	alternatives := builder{ctx: b.ctx, snap: b.snap, options: b.options}
	err := alternatives.add(searcher.NewTermSearcher(b.ctx, b.snap, w, fieldWords, 1, b.options))
	if err == nil && beginning {
		err = alternatives.beginning(w)
	}
	if err == nil && fuzzy && search.MayForgive(w) {
		err = alternatives.near(w)
	}
	if err != nil {
		alternatives.closeAll()
		return err
	}
	if len(alternatives.open) == 1 {
		return b.add(alternatives.open[0], nil)
	}
	return b.add(searcher.NewDisjunctionSearcher(b.ctx, b.snap, alternatives.open, 0, b.options))
}

// near adds the words within one edit of w, which count half.
func (b *builder) near(w string) error {
	words, err := nearby(b.snap, w)
	if err != nil {
		return err
	}
	return b.any(words, 0.5)
}

// beginning adds the words that begin with w.
func (b *builder) beginning(w string) error {
	dict, err := b.snap.FieldDictPrefix(fieldWords, []byte(w))
	if err != nil {
		return err
	}
	defer dict.Close()
	var words []string
	for {
		e, err := dict.Next()
		if err != nil {
			return err
		}
		if e == nil {
			return b.any(words, 1)
		}
		if e.Term != w {
			words = append(words, e.Term)
		}
	}
}

// maxScored is how many words are scored each for itself. More are so unspecific
// that they count alike.
const maxScored = 256

// any adds a searcher of whatever has one of these words.
func (b *builder) any(words []string, boost float64) error {
	if len(words) == 0 {
		return nil
	}
	options := b.options
	if len(words) > maxScored {
		options.Score = unscored
	}
	return b.add(searcher.NewMultiTermSearcher(b.ctx, b.snap, words, fieldWords, boost, options, false))
}
