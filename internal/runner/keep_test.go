package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// huge is as much as a dead letter can be asked to hold, and more than any row does.
func huge() deadletter.Letter {
	long := func(n int) value.Value { return value.OfString(noise(n)) }
	d := deadletter.Letter{
		Kind: deadletter.Row, Target: noise(150_000) + "\xff", Reason: "\xfe" + noise(200_000), Source: noise(5000), ShardKey: "gallery|s",
		Position: events.PositionOf(7), Time: time.Unix(1_700_000_000, 0).UTC(), Raw: noise(1 << 20),
		Row: store.Ref{Table: "gallery", Key: store.Key{Partition: long(140_000), Sort: long(140_000)}},
		Record: value.NewItem(
			value.Attr{Name: "table", Value: value.OfString("gallery")},
			value.Attr{Name: "old", Value: value.OfMap(value.Item{{Name: "x", Value: long(400_000)}})},
			value.Attr{Name: "new", Value: value.OfMap(value.Item{{Name: "x", Value: long(399_000)}})}),
	}
	for i := range 40 {
		d.Adds = append(d.Adds, projections.Add{Target: d.Row, Field: fmt.Sprintf("d:x:%d%s", i, noise(1000)), Amount: value.OfInt(int64(i))})
	}
	return d
}

// parted is a letter that is as small as one in parts can be.
func parted() deadletter.Letter {
	return deadletter.Letter{Kind: deadletter.Record, Target: "x", Raw: noise(420_000)}
}

// TestKeptWhole: whatever it is, a dead letter is kept, listed by a head of bounded
// size, read whole, and nothing is left of it when it is given up.
func TestKeptWhole(t *testing.T) {
	h := keptHarness(t)
	r, want := h.runner(nil), huge()
	id, err := r.Letters().Keep(t.Context(), want)
	failtest.On(t, err)
	if again, err := r.Letters().Keep(t.Context(), want); err != nil || again != id {
		t.Fatal(again, err)
	}
	for _, row := range h.scan(owntable.TableName) {
		if size := row.Size(); row.Get(owntable.Partition).Text() == owntable.Dead("gallery") && size > 4<<10 {
			t.Errorf("the head has %d bytes", size)
		} else if size > 301<<10 {
			t.Errorf("a row has %d bytes", size)
		}
	}
	failtest.On(t, r.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
		if d.ID != id || !strings.HasPrefix(want.Target, d.Target[:500]) || !strings.Contains(d.Target, "(150001 bytes, hash ") || d.ShardKey != want.ShardKey {
			t.Errorf("listed as %+v", d)
		}
		return nil
	}))
	have, err := r.DeadByID(t.Context(), id)
	failtest.On(t, err)
	same := have.Target == want.Target && have.Reason == want.Reason && have.Source == want.Source && have.Raw == want.Raw &&
		projections.SameRow(have.Row, want.Row) && value.EqualItems(have.Record, want.Record) && len(have.Adds) == len(want.Adds) &&
		slices.EqualFunc(have.Adds, want.Adds, func(a, b projections.Add) bool { return a.Field == b.Field && value.Equal(a.Amount, b.Amount) })
	if !same {
		t.Error("it is not read as it was kept")
	}
	failtest.On(t, r.DiscardLetter(t.Context(), id))
	h.nothingKept(t)
}

// TestKeepingBroken breaks the keeping and the discarding of a large letter at each
// write, in each way: it is whole or not there, and done again it is kept once.
func TestKeepingBroken(t *testing.T) {
	for what, do := range map[string]func(h *harness, b *breaker) error{
		"keep": func(h *harness, b *breaker) error {
			_, err := h.runner(b).Letters().Keep(t.Context(), parted())
			return err
		},
		"discard": func(h *harness, b *breaker) error {
			id, err := h.runner(nil).Letters().Keep(t.Context(), parted())
			failtest.On(t, err)
			return h.runner(b).DiscardLetter(t.Context(), id)
		},
	} {
		t.Run(what, func(t *testing.T) {
			count := &breaker{}
			failtest.On(t, do(keptHarness(t), count))
			for at := 1; at <= count.calls; at++ {
				for how := before; how < hows; how++ {
					for _, again := range []bool{false, true} {
						if testing.Short() && int(how) != at%int(hows) {
							continue // all writes, each in one way
						}
						h := keptHarness(t)
						if err := do(h, &breaker{at: at, how: how}); !errors.Is(err, errBroken) {
							t.Fatal(at, how, err)
						}
						h.afterwards(t, again)
						h.close()
					}
				}
			}
		})
	}
}

// afterwards is what comes after a crash: the letter is whole or not there, and when it is
// kept again and given up, nothing is left.
func (h *harness) afterwards(t *testing.T, again bool) {
	t.Helper()
	r := h.runner(nil)
	if again {
		_, err := r.Letters().Keep(t.Context(), parted())
		failtest.On(t, err)
	}
	kept := 0
	failtest.On(t, r.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
		kept++
		if d, err := r.DeadByID(t.Context(), d.ID); err != nil || d.Raw != parted().Raw {
			return fmt.Errorf("%d bytes: %w", len(d.Raw), err)
		}
		return r.DiscardLetter(t.Context(), d.ID)
	}))
	if again && kept != 1 {
		t.Error("it is not kept")
	}
	h.nothingKept(t)
}

func (h *harness) nothingKept(t *testing.T) {
	t.Helper()
	for _, row := range h.scan(owntable.TableName) {
		t.Errorf("left: %s %s", row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text())
	}
}

func keptHarness(t *testing.T) *harness {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	return newHarness(t, m)
}

// TestKeptByMany: workers that keep, read and discard one large letter at one time find it whole or not at all.
func TestKeptByMany(t *testing.T) {
	h := keptHarness(t)
	defer h.close()
	keptByMany(t, h.model, h.store)
}

func TestKeptByManyOnDynamoDB(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	keptByMany(t, m, dynamodbtest.Open(t, dynamodbtest.Config(t), []store.Table{owntable.Table()}, dynamodb.Options{}))
}

func keptByMany(t *testing.T, m *model.Model, s store.Store) {
	r := &runner.Runner{Model: m, Store: s, Now: time.Now}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				id, err := r.Letters().Keep(t.Context(), parted())
				failtest.On(t, err)
				if d, err := r.DeadByID(t.Context(), id); err != nil && !errors.Is(err, deadletter.ErrNoDead) || err == nil && d.Raw != parted().Raw {
					t.Error(len(d.Raw), err)
				}
				if err := r.DiscardLetter(t.Context(), id); err != nil && !errors.Is(err, deadletter.ErrNoDead) && !errors.Is(err, store.ErrCondition) && !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	id, err := r.Letters().Keep(t.Context(), parted())
	failtest.On(t, err)
	failtest.On(t, r.DiscardLetter(t.Context(), id))
	if page, err := s.Query(t.Context(), store.Query{Table: owntable.TableName}); err != nil || len(page.Rows) > 0 {
		t.Error(len(page.Rows), err)
	}
}

// afterGets does something after each Get, one after the other.
type afterGets struct {
	store.Store
	do []func()
}

func (s *afterGets) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := s.Store.Get(ctx, refs)
	if len(s.do) > 0 {
		do := s.do[0]
		s.do = s.do[1:]
		do()
	}
	return rows, err
}

// TestKeptAgainBetweenReads: a letter that is deleted when its head was read, and kept again when its parts were, is found whole.
func TestKeptAgainBetweenReads(t *testing.T) {
	h := keptHarness(t)
	defer h.close()
	id, err := h.runner(nil).Letters().Keep(t.Context(), parted())
	failtest.On(t, err)
	discard := func() { failtest.On(t, h.runner(nil).DiscardLetter(t.Context(), id)) }
	keep := func() {
		_, err := h.runner(nil).Letters().Keep(t.Context(), parted())
		failtest.On(t, err)
	}
	for _, do := range [][]func(){{discard, keep}, {discard, keep, discard, keep}} {
		r := &runner.Runner{Model: h.model, Store: &afterGets{h.store, do}, Now: time.Now}
		if d, err := r.DeadByID(t.Context(), id); err != nil || d.Raw != parted().Raw {
			t.Error(len(d.Raw), err)
		}
	}
	r := &runner.Runner{Model: h.model, Store: &afterGets{h.store, []func(){discard}}, Now: time.Now}
	if _, err := r.DeadByID(t.Context(), id); !errors.Is(err, deadletter.ErrNoDead) {
		t.Error(err)
	}
}

// TestCut: what is too large for a letter is cut where no retry needs it, and a retry that does refuses. The letter has size, hash and
// place of the record, and its keys.
func TestCut(t *testing.T) {
	h := keptHarness(t)
	defer h.close()
	r, keys := h.runner(nil), value.Item{{Name: "PK", Value: value.OfString("A")}, {Name: "SK", Value: value.OfString("B")}}
	large := events.Record{Table: "gallery", Keys: keys, New: keys.With(value.Attr{Name: "x", Value: value.OfString(noise(399_000))})}
	adds := []projections.Add{{Field: "v:x:" + noise(90_000), Amount: value.OfInt(1)}}
	cut := map[string]bool{}
	for _, d := range []deadletter.Letter{
		{Kind: deadletter.Image, Target: "one", Record: owntable.RecordItem(&large)},
		{Kind: deadletter.Image, Target: "other", Record: owntable.RecordItem(&large)},
		{Kind: deadletter.Parked, Target: "amounts", Record: owntable.RecordItem(&events.Record{Keys: keys}), Adds: adds},
		{Kind: deadletter.Record, Target: "bytes", Record: owntable.RecordItem(&events.Record{Keys: keys}), Raw: noise(4 << 20)},
	} {
		d.ShardKey, d.Position = "gallery|s", events.PositionOf(7)
		id, err := r.Letters().Keep(t.Context(), d)
		failtest.On(t, err)
		is, err := r.DeadByID(t.Context(), id)
		failtest.On(t, err)
		rec := is.ChangeRecord()
		if !strings.Contains(is.Cut, " bytes, hash ") || is.ShardKey != d.ShardKey || is.Position != d.Position || !value.EqualItems(rec.Keys, keys) || rec.New != nil || is.Raw != "" || is.Adds != nil {
			t.Errorf("%s is kept as %+v", d.Target, is)
		}
		cut[is.Cut] = true
		if err := r.RetryLetter(t.Context(), id); !errors.Is(err, deadletter.ErrNoRetry) {
			t.Errorf("%s: %v", d.Target, err)
		}
	}
	if len(cut) != 3 {
		t.Errorf("letters of one record name different ones: %v", cut)
	}
	for _, row := range h.scan(owntable.TableName) {
		if !strings.HasPrefix(row.Get(owntable.Partition).Text(), "dead|") || row.Size() > 2<<10 {
			t.Errorf("a letter has %d bytes in %v", row.Size(), row.Get(owntable.Partition))
		}
	}
}
