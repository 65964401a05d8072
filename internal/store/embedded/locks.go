package embedded

import (
	"slices"
	"sync"
)

// stripes is how many locks the rows of a store share: so many that two batches of
// hundreds of rows seldom meet by chance.
const stripes = 1 << 16

// rowLocks keep read, check and write of a row together. They are always taken in
// ascending order, so that no two callers wait for each other.
type rowLocks [stripes]sync.Mutex

// lockSet is the locks of a batch's rows, by number.
type lockSet []uint16

// add puts the lock of a key into the set, by the key's hash.
func (set *lockSet) add(hash uint64) { *set = append(*set, uint16(hash)) }

// lock takes the locks of the set, which is then in order.
func (l *rowLocks) lock(set *lockSet) {
	slices.Sort(*set)
	*set = slices.Compact(*set)
	for _, n := range *set {
		l[n].Lock()
	}
}

// unlock gives them back and empties the set.
func (l *rowLocks) unlock(set *lockSet) {
	for _, n := range *set {
		l[n].Unlock()
	}
	*set = (*set)[:0]
}
