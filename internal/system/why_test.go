package system_test

import (
	"errors"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/memory"
	"weir/internal/projections/kinds"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/system"
)

// TestWhyOfRows: the rows that there are explain what rows show of each derived attribute, of every kind that one value can be asked of,
// also where it is made of what weir derives.
func TestWhyOfRows(t *testing.T) {
	soaktest.Calm(t)
	eachRecording(t, []string{"movienight", "shop"}, onEmbedded, func(t *testing.T, s *system.System) {
		m, db := s.Models[0].Model, s.Store
		asked := map[string]int{}
		err := scratch.Rows(t.Context(), m, db, func(e *events.Entry, table string) error {
			c, err := (&replay.Replay{Model: m}).Change(e, table)
			if err != nil || c.Is == nil || c.Is.SetOf() != nil || c.Is.IsHistory() {
				return err
			}
			for _, attr := range kinds.DerivedAttributes(c.Is) {
				name, is := c.Is.Name+"."+attr, c.New.Get(attr)
				if asked[name]++; is.IsMissing() || asked[name] > 1 && asked[name]%500 > 0 {
					continue
				}
				explained(t, s, c.Row, attr, runner.ValueText(is))
			}
			return nil
		})
		failtest.On(t, err)
		if len(asked) == 0 && m.Name != "viewing" { // which has a set
			t.Error("no row shows anything")
		}
		t.Log(asked)
	})
}

func explained(t *testing.T, s *system.System, row store.Ref, attr, is string) {
	t.Helper()
	m := s.Models[0].Model
	w, err := scratch.NewWhy(m, runner.RowText(m, row), attr)
	failtest.On(t, err)
	var lines []scratch.Line
	err = scratch.Rows(t.Context(), m, s.Store, func(e *events.Entry, table string) error {
		w.Find(e, table)
		return nil
	})
	if err == nil {
		err = w.Choose(scratch.Options{Memory: memory.Default, Now: time.Now, InMemory: true})
	}
	if err == nil {
		err = scratch.Rows(t.Context(), m, s.Store, func(e *events.Entry, table string) error {
			l, ok, err := w.Explain(t.Context(), e, table)
			if ok {
				lines = append(lines, l)
			}
			return err
		})
	}
	failtest.On(t, errors.Join(err, w.Close()))
	comes := "0"
	for _, l := range lines {
		comes = l.Value
	}
	if comes != is {
		t.Errorf("%s of %s is %s, and its rows come to\n%v", attr, row, is, lines)
	}
}
