// Package feed is the projection kind that makes a row (a notification) for each
// subscriber of a list.
//
// It reads and writes these rows of our own table (package owntable):
//
//	each|MODEL|RULE|KEY  s ""    a list's counter: n the moments so far, p:SHARD a shard's
//	                             position, f:SHARD and w:SHARD the moment that is being written
//	each|MODEL|RULE|KEY  s HASH  a subscriber: p, f what the rule takes of it, n since which
//	                             moment, h its earlier subscriptions, x
//	mark|MODEL|RULE|KEY  s HASH  deduplication mark of a source row, without shards: p, f:, w:, x
//	jobs|MODEL           s HASH  a notification to a long list that is being written: rule, of,
//	                             f, list, c, p, n
//	dead|MODEL           s ID    dead letters of the kind "told": a notification that was refused
//
// and it writes the notifications, whole, with the position of their change (attribute
// "weir").
package feed
