// Package ingest is the write side: it checks commands of people and programs against a
// model, and writes them so that the model's rules hold.
//
// A command takes four steps. ReadCommand reads it. check.go checks it against its
// entity (types, required fields, defaults, names). plan.go plans it from the rows that
// it depends on. writer.go and batch.go, the only part with effects, write it on the
// condition that those rows have not changed. If the condition fails, the rows are read
// again and a new plan is made.
//
// A plan writes only the application's attributes: those that the entity declares, the
// keys that its templates make, and the attributes that its where sets. Derived
// attributes, bookkeeping ("weir") and attributes that no model declares stay in the
// row as they are.
package ingest
