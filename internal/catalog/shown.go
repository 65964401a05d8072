package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Two models show nothing on one row: the row has one version, and each would take the other's for
// a later one of its own and leave its value as it is.

// shapesOf returns, by table, the rows on which a model shows values, or which it makes.
func shapesOf(m *model.Model) map[string][]owntable.Shape {
	by := map[string]*owntable.Shape{}
	for _, d := range m.Derivations() {
		e := m.Entity(d.Into)
		if e == nil || isSearch(d.Name) {
			continue
		}
		if by[e.Name] == nil {
			s := ShapeOf(e)
			s.Attrs = e.DerivedAttributes()
			by[e.Name] = &s
		}
		by[e.Name].Of = append(by[e.Name].Of, d.Name)
	}
	out := map[string][]owntable.Shape{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		t := m.Entity(name).Table.Name
		slices.Sort(by[name].Of)
		out[t] = append(out[t], *by[name])
	}
	return out
}

// named is what a key template has in place of any text.
var named = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`)

// ShapeOf returns the shape of an entity's rows. It is of no derivation. Only tests of an attribute for
// single values are in it, so it may also fit rows that the entity's where leaves out.
func ShapeOf(e *model.Entity) owntable.Shape { return shapeOf(e, nil) }

// shapeOf is ShapeOf for rows in whose keys some names have one text.
func shapeOf(e *model.Entity, constants map[string]string) owntable.Shape {
	s := owntable.Shape{Is: map[string][]string{}}
	for _, k := range e.Keys {
		pattern := k.Template.String()
		for name, text := range constants {
			pattern = strings.ReplaceAll(pattern, "{"+name+"}", k.Template.Escape(text))
		}
		pattern = named.ReplaceAllString(pattern, "*")
		switch k.Attr.Name {
		case e.Table.Key.Partition.Name:
			s.Partition = pattern
		case e.Table.Key.Sort.Name:
			s.Sort = pattern
		}
	}
	for i := range e.Where {
		if f := e.Where[i].Field; f.Key == nil {
			for _, v := range e.Where[i].Listed() {
				s.Is[f.Attr] = append(s.Is[f.Attr], value.Scalar(v))
			}
		}
	}
	return s
}

// CanBe reports whether a row with such a text (owntable.RowText) can be of the entity, by its key. The text of a
// long key tells only its ends, so it may be of several entities that differ in the middle of a key.
func CanBe(e *model.Entity, text string) bool {
	if row, told := owntable.RowOf(text); told {
		return e.CanBe(row) && e.Takes(row.Key)
	}
	table, ends, _ := owntable.LongRowOf(text)
	return e.Table.Name == table && ShapeOf(e).Meets(ends)
}

// beside refuses to begin where another model shows values on the same rows. all are writes that note
// again which rows this model has by its catalog, each on condition that the row with the notes is as it was read.
// fresh are those of them that change what is noted.
func (c *Catalog) beside(ctx context.Context, tables map[string]owntable.Pin, row owntable.CatalogRow) (all, fresh []store.Write, err error) {
	shapes := shapesOf(c.model)
	var notes []notes
	for _, t := range slices.Sorted(maps.Keys(shapes)) {
		notes = append(notes, notesOf(t, tables[t])...)
	}
	shown, err := c.shown(ctx, notes)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range notes {
		for _, other := range slices.Sorted(maps.Keys(shown[i].Models)) {
			if other == c.model.Name {
				continue
			}
			if err := c.besideModel(ctx, n, other, shown[i].Models[other], shapes[n.table]); err != nil {
				return nil, nil, err
			}
		}
		if n.reads {
			continue
		}
		w, differs := shown[i].With(owntable.Shown(n.at), c.model.Name, c.derives(row, shown[i].Models[c.model.Name], shapes[n.table]))
		if all = append(all, w); differs {
			fresh = append(fresh, w)
		}
	}
	return all, fresh, nil
}

// derives returns what to note of a table: the shapes of this program for what the model derives by the program's
// definitions, and those that are noted for what it still derives by others. A program that is refused
// because of its definitions so changes nothing of what another one derives.
func (c *Catalog) derives(row owntable.CatalogRow, noted, ours []owntable.Shape) (out []owntable.Shape) {
	mine := func(name string) bool {
		at := slices.IndexFunc(c.program.Derivations, func(d model.Derivation) bool { return d.Name == name })
		return at >= 0 && isLive(row.Derivations[name]) && row.Derivations[name].Hash == c.program.Derivations[at].Hash
	}
	keep := func(s owntable.Shape, of func(name string) bool) {
		s.Of = slices.DeleteFunc(slices.Clone(s.Of), func(name string) bool { return !of(name) })
		if len(s.Of) > 0 {
			out = append(out, s)
		}
	}
	for _, s := range ours {
		keep(s, mine)
	}
	for _, s := range noted {
		keep(s, func(name string) bool { return isLive(row.Derivations[name]) && !mine(name) })
	}
	return out
}

// leave returns writes that take back what is noted of tables that the model has no longer, by the condition that the row
// with the notes is as it was read.
func (c *Catalog) leave(ctx context.Context, was, next map[string]owntable.Pin) (ws []store.Write, err error) {
	stays := map[string]bool{}
	for t, pin := range next {
		for _, n := range notesOf(t, pin) {
			stays[n.at] = true
		}
	}
	var gone []notes
	for _, t := range slices.Sorted(maps.Keys(was)) {
		for _, n := range notesOf(t, was[t]) {
			if !stays[n.at] {
				stays[n.at], gone = true, append(gone, n)
			}
		}
	}
	shown, err := c.shown(ctx, gone)
	if err != nil {
		return nil, err
	}
	for i, n := range gone {
		if w, differs := shown[i].With(owntable.Shown(n.at), c.model.Name, nil); differs {
			ws = append(ws, w)
		}
	}
	return ws, nil
}

// note notes which rows this model has, unless another model shows values there. A crash leaves some
// of them noted, and the next start notes all.
func (c *Catalog) note(ctx context.Context, tables map[string]owntable.Pin) error {
	for range attempts {
		row, err := c.read(ctx)
		if err != nil {
			return err
		}
		_, fresh, err := c.beside(ctx, tables, row)
		if err != nil || len(fresh) == 0 {
			return err
		}
		out, err := c.store.Write(ctx, fresh)
		for i := range out {
			if err == nil && !errors.Is(out[i].Err, store.ErrCondition) {
				err = out[i].Err
			}
		}
		if err != nil {
			return fmt.Errorf("noting which rows model %s shows values on: %w", c.model.Name, err)
		}
	}
	return errBusy
}

// notes is one of the rows that say which models show values on a table.
type notes struct {
	table string // as this model names it
	is    owntable.Pin
	at    string // what the row is of (owntable.Shown)
	named bool   // by a name of a model: each model means the table that it gives that name
	reads bool   // no program that has the table under this model's name looks there
}

// notesOf returns the rows that say which models show values on a table. Models and maps may give
// one table several names, so the row that counts is of its ARN, or of its id in a store without ARNs. An
// older weir wrote the rows of the names alone, and looks nowhere else.
func notesOf(t string, is owntable.Pin) (all []notes) {
	if id := cmp.Or(is.ARN, is.ID); id != "" && id != t {
		all = append(all, notes{t, is, id, false, false})
	}
	all = append(all, notes{t, is, t, true, false})
	if _, real, ok := strings.Cut(is.ARN, ":table/"); ok && real != t {
		all = append(all, notes{t, is, real, true, true})
	}
	return all
}

// pinsOf returns which tables were found.
func pinsOf(f Found) map[string]owntable.Pin {
	out := map[string]owntable.Pin{}
	for t, is := range f.Tables {
		out[t] = pinOf(is)
	}
	return out
}

// pinOf returns which table was found.
func pinOf(is store.Identity) owntable.Pin { return owntable.Pin{ID: is.ID, ARN: is.ARN} }

// sameTable reports whether two models mean one table. One that was dropped and made again has its ARN.
func sameTable(a, b owntable.Pin) bool {
	if a.ARN != "" && b.ARN != "" {
		return a.ARN == b.ARN
	}
	return a.ID == b.ID
}

// besideModel refuses what shows values on rows on which another model's derivations do that are
// not retired.
func (c *Catalog) besideModel(ctx context.Context, n notes, other string, theirs, ours []owntable.Shape) error {
	for _, their := range theirs {
		at := slices.IndexFunc(ours, their.Meets)
		if at < 0 {
			continue
		}
		live, as, err := c.liveOf(ctx, n, other, their.Of)
		if err != nil {
			return err
		}
		if as != "" {
			as = ", which it calls " + as
		}
		if len(live) > 0 {
			return refuse(ErrModel, "model %s shows %s on rows of table %s, and model %s shows %s there%s: a row has one version, so each would take the other's for a later one of its own, and leave values as they are. "+
				"Put both into one model; or take %s out of the file of model %s, and retire it: projector build FILE (%s)",
				c.model.Name, strings.Join(ours[at].Of, ", "), n.table, other, strings.Join(live, ", "), as, strings.Join(live, ", "), other, guide)
		}
	}
	return nil
}

// shown reads which models show values on rows of tables, all with one call: a function begins with it.
func (c *Catalog) shown(ctx context.Context, of []notes) ([]owntable.ShownRow, error) {
	refs, out := make([]store.Ref, len(of)), make([]owntable.ShownRow, len(of))
	for i, n := range of {
		refs[i] = owntable.Shown(n.at)
	}
	rows, err := c.store.Get(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("reading which models show values on tables: %w", err)
	}
	for i, row := range rows {
		if out[i], err = owntable.DecodeShown(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// liveOf returns which derivations of another model are neither retired nor unbuilt, none if it means
// another table by the name under which it is noted; and its name of the table, "" for the same as
// ours. A model that no longer has the table has taken back what was noted there (leave). A name that its catalog does not have is one that no program of it has applied yet, and is left out too.
func (c *Catalog) liveOf(ctx context.Context, n notes, other string, names []string) (live []string, as string, err error) {
	row, err := store.GetRow(ctx, c.store, owntable.Catalog(other))
	if err != nil {
		return nil, "", fmt.Errorf("reading the catalog of model %s: %w", other, err)
	}
	is, err := owntable.DecodeCatalog(row)
	if err != nil {
		return nil, "", fmt.Errorf("the catalog of model %s: %w", other, err)
	}
	if pin := is.Tables[n.at]; n.named && pin.ID != "" && n.is.ID != "" && !sameTable(pin, n.is) {
		return nil, "", nil
	}
	for _, t := range slices.Sorted(maps.Keys(is.Tables)) {
		if _, both := is.Tables[n.table]; !both && sameTable(is.Tables[t], n.is) {
			as = t
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isLive(is.Derivations[name]) }), as, nil
}

// isLive reports whether rows may show a derivation, now or when its build is live.
func isLive(is owntable.Derived) bool {
	return is.State != "" && is.State != owntable.Retired && is.State != owntable.Unbuilt
}

// begins reports whether something is derived by one catalog that another one does not derive, or derives by another
// definition.
func begins(was, next owntable.CatalogRow) bool {
	for name, is := range next.Derivations {
		if before := was.Derivations[name]; isLive(is) && (!isLive(before) || before.Hash != is.Hash) {
			return true
		}
	}
	return false
}

// ShownByOthers returns, by model, the rows of a table on which other models show values or which
// they make, with the derivations that are neither retired nor unbuilt. A model whose derivations
// there are all retired is not in the result, which belongs to the caller.
func (c *Catalog) ShownByOthers(ctx context.Context, table string) (map[string][]owntable.Shape, error) {
	found, err := c.store.Identity(ctx, table)
	if err != nil {
		return nil, fmt.Errorf("identifying table %s: %w", table, err)
	}
	out := map[string][]owntable.Shape{}
	notes := notesOf(table, pinOf(found))
	shown, err := c.shown(ctx, notes)
	if err != nil {
		return nil, err
	}
	for i, n := range notes {
		for other, shapes := range shown[i].Models {
			if other == c.model.Name || len(out[other]) > 0 { // noted by what identifies the table
				continue
			}
			for _, shape := range shapes {
				if shape.Of, _, err = c.liveOf(ctx, n, other, shape.Of); err != nil {
					return nil, err
				}
				if len(shape.Of) > 0 {
					out[other] = append(out[other], shape)
				}
			}
		}
	}
	return out, nil
}

// ShownBy returns what the model shows on rows of a table, by the shapes of these rows.
func (c *Catalog) ShownBy(ctx context.Context, table string) ([]owntable.Shape, error) {
	pin, err := c.Pin(ctx, table)
	if err != nil {
		return nil, err
	}
	notes := notesOf(table, pin)
	shown, err := c.shown(ctx, notes)
	if err != nil {
		return nil, err
	}
	for i, n := range notes {
		if shapes := shown[i].Models[c.model.Name]; len(shapes) > 0 && !n.reads {
			return shapes, nil
		}
	}
	return nil, nil
}
