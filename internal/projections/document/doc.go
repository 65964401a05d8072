// Package document is the projection kind that keeps search documents. They are written after
// the rows of an event; those that the index did not take are noted (apply_pending.go).
//
// It writes documents to a search index (package search), each with the position of the
// change that it was made from; the index takes the newest. Of our own table it uses only
//
//	dead|MODEL           s ID    dead letters of the kind "document": one that the index refused
package document
