// Package catalog holds a model's catalog, a row of weir's own table that all processes and
// functions of the model share: which tables the model belongs to, who reads their streams,
// and the values that are derived from them, by which definitions.
//
// A program starts by Start, which identifies the tables and enters the derivations that can begin. From
// then on every batch is admitted by Admit, which reads the catalog after the batch was
// received. A batch that is refused is not applied, not even in part, and not acknowledged:
// its records come again when the program is the right one.
//
// decide.go decides, and does no I/O. This file reads and writes the row. Each write has
// the condition that the row is as it was read, so any number of programs may start at the
// same time, and a crash leaves the row as it was or as it becomes.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

// Catalog is one program's access to a model's catalog. Its methods may be called from many
// goroutines at the same time.
type Catalog struct {
	model *model.Model
	store store.Store
	now   func() time.Time
	opts  Options

	program *Program

	mu      sync.Mutex
	started bool
	seen    value.Item // the row that was last decoded
	row     owntable.CatalogRow
	looked  time.Time                 // when Unfinished last read the row
	tables  map[string]store.Identity // of the model, as they were last identified; replaced, and never changed
	held    []fenced                  // as they were when this program began; replaced, and never changed
	moved   error                     // refuses derivations of this region, as of the last read
}

// Options are the claims of a program about its model. The zero Options claim nothing.
type Options struct {
	Assume   bool   // see Found.Assume
	DeriveIn string // see Found.DeriveIn
	Alone    bool   // nothing is done concurrently, as with runner.Runner.Alone
}

// New returns the catalog of a model whose rows are in s; it reads nothing. now is the clock
// by which derivations are remembered and streams forget, not one that orders anything.
func New(m *model.Model, s store.Store, now func() time.Time, o Options) *Catalog {
	return &Catalog{model: m, store: s, now: now, opts: o, program: ProgramOf(m)}
}

// Said is called with each stream that was switched off and on, before the catalog is
// written: after a crash in between it is called again.
type Said func(context.Context, Switch) error

// Start identifies the tables and decides whether the program may begin. The error wraps
// ErrRefused if it may not. That no table has its stream on is a reason: the program would follow nothing.
func (c *Catalog) Start(ctx context.Context, said Said) error {
	return c.startProgram(ctx, said, c.program.refuseUnread)
}

// startProgram is Start, with a reason more to refuse. A batch has a stream that it came from, so no such reason is asked for it.
func (c *Catalog) startProgram(ctx context.Context, said Said, refuses func(owntable.CatalogRow, Found) error) error {
	found, err := c.identifyTables(ctx)
	if err != nil {
		return err
	}
	if found.Own, err = c.ownTableID(ctx); err != nil {
		return err
	}
	for range attempts {
		was, err := c.readRow(ctx)
		if err != nil {
			return err
		}
		claims, err := c.claimsOf(ctx, pinsOf(found), was.Tables)
		if err != nil {
			return err
		}
		if !was.WasRead() {
			if err := c.noteLostRecords(ctx, found); err != nil {
				return err
			}
		}
		if err := c.findRestarted(ctx, was, &found); err != nil {
			return err
		}
		if err := refuses(was, found); err != nil {
			return err
		}
		next, switched, refused := c.program.Start(was, found)
		if !errors.Is(refused, ErrReplica) {
			if err := c.fenceTables(ctx, found); err != nil {
				return err
			}
		}
		for _, s := range switched {
			if err := said(ctx, s); err != nil {
				return err
			}
		}
		if refused == nil || !was.Same(next) {
			if written, err := c.replaceRow(ctx, was, next); err != nil {
				return err
			} else if !written {
				continue
			}
			if beginsAnything(was, next) {
				claims.fresh = nil
			}
		}
		if err := c.moveCheckpoints(ctx, found.behind); err != nil { // the catalog has by now the entries that that lacks
			return err
		}
		if refused == nil {
			if done, err := c.writeClaims(ctx, claims); err != nil {
				return err
			} else if !done {
				continue
			}
			if err := c.readLeft(ctx, next); err != nil {
				return err
			}
			c.mu.Lock()
			c.started = true
			c.mu.Unlock()
		}
		return refused
	}
	return errBusy
}

// ownTableID returns the id of weir's own table.
func (c *Catalog) ownTableID(ctx context.Context) (string, error) {
	is, err := c.store.Identity(ctx, owntable.TableName)
	if err != nil {
		return "", fmt.Errorf("identifying table %s: %w", owntable.TableName, err)
	}
	return is.ID, nil
}

// identifiedAtOnce is how many tables are identified at a time, since each is a request of its own on DynamoDB and the
// first event of a function waits for all.
const identifiedAtOnce = 16

// atOnce returns how many tables the catalog identifies at a time.
func (c *Catalog) atOnce() int {
	if c.opts.Alone {
		return 1
	}
	return identifiedAtOnce
}

// identifyTables identifies the model's tables.
func (c *Catalog) identifyTables(ctx context.Context) (Found, error) {
	f := Found{Tables: map[string]store.Identity{}, Now: c.now(), Assume: c.opts.Assume, DeriveIn: c.opts.DeriveIn}
	tables := slices.Sorted(maps.Keys(c.program.Needs))
	are, errs := make([]store.Identity, len(tables)), make([]error, len(tables))
	_ = parallel.Do(len(tables), c.atOnce(), func(i int) error {
		are[i], errs[i] = c.store.Identity(ctx, tables[i])
		return nil
	})
	for i, t := range tables {
		if errs[i] != nil {
			return f, fmt.Errorf("identifying table %s: %w", t, errs[i])
		}
		f.Tables[t] = are[i]
	}
	c.keepIdentities(maps.Clone(f.Tables))
	return f, c.findOvertaken(ctx, &f)
}

// keepIdentities keeps the identities of the model's tables.
func (c *Catalog) keepIdentities(tables map[string]store.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables = tables
}

// Tables returns the identities of the model's tables when they were last read, and reads them if that was
// never done. The caller does not change the map.
func (c *Catalog) Tables(ctx context.Context) (map[string]store.Identity, error) {
	c.mu.Lock()
	tables := c.tables
	c.mu.Unlock()
	if tables == nil {
		found, err := c.identifyTables(ctx)
		return found.Tables, err
	}
	return tables, nil
}

// StreamOff returns the text of Program.StreamsOff for a table, nil if its stream is on. It identifies the table again, unless
// open says that a shard of its stream gets records and the stream was on before.
func (c *Catalog) StreamOff(ctx context.Context, table string, open bool) (off, err error) {
	tables, err := c.Tables(ctx)
	if err != nil || open && c.program.StreamsOff(tables)[table] == nil {
		return nil, err
	}
	is, err := c.store.Identity(ctx, table)
	if err != nil {
		return nil, fmt.Errorf("identifying table %s: %w", table, err)
	}
	tables = maps.Clone(tables)
	tables[table] = is
	c.keepIdentities(tables)
	return c.program.StreamsOff(tables)[table], nil
}

// findOvertaken finds the tables whose streams no longer have the record after one of the model's checkpoints,
// in a store that numbers all changes in one order: another model, which ran alone, has trimmed
// them. A store whose streams forget by time has readers that report a gap.
func (c *Catalog) findOvertaken(ctx context.Context, f *Found) error {
	if c.store.Tip().Given.IsZero() {
		return nil
	}
	f.Passed = map[string]events.Position{}
	for t := range c.program.Needs {
		shards, err := c.store.Shards(ctx, t)
		if err != nil && !errors.Is(err, store.ErrNoTable) {
			return fmt.Errorf("looking how far the streams of table %s are trimmed: %w", t, err)
		}
		for _, s := range shards {
			oldest, err := c.store.Horizon(ctx, t, s.ID)
			if err != nil {
				return err
			}
			at := owntable.Checkpoint(c.model.Name, t, s.ID)
			row, err := store.GetRow(ctx, c.store, at.Ref)
			if err != nil {
				return fmt.Errorf("reading checkpoints of model %s: %w", c.model.Name, err)
			}
			is, err := owntable.DecodeCheckpoint(row)
			if err != nil || is.Done || is.At.Compare(oldest) >= 0 {
				continue // of a row that cannot be read, nothing is applied until it is put right
			}
			if f.Passed[t].Compare(oldest) < 0 {
				f.Passed[t] = oldest
			}
			f.behind = append(f.behind, owntable.OvertakeCheckpoint(at, oldest))
		}
	}
	return nil
}

// findRestarted finds the tables whose streams are others than those that are pinned, and do not certainly continue them. It
// asks nothing of a table whose stream is the pinned one.
func (c *Catalog) findRestarted(ctx context.Context, row owntable.CatalogRow, f *Found) error {
	f.Restarted = map[string]bool{}
	for t, is := range f.Tables {
		pin := row.Tables[t]
		if pin.ID != is.ID || pin.Stream == "" || is.Stream == "" || pin.Stream == is.Stream {
			continue
		}
		above, err := c.store.Continues(ctx, t, pin.Stream, is.Stream)
		if err != nil {
			return fmt.Errorf("comparing the streams of table %s: %w", t, err)
		}
		f.Restarted[t] = !above
	}
	return nil
}

// moveCheckpoints moves the checkpoints that passed has found to where the streams begin.
func (c *Catalog) moveCheckpoints(ctx context.Context, behind []store.Write) error {
	if len(behind) == 0 {
		return nil
	}
	_, err := c.store.Write(ctx, behind)
	return store.Wrap(err, "moving checkpoints of model %s", c.model.Name)
}

// noteLostRecords takes back that streams are complete, if a checkpoint of the model has moved and its
// catalog knows of no reader: the catalog's row was deleted, and a derivation that began now
// would lack the records before the checkpoint.
func (c *Catalog) noteLostRecords(ctx context.Context, found Found) error {
	moved := false
	for rows, err := range store.Pages(ctx, c.store, owntable.RowsOf(owntable.Checkpoints(c.model.Name))) {
		if err != nil {
			return fmt.Errorf("looking for checkpoints of model %s: %w", c.model.Name, err)
		}
		for _, row := range rows {
			is, err := owntable.DecodeCheckpoint(row)
			if err != nil {
				return err
			}
			moved = moved || !is.At.IsZero()
		}
		if moved {
			break
		}
	}
	for t, is := range found.Tables {
		is.Whole, is.Together = is.Whole && !moved, is.Together && !moved
		found.Tables[t] = is
	}
	return nil
}

// attempts is how often a change of the catalog is tried again because another program
// changed it. Each failure is another program's success, and each program starts once.
const attempts = 50

var errBusy = errors.New("the catalog is changed by others all the time")

// Admit reads the catalog, with strong consistency, and decides whether a batch that was
// received before may be applied to rows. It returns the catalog by which the batch is
// applied. The error wraps ErrRefused if it may not be. The first batch of a program that was
// not started starts it.
//
// A program that runs also finds that the tables are no longer those that it began with: it is
// started again if the batch comes from a later stream than the one that is pinned, or the
// catalog is gone or an earlier one than it has seen.
func (c *Catalog) Admit(ctx context.Context, b Batch, said Said) (owntable.CatalogRow, error) {
	for again := false; ; again = true {
		if !c.isStarted() {
			if err := c.startProgram(ctx, said, ofAStream); err != nil {
				return owntable.CatalogRow{}, err
			}
		}
		row, err := c.Change(ctx, func(row owntable.CatalogRow) (owntable.CatalogRow, error) {
			return c.program.Admit(row, b, c.now())
		})
		if !again && b.isLaterStream(row) {
			c.startAgain()
		}
		if again || c.isStarted() {
			return row, err
		}
	}
}

// ofAStream refuses no start: a batch starts here, so a stream is on, or was.
func ofAStream(owntable.CatalogRow, Found) error { return nil }

// isStarted reports whether the tables were identified, and no later batch has to do it again. It may be called by any goroutine.
func (c *Catalog) isStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// startAgain makes the next batch identify the tables.
func (c *Catalog) startAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = false
}

// Change changes the catalog as decide says, which gets it as it is, must change nothing of
// that, and may be called several times. It returns the catalog as it is afterwards.
func (c *Catalog) Change(ctx context.Context, decide func(owntable.CatalogRow) (owntable.CatalogRow, error)) (owntable.CatalogRow, error) {
	for range attempts {
		was, err := c.readRow(ctx)
		if err == nil {
			err = c.elsewhereNow()
		}
		if err != nil {
			return was, err
		}
		next, err := decide(was)
		if err != nil || was.Same(next) {
			return was, err
		}
		if _, err := c.replaceRow(ctx, was, next); err != nil {
			return was, err
		}
		// The state that this program or another has written is read and decided again.
	}
	return owntable.CatalogRow{}, errBusy
}

// SetSearchGeneration notes that every reader keeps the documents of a search generation from now on, or of none if it is "". Readers with
// another one are refused.
func (c *Catalog) SetSearchGeneration(ctx context.Context, generation string) error {
	_, err := c.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		was.Search = generation
		return was, nil
	})
	return err
}

// PinOf returns the catalog's entry of a table: among others, who reads its stream since when.
func (c *Catalog) PinOf(ctx context.Context, table string) (owntable.Pin, error) {
	row, err := c.readRow(ctx)
	return row.Tables[table], err
}

// Retire notes that the model no longer has the derivations that this program lacks, and returns their names. From the next
// batch on, programs that derive them are refused. What building says is as for Program.Retire. The error wraps ErrTable if
// the model is another one of the same name.
func (c *Catalog) Retire(ctx context.Context, building bool) (retired []string, err error) {
	found, err := c.identifyTables(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		if err := c.program.sharesTables(was, found.Tables); err != nil {
			return was, err
		}
		next, names := c.program.Retire(was, building, c.now())
		retired = append(retired, names...) // the catalog that was written is looked at again, and has none
		return next, nil
	})
	slices.Sort(retired)
	return slices.Compact(retired), err
}

// NoteTableMade notes that weir has just made a table with its stream. Call it before anything can
// be written to the table that its stream might lose. A table under this name that was
// read before stays pinned, and Start refuses the new one.
func (c *Catalog) NoteTableMade(ctx context.Context, table string) error {
	is, err := c.store.Identity(ctx, table)
	if err != nil {
		return fmt.Errorf("identifying table %s: %w", table, err)
	}
	now := c.now()
	_, err = c.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		if err := c.program.sharesTables(was, map[string]store.Identity{table: is}); err != nil {
			return was, err
		}
		if pin := was.Tables[table]; pin.Reader != "" || is.ID == "" || is.Stream == "" {
			return was, nil
		}
		next := was.Clone()
		next.Tables[table] = owntable.Pin{
			ID: is.ID, ARN: is.ARN, Stream: is.Stream, First: is.Stream, Images: is.Images, Made: is.Made, Complete: owntable.CompleteMade, Since: now,
		}
		return next, nil
	})
	return err
}

// readRow reads the row. It decodes only a row that it has not decoded before.
// The row that it returns shares memory with later calls: Clone it before changing it.
func (c *Catalog) readRow(ctx context.Context) (owntable.CatalogRow, error) {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	refs := []store.Ref{owntable.Catalog(c.model.Name)}
	for i := range held {
		refs = append(refs, held[i].Ref)
	}
	rows, err := c.store.Get(ctx, refs)
	if errors.Is(err, store.ErrNoTable) {
		c.startAgain()
	}
	if err != nil {
		return owntable.CatalogRow{}, fmt.Errorf("reading the catalog of model %s: %w", c.model.Name, err)
	}
	is := rows[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = nil
	for i := range held {
		now := held[i]
		now.RegionFence = owntable.RegionFenceFrom(rows[i+1])
		c.moved = errors.Join(c.moved, c.refuseOtherRegion(now))
	}
	if c.seen != nil && value.EqualItems(c.seen, is) {
		return c.row, nil
	}
	row, err := owntable.DecodeCatalog(is)
	switch {
	case errors.Is(err, owntable.ErrNewer): // a program that waits would keep its shards
		return row, &refusal{errors.Join(ErrFormat, err), fmt.Sprintf("the catalog of model %s: %v; replace this program by that version (%s)", c.model.Name, err, guide)}
	case err != nil:
		return row, fmt.Errorf("the catalog of model %s: %w", c.model.Name, err)
	}
	if row.Count < c.row.Count { // of a table that was restored
		c.started = false
	}
	c.seen, c.row = is, row
	return row, nil
}

// replaceRow replaces the row unless it has changed since it was read; written says which. A row
// that is to stay as it is is not written. Where something begins, the tables are claimed in the same transaction.
func (c *Catalog) replaceRow(ctx context.Context, was, next owntable.CatalogRow) (written bool, err error) {
	if was.Count > 0 && was.Same(next) {
		return true, nil
	}
	ws := []store.Write{was.Becomes(owntable.Catalog(c.model.Name), next)}
	if beginsAnything(was, next) {
		if err := c.writeFootprints(ctx, was, next); err != nil {
			return false, err
		}
		claims, err := c.claimsOf(ctx, next.Tables, nil)
		if err != nil {
			return false, err
		}
		ws = append(claims.all, ws...)
	}
	if len(ws) > 1 {
		err = c.store.Transact(ctx, ws)
	} else {
		_, err = store.WriteRow(ctx, c.store, ws[0])
	}
	if errors.Is(err, store.ErrCondition) || errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return true, store.Wrap(err, "writing the catalog of model %s", c.model.Name)
}

// Row returns the catalog as it is.
func (c *Catalog) Row(ctx context.Context) (owntable.CatalogRow, error) { return c.readRow(ctx) }

// LastSeen returns the catalog as it was last read, for callers that need no current one.
func (c *Catalog) LastSeen() owntable.CatalogRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.row
}

// lookEvery is how old the catalog may be by which answers to queries are marked.
const lookEvery = 2 * time.Second

// Unfinished is Program.Unfinished as of at most two seconds ago.
// It reads the catalog as often. Whether streams are on is as of when the tables were last identified.
func (c *Catalog) Unfinished(ctx context.Context, of []string) ([]string, error) {
	c.mu.Lock()
	row, now := c.row, c.now()
	old := now.Sub(c.looked)
	c.mu.Unlock()
	if old < 0 || old >= lookEvery {
		var err error
		if row, err = c.readRow(ctx); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.looked = now
		c.mu.Unlock()
	}
	tables, err := c.Tables(ctx)
	if err != nil {
		return nil, err
	}
	return c.program.Unfinished(row, tables, of), nil
}

// ReadAndCheck returns the catalog as it is, and why this program would be refused if it started
// now, nil if it would not. It writes nothing.
func (c *Catalog) ReadAndCheck(ctx context.Context) (row owntable.CatalogRow, refused, err error) {
	found, err := c.identifyTables(ctx)
	if err != nil {
		return row, nil, err
	}
	if row, err = c.readRow(ctx); err != nil {
		return row, nil, err
	}
	if _, err := c.claimsOf(ctx, pinsOf(found), nil); errors.Is(err, ErrRefused) {
		return row, err, nil
	} else if err != nil {
		return row, nil, err
	}
	if err := c.findRestarted(ctx, row, &found); err != nil {
		return row, nil, err
	}
	if refused = c.program.refuseUnread(row, found); refused == nil {
		_, _, refused = c.program.Start(row, found)
	}
	if refused == nil {
		all, err := c.readFences(ctx, found)
		if err != nil {
			return row, nil, err
		}
		for _, f := range all {
			if f.Region != "" {
				refused = cmp.Or(refused, c.refuseOtherRegion(f))
			}
		}
	}
	return row, refused, nil
}

// Program is the derivations and needs of the program.
func (c *Catalog) Program() *Program { return c.program }
