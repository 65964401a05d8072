package feed

import (
	"weir/internal/owntable"
	"weir/internal/projections"
)

// gathered is the work of a batch for feeds.
type gathered struct {
	all           *projections.Gathered
	subscriptions []Subscription // the newest for each subscriber in each list
	at            map[string]int // indexes into subscriptions
	notifications []Notification // in the order of the stream
}

// foldChange takes in the work of the i-th change.
func (g *gathered) foldChange(i int, c *projections.Change) {
	var f projections.Faults
	for _, s := range Fold(c, &f) {
		s.Change = i
		g.all.NoteTouched(i, s.Rule)
		g.all.NoteDerivation(s.Rule, "")
		name := s.List + "\x00" + owntable.RowText(s.Row)
		if at, ok := g.at[name]; ok {
			g.subscriptions[at] = s
			continue
		}
		g.at[name] = len(g.subscriptions)
		g.subscriptions = append(g.subscriptions, s)
	}
	for _, n := range FoldNotifications(c, &f) {
		n.Change = i
		g.notifications = append(g.notifications, n)
		g.all.NoteTouched(i, n.Rule.Name)
		g.all.NoteDerivation(n.Rule.Name, "")
	}
	g.all.AddFaults(i, f.NewFaults())
}
