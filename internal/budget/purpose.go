package budget

import (
	"cmp"
	"context"
)

// Purpose is what units are used for.
type Purpose string

// The purposes. Other is what has none: commands, queries, starts.
const (
	Rows   Purpose = "rows"   // records are applied to rows
	Search Purpose = "search" // records are applied to search indexes
	Lease  Purpose = "lease"  // shards are shared with other processes
	Build  Purpose = "build"  // existing rows are derived from
	Other  Purpose = "other"
)

type purposeKey struct{}

// For returns a context in which units are used for a purpose.
func For(ctx context.Context, p Purpose) context.Context {
	return context.WithValue(ctx, purposeKey{}, p)
}

// PurposeOf returns what units are used for in a context.
func PurposeOf(ctx context.Context) Purpose {
	p, _ := ctx.Value(purposeKey{}).(Purpose)
	return cmp.Or(p, Other)
}

// Units are units of reading and writing.
type Units struct{ Read, Write float64 }

// Cause is why a request is sent again.
type Cause string

// The causes.
const (
	CauseThrottled  Cause = "throttled"  // the table refused it for now
	CauseConflict   Cause = "conflict"   // another transaction was at a row of it, or it was done in part
	CauseServer     Cause = "server"     // the service failed
	CauseConnection Cause = "connection" // there was no connection, or it broke
	CauseLate       Cause = "late"       // the answer took longer than answers take
)
