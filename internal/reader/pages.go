package reader

import "weir/internal/events"

// passBytes is about how many bytes of records a consumer holds that are applied together,
// whatever the number of shards.
const passBytes = 16 << 20

// pages divides the memory of a consumer between the shards that it reads. Where the order
// of changes of all shards matters, it holds a page of each shard at the same time: about as
// much of each, and of each at least one record.
type pages struct {
	ordered       bool
	shards        int // with records, in this pass
	before        int // and in the one before
	bytes, number int // of these records
	recordBytes   int // about how many bytes a record has
}

// beginPass begins a pass, or a part of one.
func (p *pages) beginPass(ordered bool) {
	if p.number > 0 {
		p.recordBytes = max(1, p.bytes/p.number)
	}
	*p = pages{ordered: ordered, before: max(p.shards, p.before/2), recordBytes: max(1, p.recordBytes)}
}

// pageLimit returns how many records of a shard may be read, from least to most.
func (p *pages) pageLimit(least, most int) int {
	switch {
	case !p.ordered:
		return most
	case p.bytes >= passBytes:
		return least
	}
	return max(least, min(most, passBytes/p.recordBytes/max(1, p.before)))
}

// addRecords adds a page's records to a batch; batches end by number, by bytes, or by
// shards.
func (p *pages) addRecords(rs []events.Record) {
	if len(rs) > 0 {
		p.shards++
	}
	p.number += len(rs)
	for i := range rs {
		p.bytes += rs[i].Size()
	}
}

// isFull reports whether the records that were read, of about so many at most, are to be applied before
// more is read.
func (p *pages) isFull(records int) bool { return p.number >= records || p.bytes >= passBytes }
