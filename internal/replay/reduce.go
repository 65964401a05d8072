package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Reduction decides records as Batch does, and writes nothing before Settle. It keeps of each
// row what became of it, not how, and of each target the sum of what the changes come to.
//
// That is enough where what a row contributes is decided by what the application wrote into
// it: f(new) − f(old) of all changes of a row, summed, is f(last) − f(first). So the caller
// must not reduce for a model in which a derivation, or the test of an entity, reads a derived
// value, or needs more of a change than its sums. It belongs to one goroutine, but for Prepare.
type Reduction struct {
	r    *Replay
	load store.Load
	// Odd, if set, is asked about each row whether its changes need to be applied one by one.
	Odd func(store.Ref) bool

	free chan *Prepared // that are taken, for the next batches

	rows   map[string]*chain // by name
	order  []*chain
	sums   map[string]*sum // by target
	tables map[string]bool // of rows that are to be written
	bytes  int
}

// chain is what became of one row since the last Settle.
type chain struct {
	row
	entity *model.Entity
	image  []byte       // the row without derived attributes, in stored form; empty for no row
	shows  []value.Attr // what it shows, or would go on to show
	marks  []store.Write
	writes bool // it was written or removed
	shown  bool // shows is of entity

	was   *model.Entity // what the load has
	exist bool          // whether the load has it
}

// sum is what a target's changes come to.
type sum struct {
	target projections.Target
	adds   []projections.Add
	most   int // adds that are kept before they are summed
}

// About what a row and an amount take beside their content, in bytes.
const (
	chainBytes = 600
	addBytes   = 100
	fewAdds    = 16
)

// NewReduction returns a Reduction for a replay into a load.
func NewReduction(r *Replay, load store.Load) *Reduction {
	x := &Reduction{r: r, load: load, free: make(chan *Prepared, 2)}
	x.begin()
	return x
}

// begin forgets all rows, sums and tables, after they were settled.
func (x *Reduction) begin() {
	x.rows, x.order, x.sums, x.tables, x.bytes = map[string]*chain{}, nil, map[string]*sum{}, map[string]bool{}, 0
}

// Bytes is about how much memory is taken by what is not settled.
func (x *Reduction) Bytes() int { return x.bytes }

// Prepared is a batch of records of which everything is known that does not depend on rows.
type Prepared struct {
	given   []events.Entry
	entries []prepared
	table   string
	buf     []byte
	changes []projections.Change  // without derived attributes
	asked   *projections.Gathered // by the changes
	// Odd says that some record is not for a Reduction.
	Odd bool
}

// Len is the number of records.
func (p *Prepared) Len() int { return len(p.given) }

// Entries returns the batch as it was given.
func (p *Prepared) Entries() (entries []events.Entry, table string) { return p.given, p.table }

// prepared is one record of a batch. All before change is known without a row; chain and asIs are
// set when its row was read. Its images are in the batch's buffer, so it must not outlive taken.
type prepared struct {
	*events.Entry
	table      *model.Table
	ref        store.Ref
	name       span
	old, image reduced
	change     *projections.Change
	chain      *chain // of its row, once that was read
	asIs       bool   // the record is applied as it is
}

// reduced is an image in stored form, without derived attributes; ours as in stripped.
type reduced struct {
	span
	entity *model.Entity
	ours   bool
}

// span is a part of a batch's buffer.
type span struct{ from, to int }

func (p *Prepared) at(s span) []byte { return p.buf[s.from:s.to] }

// mostStored is how large an image may be. The store's own limit is on the whole row, with what
// it shows.
const mostStored = store.MaxItemBytes / 4

// Prepare prepares a batch. It reads and changes nothing but the batch, so another goroutine may call it.
func (x *Reduction) Prepare(entries []events.Entry, table string) *Prepared {
	var p *Prepared
	select {
	case p = <-x.free:
	default:
		p = &Prepared{}
	}
	p.given, p.table, p.buf, p.Odd = entries, table, p.buf[:0], false
	p.entries = slices.Grow(p.entries[:0], len(entries))[:len(entries)]
	p.changes = slices.Grow(p.changes[:0], len(entries))
	for i := range entries {
		if p.Odd = !x.prepare(p, &p.entries[i], &entries[i]); p.Odd {
			return p
		}
	}
	p.asked, _ = runner.Fold(x.r.Runner.Kinds, x.r.Model, p.changes)
	return p
}

// taken has a batch used again.
func (x *Reduction) taken(p *Prepared) {
	p.given, p.asked = nil, nil
	clear(p.entries)
	clear(p.changes)
	select {
	case x.free <- p:
	default:
	}
}

// prepare reports whether a record is one for a Reduction. It is not if it is unusable, if Odd says
// so, or if its row may be too large for the store: such a record needs what Batch does, with its
// dead letters. What it appends to the batch's buffer stays there in any case.
func (x *Reduction) prepare(p *Prepared, e *prepared, entry *events.Entry) (ok bool) {
	if *e = (prepared{Entry: entry}); e.Bad != nil {
		return false
	}
	t, key, err := x.r.locate(entry, p.table)
	if err != nil {
		return false
	}
	e.table, e.ref = t, store.Ref{Table: t.Name, Key: key}
	if x.Odd != nil && x.Odd(e.ref) {
		return false
	}
	from := len(p.buf)
	p.buf = appendName(p.buf, t.Name, key)
	e.name = span{from, len(p.buf)}
	old, image := strip(t, entry.Record.Old), strip(t, entry.Record.New)
	e.old, e.image = p.reduce(old), p.reduce(image)
	stored := e.image.to - e.image.from
	if stored > mostStored || image.row != nil && x.load.Fits(e.ref, image.row, stored) != nil {
		return false
	}
	p.changes = append(p.changes, projections.Change{Table: t, Row: e.ref, Old: old.row, New: image.row, Record: &entry.Record})
	e.change = &p.changes[len(p.changes)-1]
	if old.row != nil {
		e.change.Was = old.entity
	}
	if image.row != nil {
		e.change.Is = image.entity
	}
	return true
}

// reduce appends an image to the batch's buffer in stored form. No image is an empty span, and so
// two images are equal where their bytes are, since a stored form is made in one way only.
func (p *Prepared) reduce(s stripped) reduced {
	from := len(p.buf)
	if s.row != nil {
		p.buf = value.AppendItem(p.buf, s.row)
	}
	return reduced{span{from, len(p.buf)}, s.entity, s.ours}
}

// Add decides the records of a batch that is not odd. After an error that wraps
// store.ErrLoading nothing may be settled.
func (x *Reduction) Add(ctx context.Context, p *Prepared) error {
	if err := x.open(ctx, p); err != nil {
		return err
	}
	for i := range p.entries {
		e := &p.entries[i]
		v, err := x.take(p, e)
		if err != nil {
			return err
		}
		done := entry{Entry: e.Entry, row: &e.chain.row, gap: v.gap, applied: v.applied}
		if err := x.r.count(ctx, &done, p.table); err != nil {
			return err
		}
	}
	err := x.sumUp(p.asked, func(i int) bool { return p.entries[i].asIs })
	x.taken(p)
	return err
}

// open reads the rows of a batch that were not met before.
func (x *Reduction) open(ctx context.Context, p *Prepared) error {
	var rows []*row
	from := len(x.order)
	for i := range p.entries {
		e := &p.entries[i]
		name := p.at(e.name)
		if e.chain = x.rows[string(name)]; e.chain != nil {
			continue
		}
		key := store.Key{Partition: e.ref.Key.Partition.Clone(), Sort: e.ref.Key.Sort.Clone()}
		c := &chain{row: row{name: string(name), ref: store.Ref{Table: e.table.Name, Key: key}, table: e.table}}
		x.rows[c.name], e.chain = c, c
		x.order, rows = append(x.order, c), append(rows, &c.row)
		x.bytes += chainBytes + 2*len(name)
	}
	if err := x.r.load(ctx, rows); err != nil {
		return err
	}
	for _, c := range x.order[from:] {
		if c.now == nil {
			continue
		}
		is := strip(c.table, c.now)
		c.exist, c.entity = true, is.entity
		c.was = c.table.Classify(c.now)
		c.image = value.AppendItem(nil, is.row)
		x.bytes += cap(c.image)
		for _, a := range c.now {
			if isDerived(is.entity, a.Name) {
				c.shows = append(c.shows, value.Attr{Name: a.Name, Value: a.Value.Clone()})
			}
		}
		c.now = nil
	}
	return nil
}

// take decides a record and notes what it does to its row.
func (x *Reduction) take(p *Prepared, e *prepared) (v verdict, err error) {
	if e.image.ours || e.old.ours && e.image.from == e.image.to {
		return v, nil
	}
	c, old, image := e.chain, p.at(e.old.span), p.at(e.image.span)
	is := compared{
		old: len(old) > 0, stored: len(c.image) > 0, image: len(image) > 0,
		oldIsStored: string(old) == string(c.image), storedIsImage: string(c.image) == string(image),
		oldIsImage: func() bool { return string(old) == string(image) },
		digest:     func() value.Value { return owntable.Digest(e.change.Old) },
	}
	v = c.decide(&e.Record, is)
	if v.outcome == skipped || v.outcome == nothing {
		return v, nil
	}
	if e.asIs = is.oldIsStored; !e.asIs && v.applied {
		if err := x.contribute(c, e); err != nil {
			return v, err
		}
	}
	c.take(v)
	c.writes, x.tables[c.table.Name] = true, true
	if v.outcome == removal {
		c.marks = append(c.marks, v.mark.leave(c.ref))
		c.image, c.shows, c.shown, c.entity = c.image[:0], nil, false, nil
		return v, nil
	}
	before := cap(c.image)
	c.image = append(c.image[:0], image...)
	x.bytes += cap(c.image) - before
	if !c.shown || c.entity != e.image.entity {
		c.shows = carried(e.image.entity, c.shows)
	}
	c.entity, c.shown = e.image.entity, true
	return v, nil
}

// contribute sums up a change whose old image is not the row.
func (x *Reduction) contribute(c *chain, e *prepared) error {
	change := *e.change
	change.Old, change.Was = nil, nil
	if len(c.image) > 0 {
		item, _, err := value.DecodeItem(c.image)
		if err != nil {
			return err
		}
		change.Old, change.Was = item, c.table.Classify(item)
	}
	asked, _ := runner.Fold(x.r.Runner.Kinds, x.r.Model, []projections.Change{change})
	return x.sumUp(asked, func(int) bool { return true })
}

// sumUp adds what some changes ask for.
func (x *Reduction) sumUp(asked *projections.Gathered, applied func(i int) bool) error {
	for i, of := range asked.FaultOf {
		if applied(of) {
			f := asked.Faults[i]
			return fmt.Errorf("%w: %s: %s", store.ErrLoading, f.Derivation, f.Reason)
		}
	}
	for _, t := range asked.Targets {
		for i := range t.Steps {
			if s := &t.Steps[i]; applied(s.Change) {
				x.add(t, s.Adds)
			}
		}
	}
	return nil
}

// add puts amounts to those that a target has. It copies the key and the amounts, which belong to
// the batch. When a target has more amounts than its limit they are summed, so that it takes memory
// by its fields and not by its changes.
func (x *Reduction) add(t *projections.Target, adds []projections.Add) {
	name := owntable.RowText(t.Row)
	s := x.sums[name]
	if s == nil {
		key := store.Key{Partition: t.Row.Key.Partition.Clone(), Sort: t.Row.Key.Sort.Clone()}
		s = &sum{target: projections.Target{Row: store.Ref{Table: t.Row.Table, Key: key}, Entity: t.Entity}, most: fewAdds}
		x.sums[name] = s
		x.bytes += chainBytes
	}
	for _, a := range adds {
		s.adds = append(s.adds, projections.Add{Field: a.Field, Amount: a.Amount.Clone()})
		x.bytes += addBytes
	}
	if len(s.adds) > s.most {
		x.bytes -= addBytes * len(s.adds)
		s.total()
		x.bytes += addBytes * len(s.adds)
		s.most = max(fewAdds, 2*len(s.adds))
	}
}

// total sums up the amounts.
func (s *sum) total() {
	total := projections.Sum(s.adds)
	s.adds = s.adds[:0]
	for _, a := range total {
		s.adds = append(s.adds, projections.Add{Field: a.Name, Amount: a.Value})
	}
}

// Settled is what the runner has to do about some rows that were settled.
type Settled struct {
	Changes []projections.Change  // of rows that show something, or have claims on unique values
	Sums    []*projections.Target // each with the amounts that its ledger gets
}

// Tables are the tables with rows that Settle will write.
func (x *Reduction) Tables() []string { return slices.Sorted(maps.Keys(x.tables)) }

// settledAtOnce is how many rows are settled at a time. It bounds what is decoded.
const settledAtOnce = 2048

// Settle writes what became of the rows into the load, some of them at a time, and begins again.
// The sums of a target are handed over together with what became of its row. After an error
// nothing may land.
func (x *Reduction) Settle(ctx context.Context, apply func(Settled) error) error {
	for len(x.order) > 0 {
		n := min(settledAtOnce, len(x.order))
		s, err := x.settle(ctx, x.order[:n])
		if err == nil {
			err = apply(s)
		}
		if err != nil {
			return err
		}
		for _, c := range x.order[:n] {
			delete(x.rows, c.name)
		}
		clear(x.order[:n])
		x.order = x.order[n:]
	}
	var rest Settled // for targets that no record wrote
	for name := range x.sums {
		x.sumOf(name, &rest)
		if len(rest.Sums) == settledAtOnce {
			if err := apply(rest); err != nil {
				return err
			}
			rest = Settled{}
		}
	}
	if err := apply(rest); err != nil {
		return err
	}
	x.begin()
	return nil
}

// sumOf moves the sums of a target, if it has any.
func (x *Reduction) sumOf(name string, to *Settled) {
	s := x.sums[name]
	if s == nil {
		return
	}
	delete(x.sums, name)
	if s.total(); len(s.adds) > 0 {
		s.split()
		to.Sums = append(to.Sums, &s.target)
	}
}

// split makes the amounts into steps that one write of a ledger takes.
func (s *sum) split() {
	for adds := s.adds; len(adds) > 0; {
		n := min(len(adds), owntable.AddsAtOnce)
		s.target.Steps = append(s.target.Steps, projections.Step{Adds: adds[:n]})
		adds = adds[n:]
	}
}

// settle writes some rows, and the marks of their removals.
func (x *Reduction) settle(ctx context.Context, chains []*chain) (out Settled, err error) {
	var marks []store.Write
	var refs []store.Ref // of rows whose former image is asked for
	for _, c := range chains {
		if c.writes && c.exist && concerns(c.was, c.entity) {
			refs = append(refs, c.ref)
		}
	}
	former, err := x.r.get(ctx, refs)
	if err != nil {
		return out, err
	}
	for _, c := range chains {
		if !c.writes {
			continue
		}
		marks = append(marks, c.marks...)
		next, err := c.dressed()
		if err == nil {
			err = x.load.Place(c.ref, next)
		}
		if err != nil {
			return out, err
		}
		if !concerns(c.was, c.entity) {
			continue
		}
		change := projections.Change{Table: c.table, Row: c.ref, Was: c.was, New: next, Is: c.table.Classify(next)}
		if c.exist {
			change.Old, former = former[0], former[1:]
		}
		out.Changes = append(out.Changes, change)
		x.sumOf(owntable.RowText(c.ref), &out)
	}
	if len(marks) > 0 { // a condition that fails means that a newer removal has its mark
		_, err = x.load.Write(ctx, marks)
	}
	return out, err
}

// dressed is the row as it is to be written, nil for none.
func (c *chain) dressed() (value.Item, error) {
	if len(c.image) == 0 {
		return nil, nil
	}
	item, _, err := value.DecodeItem(c.image)
	if err != nil {
		return nil, err
	}
	return item.With(append(c.shows, value.Attr{Name: owntable.SeenMark, Value: c.seen.value()})...), nil
}

// concerns reports whether a row that was of one entity and is of another shows something
// derived, or has claims on unique values.
func concerns(was, is *model.Entity) bool {
	for _, e := range []*model.Entity{was, is} {
		if e != nil && (len(e.Values) > 0 || len(e.Unique) > 0) {
			return true
		}
	}
	return false
}
