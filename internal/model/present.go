package model

import "slices"

// WithoutHistory returns the model without the rules of history and notifications, whose rows are taken for the application's: of
// present rows, nothing but these rows themselves tells their sources.
func (m *Model) WithoutHistory() (*Model, error) {
	c, err := Parse(m.File, m.text)
	if err != nil {
		return nil, err
	}
	c.Arg, c.Flags = m.Arg, m.Flags
	for _, e := range c.Entities {
		made := len(e.MadeBy)
		e.Rules = slices.DeleteFunc(e.Rules, (*RowRule).isHistory)
		if e.MadeBy = slices.DeleteFunc(e.MadeBy, (*RowRule).isHistory); made > 0 && len(e.MadeBy) == 0 {
			e.Derived = false
		}
	}
	return c, nil
}

// isHistory reports whether a rule makes rows that stay when their source goes.
func (r *RowRule) isHistory() bool { return len(r.Keep) > 0 }

// IsHistory reports whether rows of an entity are history, which no present row tells.
func (e *Entity) IsHistory() bool {
	return len(e.MadeBy) > 0 && !slices.ContainsFunc(e.MadeBy, func(r *RowRule) bool { return !r.isHistory() })
}
