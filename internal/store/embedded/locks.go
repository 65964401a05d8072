package embedded

import (
	"slices"
	"sync"
)

// stripes is the number of locks that the rows of a store share. It is large, so that
// two batches of hundreds of rows seldom need the same lock by chance.
const stripes = 1 << 16

// rowLocks keep the read, the check and the write of a row together. They are always
// taken in ascending order, so that no deadlock is possible.
type rowLocks [stripes]sync.Mutex

// lockSet is the locks of a batch's rows, by number.
type lockSet []uint16

// add adds the lock of a key, by the key's hash.
func (set *lockSet) add(hash uint64) { *set = append(*set, uint16(hash)) }

// lockAll sorts the set and takes its locks.
func (l *rowLocks) lockAll(set *lockSet) {
	slices.Sort(*set)
	*set = slices.Compact(*set)
	for _, n := range *set {
		l[n].Lock()
	}
}

// unlockAll releases the locks of the set and empties the set.
func (l *rowLocks) unlockAll(set *lockSet) {
	for _, n := range *set {
		l[n].Unlock()
	}
	*set = (*set)[:0]
}
