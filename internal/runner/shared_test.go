package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// sharing returns letter i of those that one large record has, of two images in three parts.
func sharing(i int) runner.Dead {
	image := func(n int) value.Value {
		return value.OfMap(value.Item{{Name: "x", Value: value.OfString(noise(n))}})
	}
	return runner.Dead{
		Kind: runner.DeadImage, Target: fmt.Sprint("derivation ", i), Reason: strings.Repeat("long ", 2000),
		Record: value.NewItem(
			value.Attr{Name: "table", Value: value.OfString("gallery")}, value.Attr{Name: "old", Value: image(400_000)}, value.Attr{Name: "new", Value: image(399_000)}),
	}
}

// checkShared fails if a record is not named by as many letters as are counted, if a letter
// cannot be read whole, or if a part is of nothing. It returns the letters.
func checkShared(t *testing.T, r *runner.Runner, rows []value.Item) (ids []string) {
	t.Helper()
	counted, named, parts := map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, row := range rows {
		part := row.Get(owntable.Partition).Text()
		if n, ok := owntable.SharedCount(row); ok {
			counted[part] = n
		} else if part == owntable.Dead(r.Model.Name) {
			l := owntable.LetterFrom(row)
			if ids = append(ids, l.ID); l.Shared != "" {
				named[owntable.LetterRecord(r.Model.Name, l.Shared).Key.Partition.Text()]++
			}
		} else if owntable.IsLetter(part) {
			parts[part]++
		}
	}
	for part, n := range counted {
		if named[part] != n {
			t.Errorf("%s: %d letters are counted, %d name it", part, n, named[part])
		}
	}
	for part := range named {
		if counted[part] == 0 {
			t.Errorf("%s is named, and counts no letter", part)
		}
	}
	for part := range parts {
		if counted[part] == 0 {
			t.Errorf("%s has parts and no letter", part)
		}
	}
	for _, id := range ids {
		d, err := r.DeadByID(t.Context(), id)
		must(t, err)
		if !value.EqualItems(d.Record, sharing(0).Record) || d.Reason != sharing(0).Reason {
			t.Errorf("%s is not read as it was kept", id)
		}
	}
	return ids
}

// TestSharedBroken breaks the keeping and the discarding of two letters of one record at each
// write, in each way. Nothing is between the letters and the record then; done again and discarded,
// nothing is left.
func TestSharedBroken(t *testing.T) {
	for what, do := range map[string]func(r, broken *runner.Runner) error{
		"keep": func(_, broken *runner.Runner) error {
			return broken.KeepAll(t.Context(), []runner.Dead{sharing(1), sharing(2)})
		},
		"discard": func(r, broken *runner.Runner) error {
			for i := range 2 {
				_, err := r.KeepDead(t.Context(), sharing(i))
				must(t, err)
			}
			return r.Dead(t.Context(), func(d runner.Dead) error { return broken.Discard(t.Context(), d.ID) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			h, count := keptHarness(t), &breaker{}
			must(t, do(h.runner(nil), h.runner(count)))
			for at := 1; at <= count.calls; at++ {
				for how := before; how < hows; how++ {
					h := keptHarness(t)
					if err := do(h.runner(nil), h.runner(&breaker{at: at, how: how})); !errors.Is(err, errBroken) {
						t.Fatal(at, how, err)
					}
					r := h.runner(nil)
					checkShared(t, r, h.scan(owntable.TableName))
					if what == "keep" {
						must(t, do(r, r))
						if n := len(checkShared(t, r, h.scan(owntable.TableName))); n != 2 {
							t.Errorf("%d letters are kept", n)
						}
					}
					for _, id := range checkShared(t, r, h.scan(owntable.TableName)) {
						must(t, r.Discard(t.Context(), id))
					}
					h.nothingKept(t)
					h.close()
				}
			}
		})
	}
}

// meeting does something once, right before a transaction.
type meeting struct {
	store.Store
	do func()
}

func (b *meeting) Transact(ctx context.Context, ws []store.Write) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Store.Transact(ctx, ws)
}

// TestLastLetterMeetsAnother: what another worker does to the letters of a record between the
// read of their number and the deletion of one neither loses the record nor leaves it.
func TestLastLetterMeetsAnother(t *testing.T) {
	for what, other := range map[string]struct {
		before int // letters
		do     func(r *runner.Runner, ids []string) error
		after  int
	}{
		"another is kept":        {1, func(r *runner.Runner, _ []string) error { _, err := r.KeepDead(t.Context(), sharing(9)); return err }, 1},
		"the other is discarded": {2, func(r *runner.Runner, ids []string) error { return r.Discard(t.Context(), ids[1]) }, 0},
		"the same is discarded":  {2, func(r *runner.Runner, ids []string) error { return r.Discard(t.Context(), ids[0]) }, 1},
		"all go, and others come": {2, func(r *runner.Runner, ids []string) error {
			if err := errors.Join(r.Discard(t.Context(), ids[0]), r.Discard(t.Context(), ids[1])); err != nil {
				return err
			}
			return r.KeepAll(t.Context(), []runner.Dead{sharing(8), sharing(9)})
		}, 2},
	} {
		t.Run(what, func(t *testing.T) {
			h := keptHarness(t)
			defer h.close()
			r := h.runner(nil)
			for i := range other.before {
				_, err := r.KeepDead(t.Context(), sharing(i))
				must(t, err)
			}
			ids := checkShared(t, r, h.scan(owntable.TableName))
			slow := h.runner(nil)
			slow.Store = &meeting{h.store, func() { must(t, other.do(r, ids)) }}
			if err := slow.Discard(t.Context(), ids[0]); err != nil && !errors.Is(err, store.ErrCondition) {
				t.Fatal(err)
			}
			if left := checkShared(t, r, h.scan(owntable.TableName)); len(left) != other.after {
				t.Errorf("%d letters are left, want %d", len(left), other.after)
			}
		})
	}
}

// TestFirstLetterMeetsAnother: two workers keep the first letters of a record at one time.
func TestFirstLetterMeetsAnother(t *testing.T) {
	h := keptHarness(t)
	defer h.close()
	slow := h.runner(nil)
	b := &meeting{Store: h.store}
	b.do = func() { // before the first transaction, and then before the second
		b.do = func() { must(t, h.runner(nil).KeepAll(t.Context(), []runner.Dead{sharing(2)})) }
	}
	slow.Store = b
	must(t, slow.KeepAll(t.Context(), []runner.Dead{sharing(1)}))
	if left := checkShared(t, slow, h.scan(owntable.TableName)); len(left) != 2 {
		t.Errorf("%d letters are kept", len(left))
	}
}

// TestSharedRecordOnDynamoDB: workers keep and discard the letters of one record at one time, on
// DynamoDB; whatever comes first, the record is there as long as a letter names it, and no longer.
func TestSharedRecordOnDynamoDB(t *testing.T) {
	m, err := model.Load("gallery")
	must(t, err)
	s := dynamodbtest.Open(t, dynamodbtest.Config(t), []store.Table{owntable.Table()}, dynamodb.Options{})
	shareByMany(t, m, s)
}

// TestSharedRecord is the same on the embedded store.
func TestSharedRecord(t *testing.T) {
	h := keptHarness(t)
	defer h.close()
	shareByMany(t, h.model, h.store)
}

func shareByMany(t *testing.T, m *model.Model, s store.Store) {
	r := &runner.Runner{Model: m, Store: s, Now: time.Now}
	rows := func() (rows []value.Item) {
		for q := (store.Query{Table: owntable.TableName}); ; {
			page, err := s.Query(t.Context(), q)
			must(t, err)
			if rows = append(rows, page.Rows...); page.Next == nil {
				return rows
			}
			q.After = page.Next
		}
	}
	keepOne, err := r.KeepDead(t.Context(), sharing(0))
	must(t, err)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 3 {
				id, err := r.KeepDead(t.Context(), sharing(i+1))
				if err == nil {
					_, err = r.DeadByID(t.Context(), id)
				}
				if err == nil {
					err = r.Discard(t.Context(), id)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left := checkShared(t, r, rows()); len(left) != 1 || left[0] != keepOne {
		t.Error("left:", left)
	}
	must(t, r.Discard(t.Context(), keepOne))
	if left := rows(); len(left) > 0 {
		t.Errorf("%d rows are left", len(left))
	}
}
