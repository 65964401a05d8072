package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// tallying counts the rows that are read of our own table, and the reads.
type tallying struct {
	store.Store
	reads, rows int
}

func (c *tallying) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	c.reads, c.rows = c.reads+1, c.rows+len(refs)
	return c.Store.Get(ctx, refs)
}

func (c *tallying) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := c.Store.Query(ctx, q)
	c.reads, c.rows = c.reads+1, c.rows+len(page.Rows)
	return page, err
}

// TestManyAttendees says that a round of thousands of attendees becomes rated when the
// last of them has rated, be they the members of the group or in a list of the round's
// own, and is so no more when somebody joins; and what a rating among them costs.
func TestManyAttendees(t *testing.T) {
	many := 2000
	if testing.Short() {
		many = 600
	}
	t.Parallel()
	m, err := model.Load("movienight")
	must(t, err)
	h := newHarness(t, m)
	defer h.close()
	var list []string
	for i := range many {
		list = append(list, fmt.Sprintf("%q", fmt.Sprint("u", i)))
	}
	all := strings.Join(list, ",")
	do := func(line string) {
		must(t, h.write(line))
	}
	shows := func(round, status, at string) {
		t.Helper()
		must(t, h.settle(len(h.done)+1))
		row := h.rows("Rounds", `"round_id":"`+round+`"`)
		if !strings.Contains(row, `"status":"`+status+`"`) || at != "" && !strings.Contains(row, `"rated_at":"`+at+`"`) {
			t.Errorf("round %s is not %s at %q: %.200s", round, status, at, row[max(0, len(row)-200):])
		}
	}
	do(fmt.Sprintf(`for 1..%d put GroupMemberships {"group_id":"g","user_id":"u$i"}`, many-1))
	do(`put GroupMemberships {"group_id":"g","user_id":"u0"}`)
	do(`put Rounds {"round_id":"r","group_id":"g","started_by":"u1","status":"watched"}`)
	do(`put Rounds {"round_id":"s","group_id":"g","started_by":"u1","status":"watched","attendees":[` + all + `]}`)
	for _, round := range []string{"r", "s"} {
		do(fmt.Sprintf(`for 1..%d put Ratings {"round_id":"%s","member_id":"u$i","rating":"liked","rated_at":"2026-01-05T10:00:00Z"}`, many-1, round))
		do(`put Ratings {"round_id":"` + round + `","member_id":"stranger","rating":"liked","rated_at":"2027-01-05T10:00:00Z"}`)
	}
	shows("r", "watched", "")
	shows("s", "watched", "")
	for _, round := range []string{"r", "s"} {
		do(`put Ratings {"round_id":"` + round + `","member_id":"u0","rating":"loved","rated_at":"2026-01-06T10:00:00Z"}`)
		shows(round, "rated", "2026-01-06T10:00:00Z")
	}
	if out := h.audit(); out != "" {
		t.Fatal(out)
	}
	costs(t, h, many)
	do(`put GroupMemberships {"group_id":"g","user_id":"late"}`)
	shows("r", "watched", "")
	shows("s", "rated", "2026-01-06T10:00:00Z")
}

// costs says what is read for one more rating, when all are there and when one of the
// first is missing.
func costs(t *testing.T, h *harness, many int) {
	last := len(h.done)
	must(t, h.write(`put Ratings {"round_id":"r","member_id":"u7","rating":"loved","rated_at":"2026-01-07T10:00:00Z"}`))
	read := func(from int) *tallying {
		c := &tallying{Store: h.store}
		h.pull()
		for ; from <= len(h.records); from++ {
			_, err := (&runner.Runner{Kinds: kinds.All(), Model: h.model, Store: c, Now: h.now}).Rows(t.Context(), h.batch(from))
			must(t, err)
			h.done[from] = true
		}
		return c
	}
	if c := read(last + 1); c.rows > 3*many || c.reads > 60 {
		t.Errorf("a rating where everybody has rated reads %d rows in %d reads", c.rows, c.reads)
	}
	must(t, h.settle(len(h.done)+1))
	must(t, h.write(`put Rounds {"round_id":"e","group_id":"g","started_by":"u1","status":"watched"}`))
	must(t, h.settle(len(h.done)+1))
	must(t, h.write(`put Ratings {"round_id":"e","member_id":"u7","rating":"loved","rated_at":"2026-01-07T10:00:00Z"}`))
	if c := read(len(h.done) + 1); c.rows > 3*100 || c.reads > 10 {
		t.Errorf("a rating where nobody has rated reads %d rows in %d reads", c.rows, c.reads)
	}
}
