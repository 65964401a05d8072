package feed

import (
	"context"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Begin returns the kind's part of a batch.
func (Kind) Begin(_ *model.Model, g *projections.Gathered) runner.Part {
	return &part{gathered: gathered{all: g, at: map[string]int{}}}
}

// Orders returns the decider which changes must be applied apart, if the model has lists of
// subscribers.
func (Kind) Orders(m *model.Model) runner.Order {
	if !slices.ContainsFunc(m.Rows, func(r *model.RowRule) bool { return r.Subscribers != nil }) {
		return nil
	}
	return &Order{}
}

// Letters returns the kind of a notification that its table refused.
func (Kind) Letters() []deadletter.Kind { return []deadletter.Kind{deadletter.Notification} }

// part is the work of one batch for this kind.
type part struct {
	runner.BasePart
	gathered
}

// Fold takes in the work of the i-th change.
func (p *part) Fold(i int, c *projections.Change) { p.foldChange(i, c) }

// Apply writes the batch's subscriptions and then its notifications.
func (p *part) Apply(ctx context.Context, w *runner.Work) error {
	works, err := p.splitGenerations(ctx, w)
	if err != nil {
		return err
	}
	for _, k := range append(works, &work{w, &p.gathered}) {
		if err := k.writeSubscriptions(ctx); err != nil {
			return err
		}
		if err := k.writeNotifications(ctx); err != nil {
			return err
		}
	}
	return nil
}

// splitGenerations returns the batch's work for the generations of its view, and leaves to the
// first generation its own. All generations that count enter subscriptions. Only
// the lists that are shown get notifications, so the lists of a build have no moment before it is over. Those of a rule
// that has no other lists are kept as dead letters, to be retried.
func (p *part) splitGenerations(ctx context.Context, w *runner.Work) (works []*work, err error) {
	gs, err := w.Generations()
	if err != nil {
		return nil, err
	}
	subscriptions, notifications := p.subscriptions, p.notifications
	for _, g := range gs {
		rule, is := model.BuiltRule(g.Build.Entity)
		if !is {
			continue
		}
		shown := g.Build.State.IsShown()
		if !shown && g.View.IsPending(rule) {
			if err := p.keepUnsent(ctx, w, g, rule); err != nil {
				return nil, err
			}
		}
		if shown || g.View.IsPending(rule) {
			p.dropRule(rule)
		}
		if !g.CountsDerivation(rule) { // older lists, of another definition
			continue
		}
		in := gathered{all: g.Gathered}
		for _, s := range subscriptions {
			if s.Rule == rule && g.CountsChange(&g.Changes[s.Change]) {
				in.subscriptions = append(in.subscriptions, s)
			}
		}
		for _, n := range notifications {
			if shown && n.Rule.Name == rule && g.CountsChange(&g.Changes[n.Change]) {
				in.notifications = append(in.notifications, n)
			}
		}
		works = append(works, &work{g.Work, &in})
	}
	return works, nil
}

// keepUnsent keeps a dead letter for each notification of a rule whose lists are being built and have no predecessors.
// A change that was applied before the build was announced is left out: its notifications were sent.
func (p *part) keepUnsent(ctx context.Context, w *runner.Work, g *runner.Generation, rule string) error {
	for i := range p.notifications {
		n := &p.notifications[i]
		c := &w.Changes[n.Change]
		if n.Rule.Name != rule || !g.CountsChange(c) {
			continue
		}
		w.CountKept(n.Change, rule)
		if _, err := w.Letters().Keep(ctx, deadletter.Letter{
			Kind: deadletter.Notification, Target: n.List, Reason: "the lists of its subscribers are being built; it is sent once they are, or by a retry",
			ShardKey: w.ShardKey, Position: c.Position, Record: deadletter.RecordOf(c), Time: c.Time,
		}); err != nil {
			return err
		}
	}
	return nil
}

// dropRule leaves out the batch's work for a rule.
func (p *part) dropRule(rule string) {
	p.subscriptions = slices.DeleteFunc(slices.Clone(p.subscriptions), func(s Subscription) bool { return s.Rule == rule })
	p.notifications = slices.DeleteFunc(slices.Clone(p.notifications), func(n Notification) bool { return n.Rule.Name == rule })
}

// work is the state of one batch that is being applied.
type work struct {
	*runner.Work
	*gathered
}
