package copies

import (
	"context"
	"errors"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
)

// Entered is the outcome of an entry of a recording.
type Entered struct {
	Put   bool  // it was put, or would be
	Err   error // its table refuses it
	Lacks bool  // it lacks a value that it follows: weir has never kept that, as its row was gone before
}

// PutEntries puts entries where there is none. One that was put from a recording gives way to a newer one;
// one that weir made of the stream, and a row of another program, stay. With dry, nothing is written. spend is
// called with the write units, before they are taken. It is safe to repeat, beside readers of the stream too.
// After an error or a crash some are put.
func PutEntries(ctx context.Context, r *runner.Runner, entries []Entry, dry bool, spend func(units int) error) ([]Entered, error) {
	out := make([]Entered, len(entries))
	refs := make([]store.Ref, len(entries))
	for i := range entries {
		refs[i] = entries[i].Row
	}
	rows, err := r.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	w := correctionWork(r)
	var puts []*projections.Put
	var of []int
	units := 0
	for i := range entries {
		if p := &entries[i].Put; !runner.IsLapsed(r, p) && recordedCondition(r, p).Holds(rows[i]) {
			puts, of = append(puts, p), append(of, i)
			units += store.WriteUnits(p.Image.Size()) + r.Model.Table(p.Row.Table).EntryUnits(nil, p.Image) + len(p.Follows)
		}
	}
	if len(puts) == 0 {
		return out, nil
	}
	if err := spend(units); err != nil {
		return nil, err
	}
	if !dry {
		if err := w.EnterLists(ctx, puts); err != nil {
			return nil, err
		}
	}
	values, err := w.ReadValues(ctx, puts)
	if err != nil {
		return nil, err
	}
	ws := make([]store.Write, len(puts))
	for j, p := range puts {
		out[of[j]].Lacks = !values.AllKept(r, p)
		ws[j] = w.rowWrite(p, values, false)
		ws[j].If = recordedCondition(r, p)
		out[of[j]].Put = dry
	}
	if dry {
		return out, nil
	}
	done, err := w.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	made := make([]*projections.Put, 0, len(puts))
	for j := range done {
		switch e := done[j].Err; {
		case e == nil:
			out[of[j]].Put = true
			made = append(made, puts[j])
		case errors.Is(e, store.ErrRefused):
			out[of[j]].Err = e
		}
	}
	return out, w.CompareAgain(ctx, made, values, nil, events.Position{})
}

// recordedCondition is the condition under which an entry of a recording is put: there is no row, or it is of an older
// change of a recording.
func recordedCondition(r *runner.Runner, p *projections.Put) store.Cond {
	return store.Cond{{
		{Attr: r.Model.Table(p.Row.Table).Key.Partition.Name, Is: store.Absent}, {Attr: owntable.Version, Is: store.Lt, Value: p.Version()},
	}}
}
