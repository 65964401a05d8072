package build

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"weir/internal/seq"
)

// Unfit is a row that a build leaves out of a derivation, since the derivation cannot use it. The stream would
// make a dead letter of its record. A build makes none: the row is there to be read, so projector verify names all such rows
// for as long as they are so.
type Unfit struct {
	build      string // the name of the build
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Why        string `json:"why"`
}

// String is the row for people.
func (u Unfit) String() string { return fmt.Sprintf("%s of %s: %s", u.Derivation, u.Row, u.Why) }

// mostUnfits is how many rows a builder names.
const mostUnfits = 10

// unfits are the first rows by derivation and key that a builder leaves out. Segments use it at the same time.
type unfits struct {
	mu  sync.Mutex
	all []Unfit
}

// add takes a row in, once: an audit reads it again.
func (u *unfits) add(is Unfit) {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, there := slices.BinarySearchFunc(u.all, is, func(a, b Unfit) int {
		return cmp.Or(cmp.Compare(a.build, b.build), cmp.Compare(a.Derivation, b.Derivation), cmp.Compare(a.Row, b.Row))
	})
	if !there && at < mostUnfits {
		u.all = slices.Insert(u.all, at, is)
		u.all = u.all[:min(len(u.all), mostUnfits)]
	}
}

// UnfitRows returns the first rows that the builder has left out, up to ten, of one of its names, or of all if name is "".
// Progress.Unfit has the number of all.
func (b *Builder) UnfitRows(name string) (out []Unfit) {
	b.unfits.mu.Lock()
	defer b.unfits.mu.Unlock()
	return seq.Where(b.unfits.all, func(is Unfit) bool { return name == "" || is.build == name })
}
