package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/parallel"
	"weir/internal/runner"
	"weir/internal/store"
)

// Lag is how far a model is behind the stream of a table: by the first record behind the
// position up to which the own table says that all is applied.
type Lag struct {
	// Shards is how many shards are not applied to their end, Behind how many of these have a record that
	// is not applied.
	Shards int `json:"shards"`
	Behind int `json:"behind"`
	// Seconds is the age of the oldest such record, 0 if there is none. It is nil if that is not known of
	// each shard; then Unknown says why, and which metric tells it.
	Seconds *float64 `json:"seconds,omitempty"`
	Unknown string   `json:"unknown,omitempty"`
}

// The cost of the lag of a table at the most: the shards that are read, each with so many pages. DynamoDB may answer with empty
// pages before the next record, and says of none that it was the last one before it ("it might take multiple calls to get to a
// portion of the shard that contains stream records", GetRecords): only the end of a closed shard proves that nothing is left. An
// open shard that is idle has empty pages for ever, so none seen in a few of them counts as none, until the shard closes.
const (
	mostShards   = 1000
	shardsBeside = 32
	openPages    = 3
	closedPages  = 20
)

// openFor is how long a shard is assumed to be open at the most. DynamoDB closes shards after about four hours, also idle ones, but
// does not promise it.
const openFor = 6 * time.Hour

// Sight is the findings of a look at the stream of a table.
type Sight struct {
	Lag
	Open    int      // shards that still get records
	trimmed []Place  // behind which the stream has forgotten records
	assumed bool     // that shards which are open have no record, of which nothing was ever read
	unread  []string // shards that may have lost records without a sign: nothing was read of them, or they are not listed any more
}

// LookAt finds out how far the model is behind in a table: from the shards of its streams, and from up to where each is
// applied (runner.Runner.Places). Of each shard it reads one record at the most, so it costs the same however much there is
// to apply; of a shard whose child was begun it reads nothing, since a child is read after its parent. Only the end of ctx is
// an error: a lag that cannot be read is not known.
func LookAt(ctx context.Context, run *runner.Runner, table string, places []Place) (s Sight, err error) {
	shards, err := shardsOf(ctx, run, table)
	if err != nil {
		s.Unknown = err.Error()
		return s, ctx.Err()
	}
	at := map[string]Place{}
	for _, p := range places {
		if p.Table != table {
			continue
		}
		at[p.Shard] = p
		if listed := slices.ContainsFunc(shards, func(sh store.Shard) bool { return sh.ID == p.Shard }); !listed && !p.Done {
			s.unread = append(s.unread, p.Shard)
			if !p.Expires {
				s.Shards++
				s.Unknown = fmt.Sprintf("the stream no longer lists shard %s, which is not known to be applied to its end; a process finds out whether records are missing", p.Shard)
			}
		}
	}
	over := map[string]bool{}
	for _, sh := range shards {
		if !sh.Closed {
			s.Open++
		}
		is, begun := at[sh.ID]
		over[sh.ID] = over[sh.ID] || is.Done
		if begun {
			over[sh.Parent] = true
		}
	}
	shards = slices.DeleteFunc(shards, func(sh store.Shard) bool { return over[sh.ID] })
	if s.Shards += len(shards); s.Shards > mostShards {
		s.Unknown = fmt.Sprintf("it has more than %d shards: see the metric weir_unapplied_seconds", mostShards)
		return s, nil
	}
	nexts, errs := make([]time.Time, len(shards)), make([]error, len(shards))
	_ = parallel.Do(len(shards), shardsBeside, func(i int) error {
		nexts[i], errs[i] = nextRecordTime(ctx, run.Store, table, shards[i], at[shards[i].ID].At)
		return nil
	})
	seconds := 0.0
	for i, sh := range shards {
		if at[sh.ID].At.IsZero() {
			s.unread = append(s.unread, sh.ID)
			s.assumed = s.assumed || !sh.Closed && nexts[i].IsZero() && run.Store.Tip().Lag > 0
		}
		if errs[i] != nil {
			s.Unknown = errs[i].Error()
		}
		if errors.Is(errs[i], store.ErrTrimmed) {
			s.trimmed = append(s.trimmed, at[sh.ID])
		}
		if !nexts[i].IsZero() {
			s.Behind++
			seconds = max(seconds, run.Now().Sub(nexts[i]).Seconds())
		}
	}
	if s.Unknown == "" {
		s.Seconds = &seconds
	}
	return s, ctx.Err()
}

// shardsOf lists the shards of a table, also those of streams that were on before.
func shardsOf(ctx context.Context, run *runner.Runner, table string) ([]store.Shard, error) {
	_, is, err := ReadStream(ctx, run, table)
	if err != nil {
		return nil, err
	}
	if _, err := run.Store.Streams(ctx, table, is.Labels...); err != nil {
		return nil, err
	}
	return run.Store.Shards(ctx, table)
}

// nextRecordTime returns the time of the first record of a shard behind a position, zero if none was seen. Where nothing was read, it is
// the first that the stream has. A closed shard whose end is not reached is an error.
func nextRecordTime(ctx context.Context, from store.Store, table string, shard store.Shard, at events.Position) (time.Time, error) {
	pages := openPages
	if shard.Closed {
		pages = closedPages
	}
	for range pages {
		page, err := from.Read(ctx, table, shard.ID, at, 1)
		if errors.Is(err, store.ErrTrimmed) && at.IsZero() {
			if at, err = from.Horizon(ctx, table, shard.ID); err == nil {
				page, err = from.Read(ctx, table, shard.ID, at, 1)
			}
		}
		switch {
		case err != nil:
			return time.Time{}, err
		case len(page.Records) > 0:
			return page.Records[0].Time, nil
		case page.End || from.Tip().Lag == 0: // a store without a lag shows the records that there are
			return time.Time{}, nil
		}
	}
	if shard.Closed {
		return time.Time{}, fmt.Errorf("%d empty pages of shard %s of %s did not reach its end", pages, shard.ID, table)
	}
	return time.Time{}, nil
}
