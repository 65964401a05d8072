package model

import (
	"slices"
	"sync/atomic"
)

// Left has the attributes that retired derivations have left on rows of an entity. They are in no model file: a program reads
// them from the catalog when it starts. The zero Left is empty. It may be set and read by any goroutine.
type Left struct{ names atomic.Pointer[[]string] }

// Set replaces the attributes.
func (l *Left) Set(names []string) { l.names.Store(&names) }

// Has reports whether an attribute is one of them.
func (l *Left) Has(name string) bool {
	if l == nil {
		return false
	}
	names := l.names.Load()
	return names != nil && slices.Contains(*names, name)
}
