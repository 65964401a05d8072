package kinds

import (
	"fmt"

	"weir/internal/model"
	"weir/internal/seq"
)

// ExplainDiff notes the fate of the values of each derivation that differs. file is the new
// model.
func ExplainDiff(d *model.Diff, file *model.Model) {
	stays := func(name string) string {
		return fmt.Sprintf("what %s derived stays in the rows, and nothing updates it, until %s removes it", name, file.Command("build", "--prune"))
	}
	for i := range d.Derivations {
		x := &d.Derivations[i]
		if x.What == model.Removed && x.Into != "" {
			x.Then = stays(x.Name)
			continue
		}
		x.Then = becomesOf(x)
		if x.What == model.Renamed && x.Into != "" {
			x.Then += "; " + stays(x.Was)
		}
	}
}

// becomesOf is the fate of the values of a derivation that another version of its model adds, changes or renames.
func becomesOf(x *model.DerivationDiff) string {
	changed := x.What == model.Changed
	untilLive := "absent until its build is live"
	if changed {
		untilLive = "rows show the old value, which nothing updates, until its build is live"
	}
	switch {
	case x.Tally:
		return untilLive
	case model.IsLatest(x.Kind) && changed:
		return untilLive + "; what is no longer under also stays in the rows, and nothing updates it"
	case model.IsLatest(x.Kind):
		return untilLive
	case x.Kind == "status":
		return fmt.Sprintf("no status of %s moves until its build is live", x.Into)
	case x.Kind == "history" && changed:
		return "entries are made by the new definition from the first program that has it; those before stay"
	case x.Kind == "history":
		return "history, which no row tells; it is complete from the first program that has it"
	case x.Kind == "feed" && changed && x.Build == "":
		return "it goes on with the subscribers that it has"
	case x.Kind == "feed":
		return "what it would send before its build is live waits as dead letters, and is sent then"
	case x.Kind == "search":
		return "all search indexes of the model are filled from the rows, beside the old ones"
	case x.Kind != "copy" && x.Kind != "follow":
		return ""
	case changed:
		return "rows are compared with their sources and corrected one by one; copies at keys that it no longer gives stay"
	}
	return "rows get it one by one"
}

// DerivedAttributes returns the attributes that weir writes on rows of an entity, and for a group the entity's name, which stands for
// how many rows the group has.
func DerivedAttributes(e *model.Entity) (attrs []string) {
	for _, t := range e.Values {
		if e.Group != nil && t == e.Group.Rows {
			attrs = append(attrs, e.Name)
		} else {
			attrs = append(attrs, t.Attr)
		}
	}
	attrs = append(attrs, seq.Flat(e.Statuses, func(s *model.Status) []string { return s.Attributes() })...)
	attrs = append(attrs, seq.Flat(e.Latest, func(l *model.Latest) []string { return l.Attributes() })...)
	attrs = append(attrs, seq.Map(e.Follows, func(f *model.Follow) string { return f.Attr })...)
	for _, r := range e.MadeBy {
		for i := range r.Fields {
			attrs = append(attrs, r.Fields[i].Name)
		}
	}
	return attrs
}
