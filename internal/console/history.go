package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/value"
)

// Recordings are recorded files of a model, at hand as long as the process runs. Each call hands
// over their records in order, each with the logical name of its table, and ends with the error of
// yield if that returns one.
type Recordings func(ctx context.Context, yield func(e *events.Entry, table string) error) error

// A history reads at most mostRecorded records of recordings, for at most recordedTime, one history
// at a time. It keeps the last mostLines of its lines; a page shows pageRows of them, and a picture
// at most mostPoints of their values.
const (
	mostRecorded = 500_000
	recordedTime = 15 * time.Second
	mostLines    = 5000
	mostPoints   = 400
)

// history is the records that changed a value, as far as they are at hand.
type history struct {
	Covers   string // which records were looked at
	Cut      string // the rest that they leave out, "" for nothing
	Lines    []historyLine
	All      int // lines that there are
	Picture  *picture
	From     string // the first and the last time of the picture
	Until    string
	Next     string // earlier lines
	First    string
	Other    *link // the same from elsewhere
	Ask      bool  // nothing else is at hand: the page says what to do
	Recorded bool
}

// historyLine is a record that changed the value, or weir's write that showed it.
type historyLine struct {
	Time, Event  string
	Row          link
	Added, Value string
	Where        string // in a recording
}

// point is a value at a time.
type point struct {
	at    time.Time
	value float64
}

// teller takes in the records of a history, twice as why reads them.
type teller struct {
	m       *model.Model
	target  store.Ref
	attr    string
	why     *scratch.Why
	secret  bool // what a record adds may have a hidden value in it
	lines   []historyLine
	dropped int
	points  []point
}

// tellerOf returns the teller of the history of an attribute of a row.
func tellerOf(m *model.Model, t *model.Table, ref store.Ref, attr string) (*teller, error) {
	w, err := scratch.NewWhy(m, printed(t, ref), attr)
	if err != nil {
		return nil, &mistake{400, brief(err.Error(), longRunes)}
	}
	return &teller{m: m, target: ref, attr: attr, why: w, secret: m.HidesValuesOf(w.Entity.Name + "." + attr)}, nil
}

// printed names a row as commands read it.
func printed(t *model.Table, ref store.Ref) string {
	return t.Name + " " + string(value.AppendPlainItem(nil, t.Item(ref.Key)))
}

// keepLine keeps a line, and its value for the picture if it is a number.
func (h *teller) keepLine(l historyLine, at time.Time, shows string) {
	if v, err := strconv.ParseFloat(shows, 64); err == nil {
		h.points = append(h.points, point{at, v})
	}
	if len(h.lines) == mostLines {
		h.lines, h.dropped = h.lines[1:], h.dropped+1
	}
	h.lines = append(h.lines, l)
}

// explainRecord takes in a record of the second pass. The values after it are known only if the records
// begin with the first.
func (h *teller) explainRecord(ctx context.Context, e *events.Entry, table string) error {
	l, ok, err := h.why.Explain(ctx, e, table)
	if !ok {
		return err
	}
	line := historyLine{Event: l.Event, Row: rowLink(h.m, l.Row), Added: brief(l.Added, cellRunes), Value: brief(l.Value, cellRunes), Time: stamp(&l.Time)}
	if l.Where.File != "" {
		line.Where = brief(filepath.Base(l.Where.File), cellRunes) + ":" + strconv.FormatInt(l.Where.Line, 10)
	}
	if h.secret {
		line.Added = model.HiddenText
	}
	h.keepLine(line, l.Time, l.Value)
	return nil
}

// noteShown takes in a record of the target itself, if it shows another value of the attribute.
func (h *teller) noteShown(t *model.Table, r *events.Record) {
	key, ok := t.KeyOf(r.Keys)
	if !ok || !projections.SameRow(store.Ref{Table: t.Name, Key: key}, h.target) || value.Equal(r.Old.Get(h.attr), r.New.Get(h.attr)) {
		return
	}
	was, is := h.m.Shown(t.Classify(r.Old), r.Old).Get(h.attr), h.m.Shown(t.Classify(r.New), r.New).Get(h.attr)
	old, now := brief(text(was), 60), brief(text(is), 60)
	l := historyLine{Time: stamp(&r.Time), Event: r.Event(), Row: rowLink(h.m, h.target), Value: now, Added: "shows it"}
	if old != "" {
		l.Added = "shows it in place of " + old
	}
	if is.IsMissing() {
		l.Added = "shows none"
	}
	h.keepLine(l, r.Time, text(is))
}

// fromRecordings is the parameter for a history from recordings, not from the last records that this process applied.
const fromRecordings = "recordings"

// fillHistory fills in the changes of the value: from the records that this process applied last or, if
// the reader asks for those, from recordings.
func (c *Console) fillHistory(r *request, p *whyPage, t *model.Table, ref store.Ref, attr string) error {
	m := r.part.Model
	if p.Value.Text == model.HiddenText {
		return nil
	}
	h, err := tellerOf(m, t, ref, attr)
	if err != nil {
		return err
	}
	recordings, here := c.options.Recordings[m.Name], whyPath(m, ref, attr)
	out := &history{Recorded: recordings != nil && r.param("history") == fromRecordings, Ask: recordings == nil}
	if out.Recorded {
		out.Other = &link{Text: "what this process applied last", Href: here + "#history"}
		here += "&history=" + fromRecordings
	} else if recordings != nil {
		out.Other = &link{Text: "the recordings", Href: here + "&history=" + fromRecordings + "#history"}
	}
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
	if out.Recorded {
		err = c.recorded(r, out, h, recordings)
	} else {
		err = c.lived(r, out, h)
	}
	if err := errors.Join(err, h.why.Close()); err != nil {
		return err
	}
	before, _ := strconv.Atoi(r.param("before"))
	out.page(h, before, here)
	p.History = out
	return nil
}

// lived looks at the records that this process applied last.
// It reads memory alone: records that were applied before the process began, or have been dropped since, are said to be not at hand. An
// error of the search for the maker of the value is shown on the page, beside the changes that were found.
func (c *Console) lived(r *request, out *history, h *teller) error {
	recent, number := c.options.Activity.models[h.m.Name].last()
	out.Covers = "Since the program began, it has applied no record."
	if n := len(recent); n > 0 {
		first := recent[n-1].record.Time
		out.Covers = fmt.Sprintf("The last %d records that this process applied, from %s on.", n, stamp(&first))
		if uint64(n) < number {
			out.Cut = fmt.Sprintf("%d earlier ones are not at hand.", number-uint64(n))
		}
	}
	entry := func(r *applied) *events.Entry {
		e := &events.Entry{Record: r.record}
		e.Record.Table = r.table.Name
		return e
	}
	for i := len(recent) - 1; i >= 0; i-- {
		h.why.Find(entry(recent[i]), recent[i].table.Name)
	}
	err := h.why.Choose(c.scratch())
	h.why.Later = true
	if err != nil {
		out.Cut = brief(err.Error(), longRunes)
		return nil
	}
	for i := len(recent) - 1; i >= 0; i-- {
		if err := h.explainRecord(r.ctx, entry(recent[i]), recent[i].table.Name); err != nil {
			return err
		}
		h.noteShown(recent[i].table, &recent[i].record)
	}
	return nil
}

// scratch is the store in which records are applied to see their effects.
func (c *Console) scratch() scratch.Options {
	dir, size := c.system.Room()
	return scratch.Options{Dir: dir, Memory: size, Now: c.system.Now}
}

// recorded looks at recordings from their first record on.
func (c *Console) recorded(r *request, out *history, h *teller, from Recordings) error {
	ctx, cancel := context.WithTimeout(r.ctx, recordedTime)
	defer cancel()
	pass := func(most int, each func(*events.Entry, string) error) (n int, err error) {
		err = from(ctx, func(e *events.Entry, table string) error {
			if n == most || ctx.Err() != nil {
				return errEnough
			}
			n++
			return each(e, table)
		})
		if errors.Is(err, errEnough) || errors.Is(err, context.DeadlineExceeded) && r.ctx.Err() == nil {
			out.Cut = "The recordings go on after these; " + r.part.Model.Command("why", "TARGET", "ATTRIBUTE", "--from", "RECORDING…") + " reads all of them."
			return n, nil
		}
		return n, err
	}
	// The second pass may read the files that the first has read and no more: rows that have a part in the
	// value are known from there.
	n, err := pass(cmp.Or(c.options.mostRecorded, mostRecorded), func(e *events.Entry, table string) error {
		h.why.Find(e, table)
		return nil
	})
	if err == nil {
		if bad := h.why.Choose(c.scratch()); bad != nil {
			out.Covers, out.Cut = fmt.Sprintf("The first %d records of the recordings.", n), brief(bad.Error(), longRunes)
			return nil
		}
		n, err = pass(n, func(e *events.Entry, table string) error { return h.explainRecord(ctx, e, table) })
	}
	if err != nil {
		c.options.Log.Warn("records of a history cannot be read", "model", r.part.Model.Name, "error", err)
		out.Cut = "The recordings cannot be read to their end; the log says why."
	}
	out.Covers = fmt.Sprintf("The first %d records of the recordings.", n)
	if out.Cut == "" {
		out.Covers = fmt.Sprintf("All %d records of the recordings.", n)
	}
	return nil
}

// page picks a page of lines, the last first, and draws the values. before is how many lines are
// on later pages.
func (o *history) page(h *teller, before int, here string) {
	o.All = len(h.lines) + h.dropped
	before = min(max(0, before), len(h.lines))
	for i := len(h.lines) - 1 - before; i >= 0 && len(o.Lines) < pageRows; i-- {
		o.Lines = append(o.Lines, h.lines[i])
	}
	if end := before + len(o.Lines); end < len(h.lines) {
		o.Next = here + "&before=" + strconv.Itoa(end) + "#history"
	}
	if before > 0 {
		o.First = here + "#history"
	}
	if len(h.points) < 2 {
		return
	}
	o.Picture = pointsPicture(h.points)
	o.From, o.Until = stamp(&h.points[0].at), stamp(&h.points[len(h.points)-1].at)
}

// pointsPicture draws values by their times. Of more than mostPoints it draws every other one, or
// every third, and so on, and the last.
func pointsPicture(all []point) *picture {
	low, high := all[0].value, all[0].value
	for _, p := range all {
		low, high = min(low, p.value), max(high, p.value)
	}
	step := (len(all) + mostPoints - 1) / mostPoints
	first, spent := all[0].at, all[len(all)-1].at.Sub(all[0].at).Seconds()
	var at, values []float64
	for i, p := range all {
		if i%step != 0 && i < len(all)-1 {
			continue
		}
		x := float64(i) / float64(len(all))
		if spent > 0 {
			x = min(1, max(0, p.at.Sub(first).Seconds()/spent))
		}
		at, values = append(at, x), append(values, p.value)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	return drawSteps(at, values, low, high, fmt.Sprintf("%d values from %s to %s, the last is %s", len(all), number(low), number(high), number(all[len(all)-1].value)))
}
