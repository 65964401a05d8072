//go:build lambda

package system

import (
	"context"
	"fmt"
	"time"

	"weir/internal/memory"
	"weir/internal/search"
	"weir/internal/store"
)

// errNone names the parts that a program built for Lambda lacks. A function never uses the
// embedded drivers, which are half of the program.
var errNone = configError{fmt.Errorf("this program was built for Lambda (-tags lambda), without the embedded store and index: " +
	"rows are in DynamoDB (unset WEIR_DATA, or give --aws). Build it without the tag for an embedded store")}

var embeddedStore = Store{
	Of:   func(Place) bool { return true },
	Name: Place.Directory,
	Dir:  Place.Directory,
	open: func(context.Context, Place, []store.Table, func() time.Time, store.Observer) (store.Store, error) {
		return nil, errNone
	},
}

var embeddedIndex = Index{
	Of:    func(p Place) bool { return p.Dir() != "" },
	Open:  func(context.Context, Place, []search.Schema, IndexOptions) (search.Index, error) { return nil, errNone },
	Files: func(int) memory.Need { return memory.Need{} },
}

// Beside returns an error: there is no embedded store.
func Beside(string, []store.Table, memory.Size) (store.Store, error) { return nil, errNone }

func embeddedFormats() string { return "" }

func isDamage(error) bool { return false }
