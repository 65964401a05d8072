package feed

import (
	"context"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Name returns "feed".
func (Kind) Name() string { return "feed" }

// Begin returns the kind's part of a batch.
func (Kind) Begin(_ *model.Model, g *projections.Gathered) runner.Part {
	return &part{gathered: gathered{all: g, at: map[string]int{}}}
}

// Orders returns what knows which changes must be applied apart, if the model has lists of
// subscribers.
func (Kind) Orders(m *model.Model) runner.Order {
	if !hasLists(m) {
		return nil
	}
	return &Order{}
}

// Limits notes what the notifications that a row sends or gets would lead to and never
// can.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	limits(x, c, from)
}

// Letters returns the kind of a notification that its table refused.
func (Kind) Letters() []runner.DeadKind { return []runner.DeadKind{runner.DeadNotification} }

// part is what one batch asks of this kind.
type part struct {
	runner.BasePart
	gathered
}

// Fold takes in what the i-th change asks for.
func (p *part) Fold(i int, c *projections.Change) { p.fold(i, c) }

// Apply writes the batch's subscriptions and then its notifications.
func (p *part) Apply(ctx context.Context, w *runner.Work) error {
	k := &work{w, &p.gathered}
	if err := k.subscribe(ctx); err != nil {
		return err
	}
	return k.notify(ctx)
}

// work is the state of one batch that is being applied.
type work struct {
	*runner.Work
	*gathered
}
