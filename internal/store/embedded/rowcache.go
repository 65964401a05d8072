package embedded

import (
	"sync"

	"weir/internal/value"
)

// rowCache keeps rows that were written or read recently, in stored form. It also knows
// of some keys that they have no row. So the next reader need not read the store. It
// returns the current row, or nothing.
//
// A writer puts or drops its rows once they are committed, while it holds their locks.
// A reader, which has no locks, fills in the row that it read, unless a writer has put
// or dropped that row, or one of a few others, since the reader asked the cache. From
// begin, before a commit, until then, the rows of the commit are read from the store,
// which shows all of them at once. So a reader that has seen the new state of one row
// never sees the old state of another.
type rowCache struct {
	room  int // maximum of bytes in a part
	keys  keyFilter
	parts [cacheParts]cachePart
}

// share sizes the cache: an eighth of the bytes for the filter, the rest for rows.
func (c *rowCache) share(bytes int64) {
	filter := bytes / 8
	c.keys.allocate(filter)
	c.room = int((bytes - filter) / cacheParts)
}

const cacheParts, cacheCounts = 64, 64

// cachePart has the rows of some hashes. New rows are added to the young ones. When these have half of the room they
// become the old ones, and the rows that were old are forgotten. An old row that is read becomes young again. No row is
// both.
type cachePart struct {
	mu         sync.Mutex
	young, old map[string][]byte       // by key, in stored form; nil for a key without a row
	bytes      int                     // of the young ones
	counts     [cacheCounts]cacheCount // of rows, by further bits of their hash
}

// cacheCount counts the commits of writers to a few of the rows.
type cacheCount struct {
	changes uint64
	commits int // that are running
}

// cachedBytes is about the memory of a row beside its key and stored form.
const cachedBytes = 96

// part is chosen by bits of the hash that the locks do not use. count is the counter of
// a row.
func (c *rowCache) part(hash uint64) *cachePart { return &c.parts[hash>>32%cacheParts] }

// count is the counter of writes in progress that the hash of a key belongs to. Several keys share
// one, which only makes the cache answer less.
func (p *cachePart) count(hash uint64) *cacheCount { return &p.counts[hash>>40%cacheCounts] }

// get returns a row as it is, nil if there is none. If found is false, pass since to fillRow.
func (c *rowCache) get(hash uint64, key []byte) (stored []byte, item value.Item, found bool, since uint64) {
	stored, found, since = c.find(hash, key)
	item, err := decodeRow(stored)
	if err != nil { // the stored form is our own; if it cannot be decoded, let the reader report it
		return nil, nil, false, since
	}
	return stored, item, found, since
}

// find returns a row's stored bytes. found says that the cache knows, and then nil means that
// there is no such row. since is for the caller that reads the store itself: its row goes
// into the cache only if nothing changed meanwhile.
func (c *rowCache) find(hash uint64, key []byte) (stored []byte, found bool, since uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	since = p.count(hash).changes
	if stored, found = p.young[string(key)]; found {
		return stored, true, since
	}
	if stored, found = p.old[string(key)]; !found {
		return nil, !c.keys.mayHave(hash), since
	}
	p.keepRow(c.room, key, stored)
	return stored, true, since
}

// beginChange says that a commit is about to change a row. put or drop must follow, and then
// end.
func (c *rowCache) beginChange(hash uint64, key []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.count(hash)
	n.changes++
	n.commits++
	c.keys.addKey(hash)
	p.forgetKey(key)
}

// beginAll says that a commit is about to change rows whose keys the filter has already. endAll
// must follow.
func (c *rowCache) beginAll() {
	c.eachPart(func(p *cachePart) {
		p.young, p.old, p.bytes = nil, nil, 0
		for i := range p.counts {
			p.counts[i].changes++
			p.counts[i].commits++
		}
	})
}

// endAll says that the commit of beginAll is over, whether it succeeded or not.
func (c *rowCache) endAll() {
	c.eachPart(func(p *cachePart) {
		for i := range p.counts {
			p.counts[i].changes++
			p.counts[i].commits--
		}
	})
}

// eachPart does something with each part, while no one else reads or writes that part.
func (c *rowCache) eachPart(do func(*cachePart)) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		do(p)
		p.mu.Unlock()
	}
}

// endChange says that the commit of a row is over, whether it succeeded or not.
func (c *rowCache) endChange(hash uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).commits--
}

// putRow keeps a row as a writer has left it. The cache shares the memory of stored, which stays as it is.
func (c *rowCache) putRow(hash uint64, key, stored []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).changes++
	p.keepRow(c.room, key, stored)
}

// fillRow keeps a row that was read, unless it may have changed since.
func (c *rowCache) fillRow(hash uint64, key, stored []byte, since uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.count(hash); n.changes == since && n.commits == 0 {
		p.keepRow(c.room, key, stored)
	}
}

// drop forgets a row whose state is unknown.
func (c *rowCache) drop(hash uint64, key []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).changes++
	p.forgetKey(key)
}

// keepRow adds a row in place of the part's row for its key. It leaves out a row that
// would take much of the room.
func (p *cachePart) keepRow(room int, key, stored []byte) {
	p.forgetKey(key)
	n := cachedBytes + len(key) + len(stored)
	if n*8 > room {
		return
	}
	if p.young == nil || p.bytes+n > room/2 {
		p.young, p.old, p.bytes = map[string][]byte{}, p.young, 0
	}
	p.young[string(key)] = stored
	p.bytes += n
}

// forgetKey makes the part answer no more for a key.
func (p *cachePart) forgetKey(key []byte) {
	if stored, found := p.young[string(key)]; found {
		p.bytes -= cachedBytes + len(key) + len(stored)
		delete(p.young, string(key))
	}
	delete(p.old, string(key))
}
