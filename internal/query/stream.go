package query

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/store"
	"weir/internal/value"
)

// stream gives the rows that one query of a step reaches, in order (order.go). It reads
// them in the order of their bytes and holds back the rows of one second until it has
// them all. A second with more rows than it may hold is read in parts, each of which
// comes wholly before the next: first those without a fraction, then each first digit,
// and so on. Its memory is therefore bounded, however many rows one second has.
type stream struct {
	*step
	q     store.Query
	base  string     // the beginning of the sort keys of all rows
	done  *done      // nil: nothing
	parts []keyRange // the parts left to read, in order
	rows  []value.Item
}

// done says up to where rows were given out before.
type done struct {
	rest value.Value // of the last one's sort key, the part behind the base
	same bool        // other rows of the stream with the same rest were given out too
}

// keyRange is a range of the sort keys of a stream.
type keyRange struct {
	whole bool // all that the query reaches
	equal value.Value
	from  value.Value
	below value.Value

	plain bool   // the order of bytes is the order to give
	all   bool   // nothing of it was given out before
	group string // all rests begin with it: a second, or digits of its fraction too; "" where seconds may differ
	after *store.Cursor

	held []value.Item // read, of a group that may have more rows
}

// The bounds of the rows that a stream holds back before it reads the second in parts.
const (
	maxHeld      = 250
	maxHeldBytes = 1 << 20
)

// newStream gives all rows of a query; a plain one in the order of bytes.
func newStream(s *step, q reach, plain bool) *stream {
	return &stream{step: s, q: q.Query, base: q.base, parts: []keyRange{{whole: true, plain: plain}}}
}

// orderingRest is the part of a sort key that orders the rows.
func (st *stream) orderingRest(sort value.Value) value.Value {
	if sort.Kind() != value.String {
		return sort
	}
	return value.OfString(strings.TrimPrefix(sort.Text(), st.base))
}

// restOf is rest of a row's sort key.
func (st *stream) restOf(row value.Item) value.Value {
	return st.orderingRest(row.Get(st.sort.attr.Name))
}

// compareRests compares rests in the order in which rows are given.
func (st *stream) compareRests(a, b value.Value) int {
	if st.q.Reverse {
		a, b = b, a
	}
	return compareSorts(a, b)
}

// resumeBehind goes on behind a row of the stream itself.
func (st *stream) resumeBehind(c store.Cursor) {
	sort := st.placeOf(c).Sort
	rest := st.orderingRest(sort)
	if whole := &st.parts[0]; whole.plain || rest.Kind() != value.String || endOfSecond(rest.Text()) < 0 {
		whole.after = &c
		return
	}
	st.passRow(rest, true)
	if st.Index != nil { // where more rows may have this key
		st.parts = slices.Insert(st.parts, 0, keyRange{equal: sort, plain: true, all: true, after: &c})
	}
}

// passRow goes on behind a row of another stream; same says that rows of this one with the
// same rest come before it.
func (st *stream) passRow(rest value.Value, same bool) {
	st.done = &done{rest, same}
	switch {
	case rest.IsMissing(): // the key has no sort key, and so all rows have the same
		if same {
			st.parts = nil
		}
		return
	case !st.q.Sort.Equal.IsMissing():
		if st.wasGiven(st.orderingRest(st.q.Sort.Equal)) {
			st.parts = nil
		}
		return
	}
	p := st.queryRange()
	if rest.Kind() == value.String {
		if end := endOfSecond(rest.Text()); end >= 0 && len(st.base)+end <= store.MaxSortBytes {
			st.parts = []keyRange{p.intersect(groupRange(st.base+rest.Text()[:end])).extendTo(p, st.q.Reverse)}
			return
		}
	}
	st.parts = st.narrowPart(p)
}

// queryRange is the range of the query, which has no one key.
func (st *stream) queryRange() keyRange {
	if prefix := st.q.Sort.Prefix; !prefix.IsMissing() {
		return groupRange(prefix.Text())
	}
	return keyRange{from: st.q.Sort.From, below: st.q.Sort.Below}
}

// wasGiven reports whether rows with this rest were given out before.
func (st *stream) wasGiven(rest value.Value) bool {
	if st.done == nil {
		return false
	}
	c := st.compareRests(rest, st.done.rest)
	return c < 0 || c == 0 && st.done.same
}

// groupRange is all keys with a beginning.
func groupRange(prefix string) keyRange {
	return keyRange{from: value.OfString(prefix), below: behindPrefix(prefix)}
}

// intersect is the part with the bounds of another, too.
func (p keyRange) intersect(o keyRange) keyRange {
	if !o.from.IsMissing() && (p.from.IsMissing() || value.Compare(p.from, o.from) < 0) {
		p.from = o.from
	}
	if !o.below.IsMissing() && (p.below.IsMissing() || value.Compare(p.below, o.below) > 0) {
		p.below = o.below
	}
	return p
}

// extendTo is the part and all of another that comes behind it.
func (p keyRange) extendTo(o keyRange, reverse bool) keyRange {
	if reverse {
		p.from = o.from
	} else {
		p.below = o.below
	}
	return p
}

// isEmpty reports whether no key can be in the range.
func (p keyRange) isEmpty() bool {
	return !p.from.IsMissing() && !p.below.IsMissing() && value.Compare(p.from, p.below) >= 0
}

// narrowPart leaves out of a part, where bytes are in the order to give, most of the rows that were
// given before: more is passed over when it is read.
func (st *stream) narrowPart(p keyRange) []keyRange {
	at := st.done.rest
	if at.Kind() == value.String {
		at = value.OfString(fittingText(st.base + at.Text()))
	}
	if st.q.Reverse {
		rest := p.intersect(keyRange{below: at})
		if st.done.same {
			return []keyRange{rest}
		}
		return []keyRange{{equal: at, plain: true}, rest}
	}
	if st.done.same && at.Kind() == value.String && len(at.Text()) < store.MaxSortBytes {
		at = value.OfString(at.Text() + "\x00")
	}
	return []keyRange{p.intersect(keyRange{from: at})}
}

// fittingText is as much of a text as a sort key can have.
func fittingText(text string) string {
	for len(text) > store.MaxSortBytes {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// behindPrefix is above all keys that begin with the prefix, Missing where there is no
// such key. It may be above others too where the prefix is as long as a key can be.
func behindPrefix(prefix string) value.Value {
	for prefix != "" {
		r, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		if r++; r == 0xD800 {
			r = 0xE000
		}
		if r <= utf8.MaxRune && len(prefix)+utf8.RuneLen(r) <= store.MaxSortBytes {
			return value.OfString(prefix + string(r))
		}
	}
	return value.Value{}
}

// isAtEnd reports whether everything was given.
func (st *stream) isAtEnd() bool { return len(st.rows) == 0 && len(st.parts) == 0 }

// readUntilRow reads until there is a row to give, or the end. It does not ask whether the page
// has cost its limit (spent): without a row there is no place to go on from. The number that it
// reads is bounded all the same. Rows that it passes over are of one group at most, and a
// group that is too much is split by one digit of its fraction at a time, nine at most
// (TestASecondOfManyRows).
func (st *stream) readUntilRow(w *walk, limit int) error {
	for first := limit; len(st.rows) == 0 && len(st.parts) > 0; limit = doubleLimit(limit) {
		p := &st.parts[0]
		if p.isEmpty() {
			st.parts = st.parts[1:]
			continue
		}
		q := st.q
		q.Limit, q.After = limit, p.after
		if p.group != "" {
			q.Limit = maxHeld + 1 // all of it, or enough to know that it is too much
		}
		if !p.whole {
			q.Sort = store.Range{Equal: p.equal, From: p.from, Below: p.below}
		}
		page, err := w.readPage(w.ctx, q)
		if err != nil {
			return err
		}
		rows := append(p.held, page.Rows...)
		if page.Next == nil {
			st.parts = st.parts[1:]
			st.takePart(*p, rows)
			continue
		}
		n, group := st.unfinishedFrom(p, rows)
		p.after, p.held = page.Next, rows[n:]
		st.takePart(*p, rows[:n])
		if tooMuch(p.held) {
			st.splitGroup(*p, group)
			limit = first
		}
	}
	return nil
}

// tooMuch reports whether rows are more than one request may hold in memory.
func tooMuch(rows []value.Item) bool {
	size := 0
	for _, row := range rows {
		size += row.Size()
	}
	return len(rows) > maxHeld || size > maxHeldBytes
}

// unfinishedFrom is where the rows begin that may have to wait for others, and the beginning that their
// rests begin with.
func (st *stream) unfinishedFrom(p *keyRange, rows []value.Item) (first int, group string) {
	switch {
	case p.plain || len(rows) == 0:
		return len(rows), ""
	case p.group != "":
		return 0, p.group
	}
	last := st.restOf(rows[len(rows)-1])
	if last.Kind() != value.String {
		return len(rows), ""
	}
	end := endOfSecond(last.Text())
	if end < 0 {
		return len(rows), ""
	}
	group = last.Text()[:end]
	for first = len(rows); first > 0 && strings.HasPrefix(st.restOf(rows[first-1]).Text(), group); first-- {
	}
	return first, group
}

// takePart takes the rows that were read of a part in its place.
func (st *stream) takePart(p keyRange, rows []value.Item) {
	for _, row := range rows {
		sort := row.Get(st.sort.attr.Name)
		if p.all || inRange(st.q.Sort, sort) && !st.wasGiven(st.orderingRest(sort)) {
			st.rows = append(st.rows, row)
		}
	}
	if !p.plain {
		slices.SortStableFunc(st.rows, func(a, b value.Item) int { return st.compareRests(st.restOf(a), st.restOf(b)) })
	}
}

// splitGroup reads the group again, that the first part has come to, in parts of its own.
// Rows that were given before are left out, so no row comes twice, and the order of the range is kept.
func (st *stream) splitGroup(p keyRange, group string) {
	var parts []keyRange
	if prefix := st.base + group; len(prefix) == store.MaxSortBytes {
		parts = []keyRange{{equal: value.OfString(prefix), plain: true}} // there is no longer key
	} else {
		parts = finerParts(st.base, group)
	}
	bounds := keyRange{from: p.from, below: p.below}
	if p.whole {
		bounds = st.queryRange()
	}
	for i := range parts {
		if parts[i].equal.IsMissing() {
			parts[i] = parts[i].intersect(bounds)
		}
	}
	if st.q.Reverse {
		slices.Reverse(parts)
	}
	parts = st.partsLeft(parts, group)
	if p.group == "" {
		g := groupRange(st.base + group)
		left := keyRange{from: g.below, below: bounds.below}
		if st.q.Reverse {
			left = keyRange{from: bounds.from, below: g.from}
		}
		parts = append(parts, left)
	}
	st.parts = append(parts, st.parts[1:]...)
}

// partsLeft are the parts of a group that were not yet given.
func (st *stream) partsLeft(parts []keyRange, group string) []keyRange {
	if st.done == nil || st.done.rest.Kind() != value.String || !strings.HasPrefix(st.done.rest.Text(), group) {
		return parts
	}
	at := value.OfString(st.base + st.done.rest.Text())
	i := slices.IndexFunc(parts, func(p keyRange) bool { return inRange(store.Range{Equal: p.equal, From: p.from, Below: p.below}, at) })
	if i < 0 {
		return parts // rows that were given are passed over
	}
	if !parts[i].plain || !parts[i].equal.IsMissing() {
		return parts[i:]
	}
	narrow := st.narrowPart(parts[i])
	for j := range narrow {
		narrow[j].plain = true
	}
	return slices.Concat(narrow, parts[i+1:])
}

// finerParts are the parts of a group, from the earliest.
func finerParts(base, group string) []keyRange {
	text := func(end string) value.Value { return value.OfString(base + group + end) }
	between := func(from, below string) keyRange { return keyRange{from: text(from), below: text(below), plain: true} }
	last := keyRange{from: text("["), below: behindPrefix(base + group), plain: true} // the sign after Z
	out := []keyRange{between("Z", "[")}
	digits, _ := fractionOf(group)
	deeper := func(p keyRange, end string) keyRange {
		if _, ok := fractionOf(group + end); ok {
			p.plain, p.group = false, group+end
		}
		return p
	}
	if digits == "" {
		return append(out, between("", "."), deeper(between(".", "/"), "."), between("/", "Z"), last)
	}
	out = append(out, between("", "0"))
	for d := '0'; d <= '9'; d++ {
		out = append(out, deeper(between(string(d), string(d+1)), string(d)))
	}
	return append(out, between(":", "Z"), last)
}

// merged are streams as one, in one order; of rows with the same rest, those of an earlier
// stream come first. Or one stream after the other.
type merged struct {
	streams []*stream
	apart   bool
}

// nextRows are the rows that come next, none at the end.
// It returns as many rows as it can without another read, which may be fewer than limit while there
// are more.
func (m *merged) nextRows(w *walk, limit int) (rows []value.Item, err error) {
	for _, st := range m.streams {
		if err := st.readUntilRow(w, limit); err != nil {
			return nil, err
		}
		if m.apart && len(st.rows) > 0 {
			break
		}
	}
	for {
		m.streams = slices.DeleteFunc(m.streams, (*stream).isAtEnd)
		if len(m.streams) == 0 {
			return rows, nil
		}
		first := m.streams[0]
		for _, st := range m.streams {
			switch {
			case m.apart:
			case len(st.rows) == 0:
				return rows, nil // it has to be read
			case st.compareRests(st.restOf(st.rows[0]), first.restOf(first.rows[0])) < 0:
				first = st
			}
		}
		if len(first.rows) == 0 {
			return rows, nil
		}
		if len(m.streams) == 1 || m.apart {
			rows, first.rows = append(rows, first.rows...), nil
			continue
		}
		rows, first.rows = append(rows, first.rows[0]), first.rows[1:]
	}
}

// resumeBehind goes on behind a row of one of the streams.
func (m *merged) resumeBehind(own int, c store.Cursor) {
	rest := m.streams[own].orderingRest(m.streams[own].placeOf(c).Sort)
	for i, st := range m.streams {
		switch {
		case i == own:
			st.resumeBehind(c)
		case !m.apart:
			st.passRow(rest, i < own)
		case i < own:
			st.parts = nil
		}
	}
}
