// Package status is the projection kind that moves a status of a target row as far as
// facts reach: rows of other entities report facts, in any order, and a target's status is
// recomputed from all of them.
//
// It reads and writes these rows of our own table (package owntable):
//
//	fact|MODEL|E.A|ROW   s WORD|ID  what a source row reports: v the values that it sets, p, x
//	fact|MODEL|E.L|NAMES s m|WHO    a member of a group: v who, p, x
//	fact|MODEL|E.L|NAMES s t|HASH   a target whose status depends on the group: v its table and key, p, x
//	ledger|MODEL|ROW       s ""       the target's ledger: n, its version, which a recompute raises
//	jobs|MODEL           s HASH     a long list of targets that is being recomputed: look, c, n
//
// and it writes, on target rows, the status, the attributes that its stages set, what the
// application wrote there (attribute "weir.own"), and the version (attribute "weir").
package status
