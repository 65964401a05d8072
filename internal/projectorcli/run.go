package projectorcli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"weir/internal/budget"
	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/metrics"
	"weir/internal/parallel"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/seq"
	"weir/internal/status"
	"weir/internal/system"
	"weir/internal/web"
)

// runCommand is the process that keeps a model's derived data. Any number of them may run on DynamoDB.
type runCommand struct {
	data
	assume
	Drained   string `hidden:""`
	SearchDir string `placeholder:"DIR" help:"On AWS without a cluster: keep the search index of the one model in this directory, for this process alone. The process that reads the streams answers searches; one that takes over fills its index first, and the others refuse searches. Do not copy the directory or restore it from a backup."`
	serving
	cli.LetterFlag
	Console consoleMode   `enum:"off,read,write" default:"read" help:"Web pages at / that show what is derived, and why: off, read, or write, which also allows actions, such as to retry dead letters (default ${default}). They need the same keys: a browser takes one as the password."`
	Build   string        `enum:"new,never" default:"new" help:"What to do at the start about derivations that have to be built from existing rows: added ones, changed ones, and all of a table that had rows before weir. new builds them beside the stream; never refuses to start."`
	Lease   time.Duration `default:"30s" help:"On AWS, for how long a process may be silent before another reads in its place (default ${default})."`
	Budget  float64       `name:"write-budget" placeholder:"UNITS" help:"On AWS, at most so many write units in a second on each table of the models, of all processes together; weir's own table has no limit. 0 is any number (default)."`
	Window  time.Duration `name:"batching-window" placeholder:"DURATION" help:"On AWS, let records gather for so long before they are applied, 10s at the most, so that a row for which many count is written once: fewer write units, and rows that show older values. Without it, records are applied as they come."`
}

func (runCommand) Help() string {
	return `Serves GET /v1/{model}/{query}?key=value&limit=&cursor=, GET /metrics for Prometheus,
a console for browsers at /,
and follows the streams of the models' tables until it is told to stop: then requests in progress are answered
and what is in the streams is applied. Exits with 0 on SIGTERM, with 130 on an
interrupt; a second signal ends it at once, which loses nothing either.

If derivations are new or changed, or a table had rows before weir, it builds them from
the rows, as projector build does, and audits the build a day later.

On AWS, any number of processes may run: one reads the streams, the others stand
by, answer queries, and take over when it is silent.

On an address that other machines reach, it needs keys, or --open:

  projector run gallery wardrobe --addr 127.0.0.1:8480
  WEIR_KEYS=$(openssl rand -hex 32) projector run gallery --addr :8480
  projector run gallery --aws --lease 10s
  projector run gallery --aws --stage prod --tables gallery=gallery-prod
  curl 'http://127.0.0.1:8480/v1/gallery/albums?limit=3'`
}

// The order of its start matters: it listens, announces builds, and only then reads streams. So a
// process that is refused has announced nothing and has no lease.
func (c *runCommand) Run(p *program) (err error) {
	defer func() { // also while it begins, which may take as long as indexes take to fill
		if errors.Is(err, context.Canceled) && errors.Is(context.Cause(p.ctx), errTerminated) {
			fmt.Fprintln(p.stderr, "stopped")
			err = nil
		}
	}()
	if c.Drained != "" {
		return usage("--drained is not needed any more: functions and processes move the same checkpoints, so a process goes on where a function was, also beside it")
	}
	if c.Lease < time.Second {
		return usage("--lease is %s; it is 1s at the least", c.Lease)
	}
	if c.Window < 0 || c.Window > min(longestWindow, c.Lease/3) || c.Window > 0 && !c.shared() {
		return usage("--batching-window is for --aws, not below 0, and at most %s and a third of --lease", longestWindow)
	}
	if c.Budget < 0 || c.Budget > 0 && !c.shared() {
		return usage("--write-budget is for --aws, and not below 0")
	}
	if c.SearchDir != "" && (!c.shared() || c.OpenSearch != "" || len(c.Models) != 1) {
		return usage("--search-dir is for --aws, without --opensearch, and for one model")
	}
	end, err := c.begin(p)
	if err != nil {
		return err
	}
	defer end()
	log := p.log
	writes := budget.New(c.Budget, c.Deployment().Own())
	s, err := p.openCounted(c.data, writes, c.Models, system.Options{Writes: true, Late: true, SearchDir: c.SearchDir, AssumeComplete: c.AssumeComplete, LetterTTL: time.Duration(c.LetterTTL)})
	if err != nil {
		return err
	}
	defer s.Close()
	told := metrics.New()
	indexed := make(chan struct{})
	activity := console.NewActivity(s.Models)
	follow, read, leaveStreams, held := c.following(s, log, told, activity, writes)
	defer leaveStreams()
	o := console.Options{Log: log, Activity: activity}
	if held != nil {
		o.Shards = func(model string) []reader.Status { return held[model].Status() }
		o.Stopped = func(model string) []reader.Stopped { return held[model].Stopped() }
		o.Reader = func(model string) string {
			owner, _ := held[model].StandsBy()
			return owner
		}
	}
	server, leave, err := c.newServer(s, told, writes, c.Console, o)
	if err != nil {
		return err
	}
	defer leave()
	defer server.Close()
	if !c.shared() {
		end, err := cli.Serves(c.at().Directory(), "http://"+server.Addr().String())
		if err != nil {
			return err
		}
		defer end()
	}
	// A reason to refuse this process has to be known before a build is announced, since that stops
	// programs with the older model.
	if err := c.start(p, s); err != nil {
		return err
	}
	read()
	c.saysAddress(p, s, c.data, server)
	ready := func(ctx context.Context) error {
		return c.building(ctx, s, log, func() error { return c.keepIndexes(ctx, p, s, log, indexed) })
	}
	if err := together(p.ctx, s, server, log, follow, ready, indexed); err != nil {
		return err
	}
	return p.endCommand()
}

// buildsOf returns the builds of a model that are not settled, as its status says them.
func buildsOf(of func(context.Context, string) (status.Status, error)) func(context.Context, string) ([]status.Build, error) {
	return func(ctx context.Context, model string) ([]status.Build, error) {
		st, err := of(ctx, model)
		return st.Builds, err
	}
}

// engines are the query engines of the models, in their order.
func engines(s *system.System) []*query.Engine {
	return seq.Map(s.Models, func(part *system.Part) *query.Engine { return part.Query })
}

// statuses returns the status of each model of a system, read at most once a second, without and with lags.
// The functions may be called by many goroutines. A model that the system does not have is not asked.
func statuses(s *system.System) (plain, lagging func(context.Context, string) (status.Status, error)) {
	of := map[string]*status.Recent{}
	for _, part := range s.Models {
		of[part.Model.Name] = status.NewRecent(s, part, time.Now)
	}
	plain = func(ctx context.Context, model string) (status.Status, error) { return of[model].Status(ctx) }
	return plain, func(ctx context.Context, model string) (status.Status, error) { return of[model].Lagging(ctx) }
}

// addSpending adds to a status the units that this process has used from now on.
func addSpending(of func(context.Context, string) (status.Status, error), units func() []budget.Use) func(context.Context, string) (status.Status, error) {
	since := time.Now()
	return func(ctx context.Context, model string) (status.Status, error) {
		st, err := of(ctx, model)
		st.Process = status.ProcessOf(since, units())
		return st, err
	}
}

// modelNames are the names of the system's models, in their order.
func modelNames(s *system.System) []string {
	return seq.Map(s.Models, func(part *system.Part) string { return part.Model.Name })
}

// finishTime is how long the rest of the streams may take when all stops. The
// next start goes on with the rest.
const finishTime = 10 * time.Second

// keepIndexes makes the search indexes ready, and closes indexed. Until then searches are refused.
// A cluster that fails stops nothing else: reach tries again, and once more when an index is gone from it.
func (c *runCommand) keepIndexes(ctx context.Context, p *program, s *system.System, log *slog.Logger, indexed chan<- struct{}) error {
	for ready := false; ; {
		err := p.fillIndexes(ctx, s)
		if err == nil && !ready {
			ready = true
			close(indexed)
		}
		switch {
		case err == nil && c.remote():
			if s.AwaitGone(ctx) != nil {
				return nil
			}
			if s.OwnsIndexes() {
				log.Info("searches are refused until this process reads again: another one has the search index now")
				continue
			}
			log.Warn("searches are refused, and rows are applied: a search index is gone, or was made again; it is filled again")
			continue
		case err == nil, ctx.Err() != nil:
			return nil
		case !c.remote():
			return err
		}
		log.Warn("searches are refused, and rows are applied: the search indexes cannot be built", "error", err, "again in", reachAgain)
		if parallel.Sleep(ctx, reachAgain) != nil {
			return nil
		}
	}
}

// reachAgain is the pause after an attempt to reach the cluster that failed.
const reachAgain = 10 * time.Second

// remote reports whether something can fail that is not this process's own: the store or the
// cluster.
func (c *runCommand) remote() bool { return c.shared() || c.OpenSearch != "" }

// fillIndexes fills the indexes that are not complete, and shows how far it is. It returns when all can be searched.
// After an interruption it goes on where it was.
func (p *program) fillIndexes(ctx context.Context, s *system.System) error {
	reading := cli.New(p.stderr, "rows read")
	defer reading.End()
	building := false
	err := s.Reach(ctx, func(f system.Filling) {
		if !building {
			building = true
			fmt.Fprintln(reading, "the search indexes are being built; searches are answered when they are complete")
		}
		reading.Total = int64(f.Total)
		reading.Set(int64(f.Rows), int64(f.Rows))
	})
	if err == nil && building {
		reading.End()
		fmt.Fprintln(p.stderr, "the search indexes are complete")
	}
	return err
}

// serveAfter is how long a server waits for the search indexes before it answers without.
const serveAfter = 5 * time.Second

// together serves, follows, builds search indexes and sweeps until ctx is done or one of
// them fails. It returns when all have ended, with nil when ctx asked for that.
func together(ctx context.Context, s *system.System, server *web.Server, log *slog.Logger, follow func(context.Context, *system.Part) error, reach func(context.Context) error, indexed <-chan struct{}) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The first that fails is said here; the errors of the others follow from its end.
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	start := func(work func() error) {
		wg.Go(func() {
			if err := work(); err != nil {
				once.Do(func() { first = err })
				stop(err)
			}
		})
	}
	start(func() error {
		select {
		case <-indexed:
		case <-time.After(serveAfter):
		case <-ctx.Done():
		}
		return server.Run(ctx)
	})
	start(func() error { return sweepExpired(ctx, s, log) })
	start(func() error { return reach(ctx) })
	for _, part := range s.Models {
		start(func() error { return follow(ctx, part) })
	}
	wg.Wait()
	return first
}

// following is how streams are followed: by this process alone, or by one of several that may. read begins to take part.
// held has the reader of each model, and is nil without leases.
// end closes all that was opened, also where read was never called. The first function returned is called once for each
// part, and returns nil when its context is done.
func (c *runCommand) following(s *system.System, log *slog.Logger, told *metrics.Metrics, activity *console.Activity, writes *budget.Writes) (_ func(context.Context, *system.Part) error, read, end func(), held map[string]*reader.Leased) {
	if !c.shared() {
		return alone(s, log, told, activity, c.remote(), newKillable()), func() {}, func() {}, nil
	}
	held = map[string]*reader.Leased{}
	read = func() {
		for _, f := range held {
			f.Start()
		}
	}
	end = func() {
		for _, f := range held {
			f.Close()
		}
	}
	for _, part := range s.Models {
		writes.Share(s.RealTables(part), 1) // one process reads
		of := told.Of(part.Runner)
		o := reader.Options{
			Lease: c.Lease, Window: c.Window, Log: log, Noted: of.Noted, Applied: of.Applied, Records: activity.Records(part.Model.Name),
		}
		if s.OwnsIndexes() {
			o.Taken = func(ctx context.Context) error { return s.TakeIndexes(ctx, part) }
			s.HoldIndexes(part, func() bool { return held[part.Model.Name].Fence() != 0 })
		}
		f := reader.NewLeased(part.Runner, o)
		of.Shards, of.Stopped = f.Status, f.Stopped
		held[part.Model.Name] = f
	}
	return func(ctx context.Context, part *system.Part) error {
		if err := held[part.Model.Name].Apply(ctx); err != nil {
			return fmt.Errorf("model %s: %w", part.Model.Name, err)
		}
		return nil
	}, read, end, held
}

// usesOf are the write units used, with the names that the model has for the tables.
// A table that the models have no name for is left out.
func usesOf(s *system.System, writes *budget.Writes) (out []budget.Use) {
	for _, u := range writes.Uses() {
		if name, err := s.Names.Logical(u.Table); err == nil {
			u.Table = name
			out = append(out, u)
		}
	}
	return out
}

// alone follows streams that no other process reads. remote says that the indexes are in a
// cluster: while it is down, documents are pending, and the rows go on.
// It reads every shard from its checkpoint, without leases. Only the embedded store is followed so. A follower that is
// killed is followed by another one.
func alone(s *system.System, log *slog.Logger, told *metrics.Metrics, activity *console.Activity, remote bool, kill *killable) func(context.Context, *system.Part) error {
	of := map[*system.Part]*metrics.Model{}
	for _, part := range s.Models {
		of[part] = told.Of(part.Runner)
	}
	return func(ctx context.Context, part *system.Part) error {
		for {
			life, end := kill.begin(ctx, part.Model.Name)
			err := follow(ctx, life, part, log, of[part], activity, remote)
			killed := life.Err() != nil
			end()
			if !killed || ctx.Err() != nil {
				return err
			}
			log.Info("the follower was killed, and starts again from its checkpoints", "model", part.Model.Name)
		}
	}
}

// follow follows a model's streams until ctx is done, and then to their end.
// When life ends, it ends at once, as in a crash. It has finishTime for the end of the streams. Records that it does not reach stay in
// the stream, and the checkpoint says from where.
func follow(ctx, life context.Context, part *system.Part, log *slog.Logger, told *metrics.Model, activity *console.Activity, remote bool) error {
	patient, cancel := context.WithCancel(life)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	f := reader.Follower{Runner: part.Runner, Prompt: true, Applied: activity.Records(part.Model.Name), Report: func(a reader.Applied) {
		told.Applied(a)
		a.Warn(log, part.Model)
	}}
	if remote {
		f.Stopped = func(table, shard, why string) {
			if why != "" {
				log.Warn("stands still", "model", part.Model.Name, "table", table, "shard", shard, "error", why)
			}
		}
	}
	err := f.CatchUp(patient, ctx.Done())
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Warn("not all that is in the streams is applied; the next start goes on", "model", part.Model.Name, "after", finishTime)
		return nil
	}
	if err != nil {
		return fmt.Errorf("model %s: %w", part.Model.Name, err)
	}
	return nil
}

// longestWindow is the longest batching window. A process that waits longer would be taken for one
// whose writes are slow, and give up shards.
const longestWindow = 10 * time.Second

// sweepEvery is how often expired rows are looked for.
const sweepEvery = 30 * time.Second

// sweepPause is how long after a sweep the next one comes. While there is more to remove, the
// pause is as long as the sweep was, so that half of the time is left to everything else.
func sweepPause(removed int, took time.Duration) time.Duration {
	if removed >= system.SweepAtOnce {
		return min(took, sweepEvery)
	}
	return max(sweepEvery, 9*took)
}

// sweepExpired removes rows whose time to live is over.
// It removes at most system.SweepAtOnce rows at a time, and returns nil when ctx is done. It is for the embedded
// store: in DynamoDB, DynamoDB deletes expired rows, and Sweep does nothing.
func sweepExpired(ctx context.Context, s *system.System, log *slog.Logger) error {
	timer := time.NewTimer(sweepEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		start := time.Now()
		n, err := s.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case n > 0:
			log.Info("rows whose time to live was over are removed", "rows", n)
		}
		timer.Reset(sweepPause(n, time.Since(start)))
	}
}
