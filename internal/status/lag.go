package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/reader"
	"weir/internal/system"
)

// lags are the lags of each table of a model at one time, by the name of the table, and of searches.
type lags struct {
	of      map[string]*reader.Lag
	pending int // documents, mostPending at the most
	at      time.Time
}

// lagsOf finds out how far all tables are behind that a status has. Of each shard it reads one
// record at the most, so it costs the same however much there is to apply.
func lagsOf(ctx context.Context, part *system.Part, st *Status) (lags, error) {
	out := lags{of: map[string]*reader.Lag{}, at: part.Runner.Now()}
	if i := slices.IndexFunc(st.Search, func(x Index) bool { return x.ours() }); i >= 0 {
		run := *part.Runner
		run.Generation = st.Search[i].Generation
		var err error
		if out.pending, err = document.CountPending(ctx, &run, mostPending); err != nil {
			return out, err
		}
	}
	places, bad := reader.ReadPlaces(ctx, part.Runner)
	if bad != nil && !errors.Is(bad, owntable.ErrRow) {
		return out, bad
	}
	for i := range st.Tables {
		t := &st.Tables[i]
		if t.ID == "" || part.Model.Table(t.Table) == nil {
			continue
		}
		l := reader.Lag{}
		switch {
		case t.Off != "":
			l.Unknown = "its stream is off, so what is written now is in no stream"
		case bad != nil:
			l.Unknown = bad.Error()
		default:
			seen, err := reader.LookAt(ctx, part.Runner, t.Table, places)
			if err != nil {
				return out, err
			}
			l = seen.Lag
		}
		out.of[t.Table] = &l
	}
	return out, nil
}

// mostPending is how many documents that are pending are counted.
const mostPending = 1000

// ours reports whether an index is of the model's definition, and complete.
func (x *Index) ours() bool { return x.Model == "" && x.State == string(owntable.Live) }

// with returns the status with lags: of each table, and of derivations from tables the greatest.
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
			d.Lag = is.greatest(reads[d.Name])
		}
	}
	for i := range st.Search {
		if x := &st.Search[i]; x.ours() {
			if x.Pending = is.pending; x.Pending == 0 {
				x.Lag = is.greatest(reads[x.Name])
			}
		}
	}
	return st
}

// greatest is the greatest lag of tables, nil if it is not known of one of them.
func (is lags) greatest(tables []string) *float64 {
	seconds := 0.0
	for _, t := range tables {
		if is.of[t] == nil || is.of[t].Seconds == nil {
			return nil
		}
		seconds = max(seconds, *is.of[t].Seconds)
	}
	return &seconds
}

// applied reports whether programs apply changes for a derivation of the model.
func (d *Derivation) applied() bool {
	return d.Kind != "" && slices.Contains([]string{string(owntable.Building), string(owntable.Live), string(owntable.Verified)}, d.State)
}

// lagLine is the line of a lag below that of its table.
func lagLine(l *reader.Lag) string {
	shards := "1 shard"
	if l.Shards != 1 {
		shards = fmt.Sprint(l.Shards, " shards")
	}
	switch {
	case l.Seconds == nil:
		return "  lag unknown: " + l.Unknown
	case l.Behind == 0:
		return "  all applied, " + shards
	}
	return fmt.Sprintf("  %s behind, in %d of %s", lagText(*l.Seconds), l.Behind, shards)
}

// endLine ends the line of a derivation, if it is behind or that is not known.
func endLine(seconds *float64) string {
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
