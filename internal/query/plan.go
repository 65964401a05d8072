package query

import (
	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
)

// plan is a query, compiled.
// It is not changed after compile, so requests share it.
type plan struct {
	*model.Query
	params []Parameter
	steps  []*step
	scans  []*step // those of the steps that read a range of rows
	hits   *step   // of a search: the tests of a row

	returned []returned // of the row found, none for all of it
	of       []string   // the derivations that decide the answer: entities whose rows do, and a search
}

// compileQuery finds, once for each query, everything that does not depend on a request. A model that was loaded has only queries
// that can be answered by keys.
func compileQuery(q *model.Query) *plan {
	p := &plan{Query: q, params: Described(q), of: decidingEntities(q)}
	if q.Search != nil {
		p.hits = newStep(&model.Step{Entity: q.Search.Of, With: q.With, Where: q.Where}, nil)
		return p
	}
	var prior *step
	for _, s := range q.Steps {
		st := newStep(s, prior)
		if !s.Get {
			p.scans = append(p.scans, st)
		}
		p.steps, prior = append(p.steps, st), st
	}
	p.returned = newReturned(q, prior)
	return p
}

// decidingEntities returns the names of the entities whose rows decide the answer to a query, and that of its search.
func decidingEntities(q *model.Query) (names []string) {
	if q.Search != nil {
		return []string{q.Search.Of.Name, q.Search.Derivation()}
	}
	for _, s := range q.Steps {
		names = append(names, s.Entity.Name)
		names = append(names, seq.Map(s.Also, func(e *model.Entity) string { return e.Name })...)
	}
	for i := range q.Return {
		if d := q.Return[i].Distinct; d != nil {
			names = append(names, d.Entity.Name)
		}
	}
	return names
}

// place is how far an answer has come. The zero place is the start, and the end.
type place struct {
	// Of a walk: for each scan, outermost first, the row it has come to. All but
	// the last are in progress; the walk stands just behind the last.
	at []store.Cursor
	// Of a walk that gives each row once: the row it stands behind.
	key *store.Key
	// Of a search: the After of the hit it stands behind.
	after string
}

// isZero reports whether it is the start or the end.
func (at place) isZero() bool { return at.at == nil && at.key == nil && at.after == "" }

// fitsPlace reports whether a place can be one of this plan. The seal says that it was
// one; the model may have changed since.
func (p *plan) fitsPlace(at place) bool {
	switch {
	case at.isZero():
		return true
	case p.Search != nil:
		return at.at == nil && at.key == nil
	case p.Sort != nil:
		return at.key == nil && at.after == "" && len(at.at) == 1 && p.steps[0].hasShape(at.at[0].Key)
	case p.Unique:
		return at.key != nil && p.steps[len(p.steps)-1].hasShape(*at.key)
	}
	if at.key != nil || at.after != "" || len(at.at) > len(p.scans) {
		return false
	}
	for i, c := range at.at {
		st := p.scans[i]
		if !st.hasShape(c.Key) || st.Index != nil && (c.Entry.Partition.Kind() != st.partition.attr.Type || c.Entry.Sort.Kind() != st.sort.attr.Type) {
			return false
		}
	}
	return true
}

// hasShape reports whether a key is of the shape of the step's table.
func (s *step) hasShape(k store.Key) bool {
	own := s.Entity.Table.Key
	return k.Partition.Kind() == own.Partition.Type && k.Sort.Kind() == own.Sort.Type
}
