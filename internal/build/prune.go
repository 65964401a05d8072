package build

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// InUse is how long after it was replaced a generation may still be applied by a batch that
// was received before.
const InUse = time.Hour

// Pruned says how many ledgers are gone that rows no longer show.
type Pruned struct {
	Entity     string // of the targets
	Generation int64  // 1 is that of the ledgers that no build made
	Why        string // why they stay; "" if they are removed
}

// Prune removes ledgers, marks and dead letters of generations that were replaced, and the
// ledgers that no build made of entities that were built, and the marks of builds that have
// handed over; and all generations of retired derivations. After a crash, call it again.
func (b *Builder) Prune(ctx context.Context) (out []Pruned, removed int, err error) {
	row, err := b.Runner.Catalog.Row(ctx)
	if err != nil {
		return nil, 0, err
	}
	var gone []owntable.Build
	first := map[string]bool{} // entities whose first ledgers go
	for _, is := range row.Builds {
		switch p := (Pruned{is.Entity, is.Generation, ""}); {
		case !slices.Contains(b.Names, is.Entity) && b.Runner.Model.CanBuild(is.Entity): // others are of retired derivations
		case is.State == owntable.BuildDropped:
			if p.Why = b.inUse(is); p.Why == "" {
				gone = append(gone, is)
			}
			out = append(out, p)
		case is.State == owntable.BuildLive || is.State == owntable.BuildVerified:
			first[is.Entity] = b.inUse(is) == ""
		}
	}
	if removed, err = b.removeGenerations(ctx, gone, b.firstRows(first)); err != nil {
		return out, removed, err
	}
	letters, err := b.Runner.ForgetReplaced(ctx)
	if removed += letters; err != nil {
		return out, removed, err
	}
	if err := b.HandOver(ctx); err != nil {
		return out, removed, err
	}
	marks, err := b.RemoveMarks(ctx)
	return out, removed + int(marks), err
}

// inUse says why a build that was replaced must stay: a program that began before may still write
// its ledgers. It is "" when InUse has passed since.
func (b *Builder) inUse(is owntable.Build) string {
	if b.Runner.Now().Sub(is.Since) < InUse {
		return "a program may still apply it, until " + is.Since.Add(InUse).Format("15:04:05 UTC")
	}
	return ""
}

// firstRows returns a function that reports whether a partition is of a generation that no build made, and
// a build of one of the names has replaced: ledgers, sets, facts and lists.
func (b *Builder) firstRows(of map[string]bool) func(partition string) bool {
	m, all := b.Runner.Model, true
	for _, e := range m.Entities {
		all = all && (len(e.Values) == 0 && !e.IsRecomputed() || of[e.Name])
	}
	return firstRowsOf(m, of, all)
}

// firstRowsOf is firstRows for a model. all says that all ledgers and nodes are meant, whatever row
// they are of.
func firstRowsOf(m *model.Model, of map[string]bool, all bool) func(partition string) bool {
	names, ledgers := m.Builds(), firstLedgers(m, of, all)
	return func(partition string) bool {
		if text, ok := strings.CutPrefix(partition, owntable.Facts(m.Name)); ok {
			list, _ := owntable.CutFactList(text)
			return of[entityOfFacts(m, list)]
		}
		if text, ok := strings.CutPrefix(partition, owntable.SubscriberLists(m.Name)); ok {
			rule, _, _ := strings.Cut(text, "<")
			return of[names[rule]]
		}
		return ledgers(partition)
	}
}

// entityOfFacts returns the name of the entity whose rows a list of facts is for, by the
// name that the list begins with; "" if the model has none.
func entityOfFacts(m *model.Model, list string) string {
	for _, e := range m.Entities {
		if slices.ContainsFunc(e.Statuses, func(s *model.Status) bool { return s.Name == list }) ||
			slices.ContainsFunc(e.Latest, func(l *model.Latest) bool { return l.Name == list }) ||
			slices.ContainsFunc(e.Attributes, func(a *model.Attribute) bool { return a.Others != nil && a.Others.Name == list }) {
			return e.Name
		}
	}
	return ""
}

// firstLedgers returns a function that reports whether a partition is a ledger, of values beside one,
// or a node of a set, that no build made, of a row of one of the entities, or with all of any row.
func firstLedgers(m *model.Model, of map[string]bool, all bool) func(partition string) bool {
	return func(partition string) bool {
		text, ok := firstLedger(m.Name, partition)
		if !ok || all {
			return ok
		}
		is := false
		for _, e := range countedAt(m, text) {
			if is = of[e.Name]; !is {
				return false
			}
		}
		return is
	}
}

// firstLedger returns the text (owntable.RowText) of the row that a ledger, values beside one, or a node of a set
// is of, by its partition. ok is false for those that a build made, and for any other partition.
func firstLedger(m, partition string) (text string, ok bool) {
	for _, first := range []string{owntable.Ledgers(m), owntable.Nodes(m), owntable.ValueRows(m)} {
		if text, ok = strings.CutPrefix(partition, first); ok {
			return text, true
		}
	}
	return "", false
}

// countedAt returns the entities of which a row with such a text can be and for which there are ledgers.
func countedAt(m *model.Model, text string) (out []*model.Entity) {
	return seq.Where(m.Entities, func(e *model.Entity) bool { return (len(e.Values) > 0 || e.IsRecomputed()) && catalog.CanBe(e, text) })
}

// removeGenerations removes all rows of generations, ledgers, marks, dead letters, notes and segments,
// and other partitions, and then forgets the generations. Segments are taken first, so that
// no builder puts any more.
func (b *Builder) removeGenerations(ctx context.Context, gone []owntable.Build, also func(partition string) bool) (removed int, err error) {
	var parts []func(string) bool
	for _, is := range gone {
		err := b.writeEach(ctx, b.segmentQuery(is), func(row value.Item) ([]store.Write, error) {
			s, err := owntable.DecodeSegment(row)
			if err != nil {
				return nil, err
			}
			_, w := s.Take(rowRef(row), b.Runner.Now())
			return []store.Write{w}, nil
		})
		if err != nil {
			return removed, err
		}
		parts = append(parts, owntable.Partitions(is.Ledgers(b.Runner.Model.Name)))
	}
	drop := func(row value.Item) ([]store.Write, error) {
		removed++
		return []store.Write{{Ref: rowRef(row), Delete: true}}, nil
	}
	err = b.writeEach(ctx, store.Query{Table: owntable.TableName}, func(row value.Item) ([]store.Write, error) {
		partition := row.Get(owntable.Partition).Text()
		for _, part := range parts {
			if part(partition) {
				return drop(row)
			}
		}
		if also(partition) {
			return drop(row)
		}
		return nil, nil
	})
	if err != nil {
		return removed, err
	}
	for _, is := range gone {
		if err := b.writeEach(ctx, b.segmentQuery(is), drop); err != nil {
			return removed, err
		}
	}
	_, err = b.Runner.Catalog.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		return catalog.ForgetBuilds(was, gone), nil
	})
	return removed, err
}

// segmentQuery reads the segments of a build.
func (b *Builder) segmentQuery(is owntable.Build) store.Query {
	partition, prefix := owntable.Segments(b.Runner.Model.Name, is.Generation)
	return store.Query{Table: owntable.TableName, Partition: value.OfString(partition), Sort: store.Range{Prefix: value.OfString(prefix)}}
}

// rowRef refers to a row of the own table.
func rowRef(row value.Item) store.Ref {
	own := owntable.Table()
	key, _ := own.KeyOf(row)
	return store.Ref{Table: owntable.TableName, Key: key}
}

// writeEach does writes for each row of a query.
// Pages are written as they are read. of may return no writes; an error of it ends the pass, with
// the pages before done.
func (b *Builder) writeEach(ctx context.Context, q store.Query, of func(value.Item) ([]store.Write, error)) error {
	for rows, err := range store.Pages(ctx, b.Runner.Store, q) {
		if err != nil {
			return err
		}
		var ws []store.Write
		for _, row := range rows {
			more, err := of(row)
			if err != nil {
				return err
			}
			ws = append(ws, more...)
		}
		if _, err := b.Runner.Write(ctx, ws); err != nil {
			return err
		}
	}
	return nil
}
