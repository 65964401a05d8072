package owntable

import (
	"fmt"
	"math"
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of value|MODEL|ROW count, for each value of a distinct, how many source
// rows have it. A worker changes them in the transaction that counts in the ledger of that row,
// on condition that each is as it was read. So the ledger's positions, or the marks beside it, say
// for all of them their counts, and they need none of their own. In the same transaction the
// ledger's a:ATTR changes by how many values came or went. A row that comes to 0 is deleted. Each
// has 100 bytes, its value and the names in its key.
const (
	valueRows = Count
	valueText = "v"
)

// ValuesAtOnce is how many values of distincts one transaction changes, beside a
// ledger.
const ValuesAtOnce = 90

const held = "v:"

// DistinctAmount names the amount by which the number of rows with the value v changes, of the distinct attr. Such an amount is for a row
// of its own, and never stands in a ledger.
func DistinctAmount(attr, v string) string { return HeldOf(attr) + v }

// HeldOf returns the prefix of the names (DistinctAmount) of a distinct.
func HeldOf(attr string) string { return held + escapeText(attr) + ":" }

// IsHeld reports whether an amount is for the row of a value (DistinctAmount).
func IsHeld(name string) bool { return strings.HasPrefix(name, held) }

// HeldIn returns the attribute and the value of an amount for which IsHeld holds.
func HeldIn(name string) (attr, v string) {
	attr, v, _ = strings.Cut(strings.TrimPrefix(name, held), ":")
	return unescapeText(attr), v
}

// escapeText is writeEscaped to a text.
func escapeText(s string) string {
	var b strings.Builder
	writeEscaped(&b, s)
	return b.String()
}

// inLedger returns those amounts that stand in a ledger.
func inLedger(amounts []value.Attr) (out []value.Attr) {
	return seq.Where(amounts, func(a value.Attr) bool { return !IsHeld(a.Name) })
}

// CountHeld returns how many of some amounts are for rows of values.
func CountHeld(amounts []value.Attr) (n int) {
	for _, a := range amounts {
		if IsHeld(a.Name) {
			n++
		}
	}
	return n
}

// SettledLedger returns the ledger that amounts come to which are added to nothing: the values of
// distincts are then no more than their number.
func SettledLedger(amounts []value.Attr) value.Item {
	out := inLedger(amounts)
	of := map[string]int64{}
	for _, a := range amounts {
		if IsHeld(a.Name) && a.Value.Sign() > 0 {
			attr, _ := HeldIn(a.Name)
			of[attr]++
		}
	}
	for attr, n := range of {
		out = append(out, value.Attr{Name: SumAccumulator(attr), Value: value.OfInt(n)})
	}
	return value.NewItem(out...)
}

// ValueRow counts the source rows that have one value of a distinct.
type ValueRow struct {
	At   store.Ref
	Name string // Held
	read value.Value
	rows int64
}

// ValueAt refers to the row of a value, by the ledger of its target and its name (DistinctAmount).
func ValueAt(ledger store.Ref, name string) store.Ref {
	attr, v := HeldIn(name)
	return Ref(ValuesOfLedger(ledger.Key.Partition.Text()), ValuesOf(attr)+Hash(v))
}

// ValueFrom decodes the row of a value as it was read; nil is that of a value that no row has. A
// count that another program spoilt is an error that wraps ErrRow.
func ValueFrom(ledger store.Ref, name string, row value.Item) (r ValueRow, err error) {
	r = ValueRow{At: ValueAt(ledger, name), Name: name, read: row.Get(valueRows)}
	if row != nil {
		r.rows, err = decodeInt(row, valueRows, math.MinInt64, "delete this row, and then run projector build MODEL --again")
	}
	return r, err
}

// Same reports whether two readings of a row found the same.
func (r *ValueRow) Same(o *ValueRow) bool { return value.Equal(r.read, o.read) }

// Add returns the write that adds to the number of rows that have the value, on condition that it
// is as it was read, and by how much the number of values that rows have changes. The row goes
// when it comes to 0.
func (r *ValueRow) Add(amount value.Value) (w store.Write, more int64, err error) {
	n, ok := amount.Int64()
	if sum := r.rows + n; !ok || (sum > r.rows) != (n > 0) {
		return w, 0, fmt.Errorf("%w: %d rows have a value of a distinct, and %s more are too many", store.ErrRefused, r.rows, amount.Text())
	}
	w, more = r.becomes(r.rows + n)
	return w, more, nil
}

// becomes is the write that makes the number n.
func (r *ValueRow) becomes(n int64) (w store.Write, more int64) {
	w = store.Write{Ref: r.At, If: store.Cond{{store.AsRead(valueRows, r.read)}}}
	switch {
	case n == 0:
		w.Delete = true
	case r.read.IsMissing():
		w.Put, w.If = valueItem(r.At, r.Name, value.OfInt(n)), NotThere()
	default:
		w.Ops = []store.Op{setAttr(valueRows, value.OfInt(n))}
	}
	return w, heldBy(n) - heldBy(r.rows)
}

// valueItem is the row of a value as it is stored.
func valueItem(at store.Ref, name string, rows value.Value) value.Item {
	_, text := HeldIn(name)
	return value.NewItem(append(RefItem(at), newAttr(valueRows, rows), newAttr(valueText, value.OfString(text)))...)
}

// heldBy is 1 for a number of rows that have a value, and 0 for no rows.
func heldBy(rows int64) int64 {
	if rows > 0 {
		return 1
	}
	return 0
}

// ValueIn returns the name (DistinctAmount) of the value that a row counts, and the number of rows, by the text that
// stands in it; it may be damaged.
func ValueIn(row value.Item) (name string, rows value.Value) {
	sort, _, _ := strings.Cut(row.Get(Sort).Text(), "|")
	return DistinctAmount(unescapeText(sort), row.Get(valueText).Text()), row.Get(valueRows)
}

// ValueRows returns the prefix of the partition keys of the rows of values.
func ValueRows(model string) string { return "value|" + model + "|" }

// ValuesOfLedger returns the partition key of the values that are counted beside a ledger.
func ValuesOfLedger(ledger string) string { return "value|" + strings.TrimPrefix(ledger, "ledger|") }

// ValuesOf returns the prefix of the sort keys of the values of a distinct.
func ValuesOf(attr string) string { return escapeText(attr) + "|" }
