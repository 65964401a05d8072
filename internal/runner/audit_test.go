package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/projections/document"
	"weir/internal/projections/feed"
	"weir/internal/projections/follow"
	"weir/internal/scratch"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// audit recomputes everything and says what differs: state from the core rows, as
// verify does; history and what follows by one pass over the records delivered;
// and what each word of the index finds.
func (h *harness) audit() string {
	var out []string
	v := scratch.Verify{Model: h.model, Store: h.store, InMemory: true, Now: h.now, Dir: h.t.TempDir()}
	if h.index != nil {
		v.Index = h.index
	}
	err := v.Run(context.Background(), func(d scratch.Difference) {
		out = append(out, fmt.Sprintf("%s of %s: is %s, should be %s", d.Derivation, d.Row, d.Have, d.Want))
	})
	if err != nil {
		return err.Error()
	}
	for _, u := range v.Unshown {
		out = append(out, fmt.Sprintf("%s of %s: %s", u.Derivation, u.Row, u.Why))
	}
	out = append(out, h.onePass()...)
	if h.index != nil {
		out = append(out, h.words()...)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// pass is what one pass over the records delivered makes.
type pass struct {
	history  map[string]projections.Put
	followed map[string]value.Value // the last value of each field of each row
	gone     map[string]bool        // those of them of which the row is gone
	lists    map[string]value.Item  // of each follower, what is taken from it
}

// told is what followers get, as of this record.
func (p *pass) told(c *projections.Change) (puts []projections.Put) {
	for _, j := range feed.Fold(c, nil) {
		if name := j.List + " " + owntable.RowText(j.Row); j.Gone {
			delete(p.lists, name)
		} else {
			p.lists[name] = j.Fields
		}
	}
	for _, t := range feed.FoldNotifications(c, nil) {
		for name, fields := range p.lists {
			if strings.HasPrefix(name, t.List+" ") {
				if put, ok := t.RowFor(fields); ok {
					puts = append(puts, put)
				}
			}
		}
	}
	return puts
}

func (h *harness) pass() pass {
	p := pass{map[string]projections.Put{}, map[string]value.Value{}, map[string]bool{}, map[string]value.Item{}}
	for i := range h.records {
		c, _ := projections.NewChange(h.records[i].table, &h.records[i].rec)
		if !h.done[i+1] {
			continue
		}
		for _, put := range append(copies.PutsOf(&c), p.told(&c)...) {
			if len(put.Rule.Keep) > 0 {
				p.history[owntable.RowText(put.Row)] = put
			}
		}
		if c.Was != nil && c.Was != c.Is {
			for _, f := range c.Was.Follow {
				p.gone[follow.FieldName(c.Was, f.Field.Name)+"|"+owntable.RowText(c.Row)] = true
			}
		}
		if c.Is != nil {
			for _, f := range c.Is.Follow {
				name := follow.FieldName(c.Is, f.Field.Name) + "|" + owntable.RowText(c.Row)
				v, want := f.Field.Read(c.New)
				if want != "" {
					v = value.Value{} // of another type: nothing is followed
				}
				p.followed[name], p.gone[name] = v, false
			}
		}
	}
	return p
}

func (h *harness) onePass() (out []string) {
	p := h.pass()
	for _, put := range p.history {
		row := h.get(put.Row)
		want := put.Image.Filter(func(n string) bool { return !follows(put.Rule, n) })
		have := row.Filter(func(n string) bool { return !owntable.IsOurs(n) && !follows(put.Rule, n) })
		if row == nil && put.Rule.Into.Table.Expired(put.Image, h.clock) {
			continue
		}
		if !value.EqualItems(want, have) {
			out = append(out, fmt.Sprintf("history %s: is %s, should be %s", put.Row, plainText(have), plainText(want)))
			continue
		}
		out = append(out, p.differing(put, row)...)
	}
	for _, t := range h.model.Tables {
		for _, row := range h.scan(t.Name) {
			key, _ := t.KeyOf(row)
			ref := store.Ref{Table: t.Name, Key: key}
			e := t.Classify(row)
			if _, made := p.history[owntable.RowText(ref)]; isHistory(e) && !made {
				out = append(out, fmt.Sprintf("history %s: is there, and no record made it", ref))
			}
			c := projections.Change{Table: t, Row: ref, Is: e, New: row}
			for _, put := range copies.PutsOf(&c) {
				if copied := h.get(put.Row); len(put.Rule.Keep) == 0 && copied != nil {
					out = append(out, p.differing(put, copied)...)
				}
			}
		}
	}
	return out
}

// differing compares what the row follows with the last value that was delivered.
func (p *pass) differing(put projections.Put, row value.Item) (out []string) {
	for _, f := range put.Follows {
		name := follow.FieldName(f.Source, f.Field.Name) + "|" + owntable.RowText(f.Of)
		want, have := p.followed[name], row.Get(f.Attr)
		if p.gone[name] && !f.Keep {
			want = value.Value{}
		}
		if !value.Equal(want, have) {
			out = append(out, fmt.Sprintf("%s of %s: follows %s, shows %s, should show %s", f.Attr, put.Row, f.Of, plain(have), plain(want)))
		}
	}
	return out
}

func follows(rule *model.RowRule, name string) bool {
	return slices.ContainsFunc(rule.Fields, func(f model.Assign) bool { return f.Name == name && f.Expr.Follow != nil })
}

func isHistory(e *model.Entity) bool {
	return e != nil && slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool { return len(r.Keep) > 0 })
}

// words looks up every word that any document ever had.
func (h *harness) words() (out []string) {
	for _, s := range h.model.Searches {
		name, t := document.IndexName(h.model, s), s.Of.Table
		vocabulary := map[string]bool{}
		for _, d := range h.records {
			if d.table == t && d.rec.New != nil {
				for _, w := range h.wordsOf(s, d.rec.New) {
					vocabulary[w] = true
				}
			}
		}
		now := map[string][]string{} // of each row's document
		for _, row := range h.scan(t.Name) {
			key, _ := t.KeyOf(row)
			now[search.ID(key)] = h.wordsOf(s, row)
		}
		for w := range vocabulary {
			var want, have []string
			for id, words := range now {
				if slices.ContainsFunc(words, func(x string) bool { return strings.HasPrefix(x, w) }) {
					want = append(want, id)
				}
			}
			hits, err := h.index.Search(context.Background(), search.Query{Index: name, Text: w, Limit: 1000})
			failtest.On(h.t, err)
			for _, hit := range hits {
				have = append(have, hit.ID)
			}
			slices.Sort(want)
			slices.Sort(have)
			if !slices.Equal(want, have) {
				out = append(out, fmt.Sprintf("search %s for %s: finds %q, should find %q", s.Name, w, have, want))
			}
		}
	}
	return out
}

func (h *harness) wordsOf(s *model.Search, row value.Item) (words []string) {
	t := s.Of.Table
	key, _ := t.KeyOf(row)
	if d, ok := document.DocumentOf(h.model, s, t.Classify(row), key, row); ok {
		for _, text := range d.Text {
			words = append(words, search.Words(text)...)
		}
	}
	return words
}

func (h *harness) get(ref store.Ref) value.Item {
	rows, err := h.store.Get(context.Background(), []store.Ref{ref})
	failtest.On(h.t, err)
	return rows[0]
}

func (h *harness) scan(table string) (rows []value.Item) {
	for row, err := range store.EachRow(context.Background(), h.store, store.Query{Table: table}) {
		failtest.On(h.t, err)
		rows = append(rows, row)
	}
	return rows
}

// rows prints a table's rows in key order, without bookkeeping, one a line.
func (h *harness) rows(table, text string) string {
	var out []string
	for _, row := range h.scan(table) {
		line := plainText(row.Filter(func(n string) bool { return !owntable.IsOurs(n) }))
		if text == "" || strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// claims says which row each unique value is claimed for.
func (h *harness) claims() string {
	var out []string
	for _, row := range h.scan(owntable.TableName) {
		if name, ok := strings.CutPrefix(row.Get(owntable.Partition).Text(), "claim|"); ok {
			out = append(out, name+" is of "+row.Get("r").Text())
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// dump is all that people can see: rows, what is kept, which values are claimed, what the audit says.
func (h *harness) dump() string {
	var out []string
	for _, t := range h.model.AllTables() {
		out = append(out, h.rows(t.Name, ""))
	}
	for _, row := range h.scan(owntable.TableName) {
		switch k := row.Get(owntable.Partition).Text(); {
		case k == owntable.Dead(h.model.Name):
			out = append(out, "kept "+row.Get("kind").Text()+" "+row.Get("target").Text())
		case strings.HasPrefix(k, "deadpart|"), strings.HasPrefix(row.Get(owntable.Sort).Text(), "~"):
			out = append(out, "a part, or its note")
		}
	}
	return strings.Join(append(out, h.claims(), h.audit()), "\n")
}

func plainText(it value.Item) string {
	if it == nil {
		return "nothing"
	}
	return string(value.AppendPlainItem(nil, it))
}

func plain(v value.Value) string {
	if v.IsMissing() {
		return "nothing"
	}
	return string(value.AppendPlain(nil, v))
}
