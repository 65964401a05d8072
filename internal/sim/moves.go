package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// In half of the runs of a model with migrations between its own tables, these are on from the beginning. Then weir
// itself makes, changes and deletes rows that are the application's, as the application means them from then on. Runs with
// builds do not compare moved rows: where records are missing, so are moves.

// enableMigrations turns the model's migrations on, or none.
func (w *world) enableMigrations() {
	if !newDice(w.seed, "migrations", 0).chance(0.5) {
		return
	}
	for _, g := range w.model.Migrations {
		if w.runsMigration(g) {
			_, _ = w.base.Write(context.Background(), []store.Write{owntable.BeginScan(owntable.Migration(w.model.Name, g.Name), g.Name, true)})
		}
	}
}

// runsMigration reports whether runs have a migration: it leaves old rows, and makes rows of other tables.
func (w *world) runsMigration(g *model.Migration) bool {
	return !g.From.Open() && !slices.ContainsFunc(g.Makes, func(mk *model.Making) bool { return mk.Into.Table == g.From.Table })
}

// adoptWrites does a transaction of weir, and notes its changes of rows that are the application's.
func (w *world) adoptWrites(ws []store.Write, do func() error) error {
	before := make([]value.Item, len(ws))
	for i := range ws {
		before[i] = w.base.tables[ws[i].Table].get(ws[i].Key)
	}
	if err := do(); err != nil {
		return err
	}
	for i := range ws {
		t := w.model.Table(ws[i].Table)
		if t == nil || ws[i].Check {
			continue
		}
		was, is := before[i], w.base.tables[t.Name].get(ws[i].Key)
		if e := cmp.Or(t.Classify(is), t.Classify(was)); e != nil && !e.Derived && (is == nil || is.Has(owntable.Moved)) {
			w.app.adoptMigrated(t, ws[i].Key, was, is)
		}
	}
	return nil
}

// adoptMigrated notes a change that a migration made of a row.
func (a *app) adoptMigrated(t *model.Table, key store.Key, was, is value.Item) {
	if was == nil && is == nil || was != nil && is != nil && value.EqualItems(was, is) {
		return
	}
	o := a.rowAt(t, key)
	d := &deed{ownRow: o, was: o.image, when: a.base.now(), at: a.base.writes}
	if is != nil {
		d.is = bareRow(o.table.Classify(is), is)
	}
	d.moved, d.ours = looksMoved(was, is), true
	d.shard, d.record = a.base.tables[t.Name].newestRecord(key)
	for i := len(d.shard.records) - 1; i >= 0; i-- { // a transaction has several records
		if k, ok := o.table.KeyOf(d.shard.records[i].Keys); ok && refName(store.Ref{Key: k}) == refName(store.Ref{Key: key}) {
			d.record = d.shard.records[i]
			break
		}
	}
	o.image = d.is
	a.deeds = append(a.deeds, d)
	a.base.undone(func() {
		o.image = d.was
		a.deeds = a.deeds[:len(a.deeds)-1]
	})
	a.counted["rows that a migration wrote"]++
}

// looksMoved reports whether a change looks like that of a migration, as it does if an application puts back a row that
// a migration made.
func looksMoved(was, is value.Item) bool {
	mark := is.Get(owntable.Moved)
	return !mark.IsMissing() && !value.Equal(mark, was.Get(owntable.Moved))
}

// compareMoves fails if an old row was not moved as it is, or a row is left that no old row moves to any more.
func (t *truth) compareMoves() {
	m := &ingest.Mover{Model: t.model, Store: t.base, Now: func() time.Time { return t.clock }}
	on, err := m.Started(context.Background())
	if err != nil {
		t.addFailure(Stuck, "migrations: %v", err)
	}
	letters := map[string]bool{} // old rows that could not be moved, by name and as marks have them
	for _, l := range t.lettersIn(owntable.Dead(t.model.Name)) {
		if mt := t.model.Table(l.Table); mt != nil {
			if key, ok := mt.KeyOf(l.Key); ok {
				row := store.Ref{Table: l.Table, Key: key}
				letters[refName(row)], letters[owntable.Hash(owntable.RowText(row))] = true, true
			}
		}
	}
	for _, g := range t.model.Migrations {
		if !on[g] {
			continue
		}
		scan := ingest.Scan{Mover: m, Migration: g, DryRun: true}
		made := map[string]value.Item{}
		scan.Each = func(row store.Ref, old value.Item, r ingest.MigrationResult) {
			if (r.Outcome == ingest.Moved || r.Outcome == ingest.Followed) && !letters[refName(row)] {
				t.addFailure(Lost, "migration %s: %s is not moved: %s", g.Name, refName(row), r)
			}
			rows, _ := projections.MoveRow(g, old)
			for _, d := range rows {
				made[refName(d.Row)] = d.Image
			}
		}
		if _, err := scan.Run(context.Background()); err != nil {
			t.addFailure(Stuck, "migration %s: %v", g.Name, err)
		}
		ours := map[string]bool{} // rows that a migration wrote last
		for _, d := range t.deeds {
			ours[refName(store.Ref{Table: d.table.Name, Key: d.key})] = d.ours
		}
		for _, mk := range g.Makes {
			t.compareMade(g, mk, made, ours, letters)
		}
	}
}

// compareMade fails if a row is left that a migration wrote last, and that no old row becomes. What an old row became before
// it could not be moved any more stays.
func (t *truth) compareMade(g *model.Migration, mk *model.Making, made map[string]value.Item, ours, letters map[string]bool) {
	t.base.tables[mk.Into.Table.Name].eachRow(func(key store.Key, row value.Item) {
		name := refName(store.Ref{Table: mk.Into.Table.Name, Key: key})
		if of, _, _ := strings.Cut(row.Get(owntable.Moved).Text(), "."); letters[of] {
			return
		}
		if mk.Into.Table.Classify(row) == mk.Into && ours[name] && made[name] == nil {
			t.addFailure(Lost, "migration %s: %s is left, and no old row becomes it", g.Name, name)
		}
	})
}
