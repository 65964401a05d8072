package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/sorter"
	"weir/internal/store"
	"weir/internal/value"
)

// joined is a row with the amounts that are added to its ledger. One of the two may be missing.
type joined struct {
	*chain
	sum *sum
}

// join reads the outcome of rows beside the amounts of targets, both in the order of names.
type join struct {
	x          *Reduction
	rows, sums *sorter.Reader
	row, add   pair
}

// pair is a name and its next value; the name is nil at the end.
type pair struct{ name, val []byte }

// readPair goes to the next pair. Its former bytes are not valid any more.
func (p *pair) readPair(in *sorter.Reader) (err error) {
	p.name, p.val, err = in.Next()
	if errors.Is(err, io.EOF) {
		p.name, err = nil, nil
	}
	return err
}

// beginJoin begins to read the files that reduce has sorted.
func (x *Reduction) beginJoin() (*join, error) {
	j := &join{x: x}
	var err error
	if j.rows, err = x.rows.Sorted(); err == nil {
		err = j.row.readPair(j.rows)
	}
	if err == nil {
		j.sums, err = x.sums.Sorted()
	}
	if err == nil {
		err = j.add.readPair(j.sums)
	}
	return j, err
}

// nextRows returns the next rows, at most so many, io.EOF after the last.
// A row and the sum for it come together, in the order of names. Nothing is kept of earlier results.
func (j *join) nextRows(most int) (out []joined, err error) {
	for len(out) < most && (j.row.name != nil || j.add.name != nil) {
		var is joined
		name := bytes.Clone(j.row.name)
		if j.row.name == nil || j.add.name != nil && bytes.Compare(j.add.name, name) < 0 {
			name = bytes.Clone(j.add.name)
		}
		ref, err := j.x.load.Named(name)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(j.row.name, name) {
			if is.chain, err = j.x.decodeChain(ref, j.row.val); err == nil {
				err = j.row.readPair(j.rows)
			}
			if err != nil {
				return nil, err
			}
		}
		for j.add.name != nil && bytes.Equal(j.add.name, name) {
			if is.sum == nil {
				is.sum = &sum{target: projections.Target{Row: ref}, most: fewAdds}
			}
			if err = is.sum.addAmount(j.x, j.add.val); err == nil {
				err = j.add.readPair(j.sums)
			}
			if err != nil {
				return nil, err
			}
		}
		out = append(out, is)
	}
	if len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// sum is the sum of a target's changes.
type sum struct {
	target projections.Target
	adds   []projections.Add
	most   int // adds that are kept before they are summed
}

const fewAdds = 16

// addAmount takes in an amount as fold wrote it. When there are more amounts than the limit they are
// summed, so that a target takes memory by its fields and not by its changes.
func (s *sum) addAmount(x *Reduction, val []byte) error {
	d := reading{b: bytes.Clone(val)}
	s.target.Entity = x.entityOf(d.uvarint())
	amount, _, err := value.DecodeItem(d.b)
	if err != nil {
		return err
	}
	s.adds = append(s.adds, projections.Add{Field: amount[0].Name, Amount: amount[0].Value})
	if len(s.adds) > s.most {
		s.sumUp()
		s.most = max(fewAdds, 2*len(s.adds))
	}
	return nil
}

// sumUp sums up the amounts.
func (s *sum) sumUp() {
	total := projections.SumAdds(s.adds)
	s.adds = s.adds[:0]
	for _, a := range total {
		s.adds = append(s.adds, projections.Add{Field: a.Name, Amount: a.Value})
	}
}

// splitSteps makes the amounts into steps that one write of a ledger takes, with their values.
func (s *sum) splitSteps() {
	most := owntable.AddsAtOnce
	if slices.ContainsFunc(s.adds, func(a projections.Add) bool { return owntable.IsHeld(a.Field) }) {
		most = owntable.ValuesAtOnce
	}
	for adds := s.adds; len(adds) > 0; {
		n := min(len(adds), most)
		s.target.Steps = append(s.target.Steps, projections.Step{Adds: adds[:n]})
		adds = adds[n:]
	}
}

// errTorn means that a scratch file does not hold the bytes that were written there.
var errTorn = errors.New("what was sorted cannot be read again")

// record is a record as it is sorted.
type record struct {
	file         int
	line, offset int64
	link
	entity uint64
	stored []byte
}

// append appends a record. Its stored image comes last.
func (r *record) append(b []byte) []byte {
	b = append(b, byte(r.kind), r.note)
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint(b, uint64(r.file)), r.line), r.offset)
	b = binary.AppendUvarint(binary.AppendUvarint(r.mark.append(b), r.entity), r.id)
	return append(append(append(b, r.new[:]...), r.old[:]...), r.stored...)
}

// shortenImage leaves the image out of a record before one of the same row that is certainly newer: if
// the row takes the first, it also takes the second, or has the same image.
func shortenImage(val, next []byte) int {
	r, err := decodeRecord(val)
	if err != nil {
		return len(val)
	}
	n, err := decodeRecord(next)
	if err != nil || r.mark.position.IsZero() || n.mark.position.Compare(r.mark.position) <= 0 {
		return len(val)
	}
	return len(val) - len(r.stored)
}

// decodeRecord reads a record, which shares b's memory.
func decodeRecord(b []byte) (r record, err error) {
	d := reading{b: b}
	r.kind, r.note = linkKind(d.byte()), d.byte()
	r.file, r.line, r.offset = int(d.uvarint()), d.varint(), d.varint()
	r.mark, r.entity, r.id = d.mark(), d.uvarint(), d.uvarint()
	copy(r.new[:], d.bytes(len(r.new)))
	copy(r.old[:], d.bytes(len(r.old)))
	r.stored = d.b
	if d.bad {
		err = errTorn
	}
	return r, err
}

// existed is the flag of a row that the load has.
const existed = 1

// appendChain appends the outcome of a row. Its image comes last.
func (x *Reduction) appendChain(b []byte, c *chain) []byte {
	var flags byte
	if c.exist {
		flags |= existed
	}
	b = binary.AppendUvarint(binary.AppendUvarint(append(b, flags), x.entities[c.was]), x.entities[c.entity])
	b = binary.AppendUvarint(appendText(appendText(b, string(c.encodeMark())), c.gone), uint64(len(c.gaps)))
	for _, g := range c.gaps {
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint(appendText(b, g.reason), uint64(g.file)), g.line), g.offset)
		b = g.mark.append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(c.shows)))
	for _, a := range c.shows {
		b = value.AppendItem(b, value.Item{a})
	}
	return append(b, c.image...)
}

// decodeChain reads the outcome of a row, into memory of its own.
func (x *Reduction) decodeChain(ref store.Ref, b []byte) (*chain, error) {
	d := reading{b: bytes.Clone(b)}
	c := &chain{row: row{ref: ref, table: x.r.Model.Table(ref.Table)}, writes: true}
	c.exist = d.byte()&existed != 0
	c.was, c.entity = x.entityOf(d.uvarint()), x.entityOf(d.uvarint())
	var ok bool
	if c.known, ok = decodeKnown(d.text()); !ok {
		return nil, errTorn
	}
	c.gone = d.text()
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		c.gaps = append(c.gaps, gapAt{d.text(), int(d.uvarint()), d.varint(), d.varint(), d.mark()})
	}
	for range d.uvarint() {
		attr, rest, err := value.DecodeItem(d.b)
		if err != nil {
			return nil, err
		}
		c.shows, d.b = append(c.shows, attr...), rest
	}
	c.image = d.b
	if d.bad {
		return nil, errTorn
	}
	return c, nil
}

// reading reads appended bytes. bad says that they were not all there; later reads give 0.
type reading struct {
	b   []byte
	bad bool
}

// bytes takes the next n bytes, and zeros if they are not there, at most as many as a mark has: a value that is
// read after that is not used, because bad is set.
func (d *reading) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.b, d.bad = nil, true
		return make([]byte, max(0, min(n, markBytes)))
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *reading) byte() byte { return d.bytes(1)[0] }

func (d *reading) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.bytes(max(n, 0))
	d.bad = d.bad || n <= 0
	return v
}

func (d *reading) varint() int64 {
	v, n := binary.Varint(d.b)
	d.bytes(max(n, 0))
	d.bad = d.bad || n <= 0
	return v
}

// markBytes is the length of a mark.
const markBytes = len(events.Position{}) + 8

func (d *reading) mark() (m mark) {
	b := d.bytes(markBytes)
	copy(m.position[:], b)
	m.time = int64(binary.BigEndian.Uint64(b[len(m.position):]))
	return m
}
