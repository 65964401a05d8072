// Package follow is the projection kind that gives an attribute of a row the value that a
// field of another row has. Rows that follow are made by package copies, which calls this
// package before and after it writes them.
//
// It reads and writes these rows of our own table (package owntable):
//
//	follow|MODEL|E.F|ROW s ""    a followed value: p its position, v the value, g if its row is
//	                             gone, t and key the row, n and x see package owntable
//	follow|MODEL|E.F|ROW s HASH  a row that follows it: t and key the row, a its attribute
//	jobs|MODEL           s HASH  a long list of followers that is being updated: list, c the
//	                             last one updated, p the position of the value
//	dead|MODEL           s ID    dead letters of the kind "follow": a row that refused its value
//
// and it writes, on rows that follow, the attribute, the position of its value, and a mark
// of the list that it is from.
package follow
