// Package set is the projection kind that collects the values of source rows in a set of
// any length. A set is a tree of nodes in our own table; a row of its own shows each node.
//
// It reads and writes these rows of our own table (package owntable):
//
//	set|MODEL|ROW        s PATH  NodeRow: the members below a path, each with its count
//	mark|MODEL|ROW       s HASH  contribution mark of a build: the members that a source row has added
//	dead|MODEL           s ID    dead letters of the kind "set": a row that cannot show its node
//
// and it writes the rows that show the nodes: the set's attribute, the mark of an inner
// node, and the version (attribute "weir").
package set
