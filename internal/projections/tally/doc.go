// Package tally is the projection kind that sums up source rows on a target row: count,
// sum, mean and distinct (package aggregate has the additions and the value of each).
//
// It reads and writes these rows of our own table (package owntable):
//
//	ledger|MODEL|ROW       s ""    the target's ledger: a:ATTR and c:ATTR the
//	                             accumulators, p:SHARD a shard's position, n its version,
//	                             u and q the dead letters of values that cannot be shown
//	value|MODEL|ROW      s A|HASH a value of a distinct: n its rows, v its text
//	mark|MODEL|ROW       s HASH  contribution mark of a build: the amounts that a source row has added
//	dead|MODEL           s ID    dead letters of the kind "number": a value that cannot be shown
//
// and it writes, on target rows, the tally's attribute and the version (attribute "weir").
package tally
