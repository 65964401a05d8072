package sim

import (
	"context"
	"slices"
	"time"

	"weir/internal/aggregate"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// app is the application whose tables these are. It keeps its own record of what it wrote,
// apart from all that weir knows: own has each row as the application means it, deeds its
// changes, in order.
type app struct {
	*world
	words     *words
	entities  []*model.Entity // the entities whose rows it writes, the busy ones several times
	own       map[string]*ownRow
	order     []string // the names in own, in the order of their first writes
	deeds     []*deed
	copies    []snapshot      // rows that it read at some time
	touched   map[string]bool // derived rows that it wrote or deleted
	forgot    map[string]bool // derived rows that lack a last value which weir no longer had
	members   map[string]*sums
	hot       map[*model.Entity]value.Item
	mass      bool          // the run still has a crowd to come
	crowded   *model.Entity // the entity of the rows that crowd made
	told      string        // the list of followers in which an event has just got its moment
	favourite *model.Entity // the entity that half of the run is about, nil for none
	refused   int
	wholes    int // rows that it put
}

// ownRow is a row as the application means it. image is nil if there is none.
type ownRow struct {
	table *model.Table
	key   store.Key
	image value.Item
}

// deed is a change of a row that the application made, or TTL made for it, with its record.
type deed struct {
	*ownRow
	was, is value.Item // without anything derived
	record  events.Record
	shard   *shard
	at      int    // how many writes the run had done by then
	event   string // that a history rule makes an entry of; set while its entries are recounted
	moved   bool   // it looks like the change of a migration, which history leaves out
	ours    bool   // a migration made it
	when    time.Time
}

// snapshot is a row that the application read: as it was stored, and as the application
// means it.
type snapshot struct {
	table    *model.Table
	key      store.Key
	row, own value.Item
}

// newApp makes the application of a run. The seed chooses its values and its favourite
// entity.
func newApp(w *world) *app {
	a := &app{world: w, own: map[string]*ownRow{}, touched: map[string]bool{}, forgot: map[string]bool{}, hot: map[*model.Entity]value.Item{}}
	a.words = newWords(w.model, newDice(w.seed, "words", 0))
	a.mass = newDice(w.seed, "mass", 0).chance(0.06)
	for _, e := range w.model.Entities {
		if !e.Derived && slices.Contains(w.model.Tables, e.Table) {
			a.entities = append(a.entities, e)
		}
	}
	// The run writes some entities more often than others: those that something is derived
	// from, or on.
	for _, e := range w.model.Entities {
		if n := len(e.Sources) + len(e.Rules) + len(e.Values) + len(e.Statuses) + len(e.Stages) + len(e.Latest) + len(e.LatestOf) + len(e.Subscribes) + len(e.Others) + len(e.Follow); !e.Derived && n > 0 && slices.Contains(w.model.Tables, e.Table) {
			for range 4 {
				a.entities = append(a.entities, e)
			}
			if each := slices.ContainsFunc(e.Rules, func(r *model.RowRule) bool { return r.Subscribers != nil }); each || len(e.Subscribes) > 0 {
				a.entities = append(a.entities, slices.Repeat([]*model.Entity{e}, 6)...)
			}
		}
	}
	for _, g := range w.model.Migrations {
		if w.runsMigration(g) {
			a.entities = append(a.entities, slices.Repeat([]*model.Entity{g.From}, len(a.entities))...)
		}
	}
	// Half of some runs is about one entity.
	if d := newDice(w.seed, "favourite", 0); len(a.entities) > 0 && d.chance(0.3) {
		if sources := slices.DeleteFunc(slices.Clone(a.entities), func(e *model.Entity) bool { return len(e.Sources) == 0 }); len(sources) > 0 {
			a.favourite = pick(d, sources)
			a.entities = append(a.entities, slices.Repeat([]*model.Entity{a.favourite}, len(a.entities))...)
		}
	}
	return a
}

// rowAt is the application's record of a row. It begins one, without an image, for a new key.
func (a *app) rowAt(t *model.Table, k store.Key) *ownRow {
	name := refName(store.Ref{Table: t.Name, Key: k})
	o := a.own[name]
	if o == nil {
		o = &ownRow{table: t, key: k}
		a.own[name] = o
		a.order = append(a.order, name)
	}
	return o
}

// standingRows are the rows that exist, as far as the application knows.
func (a *app) standingRows(of *model.Entity) (out []*ownRow) {
	for _, name := range a.order {
		if o := a.own[name]; o.image != nil && (of == nil || o.table.Classify(o.image) == of) {
			out = append(out, o)
		}
	}
	return out
}

// doAct does the nth act of the application.
func (a *app) doAct(n int) {
	d := newDice(a.seed, "act", n)
	e := pick(d, a.entities)
	list := a.told
	if a.told = ""; list != "" && d.chance(0.8) && a.unsubscribe(list, d) {
		return
	}
	if a.mass && n >= 12 && a.hot[e] != nil && (isListed(e) || !slices.ContainsFunc(a.entities, isListed)) {
		a.writeCrowd(e, d)
		return
	}
	if e == a.favourite && a.hot[e] != nil && d.chance(0.06) {
		a.writeSeveral(e, d)
		return
	}
	ifStruck := func(k Kind, do func()) func() {
		return func() {
			if a.faults.strikeWeighted(k, 15) {
				do()
			}
		}
	}
	doBelow(d.n(100), []choice{
		{34, func() { a.createRow(e, d) }},
		{58, func() { a.editRow(e, d) }},
		{66, func() { a.removeRow(e, d) }},
		{72, func() { a.moveRow(e, d) }},
		{78, func() { a.readCopies(d) }},
		{83, func() { a.setTTL(e, d) }},
		{86, func() {
			if !a.built && !a.bulk {
				a.resizeRow(e, d)
			}
		}},
		{88, func() { a.disperseCrowd(d) }},
		{92, ifStruck(HostileOverwrite, func() { a.overwriteRow(d) })},
		{96, ifStruck(HostileRecreate, func() { a.recreateRow(e, d) })},
		{100, ifStruck(HostileRename, func() { a.changeAndDelete(e, d) })},
	})
}

// createRow writes a whole row: a new one, or over one that exists.
func (a *app) createRow(e *model.Entity, d *dice) {
	row, ok := a.words.newRow(e, d)
	if !ok {
		return
	}
	// Many rows share a few keys.
	if hot := a.hot[e]; hot != nil && (d.chance(0.3) || e == a.favourite && d.chance(0.5)) {
		if again, ok := a.rowLike(e, hot, d.n(len(e.PrimaryKey())), d); ok {
			row = again
			a.counted["hot keys"]++
		}
	} else if hot == nil {
		a.hot[e] = row
	}
	if again, ok := a.meetingRow(e, row, d); ok {
		row = again
	}
	a.putRow(e, row, d.chance(0.2))
}

// meetingRow is a row that is changed so that it meets an existing row in a feed, as an event
// for a follower or as a follower. ok is false if it was not changed.
func (a *app) meetingRow(e *model.Entity, row value.Item, d *dice) (value.Item, bool) {
	vals := a.valuesOf(e, row)
	meets := func(with *model.Entity, mine, theirs func(*model.Match) *model.Field, r *model.RowRule) bool {
		others := a.standingRows(with)
		if len(others) == 0 || !d.chance(0.5) {
			return false
		}
		o := pick(d, others)
		for i := range r.Subscribers.By {
			if m, t := mine(&r.Subscribers.By[i]), theirs(&r.Subscribers.By[i]); m != nil && t != nil {
				vals[m.Name] = t.Get(o.image)
			}
		}
		return true
	}
	follower := func(m *model.Match) *model.Field { return m.Field }
	source := func(m *model.Match) *model.Field { return m.Expr.Field }
	met := false
	for _, r := range e.Subscribes {
		met = met || meets(r.Source, follower, source, r)
	}
	for _, r := range e.Rules {
		met = met || r.Subscribers != nil && meets(r.Subscribers.Of, source, follower, r)
	}
	if !met {
		return nil, false
	}
	return a.words.assembleRow(e, vals)
}

// putRow writes a whole row, now and then with more than a dead letter holds in itself. If isNew is
// set, the write requires that no row has the key.
func (a *app) putRow(e *model.Entity, row value.Item, isNew bool) {
	key, _ := e.Table.KeyOf(row)
	if a.wholes++; newDice(a.seed, "heavy", a.wholes).chance(0.04) {
		row = row.With(value.Attr{Name: ballast, Value: value.OfString(blanks[:heavy])})
	}
	w := store.Write{Ref: store.Ref{Table: e.Table.Name, Key: key}, Put: row}
	if isNew {
		w.If = store.Cond{{{Attr: e.Table.Key.Partition.Name, Is: store.Absent}}}
	}
	a.writeRow(e.Table, w, bareRow(e, row))
}

// isListed reports whether rows of an entity are kept in lists, or are followed by rows that
// are.
func isListed(e *model.Entity) bool {
	set := func(s *model.Source) bool { return s.Tally.Kind.Of == aggregate.Scalars }
	follows := func(r *model.RowRule) bool {
		return slices.ContainsFunc(r.Fields, func(f model.Assign) bool { return f.Expr.Follow != nil })
	}
	return len(e.Subscribes)+len(e.Stages)+len(e.LatestOf)+len(e.Others) > 0 || slices.ContainsFunc(e.Sources, set) || slices.ContainsFunc(e.Rules, follows)
}

// writeCrowd writes many rows with the attributes of a hot row. If the key has two parts with
// names, they share one part with it. They are so many that sets are split and lists have
// pages.
func (a *app) writeCrowd(e *model.Entity, d *dice) {
	side := sideOf(e, d)
	for i := range pick(d, []int{70, 230, 230, 260}) {
		if row, ok := a.rowBeside(e, a.hot[e], side, i); ok {
			a.putRow(e, row, false)
			a.counted["crowds"]++
		}
	}
	a.mass, a.crowded = false, e
}

// writeSeveral writes four to eight rows of the kind that crowd writes.
func (a *app) writeSeveral(e *model.Entity, d *dice) {
	side, first := sideOf(e, d), 300+d.n(100)
	for i := range 4 + d.n(5) {
		if row, ok := a.rowBeside(e, a.hot[e], side, first+i); ok {
			a.putRow(e, row, false)
		}
	}
}

// sideOf is the index of one of the key parts that rows can share, -1 if fewer than two
// have names.
func sideOf(e *model.Entity, d *dice) int {
	var keys []int
	for i, kt := range e.PrimaryKey() {
		if len(kt.Template.Names()) > 0 {
			keys = append(keys, i)
		}
	}
	if len(keys) < 2 {
		return -1
	}
	return pick(d, keys)
}

// rowBeside is the nth row that has the attributes of another row and shares its key part at
// side.
func (a *app) rowBeside(e *model.Entity, of value.Item, side, n int) (value.Item, bool) {
	vals := map[string]value.Value{}
	for _, at := range e.Attributes {
		vals[at.Name] = of.Get(at.Name)
	}
	var same []string
	for i, kt := range e.PrimaryKey() {
		for _, name := range kt.Template.Names() {
			if i == side {
				same = append(same, name)
			}
			if vals[name].IsMissing() {
				vals[name] = namedValue(e, name, of)
			}
		}
	}
	for _, kt := range e.PrimaryKey() {
		for _, name := range kt.Template.Names() {
			if v := nthValue(e.Attribute(name), n); !v.IsMissing() && !slices.Contains(same, name) {
				vals[name] = v
			}
		}
	}
	return a.words.assembleRow(e, vals)
}

// disperseCrowd deletes most rows of a crowd.
func (a *app) disperseCrowd(d *dice) {
	for _, o := range a.standingRows(nil) {
		if a.crowded != nil && o.table.Classify(o.image) == a.crowded && d.chance(0.8) {
			a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
		}
	}
	a.crowded = nil
}

// rowLike is a new row that takes the names in one key part from another row.
func (a *app) rowLike(e *model.Entity, of value.Item, side int, d *dice) (value.Item, bool) {
	fresh, ok := a.words.newRow(e, d)
	if !ok {
		return nil, false
	}
	vals := a.valuesOf(e, fresh)
	if side < len(e.PrimaryKey()) {
		kt := e.PrimaryKey()[side]
		for _, name := range kt.Template.Names() {
			vals[name] = namedValue(e, name, of)
		}
	}
	return a.words.assembleRow(e, vals)
}

// valuesOf are the values of all names of a row, including those in its key.
func (a *app) valuesOf(e *model.Entity, row value.Item) map[string]value.Value {
	vals := map[string]value.Value{}
	for _, at := range e.Attributes {
		vals[at.Name] = row.Get(at.Name)
	}
	for _, kt := range e.PrimaryKey() {
		for _, name := range kt.Template.Names() {
			vals[name] = namedValue(e, name, row)
		}
	}
	return vals
}

// namedValue is the value that a name has in a row or its key.
func namedValue(e *model.Entity, name string, row value.Item) value.Value {
	return e.Field(name).Get(row)
}

// editRow changes some attributes of a row, in place or by writing the whole row back.
func (a *app) editRow(e *model.Entity, d *dice) {
	rows := a.standingRows(e)
	if len(rows) == 0 {
		a.createRow(e, d)
		return
	}
	o := pick(d, rows)
	var ops []store.Op
	for range 1 + d.n(2) {
		if len(e.Attributes) == 0 {
			return
		}
		at := pick(d, e.Attributes)
		if inKey(e, at.Name) || slices.ContainsFunc(ops, func(op store.Op) bool { return op.Attr == at.Name }) || isStamped(e, at.Name) {
			continue
		}
		op := store.Op{Kind: store.Set, Attr: at.Name, Value: a.words.valueFor(e, at.Name, d)}
		if op.Value.IsMissing() || !at.Required && d.chance(0.25) {
			op = store.Op{Kind: store.Remove, Attr: at.Name}
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return
	}
	a.changeRow(o, ops, d.chance(0.4))
}

// isStamped reports whether an attribute says which entity a row is of.
func isStamped(e *model.Entity, name string) bool {
	return slices.ContainsFunc(e.Where, func(t model.Test) bool { return t.Field.Attr == name })
}

// changeRow applies ops to a row, in place or by writing the whole row back.
func (a *app) changeRow(o *ownRow, ops []store.Op, whole bool) {
	ref := store.Ref{Table: o.table.Name, Key: o.key}
	stands := a.base.tables[o.table.Name].get(o.key)
	ops = a.withoutShown(o, stands, ops)
	if len(ops) == 0 || stands == nil {
		return
	}
	own := applyOps(o.image, ops)
	there := []store.Test{{Attr: o.table.Key.Partition.Name, Is: store.Exists}}
	if whole {
		a.writeRow(o.table, store.Write{Ref: ref, Put: applyOps(stands, ops), If: store.Cond{there}}, own)
	} else {
		a.writeRow(o.table, store.Write{Ref: ref, Ops: ops, If: store.Cond{there}}, own)
	}
}

// applyOps returns a row after ops, as a new Item.
func applyOps(row value.Item, ops []store.Op) value.Item {
	for _, op := range ops {
		v := op.Value
		if op.Kind == store.Remove {
			v = value.Value{}
		}
		row = row.With(value.Attr{Name: op.Attr, Value: v})
	}
	return row
}

// withoutShown returns the ops without those that set a status attribute to the value that weir shows there
// already. That includes a value which the application has removed if weir has not seen the
// removal yet: weir cannot tell such a write from none.
func (a *app) withoutShown(o *ownRow, stands value.Item, ops []store.Op) []store.Op {
	e := o.table.Classify(o.image)
	return slices.DeleteFunc(slices.Clone(ops), func(op store.Op) bool {
		_, shows, _ := owntable.CoveredNote(stands, op.Attr)
		return isCovered(e, op.Attr) && (value.Equal(stands.Get(op.Attr), op.Value) || op.Kind == store.Set && value.Equal(shows, op.Value))
	})
}

// isCovered reports whether a status, or the latest of rows, shows over the application's value of the attribute.
func isCovered(e *model.Entity, name string) bool {
	return e != nil && slices.Contains(e.Covered(), name)
}

// noteMoment notes that an event has got its moment in a list of followers. The rows for the
// followers are made next.
func (a *app) noteMoment(key store.Key) {
	if !owntable.IsEntry(key.Sort.Text()) {
		a.told = key.Partition.Text()
	}
}

// isTempted reports whether the application acts now, while the rows for followers are being
// made.
func (a *app) isTempted() bool { return a.told != "" && a.sched.chance(0.4) }

// unsubscribe deletes a row that follows a list, and reports whether it did.
func (a *app) unsubscribe(list string, d *dice) bool {
	var of []*ownRow
	for _, o := range a.standingRows(nil) {
		ref := owntable.Subscriber(owntable.Ref(list, ""), store.Ref{Table: o.table.Name, Key: o.key})
		if e := o.table.Classify(o.image); e != nil && len(e.Subscribes) > 0 && a.base.tables[owntable.TableName].get(ref.Key) != nil {
			of = append(of, o)
		}
	}
	if len(of) == 0 {
		return false
	}
	o := pick(d, of)
	a.counted["left during the telling"]++
	done := a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
	if s, _ := a.base.tables[o.table.Name].newestRecord(o.key); s != nil && d.chance(0.7) { // readers see it
		s.seen = len(s.records)
	}
	return done
}

// removeRow deletes a row.
func (a *app) removeRow(e *model.Entity, d *dice) {
	if rows := a.standingRows(e); len(rows) > 0 {
		o := pick(d, rows)
		a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
	}
}

// moveRow gives a row another key: it writes the row under the new key and deletes the old
// one.
func (a *app) moveRow(e *model.Entity, d *dice) {
	rows := a.standingRows(e)
	if len(rows) == 0 {
		return
	}
	o := pick(d, rows)
	vals := map[string]value.Value{}
	for _, at := range e.Attributes {
		vals[at.Name] = o.image.Get(at.Name)
	}
	var names []string
	for _, kt := range e.PrimaryKey() {
		for _, name := range kt.Template.Names() {
			vals[name], names = namedValue(e, name, o.image), append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	name := pick(d, names)
	for _, kt := range e.PrimaryKey() {
		if kt.Template.Slot(name) >= 0 {
			vals[name] = a.words.keyValue(e, kt, name, d)
		}
	}
	row, ok := a.words.assembleRow(e, vals)
	key, _ := e.Table.KeyOf(row)
	if !ok || refName(store.Ref{Table: e.Table.Name, Key: key}) == refName(store.Ref{Table: e.Table.Name, Key: o.key}) || a.rowAt(e.Table, key).image != nil {
		return
	}
	was := o.image
	if a.writeRow(e.Table, store.Write{Ref: store.Ref{Table: e.Table.Name, Key: key}, Put: row, If: store.Cond{{{Attr: e.Table.Key.Partition.Name, Is: store.Absent}}}}, bareRow(e, row)) {
		a.writeRow(o.table, store.Write{Ref: store.Ref{Table: o.table.Name, Key: o.key}, Delete: true}, nil)
		a.countMet(e, "move", was)
	}
}

// readCopies keeps copies of some rows as they are stored, including derived values.
func (a *app) readCopies(d *dice) {
	var all []snapshot
	for _, t := range a.model.Tables {
		a.base.tables[t.Name].eachRow(func(k store.Key, row value.Item) {
			s := snapshot{table: t, key: k, row: row}
			if o := a.own[refName(store.Ref{Table: t.Name, Key: k})]; o != nil {
				s.own = o.image
			}
			all = append(all, s)
		})
	}
	for range min(len(all), 3) {
		a.copies = append(a.copies, pick(d, all))
	}
}

// setTTL gives a row a TTL that expires soon.
func (a *app) setTTL(e *model.Entity, d *dice) {
	ttl := e.Table.TTL
	if ttl == "" {
		a.removeRow(e, d)
		return
	}
	rows := a.standingRows(nil)
	rows = slices.DeleteFunc(rows, func(o *ownRow) bool { return o.table.TTL == "" })
	if len(rows) == 0 {
		return
	}
	over := value.OfInt(a.clock.Add(time.Duration(d.n(60)) * time.Second).Unix())
	a.changeRow(pick(d, rows), []store.Op{{Kind: store.Set, Attr: ttl, Value: over}}, false)
}

// sweepExpired deletes rows whose TTL has expired, as late as it likes.
func (a *app) sweepExpired(d *dice) {
	for _, o := range a.standingRows(nil) {
		ttl := o.image.Get(o.table.TTL)
		n, ok := ttl.Int64()
		if o.table.TTL == "" || !ok || ttl.Kind() != value.Number || n > a.clock.Unix() || !d.chance(0.5) {
			continue
		}
		if a.faults.strikeWeighted(Expiry, 20) {
			t := a.base.tables[o.table.Name]
			a.base.who = "ttl"
			a.recordDeed(o, nil, func() { a.base.expire(t, o.key) })
		}
	}
}

// resizeRow makes a row nearly as large as a row may be, or small again.
func (a *app) resizeRow(e *model.Entity, d *dice) {
	rows := a.standingRows(nil)
	if len(rows) == 0 || !d.chance(0.3) {
		return
	}
	o := pick(d, rows)
	op := store.Op{Kind: store.Set, Attr: ballast}
	room := store.MaxItemBytes - a.base.tables[o.table.Name].get(o.key).With(value.Attr{Name: ballast, Value: value.OfString("")}).Size() - len(ballast)
	if o.image.Has(ballast) {
		op.Kind = store.Remove
	} else if room -= pick(d, []int{0, 10, 100, 1000}); room > 0 {
		op.Value = value.OfString(blanks[:room])
		a.counted["rows of 400 KB"]++
	} else {
		return
	}
	a.changeRow(o, []store.Op{op}, false)
}

// ballast is an attribute that no model knows.
const ballast = "ballast"

// heavy is more than a dead letter has room for.
const heavy = 90 << 10

// blanks begins with text that does not become shorter when it is packed, so that a record with it is large
// wherever it is kept.
var blanks = func() string {
	d, text := newDice(1, "blanks", 0), slices.Repeat([]byte("b"), store.MaxItemBytes)
	for i := range heavy {
		text[i] = byte('!' + d.n(90))
	}
	return string(text)
}()

// bareRow is a row without bookkeeping and without tallied values.
func bareRow(e *model.Entity, row value.Item) value.Item {
	if row == nil {
		return nil
	}
	return row.Filter(func(name string) bool { return !owntable.IsOurs(name) && !isTallied(e, name) })
}

// isTallied reports whether weir shows a tally, the latest of rows, or a followed value under the name on rows of an
// entity.
func isTallied(e *model.Entity, name string) bool {
	if e != nil && slices.ContainsFunc(e.Latest, func(l *model.Latest) bool { return slices.Contains(l.Attributes(), name) }) {
		return e.Attribute(name) == nil || e.Group != nil
	}
	if e != nil && slices.ContainsFunc(e.Follows, func(f *model.Follow) bool { return f.Attr == name }) {
		return true
	}
	return e != nil && slices.ContainsFunc(e.Values, func(t *model.Tally) bool { return t.Attr == name && !t.Hidden })
}

// writeRow does a write of the application and reports whether the store took it; for a derived
// row it always reports true. own is the row as the application means it to be afterwards.
func (a *app) writeRow(t *model.Table, w store.Write, own value.Item) bool {
	a.base.who = "app"
	a.traceStep("app", w.Ref.String(), nil)
	e := t.Classify(w.Put)
	if e == nil {
		e = t.Classify(a.base.tables[t.Name].get(w.Key))
	}
	if e != nil && e.Derived {
		a.touched[refName(w.Ref)] = true
		_, _ = a.base.Write(context.Background(), []store.Write{w})
		return true
	}
	done := false
	a.recordDeed(a.rowAt(t, w.Key), own, func() {
		out, err := a.base.Write(context.Background(), []store.Write{w})
		done = err == nil && out[0].Err == nil
	})
	if !done {
		a.refused++
	}
	return done
}

// recordDeed runs a write and notes the deed if the row has changed.
func (a *app) recordDeed(o *ownRow, own value.Item, write func()) {
	t := a.base.tables[o.table.Name]
	before := t.get(o.key)
	write()
	after := t.get(o.key)
	if before == nil && after == nil || before != nil && after != nil && value.EqualItems(before, after) {
		return
	}
	if own != nil {
		own = bareRow(o.table.Classify(own), own)
	}
	dd := &deed{ownRow: o, was: o.image, is: own, when: a.base.now()}
	dd.shard, dd.record = t.newestRecord(o.key)
	dd.moved = looksMoved(before, after)
	o.image, dd.at = own, a.base.writes
	a.deeds = append(a.deeds, dd)
	a.base.undone(func() { // the row and the image that the application has of it are lost together
		o.image = dd.was
		a.deeds = a.deeds[:len(a.deeds)-1]
	})
	a.countCoverage(dd)
}

// newestRecord is the open shard of a row and that shard's last record: the row's own, if the row
// was written last.
func (t *table) newestRecord(k store.Key) (*shard, events.Record) {
	h := hashOf(k.Partition)
	for _, s := range t.shards {
		if !s.Closed && s.low <= h && h <= s.high {
			return s, s.records[len(s.records)-1]
		}
	}
	return nil, events.Record{}
}

// countCoverage counts which kinds of projection met which kinds of change.
func (a *app) countCoverage(dd *deed) {
	op := "edit"
	if dd.was == nil {
		op = "insert"
	} else if dd.is == nil && dd.record.Expired {
		op = "expire"
	} else if dd.is == nil {
		op = "delete"
	}
	for _, image := range []value.Item{dd.was, dd.is} {
		if e := dd.table.Classify(image); e != nil {
			a.countMet(e, op, image)
		}
	}
}

// countMet counts the projections, and the unusual values, that a change of a row meets.
func (a *app) countMet(e *model.Entity, op string, row value.Item) {
	for _, s := range e.Sources {
		a.counted[s.Tally.Kind.Keyword+" "+op]++
		if g := s.Tally.Group; g != nil && g.Rows == s.Tally {
			a.counted["group "+op]++
		}
		if v := s.Tally.Kind; s.Amount != nil && (v == aggregate.Sum || v == aggregate.Mean) {
			of := amountOf(s, row)
			if of.Sign() < 0 {
				a.counted["negative deltas"]++
			}
			if s.Amount.Computed() && !of.IsMissing() {
				a.counted["amounts"]++
			}
			if s.Amount.Computed() && of.Kind() == value.Null {
				a.counted["amounts that no sum takes"]++
			}
		}
	}
	for _, r := range e.Rules {
		kind := "copy"
		if r.Subscribers != nil {
			kind = "each"
		} else if len(r.Keep) > 0 {
			kind = "history"
		}
		a.counted[kind+" "+op]++
	}
	for range e.Follow {
		a.counted["follow "+op]++
	}
	for range e.Stages {
		a.counted["steps "+op]++
	}
	for _, l := range e.LatestOf {
		a.counted[l.Kind+" "+op]++
	}
	for range e.Search {
		a.counted["search "+op]++
	}
	for _, at := range row {
		text := at.Value.Text()
		if at.Value.Kind() != value.String {
			continue
		}
		if text == "" {
			a.counted["empty values"]++
		} else if len(text) >= 900 && at.Name != ballast {
			a.counted["largest keys"]++
		} else if text[0] >= 0x80 {
			a.counted["unicode values"]++
		}
	}
}
