package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/sorter"
	"weir/internal/store"
)

// Arrangement puts the records of one command in the order in which their rows changed, whatever the order of the files and
// of the records in them. It sorts twice, on disk if need be: by row, where records with sequence numbers have an order that
// no clock can spoil, and records of one moment without them are a chain of images; then by time. Records of one row
// never change places by time, those of different rows within one second may, but for those of one shard. Records of one moment without
// sequence numbers are in the order of Kinesis, or of the files, except where the chain of a row has another.
//
// The row of an export comes a minute after its time, behind every record that may have made it.
type Arrangement struct {
	r      *Replay
	rows   *sorter.Sorter // by row
	sorted *sorter.Sorter // by time
	n      uint64         // of the records that were added to a sorter
	// Unordered is how often a row with a history changed more than once in a moment, without sequence numbers. The keys of these entries
	// have no order.
	Unordered int
	Bare      int // rows of exports whose time is not known

	timed, exports bool // some record has no sequence number; some is of an export, or an export has none
	whole          []*events.Export
	texts          []string
	index          map[string]uint64
	of             []*events.Export
	tables         map[*events.Export]*model.Table
	covered        map[*model.Table][]covered
	timedAlone     map[*model.Table]owntable.Times // of records without sequence numbers that are there in no other form
	name, val      []byte
}

// NewArrangement returns an empty one, which has about so many bytes in memory. newFile is called when that is not enough.
func NewArrangement(r *Replay, memory int, newFile func() (sorter.File, error)) *Arrangement {
	return &Arrangement{
		r: r, rows: sorter.New(memory/2, newFile), sorted: sorter.New(memory/2, newFile),
		index: map[string]uint64{}, tables: map[*events.Export]*model.Table{}, covered: map[*model.Table][]covered{}, timedAlone: map[*model.Table]owntable.Times{},
	}
}

// Close gives up memory and files.
func (a *Arrangement) Close() error { return errors.Join(a.rows.Close(), a.sorted.Close()) }

// Len is about how many bytes were added.
func (a *Arrangement) Len() int64 { return max(a.rows.Len(), a.sorted.Len()) }

// AddExport takes an export, all of whose entries were added. table is as for Replay.Batch. It is an error if nothing tells the table
// of an export without rows.
func (a *Arrangement) AddExport(x *events.Export, table string) error {
	t, name := a.tables[x], cmp.Or(table, x.Table)
	if t == nil {
		t = a.r.Model.Table(name)
	}
	if t == nil && table == "" && len(a.r.Model.Tables) == 1 {
		t = a.r.Model.Tables[0]
	}
	if t == nil && !slices.Contains(a.of, x) {
		return fmt.Errorf("%s: the export has no rows that tell its table: give it as TABLE=%[1]s, with one of %s", x.Name, a.r.tableNames())
	} else if t == nil {
		return nil
	}
	a.tables[x], a.exports, a.whole = t, true, append(a.whole, x)
	c := covered{to: x.To.UnixMicro(), window: !x.Full, full: x.Full}
	if c.window && !x.From.IsZero() {
		c.from = x.From.UnixMicro()
	}
	a.covered[t] = append(a.covered[t], c)
	return nil
}

// The keys of the first sorter end in the class of a record, its position or time, and its number.
const (
	classPosition = iota
	classTime
	classExport
	classBare
	suffixBytes = 1 + len(events.Position{}) + 8
)

// Add takes records. table is as for Replay.Batch.
func (a *Arrangement) Add(entries []events.Entry, table string) error {
	for i := range entries {
		e := &entries[i]
		rec := &e.Record
		time := markFrom(rec).time
		if e.Export != nil && e.Export.Full {
			time = e.Export.To.UnixMicro()
		}
		a.name = a.name[:0]
		placed := false // a record of no row comes first
		if e.Bad == nil {
			if t, key, err := a.r.locateRecord(e, table); err == nil {
				a.name, placed = appendName(a.name, t.Name, key), true
				if e.Export != nil && a.tables[e.Export] == nil {
					a.tables[e.Export] = t
				}
				if !rec.Export && time != 0 {
					if n := len(a.covered[t]); n == 0 || a.covered[t][n-1].file != e.File {
						a.covered[t] = append(a.covered[t], covered{file: e.File, from: time, timed: rec.Position.IsZero()})
					}
					c := &a.covered[t][len(a.covered[t])-1]
					c.from, c.to = min(c.from, time), max(c.to, time)
				}
			}
		}
		class, at := classTime, make([]byte, len(events.Position{}))
		switch {
		case rec.Export && rec.Time.IsZero() && e.Export == nil:
			class, a.exports = classBare, true
			a.Bare++
		case rec.Export:
			class, a.exports = classExport, true
		case !rec.Position.IsZero():
			class = classPosition
		case placed:
			a.timed = true
		}
		if copy(at, rec.Position[:]); class != classPosition {
			binary.BigEndian.PutUint64(at, uint64(time))
		}
		k := binary.AppendUvarint(nil, uint64(len(a.name)))
		k = append(append(append(k, a.name...), byte(class)), at...)
		a.n++
		k = binary.BigEndian.AppendUint64(k, a.n)
		a.val = a.appendEntry(binary.BigEndian.AppendUint64(a.val[:0], uint64(time)), e, table)
		if err := a.rows.Add(k, a.val); err != nil {
			return err
		}
	}
	return nil
}

// arranging is the known state of the row whose records are arranged.
type arranging struct {
	*Arrangement
	name   []byte
	table  *model.Table
	ref    store.Ref
	input  string           // the table of the input
	has    []*events.Export // that have the row
	last   uint64           // the time of its last record with a sequence number
	images []imaged
	twins  map[twin]int
	now    digest // of the last record without sequence number
	told   bool   // now is known
	tie    []tied
	next   *digest // with which the record after tie begins, if there is one
}

// imaged is an image that the row had at a time.
type imaged struct {
	time  int64
	image digest
}

// twin is the part that two records of one change in two forms have in common.
type twin struct {
	second   int64
	old, new digest
}

// tied is a record of a moment.
type tied struct {
	val      []byte
	old, new digest
	id       uint64
	time     int64
	arrival  string // its sequence number in Kinesis, "" for none
	file     string
	order    []byte // among the records of the moment
	named    bool   // it has an eventID
	kept     bool   // a history is made of it
}

// orderOf is the order of a record among those of one moment: that of Kinesis, then that of the files, in which it has the number n.
func orderOf(arrival string, n uint64) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(arrival))), arrival...)
	return binary.BigEndian.AppendUint64(b, n)
}

// mostKept bounds the records that are kept of one row while they are arranged.
const mostKept = 100_000

// Arrange sorts the records that were added. Call it once, before Batches.
func (a *Arrangement) Arrange(ctx context.Context) error {
	in, err := a.rows.Sorted()
	if err != nil {
		return err
	}
	row := arranging{Arrangement: a}
	for {
		key, val, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = row.addRecord(ctx, key, val)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(row.endRow(ctx), a.rows.Close())
}

// addRecord takes the next record in the order of rows.
func (x *arranging) addRecord(ctx context.Context, key, val []byte) error {
	name, suffix := key[:len(key)-suffixBytes], key[len(key)-suffixBytes:]
	if !bytes.Equal(name, x.name) || x.name == nil {
		if err := x.endRow(ctx); err != nil {
			return err
		}
		*x = arranging{Arrangement: x.Arrangement, name: bytes.Clone(name), twins: map[twin]int{}}
	}
	time := binary.BigEndian.Uint64(val)
	number := binary.BigEndian.Uint64(suffix[suffixBytes-8:])
	order := orderOf("", number)
	n, w := binary.Uvarint(name)
	if n == 0 || w <= 0 { // it is of no row
		return x.emitRecord(0, events.Position{}, order, 0, val)
	}
	class := suffix[0]
	if class == classPosition {
		var p events.Position
		copy(p[:], suffix[1:])
		time -= time % 1e6
		x.last = max(x.last, time)
		if x.timed || x.exports {
			t, err := x.tiedOf(val, number)
			if err != nil {
				return err
			}
			x.noteImages(int64(x.last), t.old, t.new)
			if x.timed && len(x.twins) < mostKept {
				x.twins[twin{int64(time) / 1e6, t.old, t.new}]++
			}
		}
		return x.emitRecord(x.last, p, order, 0, val)
	}
	t, err := x.tiedOf(val, number)
	if err != nil {
		return err
	}
	if class == classTime {
		if len(x.tie) > 0 && x.tie[0].time != int64(time) {
			x.next = &t.old
			if err := x.orderMoment(ctx); err != nil {
				return err
			}
		}
		x.tie = append(x.tie, t)
		return nil
	}
	if err := x.orderMoment(ctx); err != nil {
		return err
	}
	fits := slices.ContainsFunc(x.images, func(i imaged) bool {
		return i.image == t.new && (class == classBare || max(i.time-int64(time), int64(time)-i.time) <= minute)
	})
	switch {
	case class == classExport:
		x.noteImages(t.time, t.new, t.new)
		return x.emitRecord(time+minute, events.Position{}, order, byteIf(fits, noteFits), val)
	case fits || len(x.images) == 0:
		return x.emitRecord(math.MaxInt64, events.Position{}, order, byteIf(len(x.images) == 0, noteFits), val)
	}
	return x.emitRecord(0, events.Position{}, order, 0, val)
}

// endRow is after the last record of a row. It adds that full exports do not have the row.
func (x *arranging) endRow(ctx context.Context) error {
	if err := x.orderMoment(ctx); err != nil {
		return err
	}
	for _, full := range x.whole {
		if !full.Full || x.table == nil || x.tables[full] != x.table || slices.Contains(x.has, full) {
			continue
		}
		e, at := lackingEntry(x.table, x.ref.Key, full), uint64(full.To.UnixMicro())
		x.n++
		if err := x.emitRecord(at+minute, events.Position{}, orderOf("", x.n), noteLacking, x.appendEntry(make([]byte, 8), &e, x.input)); err != nil {
			return err
		}
	}
	return nil
}

// noteImages notes images of the row, if some record is of an export.
func (x *arranging) noteImages(time int64, old, new digest) {
	if x.exports && len(x.images) < mostKept {
		x.images = append(x.images, imaged{time, old}, imaged{time, new})
	}
}

// An arrangement's notes of a record for the replay.
const (
	noteFits    = 1 + iota // of an export: its row is one that the recording has; of a bare row: its row has no other record
	noteTwin               // another form of a record that exists
	noteChain              // it follows the record before it, of the same moment
	noteLacking            // no record: a full export does not have the row
	noteCircle             // records of its moment lead back to where they begin, and nothing tells where that is
	noteCopies             // of its moment nothing tells which records are copies
)

// byteIf is b, or 0.
func byteIf(is bool, b byte) byte {
	if is {
		return b
	}
	return 0
}

// emitRecord adds a record in the order of time, and within a moment in that of positions and then order.
func (x *arranging) emitRecord(time uint64, p events.Position, order []byte, note byte, val []byte) error {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 40), time)
	x.val = append(append(x.val[:0], note), val[8:]...)
	return x.sorted.Add(append(append(k, p[:]...), order...), x.val)
}

// tiedOf decodes the part of a record about its row.
func (x *arranging) tiedOf(val []byte, number uint64) (tied, error) {
	val = bytes.Clone(val)
	e, table, err := x.decodeEntry(val[8:])
	if err != nil {
		return tied{}, err
	}
	if x.table == nil {
		t, key, err := x.r.locateRecord(&e, table)
		if err != nil {
			return tied{}, err
		}
		x.table, x.ref, x.input = t, store.Ref{Table: t.Name, Key: key}, table
	}
	if e.Export != nil && e.Export.Full {
		x.has = append(x.has, e.Export)
	}
	was, is := stripDerived(x.table, e.Record.Old), stripDerived(x.table, e.Record.New)
	old, new := digestItem(was.row), digestItem(is.row)
	return tied{
		val: val, old: old, new: new, id: idOf(&e.Record, old, new), time: int64(binary.BigEndian.Uint64(val)),
		arrival: e.Record.Arrival, file: e.File, order: orderOf(e.Record.Arrival, number), named: e.Record.ID != "",
		kept: keepsHistory(was.entity) || keepsHistory(is.entity),
	}, nil
}

// orderMoment puts the records of a moment in their order: that of a chain of images. Where several are possible it is that in which
// the records came into Kinesis, or that of the files.
func (x *arranging) orderMoment(ctx context.Context) error {
	ties := x.tie
	slices.SortFunc(ties, inOrder)
	defer func() { x.tie, x.next = nil, nil }()
	counts := map[uint64]int{}
	var chain, copies []tied
	for _, t := range ties {
		is := twin{t.time / 1e6, t.old, t.new}
		switch counts[t.id]++; {
		case counts[t.id] != 1:
			copies = append(copies, t)
		case x.twins[is] > 0:
			x.twins[is]--
			copies, counts[t.id] = append(copies, t), math.MinInt
		default:
			chain = append(chain, t)
		}
	}
	chain, copies, unsure, err := x.withoutCopies(chain, copies, counts)
	if err != nil {
		return err
	}
	for _, t := range copies {
		if err := x.emitRecord(uint64(t.time), events.Position{}, t.order, noteTwin, t.val); err != nil {
			return err
		}
	}
	given := chain
	chain, first, again, err := x.orderTied(ctx, chain)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(chain, func(t tied) bool { return t.kept && len(chain) > 1 }) {
		x.Unordered++
	}
	for i, t := range chain {
		note := byte(noteChain)
		switch x.noteImages(t.time, t.old, t.new); {
		case i == 0:
			note = max(first, unsure)
		case i == again:
			note = 0
		}
		x.now, x.told = t.new, true
		x.timedAlone[x.table] = x.timedAlone[x.table].With(owntable.Times{From: t.time, To: t.time})
		// Among the records of other rows, those of this one take the same places as before.
		if err := x.emitRecord(uint64(t.time), events.Position{}, given[i].order, note, t.val); err != nil {
			return err
		}
	}
	return nil
}

// withoutCopies adds to the changes of a moment those of their copies that are changes, too: without eventID, where only with them the
// moment leads from the row before it to the next record. unsure is the note of the first where both do. A part of the copies is none: if
// everything is there twice, as in a file that is doubled, half of it is copies.
func (x *arranging) withoutCopies(chain, copies []tied, counts map[uint64]int) (all, rest []tied, unsure byte, err error) {
	times := 0 // the greatest common divisor of the counts
	for _, t := range chain {
		for n := counts[t.id]; n != 0; times, n = n, times%n {
		}
	}
	all = slices.Clone(chain)
	for _, t := range copies {
		if counts[t.id] -= times; t.named || counts[t.id] < times {
			rest = append(rest, t)
			continue
		}
		e, table, err := x.decodeEntry(bytes.Clone(t.val[8:]))
		if err != nil {
			return nil, nil, 0, err
		}
		e.Record.ID = fmt.Sprintf("%x, %d more", t.id, counts[t.id]/times)
		t.id, t.val = idOf(&e.Record, t.old, t.new), x.appendEntry(bytes.Clone(t.val[:8]), &e, table)
		all = append(all, t)
	}
	if len(all) == len(chain) {
		return chain, copies, 0, nil
	}
	slices.SortFunc(all, inOrder)
	with, without := x.isChain(all), x.isChain(chain)
	unsure = byteIf(with && without, noteCopies)
	if with && (!without || isChain(all, x.told, x.now)) {
		return all, rest, unsure, nil
	}
	return chain, copies, unsure, nil
}

// isChain reports whether records of a moment are a chain from the row before it to the next record.
func (x *arranging) isChain(all []tied) bool {
	chain := inChain(all, x.told, x.now)
	return isChain(chain, x.told, x.now) && (x.next == nil || chain[len(chain)-1].new == *x.next)
}

func inOrder(a, b tied) int { return bytes.Compare(a.order, b.order) }

// orderTied puts records of a moment in the order of a chain. first is the note of the first of them; the one with the number again follows
// records of an earlier command, and not the one before it.
func (x *arranging) orderTied(ctx context.Context, all []tied) (chain []tied, first byte, again int, err error) {
	if len(all) < 2 {
		return all, 0, 0, nil
	}
	is := isChain(all, x.told, x.now)
	if is && (x.told || all[0].old != all[len(all)-1].new) {
		return all, 0, 0, nil
	}
	if chain = all; !is {
		chain = inChain(all, x.told, x.now)
	}
	circle := isCircle(chain)
	if x.told {
		return chain, byteIf(circle, noteCircle), 0, nil
	}
	k, now, err := x.r.knownNow(ctx, x.ref)
	if err != nil {
		return nil, 0, 0, err
	}
	isSeen := func(t tied) bool { return slices.Contains(k.ids, t.id) }
	rest := slices.DeleteFunc(slices.Clone(chain), isSeen)
	seen := slices.DeleteFunc(slices.Clone(chain), func(t tied) bool { return !isSeen(t) })
	if slices.ContainsFunc(chain[:len(seen)], func(t tied) bool { return !isSeen(t) }) {
		again = len(seen)
	}
	begins := k.first.time
	if k.flags&ofUnknown != 0 { // it may be the row of an export, known to a minute
		begins -= minute
	}
	start, late := now.shortDigest(), circle && k.ever && k.flags&byExport == 0 && all[0].time < begins
	if late { // where a circle ends, it begins
		start = k.want
		if x.next != nil {
			start = x.next.shortDigest()
		}
	}
	i := slices.IndexFunc(rest, func(t tied) bool { return t.old.shortDigest() == start })
	if i >= 0 && (late || k.ever && k.flags&ofExport == 0 && k.seen.time <= all[0].time) {
		chain = inChain(rest, true, rest[i].old)
		asGiven := is && slices.EqualFunc(chain, rest, func(a, b tied) bool { return a.id == b.id })
		return append(seen, chain...), byteIf(!late && !asGiven && isCircle(chain), noteCircle), again, nil
	}
	// A circle in the order of Kinesis or of one file is taken as it is, unless it may be of a row that was made and removed.
	unsure := chain[0].old != (digest{}) && slices.ContainsFunc(chain, func(t tied) bool {
		return t.new == digest{} || chain[0].arrival == "" && (t.arrival != "" || t.file != chain[0].file)
	})
	first = byteIf(circle && (!is || unsure), noteCircle)
	if again > 0 {
		chain = append(seen, rest...)
	}
	return chain, first, again, nil
}

// isChain reports whether records follow each other as they are.
func isChain(all []tied, known bool, start digest) bool {
	for i, t := range all {
		if i > 0 && t.old != all[i-1].new || i == 0 && known && t.old != start {
			return false
		}
	}
	return true
}

// isCircle reports whether records follow each other as they are, and lead back to where they begin.
func isCircle(all []tied) bool {
	return isChain(all, false, digest{}) && all[0].old == all[len(all)-1].new
}

// inChain returns records as chains of images that use each once, as few as possible: the first begins with start if that
// is known, else with the image that more records leave than lead to, or with no row.
func inChain(all []tied, known bool, start digest) (out []tied) {
	used := make([]bool, len(all))
	balance := map[digest]int{}
	for _, t := range all {
		balance[t.old]++
		balance[t.new]--
	}
	for len(out) < len(all) {
		if !known || !slices.ContainsFunc(all, func(t tied) bool { return t.old == start }) || len(out) > 0 {
			start = begin(all, used, balance)
		}
		// Hierholzer's algorithm: each image's records in their order, the path from its end.
		stack, path := []int{-1}, []int{}
		for len(stack) > 0 {
			at := start
			if last := stack[len(stack)-1]; last >= 0 {
				at = all[last].new
			}
			next := -1
			for i := range all {
				if !used[i] && all[i].old == at {
					next = i
					break
				}
			}
			if next < 0 {
				path = append(path, stack[len(stack)-1])
				stack = stack[:len(stack)-1]
				continue
			}
			used[next] = true
			stack = append(stack, next)
		}
		slices.Reverse(path)
		for _, i := range path {
			if i >= 0 {
				out = append(out, all[i])
				balance[all[i].old]--
				balance[all[i].new]++
			}
		}
	}
	return out
}

// begin is the image with which a chain begins.
func begin(all []tied, used []bool, balance map[digest]int) digest {
	first := -1
	for i, t := range all {
		if used[i] {
			continue
		}
		if balance[t.old] > 0 {
			return t.old
		}
		if first < 0 || t.old == (digest{}) && all[first].old != (digest{}) {
			first = i
		}
	}
	return all[first].old
}

// knownNow reads the known state of a row, and its image.
func (r *Replay) knownNow(ctx context.Context, ref store.Ref) (known, digest, error) {
	w := &row{ref: ref, table: r.Model.Table(ref.Table)}
	if err := r.loadRows(ctx, []*row{w}); err != nil {
		return known{}, digest{}, err
	}
	return w.known, digestItem(stripDerived(w.table, w.now).row), nil
}

// Arranged is records that name no table, or are all of one.
type Arranged struct {
	Entries []events.Entry
	Table   string
}

// The limits of a batch.
const (
	batchEntries = 256
	batchBytes   = 1 << 20
)

// Batches yields the records in their order, in batches that the caller owns. It may be called again.
func (a *Arrangement) Batches() iter.Seq2[Arranged, error] {
	return func(yield func(Arranged, error) bool) {
		in, err := a.sorted.Sorted()
		var b Arranged
		size := 0
		for err == nil {
			var val []byte
			if _, val, err = in.Next(); err != nil {
				break
			}
			var e events.Entry
			var table string
			if e, table, err = a.decodeEntry(bytes.Clone(val[1:])); err != nil {
				break
			}
			e.Note = val[0]
			if len(b.Entries) > 0 && (table != b.Table || len(b.Entries) == batchEntries || size > batchBytes) {
				if !yield(b, nil) {
					return
				}
				b, size = Arranged{}, 0
			}
			b.Table, b.Entries = table, append(b.Entries, e)
			size += len(val)
		}
		if len(b.Entries) > 0 && !yield(b, nil) {
			return
		}
		if !errors.Is(err, io.EOF) {
			yield(Arranged{}, fmt.Errorf("arranging records: %w", err))
		}
	}
}
