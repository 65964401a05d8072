package embedded

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"weir/internal/search"
)

// searchSnapshot answers a query from a snapshot, so writes meanwhile do not change the answer.
// A panic out of the index's files becomes an error of this index, by guardCall. A query that can match
// nothing reads nothing.
func (c *corpus) searchSnapshot(ctx context.Context, q search.Query) (hits []search.Hit, err error) {
	err = c.guardCall(func() error {
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

// answer looks into one segment after the other. In memory it holds only a few sets of
// a segment's documents, however many words have the beginning that is asked for.
func answer(ctx context.Context, snap *scorch.IndexSnapshot, p *search.Plan) ([]search.Hit, error) {
	c, err := newCollector(snap, p)
	if err != nil {
		return nil, err
	}
	m := matcher{ctx: ctx, plan: p, most: search.MaxTerms}
	offset := uint64(0)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, seg := range snap.Segments() {
		found, words, err := m.match(seg)
		if err != nil {
			return nil, err
		}
		for n, it := 0, found.Iterator(); it.HasNext(); n++ {
			if n%1024 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			doc := uint64(it.Next())
			score, err := scoreOf(words, doc)
			if err == nil {
				err = c.addMatch(offset+doc, score)
			}
			if err != nil {
				return nil, err
			}
		}
		offset += seg.Segment().Count()
	}
	return c.hits(), nil
}

// matcher finds the documents of a plan, segment by segment.
type matcher struct {
	ctx   context.Context
	plan  *search.Plan
	most  int // the maximum of terms to look at
	terms int // the terms looked at so far
	list  segment.PostingsList
	each  segment.PostingsIterator
}

// match returns the documents of a segment that match, and how each of the words does.
// It returns no words if scores are not needed.
func (m *matcher) match(seg *scorch.SegmentSnapshot) (*roaring.Bitmap, []*word, error) {
	found := seg.DocNumbersLive()
	if m.plan.Every() {
		if err := m.removeTerm(seg, found, fieldGone, termGone); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range m.plan.Filters {
		dict, err := seg.Segment().Dictionary(prefilter + f.Field)
		if err != nil {
			return nil, nil, err
		}
		set := roaring.New()
		if err := m.add(set, dict, f.Term); err != nil {
			return nil, nil, err
		}
		found.And(set)
	}
	if m.plan.Every() || found.IsEmpty() {
		return found, nil, nil
	}
	dict, err := seg.Segment().Dictionary(fieldWords)
	if err != nil {
		return nil, nil, err
	}
	var words []*word
	for i := range len(m.plan.Words) + 1 {
		text, last := m.plan.Last, i == len(m.plan.Words)
		if !last {
			text = m.plan.Words[i]
		}
		w, err := m.keepWord(found, dict, text, last)
		if err != nil || found.IsEmpty() {
			return found, nil, err
		}
		words = append(words, w)
	}
	if m.plan.Sort != "" {
		words = nil
	}
	return found, words, nil
}

// removeTerm removes the documents that have the term from those found.
func (m *matcher) removeTerm(seg *scorch.SegmentSnapshot, found *roaring.Bitmap, field, term string) error {
	dict, err := seg.Segment().Dictionary(field)
	if err != nil {
		return err
	}
	set := roaring.New()
	err = m.add(set, dict, term)
	found.AndNot(set)
	return err
}

// keepWord keeps those of the found documents that have the word: the whole word, as a
// beginning if it is the last word, or with a typo if typos are forgiven.
func (m *matcher) keepWord(found *roaring.Bitmap, dict segment.TermDictionary, text string, last bool) (*word, error) {
	w := &word{begins: roaring.New()}
	list, err := dict.PostingsList([]byte(text), nil, nil)
	if err != nil {
		return nil, err
	}
	w.whole = list.Iterator(true, true, false, nil)
	set := roaring.New()
	if err := m.add(set, dict, text); err != nil {
		return nil, err
	}
	if last {
		if err := m.addAll(w.begins, dict, termsOf(dict, nil, []byte(text), end(text)), text); err != nil {
			return nil, err
		}
		set.Or(w.begins)
	}
	if m.plan.Fuzzy && search.MayForgive(text) {
		if err := m.addAll(set, dict, termsOf(dict, oneEdit{[]rune(text)}, nil, nil), text); err != nil {
			return nil, err
		}
	}
	found.And(set)
	return w, nil
}

// termsOf lists terms. If possible, it does not count the documents of each.
func termsOf(dict segment.TermDictionary, a segment.Automaton, from, to []byte) segment.DictionaryIterator {
	if d, ok := dict.(interface {
		AutomatonIteratorOmitCount(a segment.Automaton, from, to []byte) segment.DictionaryIterator
	}); ok {
		return d.AutomatonIteratorOmitCount(a, from, to)
	}
	return dict.AutomatonIterator(a, from, to)
}

// end is the least text greater than all texts with this beginning. No word has a byte
// 0xff.
func end(text string) []byte { return append([]byte(text), 0xff) }

// addAll adds the documents that have one of some terms.
// More than most terms is search.ErrBroad, with the word as typed. The context is asked every 256
// terms.
func (m *matcher) addAll(set *roaring.Bitmap, dict segment.TermDictionary, terms segment.DictionaryIterator, typed string) error {
	for {
		e, err := terms.Next()
		if err != nil || e == nil {
			return err
		}
		if m.terms++; m.terms > m.most {
			return search.TooBroad(typed)
		}
		if m.terms%256 == 0 && m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		if err := m.add(set, dict, e.Term); err != nil {
			return err
		}
	}
}

// add adds the documents that have a term.
// Lists of documents are bitmaps in the files already, and are then merged as a whole.
func (m *matcher) add(set *roaring.Bitmap, dict segment.TermDictionary, term string) (err error) {
	if m.list, err = dict.PostingsList([]byte(term), nil, m.list); err != nil {
		return err
	}
	m.each = m.list.Iterator(false, false, false, m.each)
	if quick, ok := m.each.(segment.OptimizablePostingsIterator); ok {
		if doc, is := quick.DocNum1Hit(); is {
			set.Add(uint32(doc))
			return nil
		}
		if all := quick.ActualBitmap(); all != nil {
			set.Or(all)
			return nil
		}
	}
	for {
		p, err := m.each.Next()
		if err != nil || p == nil {
			return err
		}
		set.Add(uint32(p.Number()))
	}
}
