package embedded

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// keyFilter knows of some keys that they have no row, without reading the store. It is
// a Bloom filter of the hashes of all row keys, in which all bits of a key are in one
// word. Keys are added before their rows are committed, and are never removed. Until
// the filter is told that it has all keys that existed when the store was opened, it
// knows nothing.
type keyFilter struct {
	words []uint64
	whole atomic.Bool
}

// bitsPerKey is the least number of bits for which filling a filter is worthwhile: it
// then takes one in fourteen keys without a row for a key that may have one.
const bitsPerKey = 6

// allocate gives the filter its memory, before any key is added.
func (f *keyFilter) allocate(bytes int64) { f.words = make([]uint64, max(1, bytes/8)) }

// wordOf returns a key's word, and its bits in that word: four, or fewer if some
// coincide.
func (f *keyFilter) wordOf(hash uint64) (word *uint64, mask uint64) {
	at, _ := bits.Mul64(hash, uint64(len(f.words)))
	h := hash * 0x9e3779b97f4a7c15 // practically independent of the word
	return &f.words[at], 1<<(h>>58) | 1<<(h>>52&63) | 1<<(h>>46&63) | 1<<(h>>40&63)
}

// addKey notes a key. Several goroutines may call it.
func (f *keyFilter) addKey(hash uint64) {
	if len(f.words) == 0 { // it got no memory, and never becomes complete
		return
	}
	if word, mask := f.wordOf(hash); atomic.LoadUint64(word)&mask != mask {
		atomic.OrUint64(word, mask)
	}
}

// mayHave is false only if the store certainly has no such key. Until the filter has seen every
// key of the store it is always true.
func (f *keyFilter) mayHave(hash uint64) bool {
	if !f.whole.Load() {
		return true
	}
	word, mask := f.wordOf(hash)
	return atomic.LoadUint64(word)&mask == mask
}

// learnAfter is the number of writes (by Write, not by Transact) after which reading
// all keys into the filter is worthwhile.
const learnAfter = 1 << 14

// learnKeys counts writes. Once there are enough, it adds the keys that existed when
// the store was opened to the filter, in the background.
func (s *Store) learnKeys(writes int) {
	if s.opts.Still || s.cache.keys.whole.Load() {
		return
	}
	if n := s.written.Add(int64(writes)); n < learnAfter || n-int64(writes) >= learnAfter {
		return
	}
	s.beside.Go(func() { s.addKeys(len(s.cache.keys.words) * 64 / bitsPerKey) })
}

// addKeys adds all keys, unless there are more than most, the store is closed, or some
// cannot be read. A key that cannot be read is an error only for the operations that
// need it. Keys of rows that are committed meanwhile are in the filter already.
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
		s.cache.keys.addKey(maphash.Bytes(s.seed, it.Key()))
	}
	if it.Error() == nil {
		s.cache.keys.whole.Store(true)
	}
}
