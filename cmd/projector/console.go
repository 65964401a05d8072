package main

import (
	"context"
	"fmt"
	"net/http"

	"weir/internal/console"
	"weir/internal/status"
	"weir/internal/system"
)

// consoleMode is off, read or write: what the console may do.
type consoleMode string

// beside serves the console of a system, and everything else by other. The caller calls end when
// the server has stopped, before it closes the system.
func (m consoleMode) beside(other http.Handler, s *system.System, o console.Options) (_ http.Handler, end func(), err error) {
	if m == "off" {
		return other, func() {}, nil
	}
	o.Write = m == "write"
	c, err := console.New(s, o)
	if err != nil {
		return nil, nil, fmt.Errorf("the console: %w", err)
	}
	return c.Beside(other), c.Close, nil
}

// anyStatus returns a status for the API.
func anyStatus(of func(context.Context, string) (status.Status, error)) func(context.Context, string) (any, error) {
	return func(ctx context.Context, model string) (any, error) { return of(ctx, model) }
}
