// Package query answers a model's named queries from the store and the search
// indexes.
//
// Each step of a query becomes one read by key: as much of the key as its fixed
// fields can build narrows the read, and every row that comes back must belong.
// It is a row of the step's entity, its fields have the values asked for, and it
// has not expired. A key built from a text that a person typed may therefore reach too
// far; the rows that it reaches are never given out.
//
// An answer comes in pages. A page costs a bounded amount of reading, so that it
// may be short, or empty, and still have a cursor; only a page without one is the
// last. (A query that gives each row once walks through everything for each page;
// one that sorts or counts gives up with ErrTooMuch.)
// Nothing is kept between pages: the cursor says how far the answer has come.
//
// A query is compiled once (plan.go): each step knows the key that it reads by (step.go,
// key.go) and the tests by which a row belongs (belong.go). A request then becomes a run, which
// answers one page:
//
//	walk.go       steps, depth first, each in the order of its key; any.go: by listed keys
//	stream.go     rows of one second in the order of time, which is not that of bytes (order.go)
//	spelled.go    keys in which a value stands as it is, or escaped
//	range.go      a part of a list, as a bounded read
//	whole.go      sets, gathered from the rows over which they are spread
//	distinct.go   each row once; sorted.go: another order than the key's
//	find.go       searches
//	shape.go      rows as people see them, and as a program reads them today; kinds.go and compose.go change them more
//	cursor.go     where the next page goes on, and the secret that seals it
package query

import (
	"context"
	"fmt"
	"time"

	"weir/internal/model"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// MaxLimit is how many rows a page may have, and how many it has where no limit
// is given.
const MaxLimit = 1000

// Config is the parts that an Engine works with.
type Config struct {
	Model  *model.Model
	Store  store.Store
	Search search.Index // nil: searches answer ErrUnavailable
	// Built returns nil if the indexes have everything that they should, apart from changes by which
	// programs that apply the streams lag behind; else an error that wraps ErrBuilding. nil
	// stands for indexes that are always built.
	Built func() error
	// Unfinished returns the derivations on rows of entities, or the index of a search, that are not there yet, of
	// another definition, or no longer updated. nil stands for derivations that are always finished.
	Unfinished func(ctx context.Context, of []string) ([]string, error)
	Now        func() time.Time // says which rows have expired; nil is time.Now
	Secret     []byte           // signs cursors, at least 16 bytes; see LoadSecret
}

// Engine runs the named queries of one model. It may be used from many
// goroutines.
type Engine struct {
	Config
	plans map[string]*plan
}

// Page is the part of an answer that is asked for.
type Page struct {
	Limit  int    // 1 to MaxLimit; 0 is MaxLimit
	Cursor string // of the Result before; "" for the first page
}

// Result is a page of rows. Cursor is "" on the last one. Unfinished are the derivations that
// are not on the rows yet, or are of another definition.
// Items belong to the caller.
type Result struct {
	Items      []value.Item
	Cursor     string
	Unfinished []string
}

// New compiles the queries of a model. Its errors are mistakes in the configuration.
func New(c Config) (*Engine, error) {
	if len(c.Secret) < minSecret {
		return nil, fmt.Errorf("queries of %s: the secret has %d bytes, at least %d are needed", c.Model.Name, len(c.Secret), minSecret)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	e := &Engine{Config: c, plans: map[string]*plan{}}
	for _, q := range c.Model.Queries {
		e.plans[q.Name] = compileQuery(q)
	}
	return e, nil
}

// Run answers a page of the named query. Its errors wrap ErrNotFound,
// ErrParameter, ErrCursor, ErrUnavailable or ErrBuilding, or else the error below.
// A page may be short, or empty, and still have a cursor. Pages of one answer are not one snapshot: a row that is
// written meanwhile may come twice or not at all.
func (e *Engine) Run(ctx context.Context, name string, params map[string]string, page Page) (Result, error) {
	p := e.plans[name]
	if p == nil {
		return Result{}, e.notFound(name)
	}
	args, err := p.parseArguments(params, page.Limit)
	if err != nil {
		return Result{}, err
	}
	if page.Limit == 0 {
		page.Limit = MaxLimit
	}
	seal := seal{secret: e.Secret, model: e.Model.Name, query: name, params: params}
	from, err := seal.openCursor(page.Cursor)
	if err != nil {
		return Result{}, err
	}
	// Before the rows: values that are finished meanwhile may be on them.
	var unfinished []string
	if e.Unfinished != nil {
		if unfinished, err = e.Unfinished(ctx, p.of); err != nil {
			return Result{}, fmt.Errorf("query %s of %s: %w", name, e.Model.Name, err)
		}
	}
	r := run{Engine: e, plan: p, args: args, now: e.Now(), want: page.Limit}
	if p.Single {
		r.want = 1
	}
	items, at, err := r.answerPage(ctx, from)
	if err != nil {
		return Result{}, fmt.Errorf("query %s of %s: %w", name, e.Model.Name, err)
	}
	if p.Single && len(items) > 0 {
		at = place{}
	}
	return Result{Items: items, Cursor: seal.sealPlace(at), Unfinished: unfinished}, nil
}

// run is the answering of one page.
// It is one call of a query: one page.
type run struct {
	*Engine
	plan *plan
	args map[string]value.Value
	// now is one moment for the whole page, so that no row expires in the middle of it.
	now  time.Time
	want int // rows

	reads, bytes int // the rows that were read
}

// The bounds of the work that a page may cost. Reading stops at the first place
// beyond one of them from which it can go on later.
const (
	maxReads = 256     // calls of the store or the search index
	maxBytes = 4 << 20 // of rows read, given out or not
	maxBatch = 100     // rows that are fetched by key at once
)

// isSpent reports whether the page has cost its limit.
func (r *run) isSpent() bool { return r.reads >= maxReads || r.bytes >= maxBytes }

// answerPage answers with rows, and the place after them; the zero place at the end.
// Items belong to the caller. A place with no items is possible: the page was spent on rows that do
// not belong.
func (r *run) answerPage(ctx context.Context, from place) ([]value.Item, place, error) {
	if !r.plan.fitsPlace(from) {
		return nil, place{}, ErrCursor
	}
	switch {
	case r.plan.Search != nil:
		return r.answerSearch(ctx, from)
	case r.plan.Unique:
		return r.answerDistinct(ctx, from)
	case r.plan.Sort != nil:
		return r.answerSorted(ctx, from)
	}
	items, at, err := r.answerSteps(ctx, from)
	if len(r.plan.returned) > 0 && err == nil {
		for i := range items {
			if items[i], err = r.composeRow(ctx, items[i]); err != nil {
				return nil, place{}, err
			}
		}
	}
	return items, at, err
}

// fetchRows reads rows of a step by their keys, in batches; nil where there is none
// that belongs to the scope of the same place.
func (r *run) fetchRows(ctx context.Context, st *step, keys []store.Key, scopes func(i int) scope) ([]value.Item, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	refs := make([]store.Ref, len(keys))
	for i, k := range keys {
		refs[i] = store.Ref{Table: st.Entity.Table.Name, Key: k}
	}
	rows, err := r.Store.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	r.reads++
	for i, row := range rows {
		r.bytes += row.Size()
		if row == nil || !st.rowBelongs(row, scopes(i), r.now) {
			rows[i] = nil
		}
		rows[i] = st.rowAsRead(rows[i], r.now)
	}
	return rows, nil
}

// View shows rows of one entity as queries do, to a caller that has the rows already.
type View struct{ step *step }

// NewView is the view of an entity's rows.
func NewView(e *model.Entity) *View {
	return &View{newStep(&model.Step{Entity: e}, nil)}
}

// Row is the row as people see it at a time.
func (v *View) Row(row value.Item, now time.Time) value.Item {
	return v.step.outsideRow(v.step.rowAsRead(row, now))
}

// Expired reports whether a row is past its TTL or its entity's expiry, so that no
// query gives it.
func (v *View) Expired(row value.Item, now time.Time) bool { return v.step.isExpired(row, now) }
