package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// The errors of services on which a fault strikes.
var (
	errThrottled = errors.New("throttled")
	errLost      = errors.New("the connection broke before the answer came")
	errPart      = errors.New("some of it was not processed")
	errDown      = errors.New("the service is not available")
)

// sent is the context of a call on its way. The call happens even if its caller has given
// up.
var sent = context.Background()

// link is the access to the store of one fiber, or of whichever fiber of a process is
// running. Before and after each call other fibers may run, and every call may fail on the
// way.
type link struct {
	*world
	f *fiber // nil: the fiber of n that is running
	n *node
}

// runningFiber is the fiber whose call this is.
func (l *link) runningFiber() *fiber {
	if l.f != nil {
		return l.f
	}
	return l.n.running
}

// pauseCall gives control back before a call of a service, where the process may also end.
func (l *link) pauseCall(what string, names ...string) {
	f := l.runningFiber()
	if f.doomed {
		panic(crash{})
	}
	l.world.calls++
	f.call = l.world.calls
	l.pauseRows(what, names...)
	l.cutCall(0)
}

// cutCall ends the process if world.cuts says so for this call after so many of its parts.
func (l *link) cutCall(parts int) {
	if at, cut := l.cuts[l.runningFiber().call]; cut && at == parts {
		l.died++
		panic(crash{})
	}
	if l.met != nil {
		l.met(l.runningFiber().call, parts)
	}
}

// pauseRows gives control back during a call: at its start and between its parts.
func (l *link) pauseRows(what string, names ...string) {
	f := l.runningFiber()
	l.traceStep(f.name, what, names)
	if l.strike(Zombie) {
		f.asleep = 10 + l.faults.dice.n(120)
	}
	f.pausing = names
	f.pause()
	f.pausing = nil
	l.base.who, l.base.began = f.name, f.began
}

// beforeCall may kill the process before a call that writes.
func (l *link) beforeCall() {
	if l.strike(CrashBefore) {
		panic(crash{})
	}
}

// afterRead may kill the process after a call that reads.
func (l *link) afterRead() { l.cutCall(1) }

// afterCall may kill the process, or lose the answer, after a call has happened.
func (l *link) afterCall() error {
	if l.strike(CrashAfter) {
		panic(crash{})
	}
	if l.strike(Unknown) {
		return errLost
	}
	return nil
}

// disturbTelling kills or pauses the process more often after an event got its moment and before its
// followers have their rows.
func (l *link) disturbTelling(ws []store.Write) {
	if l.app.told == "" || !slices.ContainsFunc(ws, func(w store.Write) bool { return w.Key.Partition.Text() == l.app.told }) {
		return
	}
	if l.strikeWeighted(CrashAfter, 6) {
		panic(crash{})
	}
	if l.strikeWeighted(Zombie, 6) {
		l.runningFiber().asleep = 10 + l.faults.dice.n(120)
	}
}

// Get reads rows, not all at the same time.
func (l *link) Get(_ context.Context, refs []store.Ref) ([]value.Item, error) {
	l.pauseCall("get", refNames(refs)...)
	defer l.afterRead()
	if l.strikeWeighted(Throttle, 0.3) {
		return nil, errThrottled
	}
	if len(refs) < 2 || !l.drawTurn(0.2) {
		return l.base.Get(sent, refs)
	}
	at := l.sched.n(len(refs))
	first, err := l.base.Get(sent, refs[:at])
	if err != nil {
		return nil, err
	}
	l.pauseRows("get on")
	rest, err := l.base.Get(sent, refs[at:])
	return append(first, rest...), err
}

// Query reads a page, which may be shorter than the limit.
func (l *link) Query(_ context.Context, q store.Query) (store.Page, error) {
	l.pauseCall("query", q.Table, q.Partition.Text())
	defer l.afterRead()
	if l.strikeWeighted(Throttle, 0.3) {
		return store.Page{}, errThrottled
	}
	if l.drawTurn(0.2) {
		if short := 1 + l.sched.n(3); q.Limit == 0 || q.Limit > short {
			q.Limit = short
		}
	}
	return l.base.Query(sent, q)
}

// Write does the writes in any order between rows; other fibers may run in between.
func (l *link) Write(_ context.Context, ws []store.Write) ([]store.Outcome, error) {
	if isPosition(ws) && l.n.reader != nil && l.strikeWeighted(TwoWorkers, 0.5) {
		l.n.stallFibers()
	}
	l.pauseCall("write", writeNames(ws)...)
	if l.strike(Throttle) {
		return nil, errThrottled
	}
	if isPosition(ws) && l.strikeWeighted(CrashBetween, 3) {
		panic(crash{})
	}
	l.beforeCall()
	out := make([]store.Outcome, len(ws))
	order := l.orderOf(ws)
	stop := len(order)
	part := len(ws) > 1 && l.strike(Unprocessed)
	if part {
		stop = l.faults.dice.n(len(order))
	}
	for n, i := range order {
		if n == stop {
			break
		}
		if n > 0 && l.drawTurn(0.05) {
			l.pauseRows("write on")
		}
		one, err := l.base.Write(sent, ws[i:i+1])
		if err == nil && ws[i].Repeatable && l.strike(Resent) {
			l.pauseRows("write again")
			one, err = l.base.Write(sent, ws[i:i+1])
		}
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
		l.cutCall(n + 1)
	}
	if part {
		if l.faults.dice.chance(0.5) {
			return nil, errPart
		}
		for _, i := range order[stop:] {
			out[i] = store.Outcome{Err: errPart}
		}
	}
	l.disturbTelling(ws)
	return out, l.afterCall()
}

// orderOf is an order that keeps the order of writes of the same row.
func (l *link) orderOf(ws []store.Write) []int {
	order := make([]int, len(ws))
	for i := range order {
		order[i] = i
	}
	if len(ws) < 2 || !l.drawTurn(0.5) {
		return order
	}
	l.sched.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	at := map[string][]int{} // the writes of each row, in their order
	for i := range ws {
		name := ws[i].Ref.String()
		at[name] = append(at[name], i)
	}
	for n, i := range order {
		name := ws[i].Ref.String()
		order[n], at[name] = at[name][0], at[name][1:]
	}
	return order
}

// Transact does all of the writes or none.
func (l *link) Transact(_ context.Context, ws []store.Write) error {
	l.pauseCall("transact", writeNames(ws)...)
	if l.strikeWeighted(Conflict, 5) {
		return store.ErrConflict
	}
	if l.strike(Throttle) {
		return errThrottled
	}
	l.beforeCall()
	err := l.adoptWrites(ws, func() error { return l.base.Transact(sent, ws) })
	if l.cutCall(1); err != nil {
		return err
	}
	l.disturbTelling(ws)
	return l.afterCall()
}

// Shards lists shards. Those that do not descend from each other are in any order.
func (l *link) Shards(_ context.Context, table string) ([]store.Shard, error) {
	l.pauseCall("shards", table)
	defer l.afterRead()
	if l.strikeWeighted(Throttle, 0.3) {
		return nil, errThrottled
	}
	out, err := l.base.Shards(sent, table)
	if err == nil && l.drawTurn(0.5) {
		out = l.shuffleShards(out)
	}
	return out, err
}

// shuffleShards puts shards into any order in which parents come first.
func (l *link) shuffleShards(in []store.Shard) (out []store.Shard) {
	there := map[string]bool{}
	for _, s := range in {
		there[s.ID] = true
	}
	for len(in) > 0 {
		i := l.sched.n(len(in))
		for there[in[i].Parent] {
			i = (i + 1) % len(in)
		}
		out = append(out, in[i])
		delete(there, in[i].ID)
		in = append(in[:i:i], in[i+1:]...)
	}
	return out
}

// Read reads a page of a shard, of any length.
func (l *link) Read(_ context.Context, table, id string, after events.Position, limit int) (store.Records, error) {
	l.pauseCall("read", table, id)
	defer l.afterRead()
	l.runningFiber().began = l.base.writes
	if l.strikeWeighted(Throttle, 0.3) {
		return store.Records{}, errThrottled
	}
	if l.drawTurn(0.5) {
		limit = min(limit, 1+l.sched.n(12))
	}
	out, err := l.base.Read(sent, table, id, after, limit)
	if n := len(out.Records); n > 0 {
		l.base.tables[table].noteRead(id, out.Records[n-1].Position)
	}
	return out, err
}

// Trim says that records up to a position are not read again. Every group must have passed
// them.
func (l *link) Trim(_ context.Context, table, id string, upTo events.Position) error {
	l.trimShard(l.runningFiber().name, table, id, upTo)
	return l.base.Trim(sent, table, id, upTo)
}

// Horizon is that of the store.
func (l *link) Horizon(_ context.Context, table, id string) (events.Position, error) {
	return l.base.Horizon(sent, table, id)
}

// Changed is that of the store.
func (l *link) Changed(table string) (<-chan struct{}, error) { return l.base.Changed(table) }

// Tip is that of the store. A clock that is wrong by days is compared with the store's; one
// that is wrong by minutes is not.
func (l *link) Tip() store.Tip {
	tip := l.base.Tip()
	if l.n.skew.Abs() > time.Hour {
		tip.Ahead = l.n.skew
	}
	return tip
}

// Streams are those of the store.
func (l *link) Streams(_ context.Context, table string, met ...string) ([]string, error) {
	return l.base.Streams(sent, table, met...)
}

// Continues is that of the store.
func (l *link) Continues(_ context.Context, table, earlier, label string) (bool, error) {
	return l.base.Continues(sent, table, earlier, label)
}

// Identity is that of the store.
func (l *link) Identity(_ context.Context, table string) (store.Identity, error) {
	return l.base.Identity(sent, table)
}

// Sweep is that of the store.
func (l *link) Sweep(_ context.Context, now time.Time, limit int, prepare store.Prepare) (int, error) {
	return l.base.Sweep(sent, now, limit, prepare)
}

// Sync makes all writes durable.
func (l *link) Sync(_ context.Context) error {
	l.pauseCall("sync")
	defer l.afterRead()
	return l.base.Sync(sent)
}

// Close does nothing: the store outlives the processes that use it.
func (l *link) Close() error { return nil }

// drawTurn is a random choice that is no fault. It is false in the calm part of a run.
func (l *link) drawTurn(p float64) bool { return !l.calm && l.sched.chance(p) }

func refNames(refs []store.Ref) []string {
	return seq.Map(refs, refName)
}

func writeNames(ws []store.Write) []string {
	return seq.Map(ws, func(w store.Write) string { return refName(w.Ref) })
}

// refName is the key of a row over all tables.
func refName(r store.Ref) string {
	return r.Table + "|" + r.Key.Partition.Text() + "|" + r.Key.Sort.Text()
}

// isPosition reports whether a write saves the position of a consumer.
func isPosition(ws []store.Write) bool {
	if len(ws) == 0 || ws[0].Table != owntable.TableName {
		return false
	}
	kind := owntable.Kind(ws[0].Key.Partition.Text())
	return kind == owntable.KindCheckpoint
}

// indexLink is a fiber's access to the search index.
type indexLink struct{ *link }

// Apply sends changes of documents to the index.
func (l indexLink) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	l.pauseCall("index", seq.Map(docs, func(d search.Document) string { return d.Index + "|" + d.ID })...)
	l.beforeCall()
	errs := make([]error, len(docs))
	if l.strikeWeighted(SearchBusy, 2) {
		return nil, errThrottled
	}
	if l.strikeWeighted(SearchDown, 2) {
		l.index.apply(docs[:l.faults.dice.n(len(docs)+1)])
		return nil, errDown
	}
	for i := range docs {
		if l.strikeWeighted(SearchMixed, 1) {
			errs[i] = errThrottled
		} else if l.strikeWeighted(SearchVersion, 1) {
			errs[i] = errors.New("version conflict: another change of the document came at the same time")
		} else {
			errs[i] = l.index.apply(docs[i : i+1])[0]
			l.changes++
		}
		l.cutCall(i + 1)
	}
	if l.strikeWeighted(SearchTimeout, 2) {
		return nil, errLost
	}
	return errs, l.afterCall()
}

// Search is never called by a fiber that applies records.
func (l indexLink) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	return l.index.Search(ctx, q)
}

// Holds is never called by a fiber that applies records.
func (l indexLink) Holds(ctx context.Context, docs []search.Document) ([]bool, error) {
	return l.index.Holds(ctx, docs)
}

// Fresh is never called by a fiber that applies records.
func (l indexLink) Fresh() []string { return l.index.Fresh() }

// Filled is never called by a fiber that applies records.
func (l indexLink) Filled(name string) error { return l.index.Filled(name) }

// Instance is never called by a fiber that applies records.
func (l indexLink) Instance(name string) string { return l.index.Instance(name) }

// Place implements search.Index.
func (l indexLink) Place(name string) string { return l.index.Place(name) }

// Look implements search.Index.
func (l indexLink) Look(ctx context.Context) error { return l.index.Look(ctx) }

// Drop implements search.Index.
func (l indexLink) Drop(ctx context.Context, place string) error { return l.index.Drop(ctx, place) }

// Refresh is never called by a fiber that applies records.
func (l indexLink) Refresh(ctx context.Context) error { return l.index.Refresh(ctx) }

// Close does nothing: the index outlives the processes that use it.
func (l indexLink) Close() error { return nil }
