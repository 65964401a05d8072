package embedded

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// stripes is how many locks the rows of a store share.
const stripes = 256

// rowLocks keep read, check and write of a row together. They are always taken in
// ascending order, so that no two callers wait for each other.
type rowLocks struct {
	seed    maphash.Seed
	stripes [stripes]stripe
}

type stripe struct {
	sync.Mutex
	cache rowCache
}

// lockSet is the stripes of a batch's rows.
type lockSet [stripes / 64]uint64

// add puts a key's stripe into the set.
func (l *rowLocks) add(set *lockSet, key []byte) *stripe {
	n := maphash.Bytes(l.seed, key) % stripes
	set[n/64] |= 1 << (n % 64)
	return &l.stripes[n]
}

func (l *rowLocks) lock(set *lockSet) {
	set.each(func(n int) { l.stripes[n].Lock() })
}

func (l *rowLocks) unlock(set *lockSet) {
	set.each(func(n int) { l.stripes[n].Unlock() })
}

func (set *lockSet) each(do func(n int)) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			do(i*64 + bits.TrailingZeros64(word))
		}
	}
}
