package sim

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// groupOf is the key of the group of an entity that a row is in, and the values that the group has in
// common, by the names of the key.
func groupOf(e *model.Entity, to []model.Assign, row value.Item) (key store.Key, vals map[string]value.Value, ok bool) {
	vals = map[string]value.Value{}
	for _, a := range to {
		switch x := a.Expr; {
		case x.Bucket != nil:
			text, ok := bucketText(x.Bucket, fieldValue(x.Bucket.Of, row))
			if !ok {
				return key, nil, false
			}
			vals[a.Name] = value.OfString(text)
		case x.Field != nil:
			vals[a.Name] = fieldValue(x.Field, row)
		default:
			vals[a.Name] = x.Const
		}
	}
	keys := map[string]value.Value{}
	for _, kt := range e.PrimaryKey() {
		v, ok := kt.Build(func(name string) value.Value { return spellKey(kt, vals[name]) })
		if !ok {
			return key, nil, false
		}
		keys[kt.Attr.Name] = v
	}
	if key, ok = keyOf(&e.Table.Table, keys); !ok || e.Table.CheckKey(key) != nil {
		return key, nil, false
	}
	return key, vals, true
}

// spellKey is a value as it stands in a key that weir makes: numbers and booleans as their text,
// which is escaped.
func spellKey(kt *model.KeyTemplate, v value.Value) value.Value {
	if kt.Attr.Type != value.String {
		return v
	}
	return value.OfString(kt.Template.Escape(value.Scalar(v)))
}

// bucketText is the part of the calendar that a time is in. It counts days by itself.
func bucketText(b *model.Bucket, v value.Value) (string, bool) {
	at, ok := instantOf(b, v)
	if !ok {
		return "", false
	}
	_, east := at.In(b.Zone).Zone()
	at = at.UTC().Add(time.Duration(east) * time.Second)
	year, month, day := at.Date()
	switch b.Unit {
	case model.Hour:
		sign, away := "+", east/60
		if away < 0 {
			sign, away = "-", -away
		}
		zone := fmt.Sprintf("%s%02d:%02d", sign, away/60, away%60)
		if east == 0 {
			zone = "Z"
		}
		return fmt.Sprintf("%04d-%02d-%02dT%02d%s", year, month, day, at.Hour(), zone), true
	case model.Day:
		return fmt.Sprintf("%04d-%02d-%02d", year, month, day), true
	case model.Month:
		return fmt.Sprintf("%04d-%02d", year, month), true
	case model.Week: // that of its Thursday, which is as manieth as its day of the year says
		thursday := at.AddDate(0, 0, 3-(int(at.Weekday())+6)%7)
		return fmt.Sprintf("%04d-W%02d", thursday.Year(), (thursday.YearDay()+6)/7), true
	}
	return fmt.Sprintf("%04d", year), true
}

// instantOf is the time that a value means: a text that is a time, or a number since 1970, rounded
// down to a second. It computes with fractions.
func instantOf(b *model.Bucket, v value.Value) (time.Time, bool) {
	since := instantSeconds(v)
	if b.Epoch != "" {
		since = nil
		if n, err := value.ParseNumber(v.Text()); err == nil && (v.Kind() == value.Number || v.Kind() == value.String) {
			since, _ = new(big.Rat).SetString(n.Text())
		}
	}
	if since == nil {
		return time.Time{}, false
	}
	if b.Epoch == model.AsMilliseconds {
		since.Quo(since, big.NewRat(1000, 1))
	}
	whole := new(big.Int).Div(since.Num(), since.Denom()) // rounds down
	if !whole.IsInt64() {
		return time.Time{}, false
	}
	at := time.Unix(whole.Int64(), 0).UTC()
	return at, at.Year() >= -1 && at.Year() <= 10000
}

// groupRows are the rows of the groups that the rows of the round before are in, with the
// values of then.
func groupRows(rows []*known) (out []*known) {
	met := map[string]bool{}
	for _, r := range rows {
		if r.entity == nil {
			continue
		}
		for _, s := range r.entity.Sources {
			g := s.Tally.Group
			if g == nil || s.Tally != g.Rows || !passesTests(s.Where, r.image) {
				continue
			}
			key, vals, ok := groupOf(g.Into, s.To, r.image)
			if !ok {
				continue
			}
			k := &known{table: g.Into.Table, key: key, entity: g.Into}
			if met[k.name()] {
				continue
			}
			met[k.name()] = true
			k.own = groupRow(g.Into, key, vals)
			k.image = k.own
			if i := slices.IndexFunc(rows, func(was *known) bool { return was.entity == g.Into && was.name() == k.name() }); i >= 0 {
				k.image = rows[i].image // other derivations from it see its values
			}
			out = append(out, k)
		}
	}
	return out
}

func groupRow(e *model.Entity, key store.Key, vals map[string]value.Value) value.Item {
	row := e.Table.Item(key)
	for _, t := range e.Where {
		if v, ok := t.Only(); ok {
			row = row.With(value.Attr{Name: t.Field.Attr, Value: v})
		}
	}
	for i, kt := range e.Keys {
		v, _ := kt.Build(func(name string) value.Value { return spellKey(kt, vals[name]) })
		if _, derived := vals[kt.Attr.Name]; i >= len(e.PrimaryKey()) && !derived && e.Attribute(kt.Attr.Name) == nil {
			row = row.With(value.Attr{Name: kt.Attr.Name, Value: v})
		}
		for _, name := range kt.Template.Names() {
			text := value.Scalar(vals[name])
			if e.Attribute(name) != nil && e.KeyTemplate(name) == nil || !kt.Template.Whole() && strings.ContainsFunc(text, func(r rune) bool { return kt.Template.Escape(string(r)) != string(r) }) {
				row = row.With(value.Attr{Name: name, Value: value.OfString(text)})
			}
		}
	}
	return row
}

// isGroupValue reports whether an attribute of a group's row is one of its values.
func isGroupValue(e *model.Entity, name string) bool {
	return slices.ContainsFunc(e.Values, func(t *model.Tally) bool { return t.Attr == name }) ||
		slices.ContainsFunc(e.Latest, func(l *model.Latest) bool { return slices.Contains(l.Attributes(), name) })
}

// emptyLedgers checks that the ledgers of groups without rows expire. Those that a build has
// replaced stay until they are pruned, and those that no row shows yet may stay. After a gap
// one may stay too: nothing that is read again leads to it.
func (t *truth) emptyLedgers() {
	if t.trims.hasGaps() {
		return
	}
	under := map[*model.Entity]string{}
	for _, e := range t.model.Entities {
		under[e] = owntable.Ledgers(t.model.Name)
	}
	for _, b := range t.shownBuilds() {
		under[t.model.Entity(b.Entity)] = owntable.Ledgers(b.Ledgers(t.model.Name))
	}
	t.base.tables[owntable.TableName].eachRow(func(k store.Key, row value.Item) {
		at := k.Partition.Text()
		_, name, _ := strings.Cut(at, "|")
		_, name, _ = strings.Cut(name, "|")
		to, told := owntable.RowOf(name)
		e := t.ofGroup(to)
		if !told || e == nil || at != under[e]+name || row.Has(owntable.Expiry) || row.Has(owntable.Stale) {
			return
		}
		for _, a := range row {
			if owntable.IsSum(a.Name) && a.Value.Sign() != 0 {
				return
			}
		}
		t.addFailure(Doubled, "ledger: %s stays, and its group has no rows", k.Partition.Text())
	})
}

// ofGroup is the group that has a row of this key, nil for none.
func (t *truth) ofGroup(row store.Ref) *model.Entity {
	mt := t.model.Table(row.Table)
	if mt == nil {
		return nil
	}
	i := slices.IndexFunc(mt.Entities, func(e *model.Entity) bool { return e.Group != nil && e.MatchKey(mt.Item(row.Key)) })
	if i < 0 {
		return nil
	}
	return mt.Entities[i]
}
