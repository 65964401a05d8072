// Package follow is the projection kind that gives an attribute of a row the value that a
// field of another row has. Rows that follow are made by package copies, which calls this
// package before and after it writes them, or are the application's own (shown.go).
//
// It reads and writes these rows of our own table (package owntable):
//
//	follow|MODEL|E.F|ROW s ""    FollowedRow: a followed value, or that its row is gone
//	follow|MODEL|E.F|ROW s HASH  FollowerRow: an attribute of a row that follows it
//	jobs|MODEL           s HASH  Job: a long list of followers that is being updated
//	dead|MODEL           s ID    dead letters of the kind "follow": a row that refused its value
//
// and it writes, on rows that follow, the attribute, the position of its value, and a mark
// of the list that it is from.
package follow
