package console

import (
	"net/http"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/web"
)

// rowPage is one row. Each of its attributes is in one of the lists.
type rowPage struct {
	Table   string
	Entity  string
	Key     []attribute
	Own     []attribute // written by the application
	Derived []attribute // written by weir, for the application
	Kept    []attribute // weir's bookkeeping in the row
	Ledgers []ledger
	To      []linked // rows that get something from this one
	From    []linked // rows that this one was made from, or follows
	JSON    string
	Around  string // the item collection
	Gone    bool   // there is no such row
	All     bool   // weir writes all of it
}

// attribute is one attribute of a row or a ledger. Type is DynamoDB's, or, in a ledger, the use that it is
// for.
type attribute struct {
	Name  string
	Value shown
	Type  string
	Why   string // where the value is explained
	Own   *shown // the application's value where weir shows another one
}

// ledger is a row of the own table beside the row, as it is stored, without its key.
type ledger struct {
	Name       string // "" for the model's own, else the state of its build
	Attributes []attribute
}

// Title is the heading of a ledger.
func (l ledger) Title() string {
	if l.Name == "" {
		return "Ledger"
	}
	return "Ledger of the build: " + l.Name
}

// linked is a row that another one is derived from or into.
type linked struct {
	Derivation string
	Row        link
	Entity     string
}

// showRow shows one row: GET /console/{model}/row. A row that is gone has a page too, with the ledger
// that may have stayed: so a value that waits for its target can be seen.
func (c *Console) showRow(r *request) error {
	t, ref, row, err := r.stored()
	if err != nil {
		return err
	}
	m := r.part.Model
	p := rowPage{Table: t.Name, Gone: row == nil}
	p.Around = r.path("/rows", "table", t.Name, "pk", keyText(ref.Key.Partition))
	p.JSON = r.path("/row.json", "table", t.Name, "pk", keyText(ref.Key.Partition), "sk", keyText(ref.Key.Sort))
	e := entityOf(t, ref, row)
	if e != nil {
		p.Entity, p.All = e.Name, e.Derived
	}
	p.sortAttributes(r, t, e, r.part.Model.Shown(e, row), ref)
	if p.Ledgers, err = c.readLedgers(r, e, ref); err != nil {
		return err
	}
	if row != nil && e != nil {
		p.To, p.From = goesTo(m, e, row), comesFrom(m, e, row)
	}
	return r.ok("row", keyText(ref.Key.Partition), &p)
}

// entityOf returns the entity of a row or, if the row is gone, that of its key.
// It is nil for a row of no entity, and for a key that no entity makes.
func entityOf(t *model.Table, ref store.Ref, row value.Item) *model.Entity {
	if row != nil {
		return t.Classify(row)
	}
	return seq.Find(t.Entities, func(e *model.Entity) bool { return e.MatchKey(t.Item(ref.Key)) && e.Takes(ref.Key) })
}

// sortAttributes puts each attribute of a row into its list.
// The lists have the attributes in the order of the row. Where the model hides anything, values of
// weir's own attributes are not shown.
func (p *rowPage) sortAttributes(r *request, t *model.Table, e *model.Entity, row value.Item, ref store.Ref) {
	own := projections.OwnRow(e, row)
	for _, a := range row {
		one := attribute{Name: brief(a.Name, cellRunes), Value: show(a.Value, longRunes), Type: a.Value.Kind().String()}
		switch {
		case isKey(t, a.Name):
			p.Key = append(p.Key, one)
		case owntable.IsOurs(a.Name):
			if r.part.Model.Hides() {
				one.Value = shown{Text: model.HiddenText}
			}
			p.Kept = append(p.Kept, one)
		case isDerived(e, a.Name):
			one.Why = whyPath(r.part.Model, ref, a.Name)
			if was := own.Get(a.Name); !value.Equal(was, a.Value) {
				s := show(was, cellRunes)
				one.Own = &s
			}
			p.Derived = append(p.Derived, one)
		default:
			p.Own = append(p.Own, one)
		}
	}
}

// whyPath is where a derived attribute of a row is explained.
func whyPath(m *model.Model, ref store.Ref, attr string) string {
	return modelPath(m.Name, "/why", "table", ref.Table, "pk", keyText(ref.Key.Partition), "sk", keyText(ref.Key.Sort), "attr", attr)
}

// readLedgers reads the ledgers beside a row: the model's own, and that of a build of the entity.
// They are read in one call, strongly. The ledger of a build has the name of the build's state.
func (c *Console) readLedgers(r *request, e *model.Entity, ref store.Ref) (out []ledger, err error) {
	if e == nil {
		return nil, nil
	}
	m := r.part.Model
	names, refs := []string{""}, []store.Ref{owntable.Ledger(m.Name, ref)}
	states, err := r.part.Builder().States(r.ctx)
	if err != nil {
		return nil, err
	}
	for i := range states {
		if is := &states[i]; is.Entity == e.Name {
			b := owntable.Build{Generation: is.Generation}
			names, refs = append(names, string(is.State)), append(refs, owntable.Ledger(b.Ledgers(m.Name), ref))
		}
	}
	rows, err := c.system.Store.Get(r.ctx, refs)
	if err != nil {
		return nil, err
	}
	secret := m.Hides()
	for i, row := range rows {
		if row == nil {
			continue
		}
		l := ledger{Name: names[i]}
		for _, a := range row {
			if a.Name != owntable.Partition && a.Name != owntable.Sort {
				one := attribute{Name: brief(a.Name, cellRunes), Value: show(a.Value, cellRunes), Type: ledgerWord(a.Name)}
				switch {
				case owntable.IsPosition(a.Name):
					one.Value = shown{Text: positionText(a.Value)}
				case secret:
					one.Name, one.Value = accumulatorOf(a.Name), shown{Text: model.HiddenText}
				}
				l.Attributes = append(l.Attributes, one)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// positionText is a position of a ledger as people read it: the sequence number.
func positionText(v value.Value) string {
	p := events.PositionFrom(v)
	if p.IsZero() {
		return brief(text(v), cellRunes)
	}
	return p.String()
}

// accumulatorOf returns the name of an accumulator without the value that one of a distinct has in
// it, as in d:users:ida.
func accumulatorOf(name string) string {
	parts := strings.SplitN(name, ":", 3)
	if len(parts) == 3 {
		parts[2] = model.HiddenText
	}
	return brief(strings.Join(parts, ":"), cellRunes)
}

// ledgerWord is the meaning of an attribute of a ledger in words.
// "" is for attributes that need no word.
func ledgerWord(name string) string {
	switch {
	case owntable.IsPosition(name):
		return "position of a shard"
	case owntable.IsSum(name):
		return "accumulator"
	case name == owntable.Stale:
		return "dead letter of a row that refuses it"
	case name == owntable.Expiry:
		return "expiry"
	}
	return ""
}

// goesTo returns the rows that a row counts towards, or makes.
// It is worked out from the row alone, so it names targets that may not exist, and none of history
// and feeds.
func goesTo(m *model.Model, e *model.Entity, row value.Item) (out []linked) {
	for _, s := range e.Sources {
		if s.Input.Uses(row) && s.Given.Uses(row) {
			for _, key := range s.TargetKeys(row) {
				one := linked{s.Tally.Name, rowLink(m, store.Ref{Table: s.Tally.Target.Table.Name, Key: key}), s.Tally.Target.Name}
				if !slices.Contains(out, one) {
					out = append(out, one)
				}
			}
		}
	}
	return append(out, rowsFrom(m, e, row)...)
}

// rowsFrom returns the rows that a row makes or has a part in, other than by counting.
// Copies of history and rows for subscribers are left out: there may be any number of them. A row
// is listed whether it exists or not.
func rowsFrom(m *model.Model, e *model.Entity, row value.Item) (out []linked) {
	add := func(name string, into *model.Entity, key store.Key) {
		one := linked{name, rowLink(m, store.Ref{Table: into.Table.Name, Key: key}), into.Name}
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	to := func(in *model.Input, into *model.Entity, assigns []model.Assign) {
		if key, ok := into.KeyFrom(assigns, row); ok && in.Uses(row) {
			add(in.Derivation, into, key)
		}
	}
	for _, s := range e.Stages {
		to(&s.Input, s.Status.Target, s.To)
	}
	for _, l := range e.LatestOf {
		if key, unfit, ok := l.TargetOf(row); ok && unfit == nil && l.Input.Uses(row) && l.Given.Uses(row) {
			add(l.Name, l.Target, key)
		}
	}
	for _, rule := range e.Rules {
		if len(rule.Keep) > 0 || rule.Subscribers != nil {
			continue
		}
		if p, ok := copies.MakeCopy(rule, row); ok {
			add(rule.Name, rule.Into, p.Row.Key)
		}
	}
	return out
}

// comesFrom returns the rows that a copy was made from, and those whose values it follows.
// The rows are named by the copy's attributes of their keys; a source that is gone is linked all the
// same.
func comesFrom(m *model.Model, e *model.Entity, row value.Item) (out []linked) {
	for rule, source := range copies.Makers(e, row) {
		out = append(out, linked{rule.Name, rowLink(m, source), rule.Source.Name})
	}
	return out
}

// rowJSON answers with a row as it is stored.
// Values that the model hides are replaced by a word. That there is no such row is a 404.
func (c *Console) rowJSON(r *request) error {
	t, _, row, err := r.stored()
	if err != nil {
		return err
	}
	if row == nil {
		web.ProblemOf(http.StatusNotFound, "missing", "there is no such row").Write(r.w)
		return nil
	}
	setHeaders(r.w, "application/json")
	_, err = r.w.Write(append(value.AppendTypedItem(nil, r.part.Model.Shown(t.Classify(row), row)), '\n'))
	if err != nil {
		return http.ErrAbortHandler
	}
	return nil
}
