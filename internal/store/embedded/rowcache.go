package embedded

import (
	"sync"

	"weir/internal/value"
)

// rowCache keeps rows that were written or read, and knows of keys that have no row, so
// that the next who asks need not look for them. A writer puts or drops its rows while it
// has their locks, once they are committed; a reader without locks fills in what it
// read, unless somebody put or dropped that row, or one of few others, since it began
// to read.
//
// From before a commit until then its rows are read from the store, all of which shows
// at once: who has seen one of them as it is now sees no other one as it was.
//
// Rows that it has no more room for it packs (packed.go), and takes out again when
// somebody asks for them.
type rowCache struct {
	room       int // bytes a part may hold
	packedRoom int // and what its packed rows may take
	keys       keyFilter
	parts      [cacheParts]cachePart
}

// share gives the cache its room: of so many bytes a sixth for rows in both forms, an
// eighth for the filter, the rest for packed rows.
func (c *rowCache) share(bytes int64) {
	filter := bytes / 8
	c.keys.size(filter)
	c.room = int(bytes / 6 / cacheParts)
	c.packedRoom = int((bytes - bytes/6 - filter) / cacheParts)
}

const cacheParts, cacheCounts = 64, 64

type cachePart struct {
	mu     sync.Mutex
	rows   map[string]*cachedRow
	bytes  int
	packed packedRows
	counts [cacheCounts]cacheCount // of rows by further bits of their hash
}

// cacheCount counts what writers did to a few of the rows.
type cacheCount struct {
	changes uint64
	commits int // that are under way
}

// count is the one that a row is in.
func (p *cachePart) count(hash uint64) *cacheCount { return &p.counts[hash>>40%cacheCounts] }

// cachedRow is a row, in both forms, which do not change.
type cachedRow struct {
	hash   uint64
	stored []byte     // nil: there is no such row
	item   value.Item // decoded when first asked for
	bytes  int
	old    bool // a commit that changes it is under way
}

// rowOverhead is about what a cached row costs apart from its bytes, and
// attrOverhead what an attribute of its decoded form does.
const (
	rowOverhead  = 120
	attrOverhead = 32
)

// part is by bits of the hash that the locks do not use.
func (c *rowCache) part(hash uint64) *cachePart { return &c.parts[hash>>32%cacheParts] }

// get returns a row as it is. Where found is false, since is for fill.
func (c *rowCache) get(hash uint64, key []byte) (stored []byte, item value.Item, found bool, since uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rows[string(key)]
	if r == nil {
		if stored = p.packed.get(hash, key); stored == nil {
			return nil, nil, !c.keys.mayHave(hash), p.count(hash).changes
		}
		r = &cachedRow{stored: stored}
	}
	if r.old {
		return nil, nil, false, p.count(hash).changes
	}
	if r.item != nil || r.stored == nil {
		return r.stored, r.item, true, 0
	}
	item, err := decodeRow(r.stored)
	if err != nil { // what was encoded here decodes; else let the reader find out
		p.drop(hash, key)
		return nil, nil, false, p.count(hash).changes
	}
	p.keep(c, hash, key, r.stored, item)
	return r.stored, item, true, 0
}

// begin says that a commit will change a row; put or drop follow it, and end.
func (c *rowCache) begin(hash uint64, key []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.count(hash)
	n.changes++
	n.commits++
	c.keys.add(hash)
	p.packed.drop(hash)
	if r := p.rows[string(key)]; r != nil {
		r.old = true
	}
}

func (c *rowCache) end(hash uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).commits--
}

// put keeps a row as a writer left it; the cache takes stored over.
func (c *rowCache) put(hash uint64, key, stored []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).changes++
	p.keep(c, hash, key, stored, nil)
}

// fill keeps a row that was read, unless it may have changed since.
func (c *rowCache) fill(hash uint64, key, stored []byte, item value.Item, since uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.count(hash); n.changes == since && n.commits == 0 {
		p.keep(c, hash, key, stored, item)
	}
}

// drop forgets a row of which nobody knows how it is.
func (c *rowCache) drop(hash uint64, key []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).changes++
	p.drop(hash, key)
}

// keep takes a row in. One that would fill a good part of the room is left out and
// packed at once, if there is room for it there; others go, whichever, to make room.
func (p *cachePart) keep(c *rowCache, hash uint64, key, stored []byte, item value.Item) {
	r := &cachedRow{hash: hash, stored: stored, item: item, bytes: rowOverhead + len(key) + cap(stored) + attrOverhead*len(item)}
	if was := p.rows[string(key)]; was != nil {
		p.remove(string(key), was)
	}
	if r.bytes*4 > c.room {
		p.packed.add(c.packedRoom, hash, string(key), stored)
		return
	}
	if p.rows == nil {
		p.rows = map[string]*cachedRow{}
	}
	p.rows[string(key)] = r
	p.bytes += r.bytes
	for k, other := range p.rows {
		if p.bytes <= c.room {
			return
		}
		if other != r {
			if !other.old {
				p.packed.add(c.packedRoom, other.hash, k, other.stored)
			}
			p.remove(k, other)
		}
	}
}

func (p *cachePart) remove(key string, r *cachedRow) {
	p.bytes -= r.bytes
	delete(p.rows, key)
}

// drop forgets a row, however it is kept.
func (p *cachePart) drop(hash uint64, key []byte) {
	p.packed.drop(hash)
	if r := p.rows[string(key)]; r != nil {
		p.remove(string(key), r)
	}
}

// clear forgets everything.
func (c *rowCache) clear() {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.rows, p.bytes, p.packed = nil, 0, packedRows{}
		for j := range p.counts {
			p.counts[j].changes++
		}
		p.mu.Unlock()
	}
}
