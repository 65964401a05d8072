package sim

import (
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// showLatest returns a row with the values that it shows of the latest of rows: each time all rows are compared.
func (t *truth) showLatest(k *known, image value.Item, rows []*known) value.Item {
	if k.entity == nil {
		return image
	}
	for _, l := range k.entity.Latest {
		var best *known
		for _, r := range rows {
			if takesPart(k, l, r) && (best == nil || comesBefore(l, best, r) == l.Greatest()) {
				best = r
			}
		}
		for _, a := range l.Set {
			v := value.Value{}
			if k.entity.Attribute(a.Name) != nil {
				v = k.own.Get(a.Name) // the application's own, where no row gives one
			}
			if best != nil {
				if is := fieldValue(a.Expr.Field, best.image); !is.IsMissing() || k.entity.Attribute(a.Name) == nil {
					v = is
				}
			}
			image = image.With(value.Attr{Name: a.Name, Value: v})
		}
	}
	return image
}

// takesPart reports whether a row is one of those of which the target shows the latest.
func takesPart(target *known, l *model.Latest, r *known) bool {
	if r.entity == nil || r.entity != l.Source || !passesTests(l.Where, r.image) {
		return false
	}
	if v := fieldValue(l.By, r.image); v.Kind() != value.Number && (v.Kind() != value.String || len(v.Text()) > 250) {
		return false
	}
	bytes := 0
	for _, a := range l.Set {
		if v := fieldValue(a.Expr.Field, r.image); !v.IsMissing() {
			bytes += (value.Item{{Name: a.Name, Value: v}}).Size()
		}
	}
	key, ok := l.Target.KeyFrom(l.To, r.image)
	if l.Target.Group != nil {
		key, _, ok = groupOf(l.Target, l.To, r.image)
	}
	return ok && bytes <= 32<<10 && l.Target.Table == target.table && refName(store.Ref{Table: target.table.Name, Key: key}) == target.name()
}

// comesBefore reports whether row a comes before row b by the field that orders them: numbers, then
// texts, then times; of equal ones the row with the lower key.
func comesBefore(l *model.Latest, a, b *known) bool {
	x, y := fieldValue(l.By, a.image), fieldValue(l.By, b.image)
	s, atA := timeOf(x)
	u, atB := timeOf(y)
	if x.Kind() != y.Kind() {
		return x.Kind() == value.Number
	}
	if atA != atB {
		return atB
	}
	order := strings.Compare(x.Text(), y.Text())
	if x.Kind() == value.Number {
		order = ratOf(x).Cmp(ratOf(y))
	} else if atA {
		order = s.Compare(u)
	}
	if order != 0 {
		return order < 0
	}
	return tieText(a.key) < tieText(b.key)
}

// timeOf is a text as a time.
func timeOf(v value.Value) (time.Time, bool) {
	if v.Kind() != value.String {
		return time.Time{}, false
	}
	if t, err := time.Parse(time.DateOnly, v.Text()); err == nil {
		return t, true
	}
	t, err := time.Parse(time.RFC3339, v.Text())
	return t, err == nil
}

// tieText is a key, of texts, as a text. Of a long one the beginning and a hash decide.
func tieText(k store.Key) string {
	parts := []string{k.Partition.Text(), k.Sort.Text(), ""}
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", "\x00\xff")
	}
	text := strings.Join(parts, "\x00\x01")
	if len(text) > 250 {
		return text[:225] + owntable.Hash(text)
	}
	return text
}
