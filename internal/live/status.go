package live

import (
	"slices"
	"strings"
	"time"
)

// Note is something that a reader met and that people may want to be told of: a Gap,
// Old records, or a kind of failure that is tried again.
type Note string

// The notes.
const (
	Gap     Note = "gap"   // records were gone before they were read
	Old     Note = "old"   // a page was read that the stream was close to forgetting
	Lists   Note = "list"  // shards could not be listed or taken
	Leases  Note = "lease" // a lease could not be kept
	Reads   Note = "read"  // a shard could not be read or spooled
	Applies Note = "apply" // what was read could not be applied
)

// Status is how a shard stands that this process holds.
type Status struct {
	Table, Shard string
	ReadAge      time.Duration // of the last record read, 0 when the stream had no more
	Unapplied    time.Duration // age of the oldest record that some group has not applied, 0 for none
	Bytes        int64         // of the spool
}

// Status is that of each shard that this process holds.
func (f *Following) Status() (out []Status) {
	for _, h := range f.reader.holdings() {
		out = append(out, h.status())
	}
	slices.SortFunc(out, func(a, b Status) int {
		return strings.Compare(a.Table+"|"+a.Shard, b.Table+"|"+b.Shard)
	})
	return out
}

func (h *holding) status() Status {
	s := Status{Table: h.table, Shard: h.shard, Bytes: h.spool.bytes()}
	if at := h.behind.Load(); at != nil && !at.IsZero() {
		s.ReadAge = max(0, time.Since(*at))
	}
	if t := h.spool.oldest(h.table); !t.IsZero() {
		s.Unapplied = max(0, time.Since(t))
	}
	return s
}

func (r *Reader) note(n Note) {
	if r.opts.Noted != nil {
		r.opts.Noted(n)
	}
}

// bytes is how large the segments are.
func (s *spool) bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segments {
		n += seg.size
	}
	return n
}

// oldest is the time of the first record that is not given up, zero where there is
// none.
func (s *spool) oldest(table string) time.Time {
	s.mu.Lock()
	upTo := s.applied
	s.mu.Unlock()
	page, err := s.read(table, upTo, 1)
	if err != nil || len(page.Records) == 0 {
		return time.Time{}
	}
	return page.Records[0].Time
}
