package embedded

import (
	"bytes"
	"encoding/binary"
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
	c.keys.size(filter)
	c.room = int((bytes - filter) / cacheParts)
}

const cacheParts, cacheCounts = 64, 64

// cachePart has the rows of some hashes. New rows are added to the young buffer. When
// it is full it becomes the old buffer, and the rows of the previous old buffer are
// forgotten. A row that is read from the old buffer is added to the young one again. A
// row that the young buffer has, or has forgotten, is always forgotten in the old one.
type cachePart struct {
	mu         sync.Mutex
	young, old rowBuffer
	counts     [cacheCounts]cacheCount // of rows, by further bits of their hash
}

// cacheCount counts the commits of writers to a few of the rows.
type cacheCount struct {
	changes uint64
	commits int // that are running
}

// rowBuffer has rows one after the other, without pointers, so that the garbage
// collector has nothing to scan: four numbers (rowHead), the key, the row. Rows whose
// hashes have the same remainder form a chain, in which the last added row is the
// first.
type rowBuffer struct {
	rows   []byte
	chains []uint32 // one more than the offset of the first row of each chain
}

// The head of a row: one more than the offset of the next row in its chain, the key's
// length, the number of bytes reserved for the row, and the row's length or one of
// noRow and forgottenRow.
const (
	rowHead      = 16
	noRow        = 1<<32 - 1
	forgottenRow = 1<<32 - 2
)

// bufferRoom divides half of a part's room. It returns the number of a buffer's chains,
// which take four bytes each, and the maximum of bytes for its rows. With typical rows,
// chains are short.
func bufferRoom(room int) (chains, rows int) {
	chains = max(1, room/2/256)
	return chains, room/2 - 4*chains
}

// part is chosen by bits of the hash that the locks do not use. count is the counter of
// a row.
func (c *rowCache) part(hash uint64) *cachePart { return &c.parts[hash>>32%cacheParts] }

// count is the counter of writes in progress that the hash of a key belongs to. Several keys share
// one, which only makes the cache answer less.
func (p *cachePart) count(hash uint64) *cacheCount { return &p.counts[hash>>40%cacheCounts] }

// get returns a row as it is, nil if there is none, in memory of the caller's own. If
// found is false, pass since to fill.
func (c *rowCache) get(hash uint64, key []byte) (stored []byte, item value.Item, found bool, since uint64) {
	stored, found, since = c.find(hash, key)
	item, err := decodeRow(stored)
	if err != nil { // the stored form is our own; if it cannot be decoded, let the reader report it
		return nil, nil, false, since
	}
	return stored, item, found, since
}

// find returns a row's stored bytes. found says that the cache knows, and then nil means that
// there is no such row. since is for the caller that reads the store itself: what it read goes
// into the cache only if nothing changed meanwhile.
func (c *rowCache) find(hash uint64, key []byte) (stored []byte, found bool, since uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	since = p.count(hash).changes
	if row := p.young.find(hash, key); row.known() {
		return row.stored(), true, since
	}
	row := p.old.find(hash, key)
	if !row.known() {
		return nil, !c.keys.mayHave(hash), since
	}
	stored = row.stored()
	p.keep(c.room, hash, key, stored)
	return stored, true, since
}

// begin says that a commit is about to change a row. put or drop must follow, and then
// end.
func (c *rowCache) begin(hash uint64, key []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.count(hash)
	n.changes++
	n.commits++
	c.keys.add(hash)
	p.forget(hash, key)
}

// beginAll says that a commit is about to change rows whose keys the filter has already. endAll
// must follow.
func (c *rowCache) beginAll() {
	c.eachPart(func(p *cachePart) {
		p.young, p.old = rowBuffer{}, rowBuffer{}
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

// end says that the commit of a row is over, whether it succeeded or not.
func (c *rowCache) end(hash uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).commits--
}

// put keeps a row as a writer has left it.
func (c *rowCache) put(hash uint64, key, stored []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).changes++
	p.keep(c.room, hash, key, stored)
}

// fill keeps a row that was read, unless it may have changed since.
func (c *rowCache) fill(hash uint64, key, stored []byte, since uint64) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.count(hash); n.changes == since && n.commits == 0 {
		p.keep(c.room, hash, key, stored)
	}
}

// drop forgets a row whose state is unknown.
func (c *rowCache) drop(hash uint64, key []byte) {
	p := c.part(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(hash).changes++
	p.forget(hash, key)
}

// keep adds a row in place of what the part has for its key. It leaves out a row that
// would take much of the room.
func (p *cachePart) keep(room int, hash uint64, key, stored []byte) {
	if row := p.young.find(hash, key); row != nil && row.set(stored) {
		return
	}
	p.forget(hash, key)
	n := rowHead + len(key) + len(stored)
	if n*8 > room {
		return
	}
	chains, most := bufferRoom(room)
	if len(p.young.rows)+n > most {
		p.young, p.old = p.old, p.young
		p.young.rows = p.young.rows[:0]
		clear(p.young.chains)
	}
	if p.young.chains == nil {
		p.young.chains = make([]uint32, chains)
	}
	p.young.add(most, hash, key, stored)
}

// forget makes both buffers answer no more for a key. Its bytes stay until the buffer is dropped.
func (p *cachePart) forget(hash uint64, key []byte) {
	p.young.forget(hash, key)
	p.old.forget(hash, key)
}

// add appends a row. The caller makes sure that the rows then have at most most bytes.
func (b *rowBuffer) add(most int, hash uint64, key, stored []byte) {
	at := len(b.rows)
	if n := at + rowHead + len(key) + len(stored); n > cap(b.rows) {
		b.rows = append(make([]byte, 0, min(most, max(2*cap(b.rows), n))), b.rows...)
	}
	first := &b.chains[hash%uint64(len(b.chains))]
	b.rows = binary.LittleEndian.AppendUint32(b.rows, *first)
	b.rows = binary.LittleEndian.AppendUint32(b.rows, uint32(len(key)))
	b.rows = binary.LittleEndian.AppendUint32(b.rows, uint32(len(stored)))
	b.rows = append(append(append(b.rows, 0, 0, 0, 0), key...), stored...)
	bufferedRow(b.rows[at:]).set(stored)
	*first = uint32(at) + 1
}

// find returns the row of a key that was added last, even if it was forgotten since,
// and nil if there is none.
func (b *rowBuffer) find(hash uint64, key []byte) bufferedRow {
	if len(b.chains) == 0 {
		return nil
	}
	for next := int(b.chains[hash%uint64(len(b.chains))]); next > 0; {
		row := bufferedRow(b.rows[next-1:])
		if bytes.Equal(row.key(), key) {
			return row
		}
		next = row.number(0)
	}
	return nil
}

// forget marks the row as forgotten, in place.
func (b *rowBuffer) forget(hash uint64, key []byte) {
	if row := b.find(hash, key); row != nil {
		binary.LittleEndian.PutUint32(row[12:], forgottenRow)
	}
}

// bufferedRow is bytes of a buffer that begin with a row; other rows follow.
type bufferedRow []byte

func (r bufferedRow) number(at int) int { return int(binary.LittleEndian.Uint32(r[at:])) }
func (r bufferedRow) size() int         { return r.number(12) }
func (r bufferedRow) known() bool       { return r != nil && r.size() != forgottenRow }
func (r bufferedRow) key() []byte       { return r[rowHead : rowHead+r.number(4)] }

// stored returns a copy, because the buffer is reused.
func (r bufferedRow) stored() []byte {
	if r.size() == noRow {
		return nil
	}
	at := rowHead + r.number(4)
	return bytes.Clone(r[at : at+r.size()])
}

// set overwrites the row, if there is enough space for the new one.
func (r bufferedRow) set(stored []byte) bool {
	if len(stored) > r.number(8) {
		return false
	}
	size := len(stored)
	if stored == nil {
		size = noRow
	}
	binary.LittleEndian.PutUint32(r[12:], uint32(size))
	copy(r[rowHead+r.number(4):], stored)
	return true
}
