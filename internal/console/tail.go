package console

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/value"
	"weir/internal/web"
)

// A tail sends the waiting records every tailEvery, at most tailAtOnce of them, and gives up on a
// browser that takes nothing for tailPatience. maxTails are open at once: each keeps one of the
// server's requests.
const (
	tailEvery    = 250 * time.Millisecond
	tailAtOnce   = 100
	tailPatience = 10 * time.Second
	tailAlive    = 15 * time.Second
	tailShown    = 50 // records on the page as it is loaded
	maxTails     = 8
)

// tailPage is the page with the last records. A script goes on from there.
type tailPage struct {
	Entities []string
	Entity   string
	Key      string
	Records  []recordLine
	Action   string
	Events   string // where more records come from
	After    string // the id of the newest record that the page has or passed over
	Shared   bool
}

// recordLine is a record as a line of the tail.
type recordLine struct {
	Time    string
	Event   string
	Entity  string
	Row     link
	Own     bool // weir wrote this itself
	Changes []changeLine
	More    int // changes that are not shown
	Effects []effect
	Others  int // effects that are not shown
}

// changeLine is an attribute before and after a record. Had and Has say whether it was there.
type changeLine struct {
	Name     string
	Old, New string
	Had, Has bool
}

// filter picks records by entity and by a part of the key.
type filter struct{ entity, key string }

func (r *request) filter() filter { return filter{r.param("entity"), r.param("key")} }

// passes compares with the entity and the key as the line shows them; an empty part of a filter
// passes everything.
func (f filter) passes(l *recordLine) bool {
	return (f.entity == "" || l.Entity == f.entity) && (f.key == "" || strings.Contains(l.Row.Text, f.key))
}

// tail is the page with the records that the process has applied last, the newest first: GET
// /console/{model}/tail. It reads no store.
func (c *Console) tail(r *request) error {
	f, m := r.filter(), r.part.Model
	p := tailPage{Entity: f.entity, Key: f.key, Action: r.path("/tail"), Shared: c.options.Shards != nil}
	p.Entities = append(p.Entities, seq.Map(m.Entities, func(e *model.Entity) string { return e.Name })...)
	recent, number := c.options.Activity.models[m.Name].last()
	for _, one := range recent {
		if len(p.Records) == tailShown {
			break
		}
		if l, ok := lineOf(m, one); ok && f.passes(&l) {
			p.Records = append(p.Records, l)
		}
	}
	p.Events = r.path("/tail/events", "entity", f.entity, "key", f.key)
	p.After = c.eventID(number)
	return r.ok("tail", "Live", &p)
}

// eventID names a record for a browser that comes back. parseID reads it: again is true if the
// number is of another run of the program.
func (c *Console) eventID(number uint64) string {
	return c.options.Activity.run + "-" + strconv.FormatUint(number, 10)
}

// parseID takes apart the id of an event. again is true if the id is of another run of the program,
// whose records are not here any more.
func (c *Console) parseID(s string) (number uint64, again bool) {
	run, n, ok := strings.Cut(s, "-")
	number, err := strconv.ParseUint(n, 10, 64)
	if !ok || err != nil {
		return 0, false
	}
	if run != c.options.Activity.run {
		return 0, true
	}
	return number, false
}

// A line shows so many attributes that differ, and so many effects.
const (
	mostChanges = 8
	mostEffects = 8
)

// lineOf makes the line of a record, without a read. ok is false if the record is no change of a
// row. A hidden value that changes has a line, without the value.
func lineOf(m *model.Model, a *applied) (l recordLine, ok bool) {
	ch, ok := projections.NewChange(a.table, &a.record)
	if !ok {
		return l, false
	}
	e := ch.Is
	if e == nil {
		e = ch.Was
	}
	l = recordLine{Event: a.record.Event(), Row: rowLink(m, ch.Row), Time: a.record.Time.UTC().Format("15:04:05")}
	if e != nil {
		l.Entity = e.Name
		l.Own = e.Derived || projections.SameWritten(e, ch.Old, ch.New)
	}
	was, is := m.Shown(ch.Was, ch.Old), m.Shown(ch.Is, ch.New)
	for _, at := range was.With(is...) {
		name := at.Name
		if isKey(a.table, name) || owntable.IsOurs(name) || value.Equal(ch.Old.Get(name), ch.New.Get(name)) {
			continue
		}
		if len(l.Changes) == mostChanges {
			l.More++
			continue
		}
		old, now := was.Get(name), is.Get(name)
		l.Changes = append(l.Changes, changeLine{brief(name, 40), brief(text(old), 60), brief(text(now), 60), !old.IsMissing(), !now.IsMissing()})
	}
	l.Effects = effectsOf(m, &ch)
	if over := len(l.Effects) - mostEffects; over > 0 {
		l.Effects, l.Others = l.Effects[:mostEffects], over
	}
	return l, true
}

// streamEvents sends records as they are applied until the browser leaves, takes nothing for too long,
// or the server stops. It never holds up the follower: a browser that is slow gets a line that
// says how many records it missed.
func (c *Console) streamEvents(w http.ResponseWriter, req *http.Request) {
	if !web.Spend(w, req, 1) {
		return
	}
	r := &request{w: w, Request: req, c: c}
	if err := r.find(); err != nil {
		web.ProblemOf(http.StatusNotFound, "not-found", err.Error()).Write(w)
		return
	}
	select {
	case c.tails <- struct{}{}:
		defer func() { <-c.tails }()
	default:
		w.Header().Set("Retry-After", "10")
		web.ProblemOf(http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d tails are open, and no more are served at once", maxTails)).Write(w)
		return
	}
	id := r.param("after")
	if seen := req.Header.Get("Last-Event-ID"); seen != "" {
		id = seen
	}
	after, again := c.parseID(id)
	s := c.options.Activity.models[r.part.Model.Name].openTail(after)
	defer s.endTail()
	setHeaders(w, "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the request has been read, and the answer may last
	if err := c.streamBatches(r, out, s, again); err != nil {
		c.options.Log.Error("a tail broke off", "error", err)
	}
}

// streamBatches sends until the browser, the server or an error ends it; only an error of the program
// itself is returned. again says that the browser comes from another run of the program, whose
// records are not known here.
func (c *Console) streamBatches(r *request, out *http.ResponseController, s *subscription, again bool) error {
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(tailPatience))
		_, err := r.w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	alive := time.NewTicker(tailAlive)
	defer alive.Stop()
	first := ": open\n\n"
	if again {
		text, err := c.eventText(0, &tailBatch{Again: true})
		if err != nil {
			return err
		}
		first = text
	}
	f, end := r.filter(), web.Stopping(r.Request)
	for ok := send(first); ok; {
		select {
		case <-r.Context().Done():
			return nil
		case <-end:
			return nil
		case <-alive.C:
			ok = send(": still here\n\n")
			continue
		case <-s.wake:
		}
		text, err := c.renderBatch(r.part.Model, s, f)
		if err != nil {
			return err
		}
		if text != "" && !send(text) {
			return nil
		}
		select {
		case <-time.After(tailEvery):
		case <-r.Context().Done():
			return nil
		case <-end:
			return nil
		}
	}
	return nil
}

// tailBatch is the content of one event.
type tailBatch struct {
	Missed  uint64
	Again   bool
	Records []recordLine
}

// renderBatch renders the waiting records as one event, the newest record first; "" if nothing of it is asked for.
// At most tailAtOnce records are in one event. The others count as missed, with those that the
// subscription has dropped.
func (c *Console) renderBatch(m *model.Model, s *subscription, f filter) (string, error) {
	all, missed, number := s.take()
	b := tailBatch{Missed: missed}
	for i := len(all) - 1; i >= 0; i-- {
		l, ok := lineOf(m, all[i])
		switch {
		case !ok || !f.passes(&l):
		case len(b.Records) == tailAtOnce:
			b.Missed++
		default:
			b.Records = append(b.Records, l)
		}
	}
	if len(b.Records) == 0 && b.Missed == 0 {
		return "", nil
	}
	return c.eventText(number, &b)
}

// eventText renders a batch as an event.
// It has a data field for each line that is not empty, as server-sent events ask (WHATWG HTML,
// 9.2).
func (c *Console) eventText(number uint64, b *tailBatch) (string, error) {
	var html bytes.Buffer
	if err := c.pages.ExecuteTemplate(&html, "records", b); err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "id: %s\nevent: records\n", c.eventID(number))
	for line := range strings.SplitSeq(html.String(), "\n") {
		if strings.TrimSpace(line) != "" {
			out.WriteString("data: " + strings.ReplaceAll(line, "\r", "") + "\n")
		}
	}
	out.WriteString("\n")
	return out.String(), nil
}
