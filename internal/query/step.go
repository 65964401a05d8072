package query

import (
	"errors"
	"slices"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// step is a model's step, compiled: the key it reads by, and the tests of a row.
type step struct {
	*model.Step
	shape
	prior           *step // the one before, nil for the first
	partition, sort keyPart
	primary         []keyPart // the table's own key
	keys            []keyPart // all keys of the entity
	sparse          bool      // rows hold only keys
	untold          bool      // and these do not tell which entity a row is
	mixed           bool      // the whole partition is read: entities with different sort keys
	keyed           bool      // a field that is fixed to a row before is in the primary key
	readings        []*model.Attribute
	lists           []*list        // of the row before: the list to each element of which the step is fixed
	kinds           []*step        // where rows of several kinds are read: one for each
	onlyInKeys      []*model.Field // the names that an answer takes from the key where the row has no such attribute
	pick            *pick          // how rows are found by lists of values in their keys; nil where they are not
}

// newStep compiles a step. prior is the step before, nil for the first.
// A step is compiled once and is shared by all calls: it does not change.
func newStep(s *model.Step, prior *step) *step {
	st := &step{Step: s, prior: prior, keyed: true}
	schema := s.Entity.Table.Key
	if s.Index != nil {
		schema, st.sparse = s.Index.Key, s.Index.KeysOnly
		st.untold = st.sparse && !s.TellsEntity()
	}
	st.partition, st.sort = newKeyPart(s.Entity, schema.Partition), newKeyPart(s.Entity, schema.Sort)
	for _, k := range s.Entity.PrimaryKey() {
		st.primary = append(st.primary, newKeyPart(s.Entity, k.Attr))
	}
	st.keys = append(st.keys, seq.Map(s.Entity.Keys, func(k *model.KeyTemplate) keyPart { return newKeyPart(s.Entity, k.Attr) })...)
	st.shareKey()
	st.shape, st.readings = newShape(s.Entity, st.sparse), readingAttributes(s.Entity)
	for _, b := range s.With {
		st.keyed = st.keyed && (b.Prior == nil || slices.ContainsFunc(st.primary, func(k keyPart) bool { return slices.Contains(k.names(), b.Field.Name) }))
		if b.Each() {
			st.lists = append(st.lists, newList(prior.Entity.Attribute(b.Prior.Name), prior))
		}
	}
	st.onlyInKeys = st.keyNames()
	st.kinds, st.pick = newKinds(s, prior), newPick(st)
	return st
}

// shareKey adapts the key that the step reads by to all entities whose rows are read. A name
// counts as escaped only if it is in the keys of each.
func (s *step) shareKey() {
	s.mixed = s.Mixed()
	for _, e := range s.Also {
		for _, k := range [...]*keyPart{&s.partition, &s.sort} {
			other := newKeyPart(e, k.attr)
			k.typed = slices.DeleteFunc(slices.Clone(k.typed), func(name string) bool { return !slices.Contains(other.typed, name) })
		}
	}
}

// scope is the values of the fields that a step fixes: values of parameters, and
// the row of the step before.
type scope struct {
	args  map[string]value.Value
	prior value.Item
	alone bool // there is no row before: a field that is fixed to one holds
}

// fixedValue is the value that a field is fixed to, Missing for nothing: an optional parameter
// that was not given, or a field that the row before does not have.
func (s *step) fixedValue(b *model.Bind, sc scope) value.Value {
	switch {
	case b.Prior != nil:
		return s.prior.readField(b.Prior, sc.prior)
	case b.Param != "":
		return sc.args[b.Param]
	}
	return b.Const
}

// lookupFor returns where a step's templates find their values: in the fields that it binds, for this scope.
// A name that it does not bind is Missing.
func (s *step) lookupFor(sc scope) lookup {
	return func(name string) value.Value {
		if b := s.Bound(name); b != nil {
			return s.fixedValue(b, sc)
		}
		return value.Value{}
	}
}

// sortRange bounds the sort key as closely as the fixed fields and the range allow. base is the beginning of all keys in it.
// A row outside the span never belongs; rows inside still have to be tested.
func (s *step) sortRange(sc scope, get lookup, as spelling) (r store.Range, base string) {
	if s.mixed {
		return store.Range{}, ""
	}
	v, whole := s.sort.buildPrefix(s.spelledValues(&s.sort, get, as))
	if whole {
		return store.Range{Equal: v}, v.Text()
	}
	if bounds, ok := s.termBounds(sc); ok {
		return bounds.beginsWith(v.Text()), v.Text()
	}
	return store.Range{Prefix: v}, v.Text()
}

// placeOf is the key values that a cursor has in the index that the step reads.
func (s *step) placeOf(c store.Cursor) store.Key {
	if s.Index != nil {
		return c.Entry
	}
	return c.Key
}

// cursorAfter stands just after a row that the step read.
func (s *step) cursorAfter(row value.Item) (store.Cursor, error) {
	k, ok := s.Entity.Table.KeyOf(row)
	if !ok {
		return store.Cursor{}, errors.New("a row came without its key")
	}
	c := store.Cursor{Key: k}
	if s.Index != nil {
		c.Entry.Partition = row.Get(s.partition.attr.Name)
		if s.sort.attr.Name != "" {
			c.Entry.Sort = row.Get(s.sort.attr.Name)
		}
	}
	return c, nil
}
