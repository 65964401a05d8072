package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/sorter"
	"weir/internal/store"
	"weir/internal/value"
)

// Reduction decides records as Batch does, but row by row: it sorts the records of a window by
// their rows, on disk if need be, reduces each row's changes to the row's first and last state, and sorts
// their amounts by target. So each row is read and written once for the window, and each
// target's ledger once, whatever the window's size; nothing is written before Settle.
//
// That is enough where the contribution of a row is decided by the application's attributes in
// it: f(new) − f(old) of all changes of a row, summed, is f(last) − f(first). So the caller
// must not reduce for a model in which a derivation, or the test of an entity, reads a derived
// value, or needs more of a change than its sums. It belongs to one goroutine, but for Prepare.
type Reduction struct {
	r    *Replay
	load store.Load
	most int // bytes of memory of the records that are sorted first
	// Odd, if set, is asked about each row whether its changes need to be applied one by one.
	Odd func(store.Ref) bool
	// Telling is called with true before letters about gaps are written, and with false after.
	Telling func(bool)

	entities map[*model.Entity]uint64

	records *sorter.Sorter // by row
	rows    *sorter.Sorter // their outcome
	sums    *sorter.Sorter // the amounts that their changes add, by target
	tables  map[string]bool
	files   []string // that records are in
	buf     []byte

	done    []*chain        // whose effects are not sorted yet
	folding parallel.Beside // adds to sums
}

// chain is the changes of one row.
type chain struct {
	row
	entity *model.Entity
	there  bool         // it is a row
	image  []byte       // without derived attributes, in stored form
	lost   bool         // image is an older one, because a record that follows has the same or a newer one
	shows  []value.Attr // the values that it shows, or would go on to show
	gone   string       // the mark of its last removal
	moved  bool         // a migration has made or moved the row
	writes bool         // it was written or removed, or more is known of it
	shown  bool         // shows is of entity
	gaps   []gapAt

	exist bool          // whether the load has it
	was   *model.Entity // the load's row
	// The load's row, without derived attributes.
	first       []byte
	firstEntity *model.Entity
}

// gapAt is a gap of a row, and the record behind it.
type gapAt struct {
	reason       string
	file         int
	line, offset int64
	mark         mark
}

// Shares of the memory. Records that are sorted later are smaller.
const rowsShare = 4

// NewReduction returns a Reduction for a replay into a load. Its sorters take about most bytes
// of memory, and half as much again; the rest is in files of the load.
func NewReduction(r *Replay, load store.Load, most int) *Reduction {
	x := &Reduction{
		r: r, load: load, most: most,
		entities: map[*model.Entity]uint64{}, Telling: func(bool) {},
	}
	for i, e := range r.Model.Entities {
		x.entities[e] = uint64(i) + 1
	}
	x.clearState()
	return x
}

// clearState has nothing to settle.
func (x *Reduction) clearState() {
	file := func() (sorter.File, error) { return x.load.Scratch() }
	x.records, x.rows = sorter.New(x.most, file), sorter.New(x.most/rowsShare, file)
	x.sums = sorter.New(x.most/rowsShare, file)
	x.records.Shorten = shortenImage
	x.tables, x.files, x.done = map[string]bool{}, nil, nil
}

// Close forgets the rows that were not settled. The Reduction may be used again.
func (x *Reduction) Close() error {
	err := errors.Join(x.records.Close(), x.rows.Close(), x.sums.Close())
	x.clearState()
	return err
}

// Len is about how many bytes are not settled. Most of them are on disk.
func (x *Reduction) Len() int64 { return x.records.Len() }

// Prepared is a batch of records of which everything is known that does not depend on rows.
type Prepared struct {
	given   []events.Entry
	entries []prepared
	table   string
	buf     []byte
	changes []projections.Change // of rows that count for something: their entities
	// Odd says that some record is not for a Reduction.
	Odd bool
}

// Len is the number of records.
func (p *Prepared) Len() int { return len(p.given) }

// Entries returns the batch as it was given.
func (p *Prepared) Entries() (entries []events.Entry, table string) { return p.given, p.table }

// prepared is one record of a batch, with its new image in the batch's buffer. Without a name it is
// for no row.
type prepared struct {
	name   span
	link   link
	stored span
	entity *model.Entity
}

// span is a part of a batch's buffer.
type span struct{ from, to int }

func (s span) empty() bool { return s.from == s.to }

func (p *Prepared) bytesOf(s span) []byte { return p.buf[s.from:s.to] }

// mostStored is how large an image may be. The store's own limit is on the whole row, with the attributes that
// it shows.
const mostStored = store.MaxItemBytes / 4

// Prepare prepares a batch. It reads and changes nothing but the batch, so another goroutine may
// call it. It notes of entries that have no table or key of the model that they are bad.
func (x *Reduction) Prepare(entries []events.Entry, table string) *Prepared {
	p := &Prepared{given: entries, table: table, entries: make([]prepared, len(entries))}
	for i := range entries {
		if p.Odd = !x.prepareRecord(p, &p.entries[i], &entries[i]); p.Odd {
			return p
		}
	}
	if len(p.changes) > 0 { // a row that a derivation cannot use needs a dead letter, if it is applied
		asked, _ := runner.Fold(x.r.Runner.Kinds, x.r.Model, p.changes)
		p.Odd = len(asked.Faults) > 0
	}
	return p
}

// prepareRecord reports whether a record is one for a Reduction. It is not if Odd says so, or if its row
// may be too large for the store: such a record needs the steps of Batch, with its
// dead letters. The bytes that it appends to the batch's buffer stay there in any case.
func (x *Reduction) prepareRecord(p *Prepared, e *prepared, entry *events.Entry) (ok bool) {
	if entry.Bad != nil {
		return true
	}
	t, key, err := x.r.locateRecord(entry, p.table)
	if err != nil {
		entry.Bad = &events.Bad{Err: err}
		return true
	}
	ref := store.Ref{Table: t.Name, Key: key}
	if x.Odd != nil && x.Odd(ref) {
		return false
	}
	old, image := stripDerived(t, entry.Record.Old), stripDerived(t, entry.Record.New)
	if image.ours || old.ours && image.row == nil {
		return true
	}
	from := len(p.buf)
	if p.buf, err = x.load.AppendName(p.buf, ref); err != nil {
		return false
	}
	e.name = span{from, len(p.buf)}
	var was, is digest
	if image.row != nil {
		from = len(p.buf)
		p.buf = value.AppendItem(p.buf, image.row)
		e.stored, e.entity = span{from, len(p.buf)}, image.entity
		is = digestOf(p.bytesOf(e.stored))
		stored := len(p.buf) - from
		if stored > mostStored || x.load.Fits(ref, image.row, stored) != nil {
			return false
		}
		if image.entity != nil && len(image.entity.Sources) > 0 {
			p.changes = append(p.changes, projections.Change{Table: t, Row: ref, New: image.row, Is: image.entity, Record: &entry.Record})
		}
	}
	if old.row != nil {
		from = len(p.buf)
		p.buf = value.AppendItem(p.buf, old.row)
		was = digestOf(p.buf[from:])
		p.buf = p.buf[:from]
	}
	e.link = linkOf(entry, was, is)
	return true
}

// Add takes the records of a batch that is not odd. A record that cannot be used becomes a dead
// letter at once, in the load.
func (x *Reduction) Add(ctx context.Context, p *Prepared) error {
	for i := range p.entries {
		e, given := &p.entries[i], &p.given[i]
		if e.name.empty() {
			if err := x.r.countOutcome(ctx, &entry{Entry: given}, p.table); err != nil {
				return err
			}
			continue
		}
		if n := len(x.files); n == 0 || x.files[n-1] != given.File {
			x.files = append(x.files, given.File)
		}
		r := record{
			file: len(x.files) - 1, line: given.Line, offset: given.Offset, link: e.link,
			entity: x.entities[e.entity], stored: p.bytesOf(e.stored),
		}
		x.buf = r.append(x.buf[:0])
		if err := x.records.Add(p.bytesOf(e.name), x.buf); err != nil {
			return err
		}
	}
	return nil
}

// reduceRows reads the records row by row, and sorts the outcome of the rows and their additions. After
// an error that wraps store.ErrLoading nothing may be settled.
func (x *Reduction) reduceRows(ctx context.Context) error {
	in, err := x.records.Sorted()
	if err != nil {
		return err
	}
	var c *chain
	free := make(chan *block, 2)
	for b, err := range parallel.Ahead(func() (*block, error) { return readBlock(in, free, x.most) }) {
		if err == nil {
			c, err = x.takeBlock(ctx, b, c)
		}
		if err != nil {
			return errors.Join(err, x.folding.Wait())
		}
		free <- b
	}
	if err = x.finishRow(c); err == nil {
		err = x.beginFold()
	}
	return errors.Join(err, x.folding.Wait(), x.records.Close())
}

// readBlock reads the next records into a block that is free, io.EOF after the last.
func readBlock(in *sorter.Reader, free chan *block, memory int) (*block, error) {
	var b *block
	select {
	case b = <-free:
		b.buf, b.parts = b.buf[:0], b.parts[:0]
	default:
		b = &block{}
	}
	for len(b.parts) == 0 || !b.isFull(memory) {
		name, val, err := in.Next()
		switch {
		case errors.Is(err, io.EOF) && len(b.parts) > 0:
			return b, nil // and io.EOF next time
		case err != nil:
			return nil, err
		}
		b.add(name, val)
	}
	return b, nil
}

// block is records of some rows that follow each other, whose rows are read together.
type block struct {
	buf   []byte
	parts []part
}

type part struct{ name, record span }

// A block has so many records, and about so many bytes, or that part of the memory if it is less.
const (
	blockRecords = 1024
	blockBytes   = 1 << 20
	blockShare   = 16
)

// isFull reports whether the block should be decided before more is added to it.
func (b *block) isFull(memory int) bool {
	return len(b.parts) >= blockRecords || len(b.buf) >= min(blockBytes, memory/blockShare)
}

// add adds a record, of which the block keeps a copy.
func (b *block) add(name, record []byte) {
	from := len(b.buf)
	b.buf = append(append(b.buf, name...), record...)
	b.parts = append(b.parts, part{span{from, from + len(name)}, span{from + len(name), len(b.buf)}})
}

func (b *block) bytesOf(s span) []byte { return b.buf[s.from:s.to] }

// takeBlock decides the records of a block. before is the row of the record before them; it returns that
// of the last.
func (x *Reduction) takeBlock(ctx context.Context, b *block, before *chain) (*chain, error) {
	chains, err := x.openBlock(ctx, b, before)
	if err != nil {
		return nil, err
	}
	c := before
	for _, p := range b.parts {
		if c == nil || c.name != string(b.bytesOf(p.name)) {
			if err := x.finishRow(c); err != nil {
				return nil, err
			}
			c, chains = chains[0], chains[1:]
		}
		r, err := decodeRecord(b.bytesOf(p.record))
		if err != nil {
			return nil, err
		}
		if err := x.decideRecord(c, &r); err != nil {
			return nil, err
		}
	}
	return c, x.load.Stage(ctx) // it need not keep the records that were read
}

// openBlock reads the rows of a block, but for the one before it.
// A row that a sweep has removed ends the bulk (store.ErrLoading): only a live replay tells it from a gap. So does one that
// may have been removed and forgotten. Images are copies,
// as blocks share their memory with the next one.
func (x *Reduction) openBlock(ctx context.Context, b *block, before *chain) (chains []*chain, err error) {
	last := ""
	if before != nil {
		last = before.name
	}
	var rows []*row
	for _, p := range b.parts {
		if last == string(b.bytesOf(p.name)) {
			continue
		}
		last = string(b.bytesOf(p.name))
		ref, err := x.load.Named([]byte(last))
		if err != nil {
			return nil, err
		}
		c := &chain{row: row{name: last, ref: ref, table: x.r.Model.Table(ref.Table)}}
		chains, rows = append(chains, c), append(rows, &c.row)
	}
	if err := x.r.loadRows(ctx, rows); err != nil {
		return nil, err
	}
	for _, c := range chains {
		if !c.swept.IsMissing() {
			return nil, fmt.Errorf("%w: %s: the row expired here", store.ErrLoading, c.ref)
		}
		if c.now == nil && !c.ever && c.forgot != nil {
			return nil, fmt.Errorf("%w: %s: removals were forgotten here", store.ErrLoading, c.ref)
		}
		if c.now == nil {
			continue
		}
		is := stripDerived(c.table, c.now)
		c.exist, c.entity, c.firstEntity, c.was = true, is.entity, is.entity, c.table.Classify(c.now)
		c.first = value.AppendItem(nil, is.row)
		c.there, c.image, c.digest, c.moved = true, slices.Clone(c.first), digestOf(c.first), c.now.Has(owntable.Moved)
		for _, a := range c.now {
			if isDerived(is.entity, a.Name) {
				c.shows = append(c.shows, value.Attr{Name: a.Name, Value: a.Value.Clone()})
			}
		}
		c.now = nil
	}
	return chains, nil
}

// decideRecord decides a record, counts it, and notes its effect on its row.
// The order of calls for one row is that of the recordings. The store is not asked: c has the row's former state.
func (x *Reduction) decideRecord(c *chain, r *record) error {
	r.moved = c.moved
	if r.note == noteLacking && c.there {
		if row, err := decodeImage(c.image); err != nil || r.rowStays(c.table, row) {
			return err
		}
	}
	v := c.known.decideLink(r.link, c.row.digest)
	x.r.Summary.addEntry(r.note, v.applied)
	if v.gap != "" {
		c.gaps = append(c.gaps, gapAt{v.gap, r.file, r.line, r.offset, r.mark})
	}
	switch v.outcome {
	case skipped:
		return nil
	case noted:
		if c.writes = true; !c.there {
			c.gone = string(c.encodeMark())
		}
		return nil
	case removal:
		c.writes, c.there, c.lost, c.shows, c.shown, c.entity, c.row.digest = true, false, false, nil, false, nil, digest{}
		c.gone = string(c.encodeMark())
		return nil
	}
	if v.applied || c.lost {
		c.image, c.lost = append(c.image[:0], r.stored...), len(r.stored) == 0
	}
	if v.outcome == nothing {
		return nil
	}
	c.writes, c.there, c.row.digest = true, true, r.new
	e := x.entityOf(r.entity)
	if !c.shown || c.entity != e {
		c.shows = carriedAttributes(e, c.shows)
	}
	c.entity, c.shown = e, true
	return nil
}

// entityOf is the entity with a number, nil for 0.
func (x *Reduction) entityOf(n uint64) *model.Entity {
	if n == 0 {
		return nil
	}
	return x.r.Model.Entities[n-1]
}

// foldAtOnce is how many rows are folded together.
const foldAtOnce = 512

// finishRow sorts in the outcome of a row, nil for none.
func (x *Reduction) finishRow(c *chain) error {
	if c == nil || !c.writes {
		return nil
	}
	if c.lost {
		return errTorn
	}
	if !c.there {
		c.image = c.image[:0]
	}
	x.tables[c.table.Name] = true
	x.buf = x.appendChain(x.buf[:0], c)
	if err := x.rows.Add([]byte(c.name), x.buf); err != nil {
		return err
	}
	if !counts(c.firstEntity) && !counts(c.entity) {
		return nil
	}
	if x.done = append(x.done, c); len(x.done) < foldAtOnce {
		return nil
	}
	return x.beginFold()
}

func counts(e *model.Entity) bool { return e != nil && len(e.Sources) > 0 }

// beginFold begins to sort in the amounts that the changes of finished rows add to targets.
func (x *Reduction) beginFold() error {
	done := x.done
	x.done = make([]*chain, 0, foldAtOnce)
	return x.folding.Go(func() error { return x.foldRows(done) })
}

// foldRows sorts in the amounts that the changes of rows add to targets.
// Each row adds the difference between its state before the window and the one after it. A row that a derivation cannot
// use ends the bulk (store.ErrLoading), since the dead letter about it has to name one record.
func (x *Reduction) foldRows(done []*chain) error {
	changes := make([]projections.Change, len(done))
	for i, c := range done {
		changes[i] = projections.Change{Table: c.table, Row: c.ref, Was: c.firstEntity, Is: c.entity}
		var err error
		if changes[i].Old, err = decodeImage(c.first); err == nil {
			changes[i].New, err = decodeImage(c.image)
		}
		if err != nil {
			return err
		}
	}
	asked, _ := runner.Fold(x.r.Runner.Kinds, x.r.Model, changes)
	if len(asked.Faults) > 0 {
		f := asked.Faults[0]
		return fmt.Errorf("%w: %s: %s", store.ErrLoading, f.Derivation, f.Reason)
	}
	var name, buf []byte
	for _, t := range asked.Targets {
		if len(t.Steps) == 0 {
			continue
		}
		var err error
		if name, err = x.load.AppendName(name[:0], t.Row); err != nil {
			return err
		}
		for i := range t.Steps {
			for _, a := range t.Steps[i].Adds {
				buf = binary.AppendUvarint(buf[:0], x.entities[t.Entity])
				buf = value.AppendItem(buf, value.Item{{Name: a.Field, Value: a.Amount}})
				if err := x.sums.Add(name, buf); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// decodeImage is an image, nil for an empty one.
func decodeImage(stored []byte) (value.Item, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	item, _, err := value.DecodeItem(stored)
	return item, err
}

// Settled is the runner's work on some rows that were settled.
type Settled struct {
	Changes []projections.Change  // of rows that show something, or have claims on unique values
	Sums    []*projections.Target // each with the amounts that its ledger gets
}

// settledAtOnce is how many rows are settled at a time. It bounds the decoded rows.
const settledAtOnce = 1024

// Settle writes the outcome of the rows into the load, some of them at a time, and stages them.
// Before the first, admit is told of the tables of all. The sums of a target are handed over
// together with the outcome of its row. After an error nothing may land. Close the Reduction when
// the settled rows have landed.
func (x *Reduction) Settle(ctx context.Context, admit func(tables []string) error, apply func(Settled) error) error {
	if err := x.reduceRows(ctx); err != nil {
		return err
	}
	if err := admit(slices.Sorted(maps.Keys(x.tables))); err != nil {
		return err
	}
	j, err := x.beginJoin()
	if err != nil {
		return err
	}
	for next, err := range parallel.Ahead(func() ([]joined, error) { return j.nextRows(settledAtOnce) }) {
		var s Settled
		if err == nil {
			s, err = x.settleRows(ctx, next)
		}
		if err == nil {
			err = apply(s)
		}
		if err == nil {
			err = x.load.Stage(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settleRows writes some rows, and the marks of their removals.
// Everything goes into the load, so a crash before it lands leaves nothing. Its result has the rows in the order of
// their names, with the images that the store had before the window.
func (x *Reduction) settleRows(ctx context.Context, all []joined) (out Settled, err error) {
	var marks []store.Write
	var refs []store.Ref // of rows whose former image is needed
	for i := range all {
		if c := all[i].chain; c != nil && c.exist {
			refs = append(refs, c.ref)
		}
	}
	former, err := x.r.readRows(ctx, refs)
	if err != nil {
		return out, err
	}
	for i := range all {
		if s := all[i].sum; s != nil {
			if s.sumUp(); len(s.adds) > 0 {
				s.splitSteps()
				out.Sums = append(out.Sums, &s.target)
			}
		}
		c := all[i].chain
		if c == nil {
			continue
		}
		var old value.Item
		if c.exist {
			old, former = former[0], former[1:]
		}
		for _, g := range c.gaps {
			if err := x.keepGap(ctx, c.ref, g); err != nil {
				return out, err
			}
		}
		if c.gone != "" {
			marks = append(marks, owntable.LeaveSeen(c.ref, value.OfBinary(c.gone), true))
		}
		next, err := c.dressedRow()
		if err == nil {
			err = x.load.Place(c.ref, next)
		}
		if err != nil {
			return out, err
		}
		change := projections.Change{Table: c.table, Row: c.ref, Was: c.was, Old: old, New: next}
		if showsDerived(&change, c.entity) {
			change.Is = c.table.Classify(next)
			out.Changes = append(out.Changes, change)
		}
	}
	if len(marks) > 0 {
		_, err = x.load.Write(ctx, marks)
	}
	return out, err
}

// keepGap keeps a letter about a gap of a row.
func (x *Reduction) keepGap(ctx context.Context, row store.Ref, g gapAt) error {
	x.Telling(true)
	defer x.Telling(false)
	e := events.Entry{Location: events.Location{File: x.files[g.file], Line: g.line, Offset: g.offset}}
	if e.Record.Position = g.mark.position; g.mark.time != 0 {
		e.Record.Time = time.UnixMicro(g.mark.time).UTC()
	}
	x.r.sayGap(row, e.Location, g.reason)
	return x.r.keepGap(ctx, row, &e, g.reason)
}

// dressedRow is the row as it is to be written, nil for none.
func (c *chain) dressedRow() (value.Item, error) {
	item, err := decodeImage(c.image)
	if item == nil || err != nil {
		return nil, err
	}
	return item.With(append(c.shows, value.Attr{Name: owntable.SeenMark, Value: c.value()})...), nil
}

// showsDerived reports whether a row that is of an entity, or was of one, shows something derived, or whether weir keeps
// something of it: claims on unique values, or the ledger of one that is gone.
func showsDerived(c *projections.Change, is *model.Entity) bool {
	for _, e := range c.Table.Entities {
		switch {
		case len(e.Unique) > 0 && (e == is || c.MayBe(e)),
			len(e.Values) > 0 && (e == is || e == c.Was || c.New == nil && c.MayBe(e)):
			return true
		}
	}
	return false
}
