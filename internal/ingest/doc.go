// Package ingest is the write side: it checks what people and programs want
// written against a model, and writes it so that the model's rules hold.
//
// A Command goes one way. It is read (ReadCommand), checked against its entity
// (check.go: types, required, defaults, names), planned in the light of the rows
// that it depends on (plan.go), and written on the condition that those are still
// as they were (writer.go, the only part with effects). A condition that no longer
// holds is a new reading and a new plan.
//
// What a plan writes is the application's attributes alone: those that the entity
// declares, the keys that its templates make, and the stamps of its where. Derived
// attributes, bookkeeping ("weir") and attributes that no model declares stay as
// they are in the row.
package ingest
