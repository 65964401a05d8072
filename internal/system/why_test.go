package system_test

import (
	"strings"
	"testing"

	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/why"
)

// TestWhyOfRows: the rows that there are explain what rows show of each derived attribute, of every kind that one value can be asked of,
// also where it is made of what weir derives.
func TestWhyOfRows(t *testing.T) {
	eachRecording(t, []string{"movienight", "shop"}, onEmbedded, func(t *testing.T, s *system.System) {
		m, db := s.Models[0].Model, s.Store
		asked := map[string]int{}
		err := why.Rows(t.Context(), m, db, func(c *projections.Change) {
			if c.Is == nil || c.Is.SetOf() != nil || c.Is.IsHistory() {
				return
			}
			for _, k := range kinds.All() {
				for _, attr := range k.Derives(c.Is) {
					name, is := c.Is.Name+"."+attr, c.New.Get(attr)
					if asked[name]++; is.IsMissing() || asked[name] > 3 && asked[name]%100 > 0 {
						continue
					}
					explained(t, s, c.Row, attr, runner.ValueText(is))
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(asked) == 0 && m.Name != "viewing" { // which has a set
			t.Error("no row shows anything")
		}
		t.Log(asked)
	})
}

func explained(t *testing.T, s *system.System, row store.Ref, attr, is string) {
	t.Helper()
	m := s.Models[0].Model
	w, err := why.New(m, runner.RowText(m, row), attr)
	if err != nil {
		t.Fatal(err)
	}
	var lines []why.Line
	err = why.Rows(t.Context(), m, s.Store, w.FindRow)
	if err == nil {
		err = w.Choose()
	}
	if err == nil {
		err = why.Rows(t.Context(), m, s.Store, func(c *projections.Change) {
			if l, ok := w.ExplainRow(c); ok {
				lines = append(lines, l)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	comes := "0"
	for _, l := range lines {
		if comes = l.Value; comes == "" && strings.Contains(l.Added, strings.Trim(is, `"`)) { // a status or a copy, of one row
			comes = is
		}
	}
	if comes != is {
		t.Errorf("%s of %s is %s, and its rows come to\n%v", attr, row, is, lines)
	}
}
