package stage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Wrap returns a store that takes logical names, over one whose tables have the real
// ones (Names.Tables). It owns the store that it is given. A table that the names do not
// have is store.ErrNoTable, also under its real name.
func Wrap(s store.Store, n Names) store.Store {
	if n.same || len(n.real) == 0 {
		return s
	}
	return &named{s, &n}
}

// WrapDeployer is Wrap for a store that makes its tables. Its report of a table has
// the logical name. The store has the table Registry as well. When the own table is made,
// the others are claimed.
func WrapDeployer(s store.Deployer, n Names, now func() time.Time) store.Deployer {
	return &deployer{named{s, &n}, s, now}
}

// named translates the names of tables. It has no other state.
type named struct {
	inner store.Store
	names *Names
}

// deployer is named with the methods that make tables.
type deployer struct {
	named
	tables store.Deployer
	now    func() time.Time
}

var (
	_ store.Store    = (*named)(nil)
	_ store.Deployer = (*deployer)(nil)
)

// real is the real name of a table. A name that the stage does not have becomes one that
// no store has, so that the store refuses it where it refuses any unknown table.
func (s *named) real(logical string) string {
	if real, ok := s.names.real[logical]; ok {
		return real
	}
	return "?" + logical
}

// writes returns copies with real names: the slice that it is given belongs to the caller.
func (s *named) writes(ws []store.Write) []store.Write {
	out := slices.Clone(ws)
	for i := range out {
		out[i].Table = s.real(out[i].Table)
	}
	return out
}

// Get, Query, Write and the other methods of a store translate names on the way in, and errors on
// the way out. They keep the promises of a store, because each call is one call of the inner store: a write
// has its conditions, a transaction is whole, and a page ends where the inner one does.
func (s *named) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Table = s.real(refs[i].Table)
	}
	rows, err := s.inner.Get(ctx, refs)
	return rows, s.failed(err)
}

// Load returns none: the results of a Load would have to be translated, too.
func (s *named) Load(context.Context, store.LoadOptions) (store.Load, error) { return nil, nil }

func (s *named) Query(ctx context.Context, q store.Query) (store.Page, error) {
	q.Table = s.real(q.Table)
	page, err := s.inner.Query(ctx, q)
	return page, s.failed(err)
}

// Write changes the names of tables only, in its arguments as in the errors of its outcomes. The
// caller's writes are not changed: writes returns copies.
func (s *named) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out, err := s.inner.Write(ctx, s.writes(ws))
	for i := range out {
		out[i].Err = s.failed(out[i].Err)
	}
	return out, s.failed(err)
}

func (s *named) Transact(ctx context.Context, ws []store.Write) error {
	return s.failed(s.inner.Transact(ctx, s.writes(ws)))
}

func (s *named) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	shards, err := s.inner.Shards(ctx, s.real(table))
	return shards, s.failed(err)
}

// Read gives the records the logical name. The driver may share its records with other
// readers, so they are copied.
func (s *named) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := s.inner.Read(ctx, s.real(table), shard, after, limit)
	page.Records = slices.Clone(page.Records)
	for i := range page.Records {
		page.Records[i].Table = table
	}
	return page, s.failed(err)
}

func (s *named) Trim(ctx context.Context, table, shard string, upTo events.Position) error {
	return s.failed(s.inner.Trim(ctx, s.real(table), shard, upTo))
}

func (s *named) Changed(table string) (<-chan struct{}, error) {
	c, err := s.inner.Changed(s.real(table))
	return c, s.failed(err)
}

func (s *named) Tip() store.Tip { return s.inner.Tip() }

func (s *named) Horizon(ctx context.Context, table, shard string) (events.Position, error) {
	at, err := s.inner.Horizon(ctx, s.real(table), shard)
	return at, s.failed(err)
}

func (s *named) Streams(ctx context.Context, table string, met ...string) ([]string, error) {
	labels, err := s.inner.Streams(ctx, s.real(table), met...)
	return labels, s.failed(err)
}

func (s *named) Continues(ctx context.Context, table, earlier, label string) (bool, error) {
	above, err := s.inner.Continues(ctx, s.real(table), earlier, label)
	return above, s.failed(err)
}

func (s *named) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := s.inner.Identity(ctx, s.real(table))
	return is, s.failed(err)
}

// Sweep hands prepare the removals under their logical names, and takes over the writes that it makes of
// them.
func (s *named) Sweep(ctx context.Context, now time.Time, limit int, prepare store.Prepare) (int, error) {
	inner := prepare
	if prepare != nil {
		inner = func(ctx context.Context, ws []store.Write) error {
			shown := slices.Clone(ws)
			for i := range shown {
				shown[i].Table = s.names.of(shown[i].Table)
			}
			err := prepare(ctx, shown)
			for i := range ws {
				ws[i] = shown[i]
				ws[i].Table = s.real(ws[i].Table)
			}
			return err
		}
	}
	n, err := s.inner.Sweep(ctx, now, limit, inner)
	return n, s.failed(err)
}

func (s *named) Sync(ctx context.Context) error { return s.inner.Sync(ctx) }
func (s *named) Close() error                   { return s.inner.Close() }

// Deploy reports the table under its logical name.
func (d *deployer) Deploy(ctx context.Context, table string, own bool) (store.Deployed, error) {
	got, err := d.tables.Deploy(ctx, d.real(table), own)
	got.Table = table
	if err == nil && table == owntable.TableName {
		if registry := Registry().Name; registry != d.names.Own() {
			_, err = d.tables.Deploy(ctx, registry, true)
		}
		if err == nil {
			err = Claim(ctx, d.tables, d.names, d.now(), true)
		}
	}
	return got, d.failed(err)
}

// failed is an error of the inner store, whose text has real names, with the logical
// names added.
func (s *named) failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, store.ErrClosed) {
		return err
	}
	return &failure{err, s.names}
}

// failure makes its text only on demand, because a failed condition is ordinary.
type failure struct {
	err   error
	names *Names
}

func (f *failure) Unwrap() error { return f.err }

// FailedTables are the model's names of the tables (store.FailedTables).
func (f *failure) FailedTables() []string {
	tables := slices.Clone(store.FailedTables(f.err))
	for _, t := range f.names.tables {
		if i := slices.Index(tables, f.names.real[t]); i >= 0 {
			tables[i] = t
		}
	}
	return tables
}

// Error adds the model's names of the tables that the text names by their real ones.
func (f *failure) Error() string {
	text := f.err.Error()
	var said []string
	for _, t := range f.names.tables {
		if real := f.names.real[t]; real != t && strings.Contains(text, real) {
			said = append(said, real+" is the model's "+t)
		}
	}
	if len(said) == 0 {
		return text
	}
	return text + " (" + strings.Join(said, ", ") + ")"
}
