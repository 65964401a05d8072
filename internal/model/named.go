package model

// placed is a part of the file that has a name with its place.
type placed interface{ called() word }

func (w word) called() word    { return w }
func (p pair) called() word    { return p.name }
func (d setDecl) called() word { return d.name }

// placeOf returns where a list of the file has a name, or the other place if it does not.
func placeOf[T placed](list []T, name string, other pos) pos {
	for _, d := range list {
		if d.called().text == name {
			return d.called().pos
		}
	}
	return other
}

// reportTwice reports each part of a list of the file whose name one before it has, and returns the others.
func reportTwice[T placed](c *compiler, list []T) (once []T) {
	seen := map[string]bool{}
	for _, d := range list {
		if w := d.called(); seen[w.text] {
			c.addFlaw(w.pos, "", "%q is here twice", w.text)
		} else {
			seen[w.text], once = true, append(once, d)
		}
	}
	return once
}
