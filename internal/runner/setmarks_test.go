package runner_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
)

// TestSetMarks says what without shards stands beside a set: a mark for each row and
// member, more than fit a transaction, that a later change moves on and an earlier one
// leaves alone, and that goes 48 hours after the last change. What goes takes nothing
// of the set along, and the row's next change counts.
func TestSetMarks(t *testing.T) {
	m, err := model.Load("viewing")
	must(t, err)
	h := newHarness(t, m)
	defer h.close()
	h.byItem = true
	const members = 130
	put := func(i int) string {
		return fmt.Sprintf(`put viewing-history {"profileId":"p","sk":"COMPLETED|%d","a.assetId":"%d","a.state":"COMPLETED","a.updateTime":"%s"}`, i, i, h.clock.Format(time.RFC3339))
	}
	for i := range members {
		must(t, h.write(put(i)))
	}
	first := h.clock
	must(t, h.settle(1))
	came := h.setMarks()
	h.marked(members, map[time.Time]int{first: members})

	// An hour later one is watched again, one goes and another comes.
	h.clock = h.clock.Add(time.Hour)
	from := len(h.records)
	must(t, h.write(`delete viewing-history {"profileId":"p","sk":"COMPLETED|0"}`))
	must(t, h.write(put(members)))
	later := h.clock
	must(t, h.settle(from+1))
	h.marked(members, map[time.Time]int{first: members - 1, later: 2})
	now := h.setMarks()
	for at, mark := range came {
		if moved := now[at].at > mark.at; moved != (now[at].expires > mark.expires) || now[at].at < mark.at {
			t.Errorf("the mark %s was %+v and is %+v", at, mark, now[at])
		}
	}

	// All of the first comes again, late.
	h.clock = h.clock.Add(time.Hour)
	_, err = h.deliver(nil, upTo(members))
	must(t, err)
	if again := h.setMarks(); !maps.Equal(again, now) {
		t.Errorf("marks moved when what they had counted came again: %v, were %v", again, now)
	}
	h.marked(members, map[time.Time]int{first: members - 1, later: 2})

	// 48 hours after the first: those of then go, and no other.
	h.clock = first.Add(48*time.Hour + time.Second)
	_, err = h.store.Sweep(t.Context(), h.clock, 1000, nil)
	must(t, err)
	h.marked(members, map[time.Time]int{later: 2})

	// What they were of can go, and what goes comes again.
	from = len(h.records)
	must(t, h.write(`delete viewing-history {"profileId":"p","sk":"COMPLETED|1"}`))
	must(t, h.write(put(0)))
	must(t, h.settle(from+1))
	h.marked(members, map[time.Time]int{later: 1, h.clock: 2})
	if out := h.audit(); out != "" {
		t.Error(elide(out))
	}
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i+1)
	}
	return out
}

// setMark is a mark beside a set: which position it says, and when it goes.
type setMark struct {
	at      string
	expires int64
}

func (h *harness) setMarks() map[string]setMark {
	out := map[string]setMark{}
	for _, row := range h.scan(owntable.TableName) {
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), "mark|") {
			x, _ := row.Get(owntable.Expiry).Int64()
			out[row.Get(owntable.Sort).Text()] = setMark{row.Get(owntable.Position).Text(), x}
		}
	}
	return out
}

// marked holds the members of the one set that there is, and how many marks go 48
// hours after each moment.
func (h *harness) marked(members int, since map[time.Time]int) {
	h.t.Helper()
	n := 0
	for _, row := range h.scan("viewing-history") {
		n += row.Get("assetIds").Len()
	}
	if n != members {
		h.t.Errorf("the set shows %d members, not %d", n, members)
	}
	have, want := map[int64]int{}, map[int64]int{}
	for _, mark := range h.setMarks() {
		have[mark.expires]++
	}
	for at, n := range since {
		want[at.Add(48*time.Hour).Unix()] = n
	}
	if !maps.Equal(have, want) {
		h.t.Errorf("marks go at %v, not at %v", slices.Sorted(maps.Keys(have)), want)
	}
}
