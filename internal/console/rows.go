package console

import (
	"net/http"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A page of rows has at most pageRows. To find those of one entity it reads at most readRows.
const (
	pageRows = 50
	readRows = 1000
)

// browse is which rows the reader asked for.
type browse struct {
	Table     *model.Table
	Entity    *model.Entity // nil: of any
	Index     *store.Index  // nil: the table
	Key       store.KeySchema
	Partition string // as typed
	Prefix    string
	query     store.Query
	keep      func(value.Item) bool // picks rows out of those that are read; nil keeps all
}

// rowsPage is a page of rows.
type rowsPage struct {
	*browse
	Action   string
	Entities []link
	Tables   []string
	Columns  []columnHead // of the entity's rows, if the page is of one entity
	Rows     []rowLine
	Read     int // rows read for the page
	Next     string
	Later    bool // not the first page
	First    string
}

// columnHead is a column of the table; Derived marks values that weir decides.
type columnHead struct {
	Name    string
	Derived bool
}

// rowLine is a row of the table. Cells has a value for each column, or Text has the row in short.
type rowLine struct {
	Key    link
	Entity string
	Cells  []shown
	Text   string // the row in short, if there are no columns
}

// listRows lists a table, an index or an item collection in pages: GET /console/{model}/rows.
// It links to the next page by a cursor. Rows are not counted, so the page costs the same in a table of any size.
func (c *Console) listRows(r *request) error {
	p := rowsPage{}
	var err error
	if p.browse, err = r.parseBrowse(); err != nil {
		return err
	}
	rows, next, err := c.read(r, &p)
	if err != nil {
		return err
	}
	same := []string{"table", p.Table.Name, "entity", r.param("entity"), "index", r.param("index"), "pk", p.Partition, "prefix", p.Prefix}
	if p.Later = r.param("after") != ""; p.Later {
		p.First = r.path("/rows", same...)
	}
	if next != "" {
		p.Next = r.path("/rows", append(same, "after", next)...)
	}
	m := r.part.Model
	for _, e := range m.Entities {
		p.Entities = append(p.Entities, link{e.Name, entityLink(m, e.Name).Href, e == p.Entity})
	}
	p.Tables = append(p.Tables, seq.Map(m.AllTables(), func(t *model.Table) string { return t.Name })...)
	p.Action = r.path("/rows")
	p.fillLines(m, rows)
	return r.ok("rows", p.title(), &p)
}

// IndexName is the index that the page is of, "" for the table.
func (p *rowsPage) IndexName() string { return p.query.Index }

func (p *rowsPage) title() string {
	if p.Entity != nil {
		return p.Entity.Name
	}
	return p.Table.Name
}

// parseBrowse reads which rows are asked for.
// Without a table and an entity it is the first table of the model.
func (r *request) parseBrowse() (b *browse, err error) {
	b = &browse{}
	m := r.part.Model
	if name := r.param("entity"); name != "" {
		if b.Entity = m.Entity(name); b.Entity == nil {
			return b, &mistake{http.StatusNotFound, "The model has no entity of this name."}
		}
		b.Table = b.Entity.Table
		b.keep = func(row value.Item) bool { return b.Table.Classify(row) == b.Entity }
	} else if r.param("table") == "" {
		b.Table = m.Tables[0]
	} else if b.Table, err = r.table(); err != nil {
		return b, err
	}
	b.Key = b.Table.Key
	if name := r.param("index"); name != "" {
		if b.Index = b.Table.Table.Index(name); b.Index == nil {
			return b, &mistake{http.StatusNotFound, "The table has no index of this name."}
		}
		b.Key = b.Index.Key
	}
	b.Partition, b.Prefix = r.param("pk"), r.param("prefix")
	b.query = store.Query{Table: b.Table.Name, Index: r.param("index"), Limit: pageRows}
	if b.query.Partition, err = keyValue(b.Key.Partition, b.Partition); err != nil {
		return b, err
	}
	if b.Prefix != "" {
		if b.query.Partition.IsMissing() || b.Key.Sort.Name == "" || b.Key.Sort.Type == value.Number {
			return b, &mistake{http.StatusBadRequest, "The beginning of a sort key needs the whole partition key, and a sort key that is a text or a binary."}
		}
		if b.query.Sort.Prefix, err = keyValue(b.Key.Sort, b.Prefix); err != nil {
			return b, err
		}
	}
	b.query.After, err = cursorFrom(b.Table, b.Index, r.param("after"))
	return b, err
}

// read reads a page. It picks out the rows of one entity. The cursor is behind
// the last row that is shown or, if the page is not full, the last that was read.
// So a page may be short, or empty, and still have a next one. It reads no more than readRows rows
// and the rest of the last read, whatever the size of the table.
func (c *Console) read(r *request, p *rowsPage) (rows []value.Item, next string, err error) {
	q := p.query
	for {
		page, err := c.system.Store.Query(r.ctx, q)
		if err != nil {
			return nil, "", err
		}
		for i, row := range page.Rows {
			p.Read++
			if p.keep == nil || p.keep(row) {
				rows = append(rows, row)
			}
			if len(rows) == pageRows && (i < len(page.Rows)-1 || page.Next != nil) {
				return rows, cursorText(p.Table, p.Index, p.after(row)), nil
			}
		}
		if page.Next == nil || p.Read >= readRows {
			return rows, cursorText(p.Table, p.Index, page.Next), nil
		}
		if q.After = page.Next; p.keep != nil {
			q.Limit = 4 * pageRows
		}
	}
}

// after is the cursor behind a row.
// Beyond the row's own key it has the key in the index, by which the index is in order.
func (p *browse) after(row value.Item) *store.Cursor {
	key, _ := p.Table.KeyOf(row)
	at := &store.Cursor{Key: key}
	if p.Index != nil {
		at.Entry = store.Key{Partition: row.Get(p.Key.Partition.Name), Sort: row.Get(p.Key.Sort.Name)}
	}
	return at
}

// mostColumns is how many attributes of an entity's rows have a column of their own.
const mostColumns = 6

// fillLines makes the lines of a page. A row without the whole key of the table is left out.
func (p *rowsPage) fillLines(m *model.Model, rows []value.Item) {
	if p.Entity != nil {
		p.Columns = columnsOf(p.Entity, rows)
	}
	for _, row := range rows {
		e := p.Table.Classify(row)
		row = m.Shown(e, row)
		key, ok := p.Table.KeyOf(row)
		if !ok {
			continue
		}
		line := rowLine{Key: rowLink(m, store.Ref{Table: p.Table.Name, Key: key})}
		if e != nil {
			line.Entity = e.Name
		}
		line.Cells = append(line.Cells, seq.Map(p.Columns, func(col columnHead) shown { return show(row.Get(col.Name), 60) })...)
		if p.Entity == nil {
			line.Text = brief(string(value.AppendPlainItem(nil, row.Filter(func(name string) bool { return !isKey(p.Table, name) && !owntable.IsOurs(name) }))), 160)
		}
		p.Rows = append(p.Rows, line)
	}
}

// isKey reports whether an attribute is part of a key of the table or of an index.
func isKey(t *model.Table, name string) bool {
	return slices.ContainsFunc(t.KeyAttrs(), func(a store.KeyAttr) bool { return a.Name == name })
}

// columnsOf chooses the attributes that tell rows apart, leaving out those that no row of the page has.
func columnsOf(e *model.Entity, rows []value.Item) (out []columnHead) {
	for _, name := range telling(e) {
		if len(out) < mostColumns && slices.ContainsFunc(rows, func(row value.Item) bool { return row.Has(name) }) {
			out = append(out, columnHead{name, isDerived(e, name)})
		}
	}
	return out
}

// telling are the attributes that tell rows of an entity apart: derived ones first, then those that the
// entity declares, but maps, binaries, and those that the key shows.
func telling(e *model.Entity) []string {
	out := slices.Clone(e.DerivedAttributes())
	for _, a := range e.Attributes {
		if a.Type != model.TypeMap && a.Type != model.TypeBinary && !slices.Contains(e.KeyNames(), a.Name) && !slices.Contains(out, a.Name) {
			out = append(out, a.Name)
		}
	}
	return out
}

// isDerived reports whether weir decides an attribute's value on rows of the entity.
func isDerived(e *model.Entity, name string) bool {
	return e != nil && (e.Derived || slices.Contains(e.DerivedAttributes(), name))
}
