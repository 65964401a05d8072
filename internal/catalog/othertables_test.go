package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// TestOtherTables: a second model file of the same name, with other tables, is refused before and after the first has read
// a record, whichever command comes with it, and the catalog of the first stays as it is. The first may be moved by
// --tables until it has read something, and its table may have another name in the file.
func TestOtherTables(t *testing.T) {
	for _, read := range []bool{false, true} {
		s := shops(t)
		first := shop(t, s, "shop", "Shop", "Shop")
		starts(t, first)
		if read {
			_, err := first.Admit(t.Context(), catalog.Batch{Tables: []string{"Shop"}, Reader: catalog.Process}, unsaid)
			failtest.On(t, err)
		}
		was, err := store.GetRow(t.Context(), s, owntable.Catalog("shop"))
		failtest.On(t, err)
		second := shop(t, s, "shop", "Other", "Other")
		b := build.Builder{Runner: &runner.Runner{Model: shopModel(t, "shop", "Other"), Store: s, Catalog: second}, Contributions: kinds.Contributions}
		for what, try := range map[string]func() error{
			"start":  func() error { return second.Start(t.Context(), unsaid) },
			"retire": func() error { _, err := second.Retire(t.Context(), true); return err },
			"build":  func() error { _, err := b.Announce(t.Context()); return err },
			"batch": func() error {
				_, err := second.Admit(t.Context(), catalog.Batch{Tables: []string{"Other"}, Reader: catalog.Process}, unsaid)
				return err
			},
			"deploy": func() error { return second.NoteTableMade(t.Context(), "Other") },
		} {
			if err := try(); !errors.Is(err, catalog.ErrTable) || !strings.Contains(err.Error(), "model shop derives from Shop in this stage, and this file of the same name has Other instead. Give it a stage of its own (--stage)") {
				t.Errorf("%s: %v", what, err)
			}
		}
		is, err := store.GetRow(t.Context(), s, owntable.Catalog("shop"))
		if err != nil || !value.EqualItems(is, was) {
			t.Errorf("the catalog is %v, and was %v, %v", is, was, err)
		}
		starts(t, first)
		if renamed := shop(t, s, "shop", "Stats", "Shop"); errors.Is(renamed.Start(t.Context(), unsaid), catalog.ErrTable) {
			t.Error("another name of the same table is refused as another table")
		}
		if err := shop(t, s, "shop", "Shop", "Other").Start(t.Context(), unsaid); read != errors.Is(err, catalog.ErrTable) {
			t.Errorf("moved after records were read: %v: %v", read, err)
		}
	}
	s := shops(t)
	first := shop(t, s, "shop", "Shop", "Shop")
	starts(t, first)
	retireAll(t, first)
	if err := shop(t, s, "shop", "Other", "Other").Start(t.Context(), unsaid); errors.Is(err, catalog.ErrTable) {
		t.Errorf("after all was retired: %v", err)
	}
}
