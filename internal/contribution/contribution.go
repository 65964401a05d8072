// Package contribution decides the steps of an online build: the amounts that a source row adds to a
// ledger while consumers apply the stream and a builder scans the table at the same time.
//
// A build fills a generation of ledgers beside the live one. For each source row and each
// target that the row adds to, a mark (Mark) holds the amounts that the row has added there, and the
// position of the record that said so. No mark means that nothing was added. So a ledger
// is at any time the sum of its marks, and each mark moves on from its old amounts:
//
//   - a record (Record) replaces the contribution, unless the mark has seen it or a later
//     one of the row. Old images are not needed for the amounts, so it does not matter
//     which changes were delivered, read or counted before.
//   - the builder (Row) puts the contribution of a row that it has read, if there is no
//     mark. A mark is of a record that is newer than the row that the builder has read, or it does
//     the same as the builder.
//   - the audit (Audit) puts right a mark that differs from the row, which was read after it.
//
// The write of a step must change ledger and mark together, on condition that the mark is
// as it was read. Which records a build counts is decided by Fence.
package contribution

import (
	"slices"

	"weir/internal/events"
	"weir/internal/value"
)

// Mark holds the amounts that one source row has added to one target's ledger. The zero Mark stands for
// none.
type Mark struct {
	Version  int64           // how often it was written; 0 if there is none
	Position events.Position // of the last record that was counted; zero if none was
	Amounts  []value.Attr    // the amounts that the row has added, by accumulator
}

// Nothing reports that the row has added nothing.
func (m Mark) Nothing() bool { return len(m.Amounts) == 0 }

// Step is the new mark, and the amounts that its ledger gets.
type Step struct {
	Delta []value.Attr // amounts to add to the ledger; none if the ledger stays
	Mark  Mark
}

// Record decides on a record at a position, after which the source row contributes f. ok is
// false if the record was counted before. A record after which the row contributes nothing
// leaves a mark all the same: the builder may have read the row before it.
func Record(m Mark, at events.Position, f []value.Attr) (s Step, ok bool) {
	if m.Version > 0 && at.Compare(m.Position) <= 0 {
		return Step{}, false
	}
	return m.becomes(at, f), true
}

// Row decides on a row that the builder has read, which contributes f. ok is false if there
// is nothing to do.
func Row(m Mark, f []value.Attr) (s Step, ok bool) {
	if m.Version > 0 || len(f) == 0 {
		return Step{}, false
	}
	return m.becomes(events.Position{}, f), true
}

// Audit decides on a row that was read after the mark, and contributes f. ok is false if
// the mark says the same. The position stays, so a record that is on its way is counted
// when it comes, and then makes no difference.
func Audit(m Mark, f []value.Attr) (s Step, ok bool) {
	s = m.becomes(m.Position, f)
	return s, len(s.Delta) > 0
}

// becomes is the step from a mark to the one that contributes f, with the amounts that the ledger gets in between. Its
// version is one higher, which is the condition under which both are written.
func (m Mark) becomes(at events.Position, f []value.Attr) Step {
	return Step{Delta: Minus(f, m.Amounts), Mark: Mark{Version: m.Version + 1, Position: at, Amounts: f}}
}

// Minus returns the step from one contribution to another, without amounts of 0.
func Minus(f, was []value.Attr) []value.Attr {
	out := slices.Clone(f)
	for _, a := range was {
		a.Value = value.Negate(a.Value)
		out = append(out, a)
	}
	return Sum(out)
}

// Sum adds up amounts for each accumulator, leaves out those of 0, and orders them as they
// first appear.
func Sum(amounts []value.Attr) []value.Attr {
	out := make([]value.Attr, 0, len(amounts))
	at := make(map[string]int, 4)
	for _, a := range amounts {
		i, ok := at[a.Name]
		if ok {
			if sum, err := value.AddNumbers(out[i].Value, a.Value); err == nil {
				out[i].Value = sum
				continue
			} // else it would take 10^9 rows: the store refuses two adds to one accumulator
		}
		at[a.Name] = len(out)
		out = append(out, a)
	}
	return slices.DeleteFunc(out, func(a value.Attr) bool { return a.Value.Sign() == 0 })
}

// Same reports whether two contributions are equal.
func Same(a, b []value.Attr) bool { return len(Minus(a, b)) == 0 }

// Offer is the contribution of a source row to a target, as a record or a row says it.
type Offer struct {
	Source   string // the source row
	Position events.Position
	Change   int // index of the record in its batch, the last one if there are several
	Amounts  []value.Attr
}

// Last keeps, of the offers of one target in the order of the stream, the last one of each
// source row. Offers must be of all records that changed the row's contribution here, so
// that a row which contributes the same again at the end is still offered: the builder may
// have read it in between.
func Last(offers []Offer) []Offer {
	at := make(map[string]int, len(offers))
	var out []Offer
	for _, o := range offers {
		if i, ok := at[o.Source]; ok {
			out[i] = o
			continue
		}
		at[o.Source] = len(out)
		out = append(out, o)
	}
	return out
}
