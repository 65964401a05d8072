package system_test

import (
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
	"weir/internal/verify"
)

// overtaken is who stops before a write, while others go on. Of a row of an application
// that these changed, the write must leave everything as it is.
type overtaken struct {
	*testing.T
	db        *embedded.Store
	at, n     int // counted from 1; 0 is never
	meanwhile func()
}

func (o *overtaken) before(ref store.Ref, write func() error) error {
	if o.n++; o.n != o.at {
		return write()
	}
	noted := o.row(ref)
	o.meanwhile()
	is := o.row(ref)
	err := write()
	if now := o.row(ref); ref.Table != owntable.TableName && !value.EqualItems(noted, is) && !value.EqualItems(is, now) {
		o.Errorf("at %d: %v was %s, became %s, and was written over: %s", o.at, ref, text(noted), text(is), text(now))
	}
	return err
}

func (o *overtaken) row(ref store.Ref) value.Item {
	o.Helper()
	rows, err := o.db.Get(o.Context(), []store.Ref{ref})
	if err != nil {
		o.Fatal(err)
	}
	return rows[0]
}

func text(row value.Item) string { return string(value.AppendPlainItem(nil, row)) }

// TestRepairOvertaken: before each of a repair's writes applications write and all of
// it is applied. What the repair says that it put right is right all the same.
func TestRepairOvertaken(t *testing.T) {
	for _, b := range busies {
		t.Run(b.model, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(b.model)
			if err != nil {
				t.Fatal(err)
			}
			writes, seeds, busy := b.overtaken(t, m, 0, 0), uint64(5), 0
			if testing.Short() {
				seeds = 1
			}
			for at := 1; at <= writes.n; at++ {
				for seed := range seeds {
					busy += b.overtaken(t, m, at, seed).busy
				}
			}
			if busy == 0 {
				t.Error("nobody was ever overtaken")
			}
			t.Logf("%d writes, %d times overtaken", writes.n, busy)
		})
	}
}

// outcome is how often a repair wrote, and how much it had to leave.
type outcome struct{ n, busy int }

func (b *busy) overtaken(t *testing.T, m *model.Model, at int, seed uint64) outcome {
	t.Helper()
	s, db := b.wrong(t, m)
	defer s.Close()
	b.writes(t, s, 200+seed, 10) // what is yet to be applied
	o := &overtaken{T: t, db: db, at: at, meanwhile: func() {
		b.writes(t, s, 100+seed, 60)
		if err := catchUp(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}}
	said := map[string]bool{}
	r := repairing(s, db, o.before, func(d verify.Difference) { said[d.Derivation+" "+d.Row] = true })
	round, err := r.Round(t.Context())
	if err != nil {
		t.Fatalf("at %d: %v", at, err)
	}
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	diffs, err := verifyAll(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diffs {
		// A row shows what its ledger holds, which may have been left as it was.
		_, shown := d.Fix.(*runner.ShownFix)
		if said[d.Derivation+" "+d.Row] && !shown {
			t.Errorf("at %d: was put right, and is not: %+v", at, d)
		}
	}
	if _, left := repairAll(t, s); len(left) > 0 {
		t.Errorf("at %d: left %+v", at, left)
	}
	b.writes(t, s, 4, 10)
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	verifyNothing(t, s)
	return outcome{o.n, len(round.Busy)}
}
