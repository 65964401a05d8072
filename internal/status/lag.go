package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
)

// Lag is how far a consumer group is behind the stream of a table: by the first record behind the
// position up to which the own table says that all is applied.
type Lag struct {
	// Group is rows, or search for the indexes of the model's definitions.
	Group string `json:"group"`
	// Shards is how many shards are not applied to their end, Behind how many of these have a record that
	// is not applied.
	Shards int `json:"shards"`
	Behind int `json:"behind"`
	// Seconds is the age of the oldest such record, 0 if there is none. It is nil if that is not known of
	// each shard; then Unknown says why, and what tells it.
	Seconds *float64 `json:"seconds,omitempty"`
	Unknown string   `json:"unknown,omitempty"`
}

// What the lag of a table costs at the most: the shards that are read, each with as many pages as it
// takes to see that it has no more. DynamoDB may answer with empty pages before the next record.
const (
	mostShards   = 1000
	shardsBeside = 32
	emptyPages   = 3
)

// lags are the lags of each table of a model at one time, by the name of the table.
type lags struct {
	of map[string][]Lag
	at time.Time
}

// lagsOf finds out how far all tables are behind that a status has. Of each shard it reads one
// record at the most, so it costs the same however much there is to apply.
func lagsOf(ctx context.Context, part *system.Part, st *Status) (lags, error) {
	out := lags{map[string][]Lag{}, part.Runner.Now()}
	groups, byFunction := []string{runner.GroupRows}, false
	for i := range st.Search {
		if x := &st.Search[i]; x.ours() && len(groups) == 1 {
			groups, byFunction = append(groups, runner.SearchGroup(x.Generation)), x.ByFunction
		}
	}
	for _, group := range groups {
		places, bad := part.Runner.Places(ctx, group)
		if bad != nil && !errors.Is(bad, owntable.ErrRow) {
			return out, bad
		}
		rows := group == runner.GroupRows
		for i := range st.Tables {
			t := &st.Tables[i]
			if t.ID == "" || part.Model.Table(t.Table) == nil {
				continue
			}
			l := Lag{Group: runner.KindOf(group)}
			var err error
			switch {
			case t.Off != "":
				l.Unknown = "its stream is off, so what is written now is in no stream"
			case !rows && byFunction:
				l.Unknown = "functions keep no position of it: see their metric IteratorAge"
			case bad != nil:
				l.Unknown = bad.Error()
			default:
				err = l.look(ctx, part.Runner, t.Table, places)
			}
			if err != nil {
				return out, err
			}
			out.of[t.Table] = append(out.of[t.Table], l)
		}
	}
	return out, nil
}

// look finds out the lag of a table from its shards and from up to where each is applied. Only the end
// of ctx is an error: what cannot be read is not known.
func (l *Lag) look(ctx context.Context, run *runner.Runner, table string, places []runner.Place) error {
	shards, err := shardsOf(ctx, run, table)
	if err != nil {
		l.Unknown = err.Error()
		return ctx.Err()
	}
	at := map[string]runner.Place{}
	for _, p := range places {
		if p.Table != table {
			continue
		}
		at[p.Shard] = p
		if listed := slices.ContainsFunc(shards, func(s store.Shard) bool { return s.ID == p.Shard }); !listed && !p.Done && !p.Expires {
			l.Shards++
			l.Unknown = fmt.Sprintf("the stream no longer lists shard %s, which is not known to be applied to its end; a process finds out whether records are missing", p.Shard)
		}
	}
	shards = slices.DeleteFunc(shards, func(s store.Shard) bool { return at[s.ID].Done })
	if l.Shards += len(shards); l.Shards > mostShards {
		l.Unknown = fmt.Sprintf("it has more than %d shards: see the metric weir_unapplied_seconds", mostShards)
		return nil
	}
	oldest := make([]time.Time, len(shards))
	err = parallel.Do(len(shards), shardsBeside, func(i int) (err error) {
		oldest[i], err = next(ctx, run.Store, table, shards[i].ID, at[shards[i].ID])
		return err
	})
	if err != nil {
		l.Unknown = err.Error()
		return ctx.Err()
	}
	seconds := 0.0
	for _, t := range oldest {
		if !t.IsZero() {
			l.Behind++
			seconds = max(seconds, run.Now().Sub(t).Seconds())
		}
	}
	if l.Unknown == "" {
		l.Seconds = &seconds
	}
	return nil
}

// shardsOf lists the shards of a table, also those of streams that were on before.
func shardsOf(ctx context.Context, run *runner.Runner, table string) ([]store.Shard, error) {
	_, is, err := run.StreamKept(ctx, table)
	if err != nil {
		return nil, err
	}
	if _, err := run.Store.Streams(ctx, table, is.Labels...); err != nil {
		return nil, err
	}
	return run.Store.Shards(ctx, table)
}

// next returns the time of the first record of a shard behind a place, zero if there is none.
func next(ctx context.Context, from store.Source, table, shard string, at runner.Place) (time.Time, error) {
	for range emptyPages {
		page, err := from.Read(ctx, table, shard, at.At, 1)
		switch {
		case err != nil:
			return time.Time{}, err
		case len(page.Records) > 0:
			return page.Records[0].Time, nil
		case page.End || from.Tip().Lag == 0: // a store without a lag shows what there is
			return time.Time{}, nil
		}
	}
	return time.Time{}, nil
}

// ours reports whether an index is of the model's definition, and complete.
func (x *Index) ours() bool { return x.Model == "" && x.State == string(owntable.Live) }

// with returns the status with lags: of each table, and of what is derived from tables the greatest.
func (st Status) with(is lags, m *model.Model) Status {
	st.Tables, st.Derivations, st.Search = slices.Clone(st.Tables), slices.Clone(st.Derivations), slices.Clone(st.Search)
	st.LagAt = is.at
	for i := range st.Tables {
		st.Tables[i].Lag = is.of[st.Tables[i].Table]
	}
	reads := map[string][]string{}
	for _, d := range m.Derivations() {
		reads[d.Name] = d.Reads
	}
	for i := range st.Derivations {
		if d := &st.Derivations[i]; d.applied() {
			d.Lag = is.greatest(reads[d.Name], runner.GroupRows)
		}
	}
	for i := range st.Search {
		if x := &st.Search[i]; x.ours() {
			x.Lag = is.greatest(reads[x.Name], runner.GroupSearch)
		}
	}
	return st
}

// greatest is the greatest lag of a group in tables, nil if it is not known of one of them.
func (is lags) greatest(tables []string, group string) *float64 {
	seconds := 0.0
	for _, t := range tables {
		at := slices.IndexFunc(is.of[t], func(l Lag) bool { return l.Group == group })
		if at < 0 || is.of[t][at].Seconds == nil {
			return nil
		}
		seconds = max(seconds, *is.of[t][at].Seconds)
	}
	return &seconds
}

// applied reports whether programs apply changes for a derivation of the model.
func (d *Derivation) applied() bool {
	return d.Kind != "" && slices.Contains([]string{string(owntable.Building), string(owntable.Live), string(owntable.Verified)}, d.State)
}

// text is the line of a lag below that of its table.
func (l *Lag) text() string {
	shards := "1 shard"
	if l.Shards != 1 {
		shards = fmt.Sprint(l.Shards, " shards")
	}
	switch {
	case l.Seconds == nil:
		return fmt.Sprintf("  %s: lag unknown: %s", l.Group, l.Unknown)
	case l.Behind == 0:
		return fmt.Sprintf("  %s: all applied, %s", l.Group, shards)
	}
	return fmt.Sprintf("  %s: %s behind, in %d of %s", l.Group, lagText(*l.Seconds), l.Behind, shards)
}

// behind ends the line of what is derived, if it is behind or that is not known.
func behind(seconds *float64) string {
	switch {
	case seconds == nil:
		return "; lag unknown"
	case *seconds == 0:
		return ""
	}
	return "; " + lagText(*seconds) + " behind"
}

// lagText is a lag for people, to the second from one on.
func lagText(seconds float64) string {
	to := time.Second
	if seconds < 1 {
		to = time.Millisecond
	}
	return time.Duration(seconds * float64(time.Second)).Round(to).String()
}
