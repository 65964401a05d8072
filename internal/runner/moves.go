package runner

import (
	"context"
	"fmt"

	"weir/internal/book"
	"weir/internal/migrate"
	"weir/internal/model"
)

// Tables are those whose streams are to be followed: the model's own, and those that
// a migration which is on moves rows from. Only then has one of these to be there.
func (r *Runner) Tables(ctx context.Context) ([]*model.Table, error) {
	if len(r.Model.Old) == 0 {
		return r.Model.Tables, nil
	}
	on, err := migrate.Started(ctx, r.Store, r.Model)
	if err != nil {
		return nil, fmt.Errorf("looking for migrations: %w", err)
	}
	out := r.Model.Tables[:len(r.Model.Tables):len(r.Model.Tables)]
	for _, g := range r.Model.Migrations {
		if t := g.From.Table; on[g] && g.From.Open() {
			out = append(out, t)
		}
	}
	return out, nil
}

// moves has old rows moved that changed while their migration is on. Whether it is,
// is read after the change was: before a scan reads its first row it says that it is.
func (w *work) moves(ctx context.Context) error {
	var requests []migrate.Request
	var of []int
	at := map[string]int{}
	for i := range w.Changes {
		for _, r := range migrate.Requests(&w.Changes[i]) {
			name := r.Migration.Name + "|" + book.RowText(r.Row)
			if j, ok := at[name]; ok {
				requests[j].Was = append(requests[j].Was, r.Was...)
				of[j] = i
				continue
			}
			at[name] = len(requests)
			requests, of = append(requests, r), append(of, i)
		}
	}
	if len(requests) == 0 {
		return nil
	}
	on, err := migrate.Started(ctx, w.Store, w.Model)
	if err != nil {
		return err
	}
	n := 0
	for i, r := range requests {
		if on[r.Migration] {
			requests[n], of[n] = r, of[i]
			n++
		}
	}
	return w.move(ctx, requests[:n], of)
}

// move keeps the records of those that cannot be moved.
func (w *work) move(ctx context.Context, requests []migrate.Request, of []int) error {
	mover := migrate.Mover{Model: w.Model, Store: w.Store, Now: w.Now}
	results, err := mover.Move(ctx, requests)
	if err != nil {
		return err
	}
	var ds []Dead
	for i, r := range results {
		if w.Touched[of[i]] = true; r.Outcome != migrate.Refused {
			continue
		}
		c := &w.Changes[of[i]]
		w.kept[of[i]] = true
		ds = append(ds, Dead{
			Kind: DeadImage, Target: "migration " + requests[i].Migration.Name, Reason: r.Reason, Row: c.Row,
			Lane: w.Lane, Position: c.Position, Record: recordJSON(c), Time: c.Time,
		})
	}
	return w.keep(ctx, ds)
}
