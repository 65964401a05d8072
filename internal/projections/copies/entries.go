package copies

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
)

// Entry is an entry of a history that a change of a recording leads to.
type Entry struct {
	projections.Put
	Change int // index of the change
}

// HistoryEntries returns the entries that changes of a recording lead to, for some rules; of several at one key the
// newest. unusable is asked for each change that a rule cannot use. Entries of feeds are not among them: nothing
// says who subscribed then.
func HistoryEntries(changes []projections.Change, rules []*model.RowRule, unusable func(change int, f projections.Fault)) (out []Entry) {
	at := map[string]int{}
	for i := range changes {
		var f projections.Faults
		puts, _ := Fold(&changes[i], &f)
		for _, p := range puts {
			if !slices.Contains(rules, p.Rule) {
				continue
			}
			p.Recorded = true
			name := owntable.RowText(p.Row)
			if j, ok := at[name]; !ok {
				at[name] = len(out)
				out = append(out, Entry{p, i})
			} else if out[j].Position.Compare(p.Position) < 0 {
				out[j] = Entry{p, i}
			}
		}
		for _, fault := range f.NewFaults() {
			if slices.ContainsFunc(rules, func(r *model.RowRule) bool { return r.Name == fault.Derivation }) {
				unusable(i, fault)
			}
		}
	}
	return out
}
