package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/live"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/system"
)

// lags are the lags of each table of a model at one time, by the name of the table.
type lags struct {
	of map[string][]live.Lag
	at time.Time
}

// lagsOf finds out how far all tables are behind that a status has. Of each shard it reads one
// record at the most, so it costs the same however much there is to apply.
func lagsOf(ctx context.Context, part *system.Part, st *Status) (lags, error) {
	out := lags{map[string][]live.Lag{}, part.Runner.Now()}
	groups, byFunction, pending := []string{runner.GroupRows}, false, 0
	for i := range st.Search {
		x := &st.Search[i]
		if !x.ours() || len(groups) > 1 {
			continue
		}
		if groups, byFunction = append(groups, runner.SearchGroup(x.Generation)), x.ByFunction; byFunction {
			run := *part.Runner
			run.Generation = x.Generation
			var err error
			if pending, err = run.PendingDocuments(ctx, mostPending); err != nil {
				return out, err
			}
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
			l := live.Lag{Group: runner.KindOf(group)}
			switch {
			case t.Off != "":
				l.Unknown = "its stream is off, so what is written now is in no stream"
			case !rows && pending > 0:
				l.Unknown = fmt.Sprintf("%d documents or more are pending, which the cluster did not take; the function's schedule writes them", pending)
			case !rows && byFunction: // it writes documents with the rows
				l = out.of[t.Table][0]
				l.Group = runner.GroupSearch
			case bad != nil:
				l.Unknown = bad.Error()
			default:
				seen, err := live.LookAt(ctx, part.Runner, t.Table, group, places)
				if err != nil {
					return out, err
				}
				l = seen.Lag
			}
			out.of[t.Table] = append(out.of[t.Table], l)
		}
	}
	return out, nil
}

// mostPending is how many documents that are pending are counted.
const mostPending = 1000

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
		at := slices.IndexFunc(is.of[t], func(l live.Lag) bool { return l.Group == group })
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

// lagLine is the line of a lag below that of its table.
func lagLine(l *live.Lag) string {
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
