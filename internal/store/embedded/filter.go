package embedded

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// keyFilter tells of a key that it has no row without a look at the store: a Bloom
// filter of the hashes of all keys of rows, where a key's bits are in one word. Keys are
// added before their rows are committed, and stay. It knows nothing until it is told that
// it has all keys that the store had when it was opened.
type keyFilter struct {
	words []uint64
	whole atomic.Bool
}

// bitsPerKey is the least with which a filter is worth to be filled: of keys without a row
// it then lets one in fourteen pass.
const bitsPerKey = 6

func (f *keyFilter) size(bytes int64) { f.words = make([]uint64, max(1, bytes/8)) }

// place is a key's word, and its bits there: four, or fewer where they coincide.
func (f *keyFilter) place(hash uint64) (word *uint64, mask uint64) {
	at, _ := bits.Mul64(hash, uint64(len(f.words)))
	h := hash * 0x9e3779b97f4a7c15 // as good as independent of the place
	return &f.words[at], 1<<(h>>58) | 1<<(h>>52&63) | 1<<(h>>46&63) | 1<<(h>>40&63)
}

func (f *keyFilter) add(hash uint64) {
	if len(f.words) == 0 { // it was given no room, and is never whole
		return
	}
	if word, mask := f.place(hash); atomic.LoadUint64(word)&mask != mask {
		atomic.OrUint64(word, mask)
	}
}

func (f *keyFilter) mayHave(hash uint64) bool {
	if !f.whole.Load() {
		return true
	}
	word, mask := f.place(hash)
	return atomic.LoadUint64(word)&mask == mask
}

// learnAfter is how many writes (by Write, not by Transact) show that a process writes much,
// so that its filter is worth a look at all keys.
const learnAfter = 1 << 14

// learnKeys has the keys that were in the store when it was opened added to the filter:
// beside what goes on, once so much was written that it pays.
func (s *Store) learnKeys(writes int) {
	if s.opts.Still || s.cache.keys.whole.Load() {
		return
	}
	if n := s.written.Add(int64(writes)); n < learnAfter || n-int64(writes) >= learnAfter {
		return
	}
	s.beside.Go(func() { s.addKeys(len(s.cache.keys.words) * 64 / bitsPerKey) })
}

// addKeys adds all keys, unless there are more than most, the store is closed, or not all
// can be read: that is an error of whoever needs them. Those of rows that are committed
// meanwhile are in the filter already.
func (s *Store) addKeys(most int) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceRow}, UpperBound: []byte{spaceRow + 1}})
	if err != nil {
		return
	}
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n > most {
			return
		}
		select {
		case <-s.ended:
			return
		default:
		}
		s.cache.keys.add(maphash.Bytes(s.seed, it.Key()))
	}
	if it.Error() == nil {
		s.cache.keys.whole.Store(true)
	}
}
