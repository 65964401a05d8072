package model

func (c *compiler) compileSearches() {
	for _, d := range c.decl.searches {
		if !kebabName.MatchString(d.name.text) {
			c.report(d.name.pos, "like albums", "the name of an index is small letters, digits and single hyphens, not %q", d.name.text)
		}
		s := &Search{Name: d.name.text, Of: c.entity(d.of)}
		if s.Of == nil {
			continue
		}
		s.Where = c.tests(s.Of, d.where, false)
		s.Text = c.fields(s.Of, d.text)
		s.Filters = c.fields(s.Of, d.filters)
		s.Sorts = c.fields(s.Of, d.sorts)
		s.Of.Search = append(s.Of.Search, s)
		c.searches[s] = d
		c.Searches = append(c.Searches, s)
	}
}

// fields resolves a list of names, each once.
func (c *compiler) fields(e *Entity, ws []word) []*Field {
	var out []*Field
	seen := map[string]bool{}
	for _, w := range ws {
		if seen[w.text] {
			c.report(w.pos, "", "%q is here twice", w.text)
			continue
		}
		seen[w.text] = true
		if f := c.field(e, w); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// search finds an index that is named in the file.
func (c *compiler) search(w word) *Search {
	for _, s := range c.Searches {
		if s.Name == w.text {
			return s
		}
	}
	for _, d := range c.decl.searches {
		if d.name.text == w.text {
			return nil // reported there
		}
	}
	if w.given() {
		c.unknown(w, names(c.Searches, func(s *Search) string { return s.Name }), "there is no search index %q", w.text)
	}
	return nil
}
