package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestStepsUnderRandomSchedules writes at random into the tables that a round's
// status goes by, delivers the streams at random, each in its own order but in
// pieces, twice, broken off and by workers that sleep, and holds the rounds
// against a recount of its own.
func TestStepsUnderRandomSchedules(t *testing.T) {
	schedules := 80
	if testing.Short() {
		schedules = 6
	}
	m, err := model.Load("movienight")
	must(t, err)
	for seed := range schedules {
		n := &night{h: newHarness(t, m), r: rand.New(rand.NewPCG(uint64(seed), 7)), at: map[string]int{}}
		for range 12 {
			for range 1 + n.r.IntN(6) {
				n.write()
			}
			n.h.pull()
			for range n.r.IntN(5) {
				n.deliver()
			}
		}
		for name, s := range n.h.sleeper {
			s.wake()
			<-s.over
			delete(n.h.sleeper, name)
		}
		must(t, n.h.settle(1))
		if out := n.h.audit(); out != "" {
			t.Fatalf("schedule %d:\n%s", seed, out)
		}
		n.recount(seed)
		n.lasting(seed)
		n.h.close()
	}
}

// night is a group's evenings, played at random.
type night struct {
	h  *harness
	r  *rand.Rand
	at map[string]int // of each table's stream: how many records were delivered
}

func (n *night) one(of ...string) string { return of[n.r.IntN(len(of))] }

func (n *night) time() string { return fmt.Sprintf("2026-01-01T00:00:%02dZ", n.r.IntN(60)) }

func (n *night) write() {
	round, user, group := n.one("r1", "r2"), n.one("a", "b", "c"), n.one("g1", "g2")
	must(n.h.t, n.h.write(n.one(
		fmt.Sprintf(`put Ratings {"round_id":%q,"member_id":%q,"rated_at":%q}`, round, user, n.time()),
		fmt.Sprintf(`put Ratings {"round_id":%q,"member_id":%q,"rated_at":%q}`, round, user, n.time()),
		fmt.Sprintf(`delete Ratings {"round_id":%q,"member_id":%q}`, round, user),
		fmt.Sprintf(`put GroupMemberships {"group_id":%q,"user_id":%q}`, group, user),
		fmt.Sprintf(`delete GroupMemberships {"group_id":%q,"user_id":%q}`, group, user),
		fmt.Sprintf(`put Picks {"pick_id":%q,"round_id":%q,"picked_at":%q,"watched":%s,"watched_at":%q}`, n.one("p", "q"), round, n.time(), n.one("true", "false"), n.time()),
		fmt.Sprintf(`delete Picks {"pick_id":%q}`, n.one("p", "q")),
		fmt.Sprintf(`put Rounds {"round_id":%q,"group_id":%q,"status":%q,"attendees":%s}`, round, group, n.one("draft", "voting", "closed", "expired", "selected"), n.one("null", `["a"]`, `["a","b","a"]`, "[]")),
		fmt.Sprintf(`put Rounds {"round_id":%q,"group_id":%q,"status":"voting","selected_at":%q}`, round, group, n.time()),
		fmt.Sprintf(`delete Rounds {"round_id":%q}`, round),
		n.stale(round),
	)))
}

// stale puts a round back as it was some time ago, with all that was shown then.
func (n *night) stale(round string) string {
	var images []value.Item
	for _, d := range n.h.records {
		if d.table.Name == "Rounds" && d.rec.New != nil && d.rec.Keys.Get("round_id").Text() == round {
			images = append(images, d.rec.New)
		}
	}
	if len(images) == 0 {
		return `delete Rounds {"round_id":"none"}`
	}
	return "put Rounds " + string(value.AppendPlainItem(nil, images[n.r.IntN(len(images))]))
}

// deliver hands out the next records of one table, after some that came before, to
// a worker that may break or sleep. Only one that does neither moves on.
func (n *night) deliver() {
	table := n.h.model.Tables[n.r.IntN(len(n.h.model.Tables))]
	var mine []int
	for i, d := range n.h.records {
		if d.table == table {
			mine = append(mine, i+1)
		}
	}
	from := max(0, n.at[table.Name]-n.r.IntN(4))
	to := min(len(mine), n.at[table.Name]+n.r.IntN(6))
	if from >= to {
		return
	}
	which := mine[from:to]
	switch at := 1 + n.r.IntN(5); n.r.IntN(4) {
	case 0:
		_, err := n.h.deliver(&breaker{at: at, how: how(n.r.IntN(int(hows)))}, which)
		if err != nil && !errors.Is(err, errBroken) {
			n.h.t.Fatal(err)
		}
	case 1:
		n.sleep(which, at)
	default:
		_, err := n.h.deliver(nil, which)
		must(n.h.t, err)
		n.at[table.Name] = max(n.at[table.Name], to)
	}
}

func (n *night) sleep(which []int, at int) {
	z := newSleeper()
	n.h.sleeper[fmt.Sprint(len(n.h.sleeper))] = z
	world := *n.h
	world.records, world.done = slices.Clone(n.h.records), map[int]bool{}
	go func() {
		defer close(z.over)
		_, z.err = world.deliver(&breaker{at: at, sleep: z}, which)
	}()
	select {
	case <-z.asleep:
	case <-z.over:
	}
}

// recount tells each round's status from the rows there are.
func (n *night) recount(seed int) {
	words := []string{"draft", "voting", "selected", "watched", "rated", "expired"}
	picks, ratings, members := n.all("Picks"), n.all("Ratings"), n.all("GroupMemberships")
	for _, row := range n.all("Rounds") {
		id := row.Get("round_id").Text()
		reached := -1
		reach := func(word, attr string, times []string) {
			reached = max(reached, slices.Index(words, word))
			if have := row.Get(attr).Text(); have != slices.Max(times) {
				n.h.t.Errorf("schedule %d: round %s has %s %q, want %q", seed, id, attr, have, slices.Max(times))
			}
		}
		var picked, watched, rated, who []string
		for _, p := range picks {
			if p.Get("round_id").Text() == id {
				picked = append(picked, p.Get("picked_at").Text())
				if p.Get("watched").Bool() {
					watched = append(watched, p.Get("watched_at").Text())
				}
			}
		}
		if row.Get("attendees").Kind() == value.List {
			for _, a := range row.Get("attendees").Elements() {
				who = append(who, a.Value.Text())
			}
		} else {
			for _, m := range members {
				if m.Get("group_id").Text() == row.Get("group_id").Text() {
					who = append(who, m.Get("user_id").Text())
				}
			}
		}
		complete := len(who) > 0
		for _, w := range who {
			i := slices.IndexFunc(ratings, func(r value.Item) bool { return r.Get("round_id").Text() == id && r.Get("member_id").Text() == w })
			if complete = complete && i >= 0; i >= 0 {
				rated = append(rated, ratings[i].Get("rated_at").Text())
			}
		}
		if len(picked) > 0 {
			reach("selected", "selected_at", picked)
		}
		if len(watched) > 0 {
			reach("watched", "watched_at", watched)
		}
		if complete {
			reach("rated", "rated_at", rated)
		}
		if shown := slices.Index(words, row.Get("status").Text()); shown < reached || shown > reached && reached >= 0 && slices.Contains([]string{"watched", "rated"}, words[shown]) {
			n.h.t.Errorf("schedule %d: round %s is %s, and reached %s", seed, id, row.Get("status").Text(), words[reached])
		}
	}
}

// lasting: what is told stays, and what was taken back goes in the end.
func (n *night) lasting(seed int) {
	for _, row := range n.all(owntable.TableName) {
		_, _, fact := owntable.FactOf(n.h.model.Name, row)
		if fact && (owntable.FactFrom(row).Says != nil) == row.Has(owntable.Expiry) {
			n.h.t.Errorf("schedule %d: %v", seed, row)
		}
	}
}

func (n *night) all(table string) []value.Item {
	page, err := n.h.store.Query(context.Background(), store.Query{Table: table})
	must(n.h.t, err)
	return page.Rows
}
