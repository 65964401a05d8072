package store

import "context"

// Observer is told by a driver of each call of Get, Query, Write and Transact while it is done, for traces. The driver
// goes on with the context that it returns, and calls end once, when the call is done. It is called by many
// goroutines, must not block, and must neither change nor keep what the Call has. A driver without an Observer builds
// no Call, so one that is off costs nothing.
type Observer func(ctx context.Context, c Call) (_ context.Context, end func(error))

// Call is what a driver does at once, under the real names of tables. A driver that sends the writes of one Write
// apart has a Call for each of them.
type Call struct {
	Method Method
	Table  string  // of a query
	Rows   int     // how many rows are asked for by key
	Of     []Write // what is written
	// Out is what became of each write, where they do not succeed and fail together. It is complete at the end.
	Out []Outcome
}

// Method is what a Call does.
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
