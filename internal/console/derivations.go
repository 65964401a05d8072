package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/status"
)

// derived is a derivation as the model page shows it.
type derived struct {
	Name, Kind string
	From       []link
	Into       link // no Href: a search index
	State      string
	Note       string // the text about the state
	Rate, Lag  string // of its source rows; "" if the model does not have it
	Leads      string // where to read on
	// Class, with the words of the style sheet, is all that decides the colour: the worse one of the
	// state and the lag. Since is nil where the catalog has no time.
	Class string // good, busy, bad or idle
	Since *time.Time
}

// describePlan puts together the plan of a model, its status, and how much comes; f may be nil.
// The order is that of the status, then the searches. It has derivations that the model no longer
// has, too: the catalog keeps these until they are retired, and a month longer.
func describePlan(m *model.Model, st *status.Status, f *flow) (out []derived) {
	builds, planned := m.Builds(), map[string]model.Derivation{}
	for _, d := range m.Derivations() {
		planned[d.Name] = d
	}
	for i := range st.Derivations {
		d := &st.Derivations[i]
		one := derived{Name: d.Name, Kind: d.Kind, State: d.State, Since: d.Since}
		one.From = append(one.From, seq.Map(planned[d.Name].From, func(e string) link { return entityLink(m, e) })...)
		if into := planned[d.Name].Into; into != "" {
			one.Into = entityLink(m, into)
		}
		for j := range st.Builds {
			if b := &st.Builds[j]; builds[d.Name] == b.Entity && b.State != owntable.BuildVerified && b.State != owntable.BuildLive {
				one.State, one.Note = "building", progressOf(b)
				if b.Paused != nil {
					one.State, one.Note = paused, "at "+doneOf(b)+": no program works on it since "+stamp(b.Paused)
				}
			}
		}
		if d.Kind == "" && d.State != string(owntable.Retired) {
			one.Note = "the model does not have it"
		} else if d.Model != "" && d.Hash != "" {
			one.Note = "by the definition before"
		}
		out = append(out, one)
	}
	out = append(out, indexes(m, st)...)
	for i := range out {
		one := &out[i]
		one.Class = classOf(one.State)
		if plan, ours := planned[one.Name]; ours && f != nil {
			one.describeFlow(f.of(m, &plan))
		}
		one.Leads = leads(m, one.Name, one.Into)
	}
	return out
}

// indexes returns the searches of the model as derivations. An index of another definition does
// not count.
func indexes(m *model.Model, st *status.Status) (out []derived) {
	seen := map[string]bool{}
	for i := range st.Search {
		x := &st.Search[i]
		name, is := model.SearchOf(x.Name)
		at := slices.IndexFunc(m.Searches, func(s *model.Search) bool { return is && s.Name == name })
		if other := x.Generation != "" && x.Model != ""; at < 0 || other || seen[x.Name] {
			continue
		}
		seen[x.Name] = true
		one := derived{Name: x.Name, Kind: "search", From: []link{entityLink(m, m.Searches[at].Of.Name)}, Into: link{Text: "search index"}, State: x.State, Since: x.Since}
		switch x.State {
		case "building":
			one.Note = fmt.Sprintf("%d rows read", x.Rows)
		case "left":
			one.State, one.Note = paused, fmt.Sprintf("at %d rows: the program that filled it has stopped", x.Rows)
		}
		out = append(out, one)
	}
	return out
}

// describeFlow says the rate and the lag.
func (d *derived) describeFlow(rate float64, lag time.Duration) {
	d.Rate = rateText(rate)
	var class string
	if d.Lag, class = formatLag(lag); d.Class == "good" {
		d.Class = class
	}
}

// rateText writes records a second.
func rateText(rate float64) string {
	switch {
	case rate == 0:
		return "0/s"
	case rate < 9.95:
		return fmt.Sprintf("%.1f/s", rate)
	}
	return fmt.Sprintf("%.0f/s", rate)
}

// lagText writes a lag with two digits or three.
func lagText(lag time.Duration) string {
	switch {
	case lag == 0:
		return "none"
	case lag < time.Second:
		return lag.Round(10 * time.Millisecond).String()
	case lag < time.Minute:
		return lag.Round(100 * time.Millisecond).String()
	}
	return lag.Round(time.Second).String()
}

// leads returns where a derivation can be seen: the rows that show it, or a search.
func leads(m *model.Model, name string, into link) string {
	search, is := model.SearchOf(name)
	if !is {
		return into.Href
	}
	for _, q := range m.Queries {
		if q.Search != nil && q.Search.Name == search {
			return modelPath(m.Name, "/query/"+url.PathEscape(q.Name))
		}
	}
	return ""
}

// progressOf says how far a build is: in per cent where the store estimates the number of rows,
// else as the number of rows read. The time left is an estimate by the rate until now.
func progressOf(b *status.Build) string {
	s := doneOf(b)
	if b.Of > 0 && b.Left > 0 {
		s += ", about " + (time.Duration(b.Left) * time.Second).Round(time.Second).String() + " left"
	}
	return s
}

// doneOf is progressOf without the time left.
func doneOf(b *status.Build) string {
	if b.Of <= 0 {
		return fmt.Sprintf("%d rows read", b.Rows)
	}
	return fmt.Sprintf("%d %%", percentOf(b))
}

// percentOf is how far a build is of which the number of rows is known. It is not done before its
// state says so.
func percentOf(b *status.Build) int64 { return min(99, 100*b.Rows/b.Of) }

// paused is the state of work that could go on and does not: a build or an index that no program works
// on, and a derivation of which a table stands still. The note says why.
const paused = "paused"

// classOf is the class of a state of a derivation or an index. A state that it does not know, such
// as unbuilt, is bad: the page must not show a derivation as good of which nothing is known.
func classOf(state string) string {
	switch state {
	case string(owntable.Live), "verified":
		return "good"
	case string(owntable.Building):
		return "busy"
	case string(owntable.Retired), "left":
		return "idle"
	}
	return "bad"
}

// entityLink links the rows of an entity, which need not exist.
func entityLink(m *model.Model, e string) link {
	return link{Text: e, Href: modelPath(m.Name, "/rows", "entity", e)}
}

// listModels lists the models. Where there is only one, its page is the first.
func (c *Console) listModels(r *request) error {
	if len(c.system.Models) == 1 {
		http.Redirect(r.w, r.Request, modelPath(c.system.Models[0].Model.Name, ""), http.StatusSeeOther)
		return nil
	}
	type line struct {
		Model   link
		Tables  int
		Derived int
		States  string
		Refused string
	}
	var all []line
	for _, p := range c.system.Models {
		st, err := c.options.Status(r.ctx, p.Model.Name)
		if err != nil {
			return err
		}
		ds := describePlan(p.Model, &st, nil)
		all = append(all, line{link{p.Model.Name, modelPath(p.Model.Name, ""), false}, len(st.Tables), len(ds), countStates(ds), st.Refused})
	}
	return r.ok("models", "Models", all)
}

// countStates counts derivations by state: "12 live, 1 building".
// The states are in the order of the alphabet; "" stands for no derivations.
func countStates(ds []derived) string {
	n := map[string]int{}
	for i := range ds {
		n[ds[i].State]++
	}
	return strings.Join(seq.Map(slices.Sorted(maps.Keys(n)), func(s string) string { return fmt.Sprint(n[s], " ", s) }), ", ")
}

// standStill marks streams that stand still, or of which a shard does, and the derivations that read them.
func (c *Console) standStill(m *model.Model, ds []derived, ss []stream) {
	if c.options.Stopped == nil {
		return
	}
	for _, s := range c.options.Stopped(m.Name) {
		why := brief(s.Why, cellRunes)
		for i := range ss {
			if ss[i].Table == s.Table {
				ss[i].State, ss[i].Note, ss[i].Class = paused, why, "bad"
			}
		}
		for i := range ds {
			from := func(e link) bool { return m.Entity(e.Text).Table.Name == s.Table }
			if slices.ContainsFunc(ds[i].From, from) {
				ds[i].State, ds[i].Note, ds[i].Class = paused, s.Table+" stands still: "+why, "bad"
			}
		}
	}
}

// model is the page of one model: the graph of its derivations, and the same in a table.
// A model that programs are refused for has its page too, with the reason.
func (c *Console) model(r *request) error {
	st, err := c.options.Status(r.ctx, r.part.Model.Name)
	if err != nil {
		return err
	}
	f, err := c.flow(r)
	if err != nil {
		return err
	}
	ds := describePlan(r.part.Model, &st, f)
	ss := streams(r.part.Model, &st, ds, f)
	c.standStill(r.part.Model, ds, ss)
	return r.ok("model", r.part.Model.Name, struct {
		Graph       *graph
		Streams     []stream
		Derivations []derived
		States      string
		Refused     string
		Health      string
		Shared      bool
	}{draw(ds, ss), ss, ds, countStates(ds), st.Refused, r.path("/health"), f.shared})
}
