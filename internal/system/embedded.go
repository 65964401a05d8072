//go:build !lambda

package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"weir/internal/memory"
	"weir/internal/search"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// embeddedStore has its rows in a directory of this machine.
var embeddedStore = Store{
	Of:   func(Place) bool { return true },
	Name: Place.Directory,
	Dir:  Place.Directory,
	open: func(_ context.Context, p Place, tables []store.Table, now func() time.Time, told store.Observer) (store.Store, error) {
		return embedded.Open(filepath.Join(p.Directory(), "store"), tables, embedded.Options{Now: now, Memory: p.Memory, Logger: p.Log, Observe: told})
	},
	Files: memory.Need{Store: true},
}

// embeddedIndex has its documents beside the rows, or in a directory of this process where the rows are shared.
var embeddedIndex = Index{
	Of:   func(p Place) bool { return p.Dir() != "" || p.SearchDir != "" },
	Kind: fmt.Sprint("embedded ", searchembedded.Format),
	Open: func(_ context.Context, p Place, schemas []search.Schema, o IndexOptions) (search.Index, error) {
		return searchembedded.Open(filepath.Join(cmp.Or(p.SearchDir, p.Dir()), "search"), schemas, searchembedded.Options{Now: o.Now, InMemory: o.InMemory, Noted: o.Noted})
	},
	Own: func(p Place) (string, io.Closer, error) {
		if p.SearchDir == "" {
			return "", nil, nil
		}
		return searchembedded.Own(p.SearchDir)
	},
	Files: func(indexes int) memory.Need { return memory.Need{Indexes: indexes} },
}

// Beside opens a store of its own in a directory, for the rows that a command keeps on this
// machine whatever the place of its rows. The caller closes it.
func Beside(dir string, tables []store.Table, size memory.Size) (store.Store, error) {
	return embedded.Open(dir, tables, embedded.Options{Memory: size})
}

func embeddedFormats() string {
	return fmt.Sprintf("data directory %d, search index %d, ", embedded.Format, searchembedded.Format)
}

// isDamage reports whether files of the embedded index differ from those that it wrote.
func isDamage(err error) bool {
	var damage *searchembedded.DamageError
	return errors.As(err, &damage)
}
