package embedded

// rowCache keeps rows that were written or read for a write, so that the next
// write of the same row need not look for it. Each stripe of the row locks has its
// own, used only under that lock: what it holds is what the store holds.
type rowCache struct {
	rows  map[string]*cachedRow
	bytes int
}

type cachedRow struct{ stored []byte }

// rowOverhead is about what a cached row costs apart from its bytes.
const rowOverhead = 100

// get returns a row's stored form, which stays as it is until put or drop.
func (c *rowCache) get(key []byte) ([]byte, bool) {
	if r := c.rows[string(key)]; r != nil {
		return r.stored, true
	}
	return nil, false
}

// put keeps a copy of the row as it is now. Rows that would fill a good part of
// the room are left out; others go, whichever, to make room.
func (c *rowCache) put(key, stored []byte, room int) {
	if stored == nil || (len(key)+len(stored))*4 > room {
		c.drop(key)
		return
	}
	r := c.rows[string(key)]
	switch {
	case r == nil:
		if c.rows == nil {
			c.rows = map[string]*cachedRow{}
		}
		r = &cachedRow{}
		c.rows[string(key)] = r
		c.bytes += len(key) + rowOverhead
	case cap(r.stored) >= len(stored) && cap(r.stored) < 2*len(stored):
		r.stored = append(r.stored[:0], stored...)
		return
	}
	c.bytes += len(stored) - cap(r.stored)
	r.stored = append(make([]byte, 0, len(stored)), stored...)
	for k, other := range c.rows {
		if c.bytes <= room {
			return
		}
		if other != r {
			c.remove(k, other)
		}
	}
}

func (c *rowCache) drop(key []byte) {
	if r := c.rows[string(key)]; r != nil {
		c.remove(string(key), r)
	}
}

func (c *rowCache) remove(key string, r *cachedRow) {
	c.bytes -= len(key) + rowOverhead + cap(r.stored)
	delete(c.rows, key)
}
