package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/status"
)

// derived is a derivation as the model page shows it.
type derived struct {
	Name, Kind string
	From       []link
	Into       link // no Href: a search index
	State      string
	Note       string // what is to be said of the state
	// Class, with the words of the style sheet, is all that decides the colour of a state. Since is
	// nil where the catalog has no time.
	Class string // the state's: good, busy, bad or idle
	Since *time.Time
}

// derivations puts together the plan of a model and its status.
// The order is that of the status. It has derivations that the model no longer has, too: the
// catalog keeps these until they are retired, and a month longer.
func derivations(m *model.Model, st *status.Status) (out []derived) {
	builds, planned := m.Builds(), map[string]model.Derivation{}
	for _, d := range m.Derivations() {
		planned[d.Name] = d
	}
	index := map[string]*status.Index{}
	for i := range st.Search {
		if x := &st.Search[i]; index[x.Name] == nil { // the model's own come first
			index[x.Name] = x
		}
	}
	for i := range st.Derivations {
		d := &st.Derivations[i]
		one := derived{Name: d.Name, Kind: d.Kind, State: d.State, Since: d.Since}
		for _, e := range planned[d.Name].From {
			one.From = append(one.From, entityLink(m, e))
		}
		switch x := index[d.Name]; {
		case planned[d.Name].Into != "":
			one.Into = entityLink(m, planned[d.Name].Into)
		case d.Kind != "":
			one.Into = link{Text: "search index"}
			if x != nil {
				one.State, one.Since = x.State, x.Since
			}
		}
		for j := range st.Builds {
			if b := &st.Builds[j]; builds[d.Name] == b.Entity && b.State != owntable.BuildVerified && b.State != owntable.BuildLive {
				one.State, one.Note = "building", progressOf(b)
			}
		}
		if d.Kind == "" && d.State != string(owntable.Retired) {
			one.Note = "the model does not have it"
		} else if d.Model != "" && d.Hash != "" {
			one.Note = "by the definition before"
		}
		one.Class = classOf(one.State)
		out = append(out, one)
	}
	return out
}

// progressOf says how far a build is: in per cent where the store estimates the number of rows,
// else as the number of rows read. The time left is an estimate by the rate until now.
func progressOf(b *status.Build) string {
	if b.Of <= 0 {
		return fmt.Sprintf("%d rows read", b.Rows)
	}
	s := fmt.Sprintf("%d %%", percentOf(b))
	if b.Left > 0 {
		s += ", about " + (time.Duration(b.Left) * time.Second).Round(time.Second).String() + " left"
	}
	return s
}

// percentOf is how far a build is of which the number of rows is known. It is not done before its
// state says so.
func percentOf(b *status.Build) int64 { return min(99, 100*b.Rows/b.Of) }

// classOf is the class of a state of a derivation or an index. A state that it does not know, such
// as unbuilt, is bad: the page must not show as good what nothing is known of.
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

// models lists the models. Where there is only one, its page is the first.
func (c *Console) models(r *request) error {
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
		ds := derivations(p.Model, &st)
		all = append(all, line{link{p.Model.Name, modelPath(p.Model.Name, ""), false}, len(st.Tables), len(ds), states(ds), st.Refused})
	}
	return r.ok("models", "Models", all)
}

// states counts derivations by state: "12 live, 1 building".
func states(ds []derived) string {
	n := map[string]int{}
	for i := range ds {
		n[ds[i].State]++
	}
	out := ""
	for _, s := range slices.Sorted(maps.Keys(n)) {
		if out != "" {
			out += ", "
		}
		out += fmt.Sprint(n[s], " ", s)
	}
	return out
}

// model is the page of one model: the graph of its derivations, and the same in a table.
func (c *Console) model(r *request) error {
	st, err := c.options.Status(r.ctx, r.part.Model.Name)
	if err != nil {
		return err
	}
	ds := derivations(r.part.Model, &st)
	return r.ok("model", r.part.Model.Name, struct {
		Graph       *graph
		Derivations []derived
		States      string
		Refused     string
	}{draw(ds), ds, states(ds), st.Refused})
}
