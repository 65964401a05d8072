package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
)

// History is in no row, so no build makes it. Recordings of the stream have the changes that were written before weir began to
// keep it. An entry has the same key whether it is made of the stream or of its recording: where there is one it
// stays, so recordings may overlap with each other and with the records that weir has read, and may be given again.

// Recording puts the entries of histories that recordings of the stream lead to. It belongs to one goroutine.
type Recording struct {
	b     *Builder
	rules []*model.RowRule
	Dry   bool // nothing is written
	// Unusable is called for each change that leads to an entry which cannot be made, or put.
	Unusable func(c *projections.Change, derivation, reason string)
	Of       map[string]*Recorded // by derivation
	From, To time.Time            // of the records, as far as they have a time
}

// Recorded counts the entries of one history by their outcome.
type Recorded struct {
	Put   int64     // that were put, or with Dry would be
	There int64     // that were there before
	Lacks int64     // that were put without a value that they follow, because its row was gone before weir kept it
	Since time.Time // from when on weir itself keeps this history
}

// Recording returns a Recording for some derivations, for all of the model's histories without names. The error says
// why one cannot be taken from recordings.
func (b *Builder) Recording(names []string) (*Recording, error) {
	x := &Recording{b: b, Of: map[string]*Recorded{}}
	m := b.Runner.Model
	for _, rule := range m.Rows {
		if len(rule.Keep) == 0 || len(names) > 0 && !slices.Contains(names, rule.Name) || len(names) == 0 && rule.Subscribers != nil {
			continue
		}
		if rule.Subscribers != nil {
			return nil, fmt.Errorf("%s is a feed: a recording does not say who subscribed when its records were written", rule.Name)
		}
		x.rules, x.Of[rule.Name] = append(x.rules, rule), &Recorded{}
	}
	for _, name := range names {
		if x.Of[name] == nil {
			return nil, fmt.Errorf("%s is not history; without --from it is built from the rows", name)
		}
	}
	if len(x.rules) == 0 {
		return nil, fmt.Errorf("model %s has no history", m.Name)
	}
	return x, nil
}

// OfMade returns the histories of rows that weir makes itself, sorted. A store that recordings are replayed into makes
// those rows at positions of its own.
func (x *Recording) OfMade() (names []string) {
	for _, rule := range x.rules {
		if len(rule.Source.MadeBy) > 0 {
			names = append(names, rule.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Begin has readers keep the histories from now on, if they do not yet, so that nothing is missing between the
// recordings and the records that weir reads. The error wraps catalog.ErrRefused if the program could not derive the model then.
func (x *Recording) Begin(ctx context.Context) error {
	b := x.b
	if !x.Dry {
		b.Names, b.Again = nil, false
		if _, err := b.Announce(ctx); err != nil {
			return err
		}
		if err := b.Runner.Start(ctx); err != nil {
			return err
		}
	}
	row, err := b.Runner.Catalog.Row(ctx)
	for name, of := range x.Of {
		if is := row.Derivations[name]; is.State == owntable.Live || is.State == owntable.Verified {
			of.Since = is.Since
		}
	}
	return err
}

// mayLead reports whether a change may lead to an entry.
func (x *Recording) mayLead(c *projections.Change) bool {
	return slices.ContainsFunc(x.rules, func(r *model.RowRule) bool { return r.Source == c.Is || r.Source == c.Was })
}

// CheckChange returns why entries cannot be made from a change: without its number in the stream they could come twice.
func (x *Recording) CheckChange(c *projections.Change) error {
	if c.Position.IsZero() && x.mayLead(c) {
		return errors.New("the record has no sequence number of DynamoDB Streams, so its entries could come twice; an export, or a record of Kinesis, has none")
	}
	return nil
}

// PutChanges puts the entries that changes lead to. The changes need no order. Done counts them as rows read. After an
// error some entries are put; give the recording again.
func (x *Recording) PutChanges(ctx context.Context, changes []projections.Change) error {
	for i := range changes {
		c := &changes[i]
		if !x.mayLead(c) {
			continue
		}
		if err := x.CheckChange(c); err != nil {
			return err
		}
		if t := c.Time; !t.IsZero() {
			if x.From.IsZero() || t.Before(x.From) {
				x.From = t
			}
			if t.After(x.To) {
				x.To = t
			}
		}
	}
	b := x.b
	entries := kinds.Entries(changes, x.rules, func(i int, f projections.Fault) { x.noteUnusable(&changes[i], f.Derivation, f.Reason) })
	b.addProgress(Progress{Rows: int64(len(changes)), Reads: int64(len(entries))})
	done, err := kinds.PutEntries(ctx, b.Runner, entries, x.Dry, func(units int) error { return b.spendUnits(ctx, units) })
	for i := range done {
		e, of := &entries[i], x.Of[entries[i].Rule.Name]
		switch {
		case done[i].Err != nil:
			x.noteUnusable(&changes[e.Change], e.Rule.Name, done[i].Err.Error())
		case done[i].Put:
			of.Put++
			if done[i].Lacks {
				of.Lacks++
			}
			b.addProgress(Progress{Puts: 1})
		default:
			of.There++
		}
	}
	return err
}

func (x *Recording) noteUnusable(c *projections.Change, derivation, reason string) {
	x.b.addProgress(Progress{Unfit: 1})
	if x.Unusable != nil {
		x.Unusable(c, derivation, strings.TrimSpace(reason))
	}
}
