package console

import (
	"fmt"
	"slices"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/status"
)

// stream is the stream of a table from which something is derived, as the model page shows it.
type stream struct {
	Table     string
	Entities  []string // those of its entities from which something is derived
	Leads     string
	State     string // live, paused, "by functions", or "not read"
	Note      string
	Shards    string
	Rate, Lag string // of all that is in the table
	Class     string // good, busy, bad or idle
}

// streams returns the streams that feed derivations, in the order of these. The reads of functions, this
// process cannot know the lag of.
func streams(m *model.Model, st *status.Status, ds []derived, f *flow) (out []stream) {
	for i := range ds {
		for _, e := range ds[i].From {
			table := m.Entity(e.Text).Table.Name
			at := slices.IndexFunc(out, func(s stream) bool { return s.Table == table })
			if at < 0 {
				at = len(out)
				out = append(out, streamOf(m, st, f, table))
			}
			if s := &out[at]; !slices.Contains(s.Entities, e.Text) {
				s.Entities = append(s.Entities, e.Text)
			}
		}
	}
	return out
}

// streamOf is the stream of a table, without its entities.
func streamOf(m *model.Model, st *status.Status, f *flow, table string) stream {
	s := stream{Table: table, Leads: modelPath(m.Name, "/health"), State: "not read", Class: "idle"}
	at := slices.IndexFunc(st.Tables, func(t status.Table) bool { return t.Table == table })
	switch {
	case at < 0 || st.Tables[at].Reader == "":
		return s
	case st.Tables[at].Reader != catalog.Process.Name():
		s.State = "by functions"
		return s
	}
	rate := 0.0
	for _, e := range m.Table(table).Entities {
		rate += f.rates[e.Name]
	}
	shards, lag := f.table(table)
	if s.Shards = fmt.Sprint(shards, " shards"); shards == 1 {
		s.Shards = "1 shard"
	}
	if f.shared {
		s.Shards += " here"
	}
	s.State, s.Rate = string(owntable.Live), rateText(rate)
	s.Lag, s.Class = formatLag(lag)
	return s
}
