package runner

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// shortRow is a row that lacks values for which it has no room.
type shortRow struct {
	row  store.Ref
	in   *Runner // of the ledger that it shows
	left []string
}

// LacksRoom reports whether a row, as read, may lack what it should show of a derivation: it shows
// nothing of it, has the mark, and no room for it. It is then noted as no difference, and the row's dead
// letter must name it. bare is the row as it would be without any, which matters only where the
// application writes the same attributes; nil has none of them.
func (v *Verification) LacksRoom(f *projections.Change, s *projections.Shown, bare value.Item) bool {
	if !f.New.Has(owntable.FullMark) || s.Bytes() == 0 || f.New.With(slices.Clone(s.Attrs)...).Size() <= store.MaxItemBytes-fitSpare {
		return false
	}
	for _, a := range s.Attrs {
		if !value.Equal(f.New.Get(a.Name), bare.Get(a.Name)) {
			return false
		}
	}
	in := v.Built(f.Is)
	if in == nil {
		in = &Runner{Model: v.Model, Store: v.Store}
	}
	if v.short == nil {
		v.short = map[string]*shortRow{}
	}
	ledger := owntable.Ledger(in.Model.Name, f.Row).Key.Partition.Text()
	if v.short[ledger] == nil {
		v.short[ledger] = &shortRow{row: f.Row, in: in}
	}
	v.short[ledger].left = append(v.short[ledger].left, s.Derivation)
	v.Cannot(s.Derivation, f.Row, "cannot be shown: the row has no room for it")
	return true
}

// RoomLetter compares the dead letter of a row about its room with what the row lacks, given the row's
// ledger and its partition key.
func (v *Verification) RoomLetter(ctx context.Context, partition string, ledger value.Item) error {
	is := v.short[partition]
	if is == nil && !isShort(ledger) {
		return nil
	}
	delete(v.short, partition)
	if is == nil {
		row, ok := owntable.RowOfLedger(partition)
		if !ok || v.Model.Table(row.Table) == nil {
			return nil
		}
		is = &shortRow{row: row, in: &Runner{Model: v.Model, Store: v.Store}}
	}
	slices.Sort(is.left)
	want := NoRoom(is.left)
	_, said, err := is.in.said(ctx, lackOfRoom, is.row, ledger, want, false)
	if err == nil && said != want {
		v.Differs("dead letter", v.RowText(is.row), cmp.Or(want, Nothing), cmp.Or(said, Nothing), &ShownFix{Row: is.row})
	}
	return err
}

// RoomLetters compares the dead letters of the rows whose ledgers were not met.
func (v *Verification) RoomLetters(ctx context.Context) error {
	for _, partition := range slices.Sorted(maps.Keys(v.short)) {
		if err := v.RoomLetter(ctx, partition, nil); err != nil {
			return err
		}
	}
	return nil
}

// roomSaid returns what a ledger notes of room.
func roomSaid(ledger value.Item) string {
	_, why := owntable.LedgerRow(ledger).Lacks(owntable.LacksRoom)
	return strings.TrimSpace(why)
}
