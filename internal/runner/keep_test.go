package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// huge is as much as a dead letter can be asked to hold, and more than any row does.
func huge() runner.Dead {
	long := func(n int) value.Value { return value.OfString(noise(n)) }
	d := runner.Dead{
		Kind: runner.DeadRow, Target: noise(150_000) + "\xff", Reason: "\xfe" + noise(200_000), Source: noise(5000), ShardKey: "gallery|s",
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
func parted() runner.Dead {
	return runner.Dead{Kind: runner.DeadRecord, Target: "x", Raw: noise(420_000)}
}

// TestKeptWhole: whatever it is, a dead letter is kept, listed by a head of bounded
// size, read whole, and nothing is left of it when it is given up.
func TestKeptWhole(t *testing.T) {
	h := keptHarness(t)
	r, want := h.runner(nil), huge()
	id, err := r.KeepDead(t.Context(), want)
	must(t, err)
	if again, err := r.KeepDead(t.Context(), want); err != nil || again != id {
		t.Fatal(again, err)
	}
	for _, row := range h.scan(owntable.TableName) {
		if size := row.Size(); row.Get(owntable.Partition).Text() == owntable.Dead("gallery") && size > 4<<10 {
			t.Errorf("the head has %d bytes", size)
		} else if size > 301<<10 {
			t.Errorf("a row has %d bytes", size)
		}
	}
	must(t, r.Dead(t.Context(), func(d runner.Dead) error {
		if d.ID != id || !strings.HasPrefix(want.Target, d.Target[:500]) || !strings.Contains(d.Target, "(150001 bytes, hash ") || d.ShardKey != want.ShardKey {
			t.Errorf("listed as %+v", d)
		}
		return nil
	}))
	have, err := r.DeadByID(t.Context(), id)
	must(t, err)
	same := have.Target == want.Target && have.Reason == want.Reason && have.Source == want.Source && have.Raw == want.Raw &&
		projections.SameRow(have.Row, want.Row) && value.EqualItems(have.Record, want.Record) && len(have.Adds) == len(want.Adds) &&
		slices.EqualFunc(have.Adds, want.Adds, func(a, b projections.Add) bool { return a.Field == b.Field && value.Equal(a.Amount, b.Amount) })
	if !same {
		t.Error("it is not read as it was kept")
	}
	must(t, r.Discard(t.Context(), id))
	h.nothingKept(t)
}

// TestKeepingBroken breaks the keeping and the discarding of a large letter at each
// write, in each way. Done again it is kept whole once; done by nobody again, nothing is
// left of it but a letter that is whole.
func TestKeepingBroken(t *testing.T) {
	for what, do := range map[string]func(h *harness, b *breaker) error{
		"keep": func(h *harness, b *breaker) error { _, err := h.runner(b).KeepDead(t.Context(), parted()); return err },
		"discard": func(h *harness, b *breaker) error {
			id, err := h.runner(nil).KeepDead(t.Context(), parted())
			must(t, err)
			return h.runner(b).Discard(t.Context(), id)
		},
	} {
		t.Run(what, func(t *testing.T) {
			count := &breaker{}
			must(t, do(keptHarness(t), count))
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
// kept again, or the time in which it could be kept is over, and it is given up, nothing
// is left.
func (h *harness) afterwards(t *testing.T, again bool) {
	t.Helper()
	r, d := h.runner(nil), parted()
	if again {
		_, err := r.KeepDead(t.Context(), d)
		must(t, err)
	}
	for _, wait := range []time.Duration{0, 2 * time.Hour} {
		h.clock = h.clock.Add(wait)
		must(t, h.jobs(nil))
		must(t, r.Dead(t.Context(), func(listed runner.Dead) error {
			_, err := r.DeadByID(t.Context(), listed.ID)
			return err
		}))
	}
	id := ""
	must(t, r.Dead(t.Context(), func(d runner.Dead) error { id = d.ID; return nil }))
	if again && id == "" {
		t.Error("it is not kept")
	}
	if id != "" {
		must(t, r.Discard(t.Context(), id))
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
	must(t, err)
	return newHarness(t, m)
}

// TestRecordInManyLetters: a record that many derivations cannot use is kept once, whole for the letter
// of each of them, until the last one is discarded.
func TestRecordInManyLetters(t *testing.T) {
	const derivations, pad = 20, 390_000
	var sums strings.Builder
	for i := range derivations {
		fmt.Fprintf(&sums, "  Movie.s%d: {sum: Rating.f%d, to: {id: movie}}\n", i, i)
	}
	var fields []string
	for i := range derivations {
		fields = append(fields, fmt.Sprintf("f%d: number", i))
	}
	m, err := loadText(t, `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {name: string}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {`+strings.Join(fields, ", ")+`}}
derive:
`+sums.String())
	must(t, err)
	h := newHarness(t, m)
	defer h.close()
	row := fmt.Sprintf(`put films {"PK":"USER#a","SK":"RATING#1","type":"Rating","pad":{"$noise":%d}`, pad)
	for i := range derivations {
		row += fmt.Sprintf(`,"f%d":"no number"`, i)
	}
	must(t, h.write(row+"}"))
	must(t, h.settle(1))
	letters, bytes := 0, 0
	for _, row := range h.scan(owntable.TableName) {
		if owntable.IsLetter(row.Get(owntable.Partition).Text()) {
			bytes += row.Size()
		}
		if owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindDead {
			letters++
		}
	}
	t.Logf("%d letters, %d bytes of a record of %d", letters, bytes, pad)
	if letters != derivations || bytes > pad+derivations<<10 {
		t.Errorf("%d letters have %d bytes", letters, bytes)
	}
	r := h.runner(nil)
	var ids []string
	must(t, r.Dead(t.Context(), func(d runner.Dead) error { ids = append(ids, d.ID); return nil }))
	for _, id := range ids {
		if d, err := r.DeadByID(t.Context(), id); err != nil || d.ChangeRecord().New.Size() < pad {
			t.Fatalf("%s: %d bytes, %v", id, d.ChangeRecord().New.Size(), err)
		}
		must(t, r.Discard(t.Context(), id))
	}
	for _, row := range h.scan(owntable.TableName) {
		if owntable.IsLetter(row.Get(owntable.Partition).Text()) {
			t.Errorf("a row of a discarded letter is left: %v", row.Get(owntable.Partition))
		}
	}
}
