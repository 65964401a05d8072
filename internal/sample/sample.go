// Package sample invents a few rows for a model: enough that each entity has some, that there
// is something to derive, and that searches find something. The same model and time always
// give the same rows.
package sample

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/value"
)

// How many rows an entity gets: one that does not refer to others, and one that connects
// others. With these numbers the connected rows get two and three of them.
const (
	alone   = 3
	between = 6
)

// Commands returns the commands that create the rows. Their times are relative to now.
func Commands(m *model.Model, now time.Time) []ingest.Command { return Apart(m, now, "") }

// Apart returns commands for rows whose ids begin with a name, so that they are apart from those of
// Commands. A row whose key has no text cannot be told apart.
func Apart(m *model.Model, now time.Time, name string) []ingest.Command {
	s := &sample{prefix: name, model: m, now: now.UTC().Truncate(time.Second), links: links{}, words: map[field][]value.Value{}, taken: map[string]bool{}}
	s.learnLinks()
	var out []ingest.Command
	for _, e := range m.Entities {
		if !e.Derived && !keepsKeys(s.model, e) {
			out = append(out, s.rows(e)...)
		}
	}
	return out
}

// field is a name of an entity's rows.
type field struct {
	entity *model.Entity
	name   string
}

// links groups the fields that hold the same ids, as a union-find structure: each field leads
// to another one of its group, and finally to the one that represents the group.
type links map[field]field

// root is the field that stands for all that a field is joined with.
func (l links) root(f field) field {
	for {
		next, ok := l[f]
		if !ok {
			return f
		}
		f = next
	}
}

// joinGroups puts b's group into a's group.
func (l links) joinGroups(a, b field) {
	if x, y := l.root(a), l.root(b); x != y {
		l[y] = x
	}
}

// sample makes rows of one model. Fields that derivations and queries connect get the same
// values, so that made rows find each other.
type sample struct {
	prefix string // of ids
	model  *model.Model
	now    time.Time
	links  links
	words  map[field][]value.Value // that conditions of the model ask for
	taken  map[string]bool         // keys of rows, which several entities may share
}

// learnLinks finds out which fields hold ids of which entity: fields that have the name of a key of
// exactly one entity, and fields that derivations use to find rows.
func (s *sample) learnLinks() {
	owners := map[string][]*model.Entity{}
	for _, e := range s.model.Entities {
		if keys := e.KeyNames(); len(keys) == 1 && !e.Derived {
			owners[keys[0]] = append(owners[keys[0]], e)
		}
	}
	for _, e := range s.model.Entities {
		for _, name := range e.InputNames() {
			if of := owners[name]; len(of) == 1 {
				s.links.joinGroups(field{of[0], name}, field{e, name})
			}
		}
	}
	for _, t := range s.model.Tallies {
		for _, src := range t.Sources {
			s.joinFields(t.Target, src.To, src.Entity)
			s.noteConstants(src.Entity, src.Where)
		}
	}
	for _, f := range s.model.Follows {
		s.joinFields(f.Source, f.Key, f.From)
	}
	for _, x := range s.model.Searches {
		s.noteConstants(x.Of, x.Where)
	}
}

// joinFields joins the names of a target's key with the fields that they come from, so that rows of
// the sample belong together.
func (s *sample) joinFields(target *model.Entity, to []model.Assign, from *model.Entity) {
	for _, a := range to {
		if a.Expr.Field != nil {
			s.links.joinGroups(field{target, a.Name}, field{from, a.Expr.Field.Name})
		}
	}
}

// noteConstants notes constants of conditions, so that rows of the sample pass them.
func (s *sample) noteConstants(e *model.Entity, tests []model.Test) {
	for _, t := range tests {
		f := field{e, t.Field.Name}
		s.words[f] = append(s.words[f], seq.Where(t.Constants(), t.Is.Holds)...)
	}
}

// rows returns the create commands for an entity, each with a different key.
func (s *sample) rows(e *model.Entity) []ingest.Command {
	n := alone
	if len(e.KeyNames()) > 1 {
		n = between
	}
	var out []ingest.Command
	for i := range n {
		var attrs []value.Attr
		for _, name := range e.InputNames() {
			if s.wanted(e, name) {
				attrs = append(attrs, value.Attr{Name: name, Value: s.value(e, name, s.turn(e, name, i), i)})
			}
		}
		item := value.NewItem(attrs...)
		if key := keyText(e, item); !s.taken[key] {
			s.taken[key] = true
			out = append(out, ingest.Command{Op: ingest.Create, Entity: e.Name, Item: item})
		}
	}
	s.pass(e, out)
	return out
}

// keyText returns a text that distinguishes rows by their keys.
func keyText(e *model.Entity, item value.Item) string {
	key, _ := e.Key(item.Get)
	return fmt.Sprintf("%q %q %q", e.Table.Name, value.Scalar(key.Partition), value.Scalar(key.Sort))
}

// turn returns the number of the value that a field has in row i.
func (s *sample) turn(e *model.Entity, name string, i int) int {
	at := slices.Index(e.KeyNames(), name)
	switch {
	case len(e.KeyNames()) == 1 || at < 0 && s.owner(field{e, name}) == nil:
		return i
	case at < 0:
		return i % 2
	}
	return i % (2 + at)
}

// wanted reports whether a field should get a value: it must have one, or something depends on
// it.
func (s *sample) wanted(e *model.Entity, name string) bool {
	if made(e, name) {
		return slices.Contains(e.KeyNames(), name) // so that the rows are the same the next time
	}
	a := e.Attribute(name)
	if a == nil || slices.Contains(e.KeyNames(), name) {
		return true
	}
	uses := func(fs []*model.Field) bool {
		return slices.ContainsFunc(fs, func(f *model.Field) bool { return slices.Contains(f.Names(), name) })
	}
	for _, x := range e.Search {
		if uses(x.Text) || uses(x.Filters) {
			return true
		}
	}
	for _, src := range e.Sources {
		if src.Amount.Has(name) {
			return true
		}
	}
	for _, k := range e.Keys {
		if slices.Contains(k.Template.Names(), name) {
			return a.Default.IsMissing()
		}
	}
	return a.Required && a.Default.IsMissing() || len(s.words[field{e, name}]) > 0 && a.Default.IsMissing()
}

// owner returns the entity whose ids a field holds, nil for none.
func (s *sample) owner(f field) *model.Entity {
	root := s.links.root(f)
	return seq.Find(s.model.Entities, func(e *model.Entity) bool {
		keys := e.KeyNames()
		return !e.Derived && len(keys) == 1 && s.links.root(field{e, keys[0]}) == root
	})
}

// value returns the kth value of a field, for row i.
// The same k gives the same value, so rows of different entities meet in it. Values keep to the declared limits.
func (s *sample) value(e *model.Entity, name string, k, i int) value.Value {
	f := field{e, name}
	a := e.Attribute(name)
	typ := e.Field(name).Type
	if a != nil {
		typ = a.Type
	}
	as := e.ReadAs(name)
	if as != "" && (typ == model.TypeString || typ == model.TypeAny) {
		typ = as
	}
	if as == model.TypeList && typ == as {
		return value.OfList() // paths into it say nothing of its elements
	}
	words := s.words[f]
	switch {
	case len(words) > 0:
		return words[k%len(words)]
	case a != nil && len(a.Enum) > 0:
		return value.OfString(a.Enum[k%len(a.Enum)])
	}
	switch typ {
	case model.TypeNumber:
		n := within(a, value.OfInt(int64(1+k%5)))
		if a == nil && as != "" { // a text in the key of an index
			n = value.OfString(n.Text())
		}
		return n
	case model.TypeBoolean:
		return value.OfBool(true)
	case model.TypeFlag:
		return value.OfString("true")
	case model.TypeTime:
		return s.time(e, name, i)
	case model.TypeBinary:
		return value.OfString("AAEC")
	case model.TypeList:
		return value.OfList(value.OfString(things[k%len(things)]))
	case model.TypeMap:
		return value.OfMap(value.Item{})
	case model.TypeStrings, model.TypeNumbers:
		return s.set(typ, k)
	}
	return value.OfString(clip(s.text(f, k), a))
}

// within returns a number moved into an attribute's limits.
func within(a *model.Attribute, n value.Value) value.Value {
	switch {
	case a == nil || a.Outside(n) == "":
		return n
	case !a.Least.IsMissing() && value.Compare(n, a.Least) < 0:
		return a.Least
	}
	return a.Most
}

// set makes a list of one element, which commands take for a set.
func (s *sample) set(typ model.Type, k int) value.Value {
	if typ == model.TypeNumbers {
		return value.OfList(value.OfInt(int64(k)))
	}
	return value.OfList(value.OfString(things[k%len(things)]))
}

// time returns a time shortly before now, or, for a field with a row's expiry time, a day
// later.
func (s *sample) time(e *model.Entity, name string, i int) value.Value {
	t := s.now.Add(time.Duration(i-between) * time.Minute)
	if ends(e, name) {
		t = s.now.Add(24 * time.Hour)
	}
	return value.OfString(t.Format(time.RFC3339))
}

var (
	kinds  = []string{"quiet", "green", "old", "bright", "northern"}
	things = []string{"harbour", "garden", "market", "river", "tower"}
)

// text returns an id if the field holds ids, words if the field is searched, and otherwise the
// field's name with a number.
func (s *sample) text(f field, k int) string {
	if o := s.owner(f); o != nil {
		return fmt.Sprintf("%s%s-%d", s.prefix, strings.ToLower(o.Name), k+1)
	}
	for _, x := range f.entity.Search {
		if slices.ContainsFunc(x.Text, func(t *model.Field) bool { return t.Name == f.name }) {
			return kinds[k%len(kinds)] + " " + things[(k+len(f.name))%len(things)]
		}
	}
	return fmt.Sprintf("%s%s-%d", s.prefix, f.name, k+1)
}

// clip cuts a text to the attribute's max.
func clip(s string, a *model.Attribute) string {
	if a != nil && a.Max > 0 && len(s) > a.Max {
		return s[:a.Max]
	}
	return s
}

// made reports whether a new row gets the field without a command giving it.
func made(e *model.Entity, name string) bool {
	return slices.ContainsFunc(e.New, func(n model.New) bool { return n.Name == name })
}

// keepsKeys reports whether rows of the entity hold idempotency keys, and so are created
// together with rows of another entity.
func keepsKeys(m *model.Model, e *model.Entity) bool {
	return slices.ContainsFunc(m.Entities, func(o *model.Entity) bool { return o.Once != nil && o.Once.Of == e })
}

// ends reports whether the field holds the time at which a row expires.
func ends(e *model.Entity, name string) bool {
	if e.Expires != nil && e.Expires.Name == name {
		return true
	}
	return slices.ContainsFunc(e.Attributes, func(a *model.Attribute) bool {
		return a.Name == e.Table.TTL && a.Computed != nil && a.Computed.From.Name == name && a.Computed.Plus == 0 && a.Computed.By == nil
	})
}
