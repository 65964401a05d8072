package system

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
)

// SearchGeneration is the known state of a search generation: a set of indexes, one for each
// definition.
type SearchGeneration struct {
	// Generation is the hash of the definitions.
	Generation string
	Kind       string // of index
	Indexes    []SearchIndex
	Filled     bool
	Since      time.Time // when it was filled
	Filling    bool      // a program fills it, and has read so many rows
	Rows       int64
	Kept       bool // readers keep its documents
	Ours       bool // it is of the model's definitions
}

// SearchIndex is one index of a generation.
type SearchIndex struct{ Name, Hash, Place string }

// SearchGenerations returns the search generations of a model that there are, the model's own
// first. It needs no index to be open.
func (s *System) SearchGenerations(ctx context.Context, p *Part) (all []SearchGeneration, err error) {
	ours := map[string]string{}
	for _, d := range p.Model.Derivations() {
		if _, is := model.SearchOf(d.Name); is {
			ours[d.Name] = d.Hash
		}
	}
	names := map[string]string{} // by index
	for _, sr := range p.Model.Searches {
		names[document.IndexName(p.Model, sr)] = sr.Derivation()
	}
	kept, err := p.Runner.Catalog.Row(ctx)
	if err != nil {
		return nil, err
	}
	err = s.rowsOf(ctx, p.Model, func(hash string, row owntable.GenerationRow) error {
		g := SearchGeneration{
			Generation: hash, Kind: row.Driver, Filled: row.Filled, Since: row.Since,
			Filling: !row.Filled && s.now().Before(row.Until), Rows: row.Rows, Kept: hash == kept.Search, Ours: len(row.Indexes) == len(ours),
		}
		for index, is := range row.Indexes {
			name, known := names[index]
			if !known {
				name = model.SearchDerivation(strings.TrimPrefix(index, p.Model.Name+"-"))
			}
			g.Ours = g.Ours && ours[name] == is.Hash
			g.Indexes = append(g.Indexes, SearchIndex{name, is.Hash, is.Place})
		}
		slices.SortFunc(g.Indexes, func(a, b SearchIndex) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, g)
		return nil
	})
	slices.SortStableFunc(all, func(a, b SearchGeneration) int {
		switch {
		case a.Ours == b.Ours:
			return b.Since.Compare(a.Since)
		case a.Ours:
			return -1
		}
		return 1
	})
	return all, err
}
