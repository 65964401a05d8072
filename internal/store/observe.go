package store

import "context"

// Observer is told by a driver of each call of Get, Query, Write and Transact while it is done, for traces. The driver
// goes on with the context that it returns, and calls end once, when the call is done. It is called by many
// goroutines, must not block, and must neither change nor keep the Call's slices. A driver without an Observer builds
// no Call, so one that is off costs nothing.
type Observer func(ctx context.Context, c Call) (_ context.Context, end func(error))

// Call is one unit of work of a driver, under the real names of tables. A driver that sends the writes of one Write
// apart has a Call for each of them.
type Call struct {
	Method Method
	Table  string  // of a query
	Rows   int     // how many rows are asked for by key
	Of     []Write // the writes
	// Out is the outcome of each write, where they do not succeed and fail together. It is complete at the end.
	Out []Outcome
}

// Method is the kind of a Call.
type Method string

// The methods that are observed.
const (
	IsGet      Method = "get"
	IsQuery    Method = "query"
	IsWrite    Method = "write"
	IsTransact Method = "transact"
)

// Begin tells the Observer of a call, if there is one.
func (o Observer) Begin(ctx context.Context, c Call) (_ context.Context, end func(error)) {
	if o == nil {
		return ctx, unobserved
	}
	return o(ctx, c)
}

func unobserved(error) {}
