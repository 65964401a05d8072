package sim

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"weir/internal/aggregate"
	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// truth is the oracle: the rows that must exist in the end, computed only from the acts of the application.
// It uses no code of the projections, the runner or verify. It is slow and simple: it
// counts everything from the rows, again and again, until nothing changes.
type truth struct {
	*app
	rows     map[string]*known
	order    []string
	followed map[string]value.Value // the last value of each field of each row
	written  map[string]time.Time   // when the application wrote each row last
	who      value.Item             // the follower for whom a row is made
	differ   map[string]bool        // if set, gets the names of wrong rows and documents, instead of failures
}

// known is a row that must exist, complete except for bookkeeping.
type known struct {
	table  *model.Table
	key    store.Key
	entity *model.Entity
	own    value.Item // without tallied values and without statuses
	image  value.Item
	last   []string // attributes that keep the last value of a deleted row
	lapsed []string // those of them that may be missing: nothing followed the deleted row for long enough
	over   []string // the stages of its statuses that have more rows or elements than their max
}

func (k *known) name() string { return refName(store.Ref{Table: k.table.Name, Key: k.key}) }

// rounds is how many levels of derivations may build on each other.
const rounds = 6

// computeTruth computes the rows that must exist now, from all acts of the application so far.
func (a *app) computeTruth() *truth {
	t := &truth{app: a, followed: map[string]value.Value{}, written: map[string]time.Time{}}
	t.noteDeeds()
	t.rows, t.order = map[string]*known{}, nil
	before := ""
	for range rounds {
		t.countRows(t.deriveRows())
		if now := t.rowsText(); now == before {
			break
		} else {
			before = now
		}
	}
	return t
}

// rowsText is all rows as text, by which truth sees that a round has changed nothing.
func (t *truth) rowsText() string {
	var b strings.Builder
	for _, name := range t.order {
		b.WriteString(name)
		b.Write(value.AppendPlainItem(nil, t.rows[name].image))
	}
	return b.String()
}

// deriveRows makes all rows: those of the application, and the copies and groups of the rows of the
// round before.
func (t *truth) deriveRows() []*known {
	out := seq.Map(t.standingRows(nil), func(o *ownRow) *known {
		return t.withTallies(&known{table: o.table, key: o.key, entity: o.table.Classify(o.image), own: o.image, image: o.image})
	})
	var before []*known
	for _, name := range t.order {
		k := t.rows[name]
		before = append(before, k)
		if k.entity == nil {
			continue
		}
		for _, r := range k.entity.Rules {
			if len(r.Keep) > 0 || !passesTests(r.Where, k.image) {
				continue
			}
			if c, ok := t.makeRow(r, k.image, nil); ok {
				out = append(out, c)
			}
		}
	}
	return append(out, groupRows(before)...)
}

// withTallies gives a row of the application the values that were tallied on it in the round before,
// since others may be derived from them.
func (t *truth) withTallies(k *known) *known {
	if was := t.rows[k.name()]; was != nil && k.entity != nil && was.entity == k.entity {
		for _, y := range k.entity.Values {
			if y.Shows() && !y.IsSet() {
				k.image = k.image.With(value.Attr{Name: y.Attr, Value: was.image.Get(y.Attr)})
			}
		}
		for _, l := range k.entity.Latest {
			for _, name := range l.Attributes() {
				k.image = k.image.With(value.Attr{Name: name, Value: was.image.Get(name)})
			}
		}
		for _, f := range k.entity.Follows {
			k.image = k.image.With(value.Attr{Name: f.Attr, Value: was.image.Get(f.Attr)})
		}
	}
	return k
}

// showFollowed gives a row the values that it follows by itself.
func (t *truth) showFollowed(k *known) {
	if k.entity == nil {
		return
	}
	for _, f := range k.entity.Follows {
		v, certain := t.followedBy(f, k.image)
		if !f.Input.Uses(k.image) {
			v, certain = value.Value{}, true
		}
		if k.image = k.image.With(value.Attr{Name: f.Attr, Value: v}); !certain {
			k.last = append(k.last, f.Attr)
			if t.mayLapse(f, k.entity, k.image) {
				k.lapsed = append(k.lapsed, f.Attr)
			}
		}
	}
}

// makeRow returns the row that a rule makes of a row; d is the deed, for history.
func (t *truth) makeRow(r *model.RowRule, row value.Item, d *deed) (*known, bool) {
	vals := map[string]value.Value{}
	inKey := map[string]value.Value{} // values that are read from a key, as they stand there
	k := &known{table: r.Into.Table, entity: r.Into}
	var attrs []value.Attr
	for _, f := range r.Fields {
		if fl := f.Expr.Follow; fl != nil {
			v, certain := t.followedBy(fl, row)
			if attrs = append(attrs, value.Attr{Name: fl.Attr, Value: v}); !certain {
				k.last = append(k.last, fl.Attr)
				if t.mayLapse(fl, r.Source, row) {
					k.lapsed = append(k.lapsed, fl.Attr)
				}
			}
			continue
		}
		vals[f.Name] = t.evalExpr(&f.Expr, row, d)
		if f.Expr.Field != nil && f.Expr.Field.Key != nil {
			inKey[f.Name] = f.Expr.Field.Raw(row)
		} else if f.Expr.Subscriber != nil && f.Expr.Subscriber.Key != nil {
			inKey[f.Name] = f.Expr.Subscriber.Raw(t.who)
		} else if f.Expr.Field == nil && f.Expr.Subscriber == nil {
			inKey[f.Name] = vals[f.Name]
		}
		if r.Into.Attribute(f.Name) != nil {
			attrs = append(attrs, value.Attr{Name: f.Name, Value: vals[f.Name]})
		}
	}
	for _, w := range r.Into.Where {
		if v, ok := w.Only(); ok {
			attrs = append(attrs, value.Attr{Name: w.Field.Attr, Value: v})
		}
	}
	keys := map[string]value.Value{}
	for _, kt := range r.Into.Keys {
		v, ok := kt.Build(func(name string) value.Value {
			v, raw := inKey[name]
			if own := vals[name]; !raw && own.Kind() == value.String {
				v = value.OfString(kt.Template.Escape(own.Text()))
			} else if !raw {
				v = own
			}
			if own := vals[name]; own.Kind() == value.String && v.Text() != own.Text() && r.Into.Attribute(name) == nil {
				attrs = append(attrs, value.Attr{Name: name, Value: own})
			}
			return v
		})
		if ok {
			keys[kt.Attr.Name] = v
		}
	}
	var ok bool
	// No row can have a key that the table refuses.
	if k.key, ok = keyOf(&r.Into.Table.Table, keys); !ok || r.Into.Table.CheckKey(k.key) != nil {
		return nil, false
	}
	attrs = append(attrs, r.Into.Table.Item(k.key)...)
	for i := range r.Into.Table.Indexes {
		ix := &r.Into.Table.Indexes[i]
		var some []value.Attr
		whole := true
		for _, a := range []string{ix.Key.Partition.Name, ix.Key.Sort.Name} {
			if a == "" || r.Into.KeyTemplate(a) == nil || r.Into.Attribute(a) != nil || a == r.Into.Table.Key.Partition.Name {
				continue
			}
			_, has := keys[a]
			whole = whole && has
			some = append(some, value.Attr{Name: a, Value: keys[a]})
		}
		if whole {
			attrs = append(attrs, some...)
		}
	}
	k.own = value.NewItem(attrs...)
	k.image = k.own
	return k, true
}

func keyOf(t *store.Table, vals map[string]value.Value) (k store.Key, ok bool) {
	var attrs []value.Attr
	for name, v := range vals {
		attrs = append(attrs, value.Attr{Name: name, Value: v})
	}
	return t.KeyOf(value.NewItem(attrs...))
}

// evalExpr is the value of an expression on a row. d is the deed for expressions about the
// record, nil outside history.
func (t *truth) evalExpr(x *model.Expr, row value.Item, d *deed) value.Value {
	switch {
	case x.Field != nil:
		return fieldValue(x.Field, row)
	case x.Subscriber != nil:
		return x.Subscriber.Get(t.who)
	case x.Map != nil:
		var attrs []value.Attr
		for i := range x.Map {
			attrs = append(attrs, value.Attr{Name: x.Map[i].Name, Value: t.evalExpr(&x.Map[i].Expr, row, d)})
		}
		if it := value.NewItem(attrs...); len(it) > 0 {
			return value.OfMap(it)
		}
		return value.Value{}
	case x.Record != "":
		return d.recordValue(x.Record)
	}
	return x.Const
}

// recordValue is the value that the record of a deed has for a name.
func (d *deed) recordValue(what string) value.Value {
	switch what {
	case "$time":
		return value.OfString(d.record.Time.UTC().Format("2006-01-02T15:04:05.000000Z"))
	case "$position":
		return value.OfString(fmt.Sprintf("%040s", d.record.Position))
	case "$event":
		if d.event == "ENTER" || d.event == "LEAVE" {
			return value.OfString(d.event)
		}
		return value.OfString(d.record.Event())
	case "$key":
		return value.OfMap(d.table.Item(d.key))
	case "$old":
		return attributesUnlike(d.was, d.is)
	case "$new":
		return attributesUnlike(d.is, d.was)
	}
	return value.Value{}
}

// attributesUnlike is the attributes of a that b has not, or has with other values; missing for none.
func attributesUnlike(a, b value.Item) value.Value {
	var out value.Item
	for _, x := range a {
		if !value.Equal(x.Value, b.Get(x.Name)) {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return value.Value{}
	}
	return value.OfMap(out)
}

// noteDeeds notes the last value of every field that is followed, and when each row was last
// written.
func (t *truth) noteDeeds() {
	for _, d := range t.deeds {
		t.written[refName(store.Ref{Table: d.table.Name, Key: d.key})] = d.when
		if e := d.table.Classify(d.is); e != nil {
			for _, f := range e.Follow {
				t.followed[f.Field.Name+"|"+refName(store.Ref{Table: d.table.Name, Key: d.key})] = f.Field.Get(d.is)
			}
		}
	}
}

// followedBy is the value that a row follows, and whether it is certain. It is not if the
// row keeps the last value of a deleted row: where records were lost, nothing says what
// that was.
func (t *truth) followedBy(f *model.Follow, row value.Item) (v value.Value, certain bool) {
	key, ok := f.Followed(row)
	if !ok {
		return value.Value{}, f.Rule == nil
	}
	name := refName(store.Ref{Table: f.Source.Table.Name, Key: key})
	if f.Source.Derived {
		k := t.rows[name]
		if k == nil {
			return value.Value{}, !f.Keep
		}
		return k.image.Get(f.Field.Attr), true
	}
	is := t.base.tables[f.Source.Table.Name].get(key)
	stands := is != nil && f.Source.Table.Classify(is) == f.Source
	if !stands && !f.Keep {
		return value.Value{}, true
	}
	if stands && (isTallied(f.Source, f.Field.Attr) || isCovered(f.Source, f.Field.Attr)) { // it is derived: no deed has it
		if k := t.rows[name]; k != nil {
			v = k.image.Get(f.Field.Attr)
		}
		return v, true
	}
	return t.followed[f.Field.Name+"|"+refName(store.Ref{Table: f.Source.Table.Name, Key: key})], stands
}

// mayLapse reports whether a row may have begun to follow a deleted row when weir no longer had
// to keep its last value: a tombstone's life lies between the last writes of both. Where
// streams keep all records, weir may have been late by any time; and a row that is derived
// itself may be newer than all deeds.
func (t *truth) mayLapse(f *model.Follow, of *model.Entity, row value.Item) bool {
	source, _ := f.Followed(row)
	gone, ok := t.written[refName(store.Ref{Table: f.Source.Table.Name, Key: source})]
	if !ok {
		return false
	}
	key, _ := t.base.tables[of.Table.Name].KeyOf(row)
	began, ok := t.written[refName(store.Ref{Table: of.Table.Name, Key: key})]
	if !ok || t.way == byFollower {
		began = t.clock
	}
	return began.Sub(gone) > tombs
}

// sums are the values tallied on one row.
type sums struct {
	entity *model.Entity
	table  *model.Table
	key    store.Key
	rows   map[*model.Tally]int64
	sum    map[*model.Tally]*big.Rat
	values map[*model.Tally]map[string]int
}

// countRows tallies the rows and makes them the rows of the truth, with the values that they show.
func (t *truth) countRows(rows []*known) {
	tallies := map[string]*sums{}
	for _, k := range rows {
		if k.entity == nil {
			continue
		}
		for _, s := range k.entity.Sources {
			t.tallyRow(tallies, s, k.image)
		}
	}
	t.rows, t.order = map[string]*known{}, nil
	for _, k := range rows {
		before := k.image
		k.image = t.showLatest(k, t.showStatuses(k, rows), rows)
		attrs, _ := shownValues(k.entity, tallies[k.name()])
		if k.entity != nil {
			attrs = append(attrs, seq.Map(k.entity.Follows, func(f *model.Follow) value.Attr { return value.Attr{Name: f.Attr, Value: before.Get(f.Attr)} })...)
		}
		for _, a := range attrs {
			k.image = k.image.With(a)
		}
		t.order = append(t.order, k.name())
		t.rows[k.name()] = k
	}
	for _, k := range rows {
		t.showFollowed(k)
	}
	t.noteTallied(tallies)
}

// tallyRow adds a row to the sums of the row that it counts for, if it counts.
func (t *truth) tallyRow(all map[string]*sums, s *model.Source, row value.Item) {
	if !passesTests(s.Where, row) {
		return
	}
	var v value.Value
	if s.Amount != nil {
		if v = amountOf(s, row); v.IsMissing() || v.Kind() == value.Null {
			return
		}
	}
	key, ok := s.Tally.Target.KeyFrom(s.To, row)
	if s.Tally.Group != nil {
		key, _, ok = groupOf(s.Tally.Target, s.To, row)
	}
	if !ok || s.Tally.Target.Table.CheckKey(key) != nil {
		return
	}
	name := refName(store.Ref{Table: s.Tally.Target.Table.Name, Key: key})
	to := all[name]
	if to == nil {
		to = &sums{s.Tally.Target, s.Tally.Target.Table, key, map[*model.Tally]int64{}, map[*model.Tally]*big.Rat{}, map[*model.Tally]map[string]int{}}
		all[name] = to
	}
	switch s.Tally.Kind {
	case aggregate.Count:
		if s.Amount != nil && v.Kind() != value.Number {
			return
		}
	case aggregate.Sum, aggregate.Mean:
		if v.Kind() != value.Number || !s.Amount.Computed() && !isSummable(ratOf(v), isWhole(s, s.Amount.Text)) {
			return
		}
		if to.sum[s.Tally] == nil {
			to.sum[s.Tally] = new(big.Rat)
		}
		to.sum[s.Tally].Add(to.sum[s.Tally], ratOf(v))
	case aggregate.Distinct, aggregate.Set:
		text := value.Scalar(v)
		if text == "" || len(text) > 1024 || s.Tally.Kind == aggregate.Set && !s.Tally.Target.Takes(key) {
			return
		}
		if to.values[s.Tally] == nil {
			to.values[s.Tally] = map[string]int{}
		}
		to.values[s.Tally][text]++
	}
	to.rows[s.Tally]++
}

func ratOf(v value.Value) *big.Rat {
	r, _ := new(big.Rat).SetString(v.Text())
	return r
}

// shownValues are the values that a row shows of its sums, where none means that nothing was counted. Of a
// distinct over its max the row shows nothing, and well is false.
func shownValues(e *model.Entity, s *sums) (out []value.Attr, well bool) {
	well = true
	if e == nil {
		return nil, well
	}
	if s == nil {
		s = &sums{}
	}
	for _, t := range e.Values {
		v := value.Value{}
		switch {
		case t.Hidden || t.Kind == aggregate.Set:
			continue
		case t.Kind == aggregate.Count:
			v = value.OfInt(s.rows[t])
		case t.Kind == aggregate.Distinct:
			if v = value.OfInt(int64(len(s.values[t]))); t.Max > 0 && len(s.values[t]) > t.Max {
				v, well = value.Value{}, false
			}
		case t.Kind == aggregate.Sum && s.sum[t] == nil:
			v = value.OfInt(0)
		case t.Kind == aggregate.Sum:
			v = roundedNumber(s.sum[t], 60)
		case s.rows[t] > 0:
			v = roundedNumber(new(big.Rat).Quo(s.sum[t], new(big.Rat).SetInt64(s.rows[t])), t.Round)
		}
		out = append(out, value.Attr{Name: t.Attr, Value: v})
	}
	return out, well
}

// roundedNumber rounds half away from zero. It returns a missing value if no number can hold the
// result.
func roundedNumber(r *big.Rat, places int) value.Value {
	v, err := value.ParseNumber(r.FloatString(places))
	if err != nil {
		return value.Value{}
	}
	return v
}

// showStatuses is a row with the statuses to which the existing rows take it.
func (t *truth) showStatuses(k *known, rows []*known) value.Item {
	if k.entity == nil {
		return k.own
	}
	out := k.own
	k.over = nil
	for _, s := range k.entity.Statuses {
		at := s.Attr.Rank(k.own.Get(s.Attr.Name))
		for _, st := range s.Stages {
			by, ok, over := reachedStage(k, st, rows)
			if over {
				k.over = append(k.over, s.Name+" "+st.Word)
			}
			if !ok {
				continue
			}
			var latest *known
			for _, r := range by {
				if latest == nil || afterAll(st.Set, r, latest) {
					latest = r
				}
			}
			for _, set := range st.Set {
				v := set.Expr.Field.Get(latest.image)
				if over { // which row is the latest is not known
					out = out.With(value.Attr{Name: set.Name, Value: k.own.Get(set.Name)})
				} else if !v.IsMissing() {
					out = out.With(value.Attr{Name: set.Name, Value: v})
				}
			}
			if st.Rank > at {
				at = st.Rank
				out = out.With(value.Attr{Name: s.Attr.Name, Value: value.OfString(st.Word)})
			}
		}
	}
	return out
}

// reachedStage reports whether a row has reached a stage of a status, because of which rows, and
// whether there are more of them, or of what there must be one for, than the stage looks at.
func reachedStage(k *known, st *model.Stage, rows []*known) (by []*known, ok, over bool) {
	for _, r := range rows {
		if r.entity == nil || r.entity != st.Source || !passesTests(st.Where, r.image) {
			continue
		}
		if key, ok := st.Status.Target.KeyFrom(st.To, r.image); ok && refName(store.Ref{Table: k.table.Name, Key: key}) == k.name() && st.Status.Target.Table == k.table {
			by = append(by, r)
		}
	}
	most := st.Max
	if most == 0 {
		most = math.MaxInt
	}
	if st.List == nil {
		return by, len(by) > 0, len(by) > most
	}
	elements := 0
	want := map[string]bool{}
	if v := k.own.Get(st.List.Name); v.Kind() == value.List || v.Kind() == value.StringSet || v.Kind() == value.NumberSet {
		for _, el := range v.Elements() {
			if who := value.Scalar(el.Value); who != "" {
				want[who] = true
				elements++
			}
		}
	} else if o := st.List.Others; o != nil {
		for _, r := range rows {
			if r.entity == o.Of && isAwaited(o, k.own, r.image) {
				want[value.Scalar(o.Field.Get(r.image))] = true
			}
		}
		elements = len(want)
	}
	if elements > most {
		return nil, false, true
	}
	var of []*known
	for who := range want {
		i := slices.IndexFunc(by, func(r *known) bool { return value.Scalar(st.Who.Get(r.image)) == who })
		if i < 0 {
			return nil, false, false
		}
		of = append(of, by[i])
	}
	return of, len(of) > 0, false
}

// isAwaited reports whether another row is one of those that a row's status waits for.
func isAwaited(o *model.Others, row, other value.Item) bool {
	for i := range o.Key {
		mine := o.Key[i].Expr.Const
		if f := o.Key[i].Expr.Field; f != nil {
			mine = f.Get(row)
		}
		if text := value.Scalar(mine); text == "" || text != value.Scalar(o.Links[i].Get(other)) {
			return false
		}
	}
	return true
}

// afterAll reports whether row a is later than b: by the first field of the set in which
// they differ, and a field that is there is later than none.
func afterAll(set []model.Assign, a, b *known) bool {
	for _, s := range set {
		x, y := s.Expr.Field.Get(a.image), s.Expr.Field.Get(b.image)
		if x.IsMissing() || y.IsMissing() || value.Equal(x, y) {
			if x.IsMissing() != y.IsMissing() {
				return y.IsMissing()
			}
			continue
		}
		return isLater(x, y)
	}
	return false
}

// isLater reports whether a is later than b: as times if both are times, else in order. A time
// comes after a text that is none.
func isLater(a, b value.Value) bool {
	s, errS := time.Parse(time.RFC3339, a.Text())
	u, errU := time.Parse(time.RFC3339, b.Text())
	if a.Kind() != b.Kind() {
		return a.Kind() > b.Kind()
	}
	if errS == nil && errU == nil && !s.Equal(u) {
		return s.After(u)
	}
	if a.Kind() == value.String && (errS == nil) != (errU == nil) {
		return errS == nil
	}
	return value.Compare(a, b) > 0
}

// addFailure notes a failure.
func (w *world) addFailure(class Class, what string, args ...any) {
	if len(w.failures) < 20 {
		w.failures = append(w.failures, Failure{class, fmt.Sprintf(what, args...)})
	}
}

// keptRows are the rows that have dead letters or parked effects.
func (w *world) keptRows() map[string]bool {
	kept := map[string]bool{}
	for _, d := range w.operatorLetters() {
		if mt := w.base.tables[d.Table]; mt != nil {
			key, _ := mt.KeyOf(d.Key)
			kept[refName(store.Ref{Table: mt.Name, Key: key})] = true
		}
	}
	return kept
}

// noteWrong notes a row or a document that is not as it must be.
func (t *truth) noteWrong(name string, class Class, what string, args ...any) {
	if t.differ == nil {
		t.addFailure(class, what, args...)
		return
	}
	t.differ[name] = true
}

// compareRows compares every row of the store with the truth, in both directions.
func (t *truth) compareRows() {
	kept := t.keptRows()
	for _, name := range t.order {
		k := t.rows[name]
		row := t.base.tables[k.table.Name].get(k.key)
		if kept[name] && (row == nil || k.entity.IsRecomputed()) {
			continue
		}
		if row == nil {
			t.noteWrong(name, Lost, "lost: %s is not there, should be %s", name, plainText(k.image))
			continue
		}
		have := ownAttributes(row)
		if t.trims.hasGaps() || t.built { // no row has the last values of a deleted one
			for _, a := range k.last {
				k.image = k.image.With(value.Attr{Name: a, Value: have.Get(a)})
			}
		}
		for _, a := range k.lapsed {
			if !have.Has(a) && k.image.Has(a) {
				k.image = k.image.With(value.Attr{Name: a})
				t.forgot[name] = true
			}
		}
		want := k.image
		if k.entity != nil && k.entity.Derived { // rows that other programs put there do not matter
			want = want.Filter(func(n string) bool { return n != ballast })
		}
		if !value.EqualItems(have, want) {
			t.noteWrong(name, Reordered, "state: %s is %s, should be %s", name, difference(have, want), difference(want, have))
		}
	}
	for _, mt := range t.model.Tables {
		t.base.tables[mt.Name].eachRow(func(key store.Key, row value.Item) {
			name := refName(store.Ref{Table: mt.Name, Key: key})
			e := mt.Classify(row)
			if t.rows[name] == nil && !(e != nil && (e.SetOf() != nil || isHistory(e))) {
				t.noteWrong(name, Doubled, "invented: %s exists: %s", name, plainText(row))
			}
		})
	}
	if !t.built { // indexes are not built here
		t.compareDocuments()
	}
	t.emptyLedgers()
	if t.differ == nil {
		t.compareUncomputed(kept)
	}
}

// compareUncomputed compares the dead letters about values that cannot be computed with the rows, in
// both directions.
func (t *truth) compareUncomputed(kept map[string]bool) {
	t.overMax(kept)
	said := map[string]bool{}
	for _, e := range t.model.Entities {
		of := t.model.Name
		if b, _ := t.catalogRow().Builds.Of(e.Name); b.State.IsShown() { // letters of replaced ledgers are left out
			of = b.Ledgers(of)
		}
		for _, d := range t.lettersIn(owntable.Dead(of)) {
			if d.Kind == string(deadletter.Number) && len(e.Values) > 0 && d.Table == e.Table.Name && e.MatchKey(d.Key) {
				key, _ := t.base.tables[d.Table].KeyOf(d.Key)
				said[refName(store.Ref{Table: d.Table, Key: key})] = true
			}
		}
	}
	for name, s := range t.members {
		_, well := shownValues(s.entity, s)
		if !well {
			t.counted["values that cannot be shown"]++
		}
		if well && said[name] && !kept[name] {
			t.addFailure(Doubled, "dead letter: what is derived on %s can be shown, and it is said that it cannot", name)
		} else if !well && !said[name] && !kept[name] {
			t.addFailure(Lost, "dead letter: what is derived on %s cannot be shown, and nothing says so", name)
		}
		delete(said, name)
	}
	for name := range said {
		t.addFailure(Doubled, "dead letter: nothing is derived on %s, and it is said that it cannot be shown", name)
	}
}

// overMax compares the dead letters about statuses with the rows, in both directions: what they
// name must be the stages that have too many rows.
func (t *truth) overMax(kept map[string]bool) {
	said := map[string]string{}
	for _, e := range t.model.Entities {
		of := t.model.Name
		if b, _ := t.catalogRow().Builds.Of(e.Name); b.State.IsShown() {
			of = b.Ledgers(of)
		}
		for _, d := range t.lettersIn(owntable.Dead(of)) {
			if d.Kind == string(deadletter.Status) && len(e.Statuses) > 0 && d.Table == e.Table.Name && e.MatchKey(d.Key) {
				key, _ := t.base.tables[d.Table].KeyOf(d.Key)
				said[refName(store.Ref{Table: d.Table, Key: key})] = d.Reason
			}
		}
	}
	for _, name := range t.order {
		k, reason := t.rows[name], said[name]
		delete(said, name)
		if len(k.over) > 0 {
			t.counted["statuses over their max"]++
		}
		if kept[name] {
			continue
		}
		named := 0
		for _, stage := range k.over {
			if strings.Contains(reason, stage+": ") {
				named++
			} else {
				t.addFailure(Lost, "dead letter: %s of %s has more rows than its max, and nothing says so", stage, name)
			}
		}
		if n := strings.Count(reason, "the max of this step"); n > named {
			t.addFailure(Doubled, "dead letter: of %s it is said that a status cannot be computed which can: %s", name, reason)
		}
	}
	for name := range said {
		t.addFailure(Doubled, "dead letter: %s is not there, and it is said that its status cannot be computed", name)
	}
}

// difference is the part of one row that another row does not have.
func difference(a, b value.Item) string {
	var out value.Item
	for _, x := range a {
		if !value.Equal(x.Value, b.Get(x.Name)) {
			out = append(out, x)
		}
	}
	return plainText(out)
}

// ownAttributes is a row without the attributes that only weir reads.
func ownAttributes(row value.Item) value.Item {
	return row.Filter(func(name string) bool { return !owntable.IsOurs(name) })
}

func plainText(it value.Item) string {
	s := string(value.AppendPlainItem(nil, it))
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}

// noteTallied notes the tallied values, for compareSets and compareUncomputed.
func (t *truth) noteTallied(all map[string]*sums) {
	t.members = all
}

// compareSets compares the members of each set with the rows that the set is split into.
func (t *truth) compareSets() {
	for _, e := range t.model.Entities {
		set := e.SetOf()
		if set == nil {
			continue
		}
		have := map[string]map[string]bool{}
		t.base.tables[e.Table.Name].eachRow(func(key store.Key, row value.Item) {
			if e.Table.Classify(row) != e {
				return
			}
			root, _, ok := e.LeafPath(key)
			if !ok {
				t.addFailure(Doubled, "set: %s is none of a set's rows", refName(store.Ref{Table: e.Table.Name, Key: key}))
				return
			}
			name := refName(store.Ref{Table: e.Table.Name, Key: root})
			if have[name] == nil {
				have[name] = map[string]bool{}
			}
			for _, el := range row.Get(set.Attr).Elements() {
				if m := value.Scalar(el.Value); have[name][m] {
					t.noteWrong(name, Doubled, "set: %s has %q twice", name, m)
				} else {
					have[name][m] = true
				}
			}
		})
		for name, s := range t.members {
			for m := range s.values[set] {
				if !have[name][m] {
					t.noteWrong(name, Lost, "set: %s has no %q", name, m)
				}
				delete(have[name], m)
			}
		}
		for name, rest := range have {
			for m := range rest {
				t.noteWrong(name, Doubled, "set: %s has %q, and no row says so", name, m)
			}
		}
	}
}

// compareDocuments compares the index with the rows.
func (t *truth) compareDocuments() {
	want := map[string]search.Document{}
	for _, name := range t.order {
		k := t.rows[name]
		if k.entity == nil {
			continue
		}
		for _, s := range k.entity.Search {
			if !passesTests(s.Where, k.image) {
				continue
			}
			d := search.Document{Index: t.model.Name + "-" + s.Name, ID: search.ID(k.key), Values: map[string]value.Value{}}
			for _, f := range s.Text {
				d.Text = appendTexts(d.Text, fieldValue(f, k.image))
			}
			for _, f := range slices.Concat(s.Filters, s.Sorts) {
				if v := fieldValue(f, k.image); !v.IsMissing() {
					d.Values[f.Name] = indexedValue(s.Of, f.Name, v)
				}
			}
			if d.Check() == nil {
				want[docName(&d)] = d
			}
		}
	}
	for name, d := range t.index.docs {
		if w, ok := want[name]; ok && (d.Deleted || !slices.Equal(d.Text, w.Text) || !sameValues(d.Values, w.Values)) {
			t.noteWrong(name, Reordered, "search: %q is %v %q %v, should be %q %v", name, d.Deleted, d.Text, d.Values, w.Text, w.Values)
		} else if !ok && !d.Deleted {
			t.noteWrong(name, Doubled, "search: %q is found, and should not be", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.noteWrong(name, Lost, "search: %q is not found", name)
	}
}

// indexedValue is a value of a filter or a sort as documents have it: a time is the seconds since 100,000,000,000 seconds
// before 1970, in twelve digits, with all of its decimals.
func indexedValue(e *model.Entity, name string, v value.Value) value.Value {
	a := e.Attribute(name)
	if a == nil || a.Type != model.TypeTime {
		return v
	}
	at := instantSeconds(v)
	if at == nil {
		return v
	}
	at = new(big.Rat).Add(at, new(big.Rat).SetInt64(100_000_000_000))
	whole, decimals, _ := strings.Cut(at.FloatString(40), ".")
	return value.OfString(strings.Repeat("0", 12-len(whole)) + whole + "." + strings.TrimRight(decimals, "0"))
}

func sameValues(a, b map[string]value.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if !value.Equal(v, b[name]) {
			return false
		}
	}
	return true
}

// appendTexts appends all strings and numbers inside a value, in order.
func appendTexts(out []string, v value.Value) []string {
	switch v.Kind() {
	case value.String, value.Number:
		return append(out, v.Text())
	case value.Map:
		for _, a := range v.Item() {
			out = appendTexts(out, a.Value)
		}
	case value.List, value.StringSet, value.NumberSet:
		for _, el := range v.Elements() {
			out = appendTexts(out, el.Value)
		}
	}
	return out
}

// compareHistory compares history with one pass over the acts of the application.
func (t *truth) compareHistory() {
	want, may := map[string]*known{}, map[string]*known{}
	for _, d := range t.deeds {
		if d.moved {
			continue
		}
		was, is := d.table.Classify(d.was), d.table.Classify(d.is)
		for _, r := range t.model.Rows {
			if len(r.Keep) == 0 || r.Source != was && r.Source != is {
				continue
			}
			event, image := historyEvent(r, d, was, is)
			if event == "" {
				continue
			}
			d.event = event
			if r.Subscribers != nil {
				t.tellFollowers(r, image, d, want, may)
			} else if k, ok := t.makeRow(r, image, d); ok {
				want[k.name()] = k
			}
		}
	}
	kept := t.keptRows()
	for name, k := range want {
		row := t.base.tables[k.table.Name].get(k.key)
		t.showFollowed(k)
		have := ownAttributes(row)
		if t.touched[name] || row == nil && kept[name] {
			continue
		}
		if row == nil {
			t.addFailure(Lost, "history: %s is not there, should be %s", name, plainText(k.image))
		} else if !value.EqualItems(have, k.image) {
			t.addFailure(Reordered, "history: %s is %s, should be %s", name, difference(have, k.image), difference(k.image, have))
		}
	}
	for _, mt := range t.model.Tables {
		t.base.tables[mt.Name].eachRow(func(key store.Key, row value.Item) {
			name := refName(store.Ref{Table: mt.Name, Key: key})
			if e := mt.Classify(row); e != nil && isHistory(e) && want[name] == nil && may[name] == nil && !t.touched[name] {
				t.addFailure(Doubled, "history: %s exists, and nothing was done that made it: %s", name, plainText(row))
			}
		})
	}
}

// historyEvent returns the event of a deed that a rule makes an entry of, "" for none, and the row that the entry is made from.
func historyEvent(r *model.RowRule, d *deed, was, is *model.Entity) (event string, image value.Item) {
	if was == is && value.EqualItems(d.was, d.is) {
		return "", nil
	}
	had, has := was == r.Source && passesTests(r.Where, d.was), is == r.Source && passesTests(r.Where, d.is)
	for _, e := range []struct {
		event    string
		happened bool
		image    value.Item
	}{
		{"MODIFY", has && was == r.Source, d.is},
		{"INSERT", has && was != r.Source, d.is},
		{"REMOVE", had && d.is == nil, d.was},
		{"ENTER", has && !had, d.is},
		{"LEAVE", had && !has, d.was},
	} {
		if e.happened && slices.Contains(r.Keep, e.event) {
			return e.event, e.image
		}
	}
	return "", nil
}

// sumRecords is how many records a table's streams have had.
func sumRecords(t *table) (n int) {
	for _, s := range t.shards {
		n += len(s.records)
	}
	return n
}
