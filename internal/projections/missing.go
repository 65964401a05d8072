package projections

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Missing says for how many targets that do not exist rows count. That is normal while parents come later than their
// children; otherwise a key is made in another way than the application makes it.
type Missing struct {
	Derivation string `json:"derivation"`
	Rows       int    `json:"rows"`
	Targets    int    `json:"targets"`
}

// String is the count as a line for people.
func (m Missing) String() string {
	return fmt.Sprintf("%s: %d rows count for %d targets that do not exist (yet)", m.Derivation, m.Rows, m.Targets)
}

// MissingTargets finds out which targets are missing. Add all rows of a model's tables, in any order.
// It keeps eight bytes for each target. Rows that weir makes are never missing targets.
type MissingTargets struct {
	// Sampled says that not all rows are added. Then Unseen has the targets to look for.
	Sampled bool

	wanted map[string]map[uint64]int // by derivation, how many rows count for a target
	there  map[uint64]bool
	rows   map[uint64]Wanted // of a sample
}

// Wanted is a row for which others count.
type Wanted struct {
	Entity *model.Entity
	Row    store.Ref
}

// Unseen returns the targets of a sample that are not among its rows. Those that exist are given to NoteExists.
func (m *MissingTargets) Unseen() (out []Wanted) {
	for hash, t := range m.rows {
		if !m.there[hash] {
			out = append(out, t)
		}
	}
	return out
}

// NoteExists takes in that a target exists.
func (m *MissingTargets) NoteExists(t Wanted) { m.there[targetHash(t.Entity, t.Row.Key)] = true }

// AddRow takes in a row of an entity.
func (m *MissingTargets) AddRow(e *model.Entity, row value.Item) {
	if e == nil {
		return
	}
	if m.there == nil {
		m.wanted, m.there, m.rows = map[string]map[uint64]int{}, map[uint64]bool{}, map[uint64]Wanted{}
	}
	if key, ok := e.Table.KeyOf(row); ok && (Publishes(e) || e.IsRecomputed()) {
		m.there[targetHash(e, key)] = true
	}
	last, counted := "", uint64(0) // several stages of a status follow each other
	wantKey := func(derivation string, target *model.Entity, key store.Key) {
		if target.Table.CheckKey(key) != nil {
			return
		}
		if m.wanted[derivation] == nil {
			m.wanted[derivation] = map[uint64]int{}
		}
		hash := targetHash(target, key)
		if last == derivation && counted == hash {
			return
		}
		last, counted = derivation, hash
		m.wanted[derivation][hash]++
		if m.Sampled {
			m.rows[hash] = Wanted{target, store.Ref{Table: target.Table.Name, Key: key}}
		}
	}
	want := func(derivation string, target *model.Entity, to []model.Assign) {
		if key, ok := target.KeyFrom(to, row); ok {
			wantKey(derivation, target, key)
		}
	}
	for _, s := range e.Sources {
		if t := s.Tally; t.Shows() && t.Group == nil && !t.IsSet() && s.Input.Uses(row) && s.Given.Uses(row) && (s.Amount == nil || !s.Amount.Lacks(row)) {
			for _, key := range s.TargetKeys(row) {
				wantKey(t.Name, t.Target, key)
			}
		}
	}
	for _, st := range e.Stages {
		if st.Input.Uses(row) {
			want(st.Status.Name, st.Status.Target, st.To)
		}
	}
	for _, l := range e.LatestOf {
		if l.Group == nil && l.Input.Uses(row) {
			want(l.Name, l.Target, l.To)
		}
	}
}

// targetHash stands for a row of an entity.
func targetHash(e *model.Entity, key store.Key) uint64 {
	h := fnv.New64a()
	h.Write([]byte(e.Name + "|" + owntable.RowText(store.Ref{Table: e.Table.Name, Key: key})))
	return h.Sum64()
}

// Missing returns the missing values, by derivation.
func (m *MissingTargets) Missing() (out []Missing) {
	for _, name := range slices.Sorted(maps.Keys(m.wanted)) {
		one := Missing{Derivation: name}
		for target, rows := range m.wanted[name] {
			if !m.there[target] {
				one.Rows, one.Targets = one.Rows+rows, one.Targets+1
			}
		}
		if one.Targets > 0 {
			out = append(out, one)
		}
	}
	return out
}
