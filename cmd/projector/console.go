package main

import (
	"context"
	"fmt"
	"net/http"

	"weir/internal/console"
	"weir/internal/status"
	"weir/internal/system"
)

type consoleFlag struct {
	Console string `enum:"off,read" default:"read" help:"Whether web pages at / show what is derived, and why: read or off (default ${default}). They need the same keys: a browser takes one as the password."`
}

// beside serves the console of a system, and everything else by other.
func (f consoleFlag) beside(other http.Handler, s *system.System, o console.Options) (http.Handler, error) {
	if f.Console == "off" {
		return other, nil
	}
	c, err := console.New(s, o)
	if err != nil {
		return nil, fmt.Errorf("the console: %w", err)
	}
	return c.Beside(other), nil
}

// anyStatus returns a status for the API.
func anyStatus(of func(context.Context, string) (status.Status, error)) func(context.Context, string) (any, error) {
	return func(ctx context.Context, model string) (any, error) { return of(ctx, model) }
}
