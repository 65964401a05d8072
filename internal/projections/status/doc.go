// Package status is the projection kind that moves a status of a target row as far as
// facts reach: rows of other entities report facts, in any order, and a target's status is
// recomputed from all of them. The latest of rows (max, min, latest, earliest) is the same
// with facts in the order of the rows: the target shows the first one's value.
//
// It reads and writes these rows of our own table (package owntable):
//
//	fact|MODEL|E.A|ROW   s WORD|ID  Member: the report of a source row
//	fact|MODEL|E.A|ROW   s ORDER    Member: a source row that takes part in a latest
//	fact|MODEL|E.L|NAMES s m|WHO    Member: a member of a group
//	fact|MODEL|E.L|NAMES s t|HASH   Member: a target whose status depends on the group
//	ledger|MODEL|ROW     s ""       the target's ledger: its version, which a recompute raises
//	jobs|MODEL           s HASH     Job: a long list of targets that is being recomputed
//
// A batch writes its facts before any status is recomputed, and a recompute reads all facts
// of its target. So a crash after the facts leaves statuses that are behind, and the batch,
// which comes again, recomputes them.
//
// and it writes, on target rows, the status, the attributes that its stages set, the values that the
// application wrote there (attribute "weir.own"), and the version (attribute "weir").
package status
