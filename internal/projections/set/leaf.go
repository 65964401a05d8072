package set

import (
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Leaf is a row that shows a part of a set, after a change that may have made it disagree
// with its node (see Node).
type Leaf struct {
	Row     store.Ref
	Entity  *model.Entity
	Root    store.Ref // the first row of the set
	Path    string    // of the node that the row shows
	Changes []int     // the changes of the batch that touched the row
}

// needsLeaf reports whether a writer other than weir may have inserted, changed or
// deleted a row of a set. weir's own updates raise the version. For an insert or a
// deletion the record does not tell who wrote it.
func needsLeaf(c *projections.Change) (Leaf, bool) {
	e := c.Is
	if e == nil || e.SetOf() == nil {
		e = c.Was
	}
	if e == nil || e.SetOf() == nil {
		return Leaf{}, false
	}
	was, is := c.Old.Get(owntable.Version), c.New.Get(owntable.Version)
	if was.Kind() == value.Number && is.Kind() == value.Number && value.Compare(is, was) > 0 && projections.SameWritten(e, c.Old, c.New) {
		return Leaf{}, false
	}
	root, path, ok := e.LeafPath(c.Row.Key)
	return Leaf{Row: c.Row, Entity: e, Root: store.Ref{Table: c.Row.Table, Key: root}, Path: path}, ok
}

// LeafRow returns the row that shows a node, and the attributes that it shows. An
// attribute of the set that has a Missing value in attrs must be absent on the row. there
// is false if no row shows the node: the set is empty, or the node does not exist.
func LeafRow(e *model.Entity, root store.Ref, n *Node) (row store.Ref, attrs []value.Attr, there bool) {
	row = store.Ref{Table: root.Table, Key: e.LeafKey(root.Key, n.Path)}
	set := e.SetOf()
	shown := n.ShownMembers(set)
	if n.Version.IsMissing() || n.Path == "" && !n.Inner && shown.IsMissing() {
		return row, nil, false
	}
	inner := value.Value{}
	if n.Inner {
		inner = value.OfBool(true)
	}
	attrs = append(attrs, value.Attr{Name: set.Attr, Value: shown}, value.Attr{Name: owntable.InnerLeaf, Value: inner})
	attrs = append(attrs, e.Stamps()...)
	return row, append(attrs, value.Attr{Name: owntable.Version, Value: n.Version}), true
}
