// Package copies is the projection kind that makes a row from a row. A copy is kept in
// step with its source; history (`keep`) adds a row for each event and takes none back.
// Its rows may follow values of other rows: package follow keeps those.
//
// It reads and writes these rows of our own table (package owntable):
//
//	tomb|ROW             s ""    a row that was deleted, and at which position
//	dead|MODEL           s ID    dead letters of the kind "row": a row that its table refused
//
// and it writes the rows that are made, whole, with the position of the change that they
// were made from (attribute "weir").
package copies
