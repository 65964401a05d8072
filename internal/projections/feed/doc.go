// Package feed is the projection kind that makes a row (a notification) for each
// subscriber of a list.
//
// It reads and writes these rows of our own table (package owntable):
//
//	feed|MODEL|RULE|KEY  s ""    ListRow: the counter of a list, and how far each shard has sent to it
//	feed|MODEL|RULE|KEY  s HASH  SubscriberRow: a subscriber, and since which moment
//	jobs|MODEL           s HASH  Job: a notification to a long list that is being written
//	dead|MODEL           s ID    dead letters of the kind "notification": one that was refused
//
// A notification has its moment before its first row is written, so all repetitions of a
// batch write it for the same subscribers. A crash in between leaves some of its rows
// missing until the batch comes again.
//
// and it writes the notifications, whole, with the position of their change (attribute
// "weir").
package feed
