package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// benchLists measures the cost of an update of a set by the set's size, of the latest of rows and of the row of a
// group by the number of source rows, and of a row for a follower and for a member by how many there are. It
// computes DynamoDB's write units from the rows: one for each started KB of the larger of the old and the new
// row, and twice that in a transaction.
func (b *bench) benchLists() error {
	rows := shortOrFull(b, []int{10, 1000, 10_000}, []int{10, 1000, 100_000, 1_000_000})
	people := shortOrFull(b, []int{10, 1000, 10_000}, []int{10, 1000, 100_000})
	for _, part := range []func() error{
		func() error { return b.benchSets(rows) },
		func() error { return b.benchLatest(rows) },
		func() error { return b.benchGroups(rows) },
		func() error { return b.benchFeeds(people) },
		func() error { return b.benchMembers(people) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

const talk = `model: talk
tables: {talk: {key: [PK, SK]}}
entities:
  Room: {where: {type: Room}, key: {PK: "ROOM#{room}", SK: ABOUT}}
  Line: {where: {type: Line}, key: {PK: "ROOM#{room}", SK: "LINE#{at}"}, attributes: {text: string, author: string}}
derive:
  Room.last: {latest: Line.text, by: at, also: {author: author}}
`

// benchLatest measures the cost when the last of very many rows comes and goes.
func (b *bench) benchLatest(sizes []int) error {
	l, err := b.newLab(model.Parse("talk.yaml", []byte(talk)))
	if err != nil {
		return err
	}
	defer l.closeLab()
	room := store.Ref{Table: "talk", Key: store.Key{Partition: value.OfString("ROOM#r"), Sort: value.OfString("ABOUT")}}
	if _, err := l.meter.Write(b.ctx, []store.Write{{Ref: room, Put: stringItem("PK", "ROOM#r", "SK", "ABOUT", "type", "Room")}}); err != nil {
		return err
	}
	said := func(n int) (keys, row value.Item) {
		keys = stringItem("PK", "ROOM#r", "SK", fmt.Sprintf("LINE#%08d", n))
		return keys, keys.With(stringItem("type", "Line", "text", fmt.Sprint("line ", n), "author", "ann")...)
	}
	costs, err := b.measureGrown(l, "latest", sizes, said)
	if err != nil {
		return err
	}
	if row, err := l.GetRow(b.ctx, room); err != nil || row.Get("last").Text() != fmt.Sprint("line ", sizes[len(sizes)-1]-1) {
		return fmt.Errorf("the latest of rows is %v, %v", row.Get("last"), err)
	}
	b.addFlatGoal("cost of an update of the latest of rows, by their number", sizes, costs)
	b.addBesideByHand("cost of an update of the latest of rows, beside a handler that queries for it", costs, func() error {
		_, err := l.meter.Query(b.ctx, store.Query{Table: "talk", Partition: room.Key.Partition, Sort: store.Range{Prefix: value.OfString("LINE#")}, Reverse: true, Limit: 1})
		if err == nil {
			_, err = l.meter.Write(b.ctx, []store.Write{{Ref: room, Ops: []store.Op{{Kind: store.Set, Attr: "byHand", Value: value.OfString("line")}}}})
		}
		return err
	}, l)
	return nil
}

// updates is the number of updates that are measured for each size.
const updates = 400

func (b *bench) benchSets(sizes []int) error {
	l, err := b.newLab(model.Load("viewing"))
	if err != nil {
		return err
	}
	defer l.closeLab()
	view := func(n int) (keys, row value.Item) {
		keys = stringItem("profileId", "p", "sk", fmt.Sprintf("COMPLETED|asset-%08d", n))
		return keys, keys.With(stringItem("a.assetId", fmt.Sprintf("asset-%08d", n), "a.state", "COMPLETED")...)
	}
	costs, err := b.measureGrown(l, "set", sizes, view)
	if err != nil {
		return err
	}
	b.addFlatGoal("cost of an update of a set, by its size", sizes, costs)
	return nil
}

// measureGrown measures an update of the data derived from rows, at each of these numbers of rows: a row more, and
// its removal, in turn.
func (b *bench) measureGrown(l *lab, what string, sizes []int, source func(n int) (keys, row value.Item)) (costs []perUpdate, err error) {
	for have, i := 0, 0; i < len(sizes); i++ {
		for have < sizes[i] {
			var cs []projections.Change
			for ; have < sizes[i] && len(cs) < 1000; have++ {
				cs = append(cs, l.changeTo(source(have)))
			}
			if err := l.applyChanges(b.ctx, cs); err != nil {
				return nil, err
			}
		}
		c, err := l.measureUpdates(b.ctx, updates, func(n int) []projections.Change {
			if n%2 == 1 { // the row that the update before added is taken away again
				keys, row := source(sizes[i] + n - 1)
				return []projections.Change{l.removalOf(keys, row)}
			}
			return []projections.Change{l.changeTo(source(sizes[i] + n))}
		})
		if err != nil {
			return nil, err
		}
		b.printProgress("%s of %d: %v", what, sizes[i], c)
		costs = append(costs, c)
	}
	return costs, nil
}

// addBesideByHand adds a line that compares the dearest of these with a handler that people write by hand, which is right only
// while nothing is delivered twice and nothing fails. It is for information: being exact has its price.
func (b *bench) addBesideByHand(what string, costs []perUpdate, byHand func() error, l *lab) {
	l.meter.on, l.meter.units, l.meter.reads = true, 0, 0
	defer func() { l.meter.on = false }()
	if err := byHand(); err != nil {
		b.printProgress("%s: %v", what, err)
		return
	}
	most := slices.MaxFunc(costs, func(a, c perUpdate) int { return cmp.Compare(a.units, c.units) })
	b.table.add(line{what: what, figure: fmt.Sprintf("%.1f units %.1f reads", most.units, most.reads),
		peer: fmt.Sprintf("%d units %d reads", l.meter.units, l.meter.reads), ratio: ratioText(most.units/float64(l.meter.units), "×")})
}

func (b *bench) benchFeeds(sizes []int) error {
	return b.forEach("cost of a row for a follower, by how many follow", sizes, b.measureFeed)
}

// forEach adds a line with the cost of each of so many, for each of the sizes.
func (b *bench) forEach(what string, sizes []int, cost func(size int) (perUpdate, error)) error {
	var costs []perUpdate
	for _, size := range sizes {
		c, err := cost(size)
		if err != nil {
			return err
		}
		b.printProgress("%s, %d: %v for each", what, size, c)
		costs = append(costs, c)
	}
	b.addFlatGoal(what, sizes, costs)
	return nil
}

func (b *bench) measureFeed(size int) (perUpdate, error) {
	l, err := b.newLab(model.Load("watchlists"))
	if err != nil {
		return perUpdate{}, err
	}
	defer l.closeLab()
	for n := 0; n < size; {
		var cs []projections.Change
		for ; n < size && len(cs) < 1000; n++ {
			keys := stringItem("PK", fmt.Sprintf("USER#%08d", n), "SK", "SAVED#WATCHLIST#w")
			cs = append(cs, l.changeTo(keys, keys.With(stringItem("entityType", "USER_SAVED_WATCHLIST", "savedAt", "2026-01-01T00:00:00Z")...)))
		}
		if err := l.applyChanges(b.ctx, cs); err != nil {
			return perUpdate{}, err
		}
	}
	additions := max(1, 400/size)
	c, err := l.measureUpdates(b.ctx, additions, func(n int) []projections.Change {
		keys := stringItem("PK", "WATCHLIST#w", "SK", fmt.Sprintf("ITEM#MOVIE#%d", n))
		return []projections.Change{l.changeTo(keys, keys.With(stringItem("entityType", "WATCHLIST_ITEM", "contentType", "MOVIE", "contentId", fmt.Sprint(n), "addedAt", "2026-01-02T00:00:00Z")...))}
	})
	return c.over(size), err
}

// addFlatGoal adds a line whose goal is that the cost does not grow with the size.
func (b *bench) addFlatGoal(what string, sizes []int, costs []perUpdate) {
	figure := ""
	var units []float64
	for i, c := range costs {
		figure += fmt.Sprintf("%s%v at %d", map[bool]string{true: ", "}[i > 0], c, sizes[i])
		units = append(units, c.units)
	}
	// The smallest is not spread yet, and cheaper; the rest must not grow.
	spread := slices.Max(units[1:]) / slices.Min(units[1:])
	b.table.add(line{what: what, figure: figure, peer: "itself", ratio: ratioText(spread, "×"), goal: "≤ 1.50 ×", met: spread <= 1.5})
}

// perUpdate is the average cost of one update.
type perUpdate struct {
	micros, units, reads float64
}

func (p perUpdate) String() string {
	return fmt.Sprintf("%.1f units %.1f reads %.0f µs", p.units, p.reads, p.micros)
}

func (p perUpdate) over(n int) perUpdate {
	return perUpdate{p.micros / float64(n), p.units / float64(n), p.reads / float64(n)}
}

// lab is a store whose writes are counted, and a runner on it.
type lab struct {
	*runner.Runner
	table *model.Table
	meter *meter
	dir   string
	next  uint64
}

// newLab makes a lab of a model as it was read, or returns the error of reading it.
func (b *bench) newLab(m *model.Model, err error) (*lab, error) {
	if err != nil {
		return nil, err
	}
	tables := []store.Table{owntable.Table()}
	for _, t := range m.Tables {
		st := t.Table
		st.Stream = false
		tables = append(tables, st)
	}
	dir, err := os.MkdirTemp(b.dir, "lists-")
	if err != nil {
		return nil, err
	}
	s, err := embedded.Open(dir, tables, embedded.Options{})
	if err != nil {
		return nil, err
	}
	mt := &meter{Store: s}
	return &lab{Runner: &runner.Runner{Kinds: kinds.All(), Model: m, Store: mt, Now: time.Now, Mover: &ingest.Mover{Model: m, Store: mt}}, table: m.Tables[0], meter: mt, dir: dir}, nil
}

func (l *lab) closeLab() {
	l.meter.Close()
	os.RemoveAll(l.dir)
}

func (l *lab) changeTo(keys, row value.Item) projections.Change {
	return l.recordChange(&events.Record{Keys: keys, New: row})
}

func (l *lab) removalOf(keys, row value.Item) projections.Change {
	return l.recordChange(&events.Record{Keys: keys, Old: row})
}

func (l *lab) recordChange(r *events.Record) projections.Change {
	l.next++
	r.Position, r.Time = events.PositionOf(l.next), time.Unix(1767225600, 0)
	c, _ := projections.NewChange(l.table, r)
	return c
}

func (l *lab) applyChanges(ctx context.Context, cs []projections.Change) error {
	_, err := l.ApplyRows(ctx, runner.Batch{ShardKey: "bench", Changes: cs})
	return err
}

// measureUpdates counts the cost of n updates, one at a time, including the jobs that they start.
func (l *lab) measureUpdates(ctx context.Context, n int, update func(int) []projections.Change) (perUpdate, error) {
	run := func() (time.Duration, error) {
		start := time.Now()
		for i := range n {
			if err := l.applyAndWork(ctx, update(i)...); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
	took, err := run()
	if err != nil {
		return perUpdate{}, err
	}
	l.meter.on, l.meter.units, l.meter.reads = true, 0, 0
	_, err = run()
	l.meter.on = false
	return perUpdate{took.Seconds() * 1e6, float64(l.meter.units), float64(l.meter.reads)}.over(n), err
}

// meter counts write units and reads while it is on.
type meter struct {
	store.Store
	on           bool
	units, reads int
}

func (m *meter) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	m.reads++
	return m.Store.Get(ctx, refs)
}

func (m *meter) Query(ctx context.Context, q store.Query) (store.Page, error) {
	m.reads++
	return m.Store.Query(ctx, q)
}

func (m *meter) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	before, err := m.rowSizes(ctx, ws)
	if err != nil {
		return nil, err
	}
	out, err := m.Store.Write(ctx, ws)
	if err == nil {
		err = m.countUnits(ctx, ws, before, 1)
	}
	return out, err
}

func (m *meter) Transact(ctx context.Context, ws []store.Write) error {
	before, err := m.rowSizes(ctx, ws)
	if err != nil {
		return err
	}
	if err := m.Store.Transact(ctx, ws); err != nil {
		return err
	}
	return m.countUnits(ctx, ws, before, 2)
}

func (m *meter) rowSizes(ctx context.Context, ws []store.Write) ([]int, error) {
	if !m.on || len(ws) == 0 {
		return nil, nil
	}
	rows, err := m.Store.Get(ctx, seq.Map(ws, func(w store.Write) store.Ref { return w.Ref }))
	return seq.Map(rows, value.Item.Size), err
}

func (m *meter) countUnits(ctx context.Context, ws []store.Write, before []int, factor int) error {
	after, err := m.rowSizes(ctx, ws)
	for i, n := range after {
		m.units += factor * store.WriteUnits(max(n, before[i]))
	}
	return err
}

func stringItem(pairs ...string) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}
