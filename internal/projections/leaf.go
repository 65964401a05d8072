package projections

import (
	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Leaf is a row that holds a part of a set, and that came by in a state that its
// node may not agree with.
type Leaf struct {
	Row     store.Ref
	Entity  *model.Entity
	Root    store.Ref // the first row of the set
	Path    string    // of the node that the row shows
	Changes []int     // of the batch, that it came by in
}

// needsLeaf reports whether somebody other than weir may have made, changed or
// removed a row of a set. Weir's own changes raise the version; that a row is made
// or removed does not say by whom.
func needsLeaf(c *Change) (Leaf, bool) {
	e := c.Is
	if e == nil || e.SetOf() == nil {
		e = c.Was
	}
	if e == nil || e.SetOf() == nil {
		return Leaf{}, false
	}
	was, is := c.Old.Get(book.Version), c.New.Get(book.Version)
	if was.Kind() == value.Number && is.Kind() == value.Number && value.Compare(is, was) > 0 && sameWritten(e, c.Old, c.New) {
		return Leaf{}, false
	}
	root, path, ok := e.LeafPath(c.Row.Key)
	return Leaf{Row: c.Row, Entity: e, Root: store.Ref{Table: c.Row.Table, Key: root}, Path: path}, ok
}

// LeafRow is the row that shows a node, and what it shows: what is absent from
// attrs is absent there. there is false where no row shows it: one is left out of
// an empty set, and where there is no node.
func LeafRow(e *model.Entity, root store.Ref, n *Node) (row store.Ref, attrs []value.Attr, there bool) {
	row = store.Ref{Table: root.Table, Key: e.LeafKey(root.Key, n.Path)}
	set := e.SetOf()
	shown := n.Shown(set)
	if n.Version.IsMissing() || n.Path == "" && !n.Inner && shown.IsMissing() {
		return row, nil, false
	}
	inner := value.Value{}
	if n.Inner {
		inner = value.OfBool(true)
	}
	attrs = append(attrs, value.Attr{Name: set.Attr, Value: shown}, value.Attr{Name: book.InnerLeaf, Value: inner})
	for _, t := range e.Where {
		if t.Field.Key == nil && len(t.OneOf) == 1 {
			attrs = append(attrs, value.Attr{Name: t.Field.Attr, Value: t.OneOf[0]})
		}
	}
	return row, append(attrs, value.Attr{Name: book.Version, Value: n.Version}), true
}
