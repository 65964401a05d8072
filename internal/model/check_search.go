package model

func checkSearches(c *compiler) {
	for _, s := range c.Searches {
		d := c.searches[s]
		if len(d.text) == 0 {
			c.report(d.name.pos, "text: [FIELD, …]", "the search index %s has no text", s.Name)
		}
		for _, w := range d.text {
			switch f := s.Of.Field(w.text); f.Type {
			case TypeString, TypeTime, TypeList, TypeStrings, TypeAny:
				c.shown(s.Of, w, "text")
			default:
				c.report(w.pos, "", "%s is a %s and has no words", w.text, f.Type)
			}
		}
		for _, w := range d.filters {
			switch f := s.Of.Field(w.text); f.Type {
			case TypeMap, TypeBinary, TypeNumbers:
				c.report(w.pos, "", "%s is a %s and is compared to nothing", w.text, f.Type)
			default:
				c.shown(s.Of, w, "a filter")
			}
		}
		for _, w := range d.sorts {
			f := s.Of.Field(w.text)
			if !scalar(f.Type) || f.Type == TypeBinary || f.Type == TypeBoolean || f.Type == TypeFlag {
				c.report(w.pos, "", "%s is a %s and has no order", w.text, f.Type)
				continue
			}
			c.shown(s.Of, w, "a sort")
		}
	}
}

// shown reports a hidden attribute where its values would come out.
func (c *compiler) shown(e *Entity, w word, as string) {
	if a := e.Attribute(w.text); a != nil && a.Hidden {
		c.report(w.pos, "", "%s is hidden and cannot be %s: what is found would tell it", w.text, as)
	}
}
