package main

import (
	"fmt"
	"slices"
)

// nightExpect states what the movie nights must answer.
func nightExpect(a *app, e *expect) {
	m := &nightChecks{nightApp: &nightApp{app: a}, expect: e}
	m.recount()
	e.present = m.present
	m.people()
	m.invites()
	m.roundChecks()
	m.groupChecks()
	m.searches()
}

// A nightChecks has the booked rows, and the recount of what is derived.
type nightChecks struct {
	*nightApp
	*expect
	votes map[string]int // by round, movie and vote
}

func (m *nightChecks) all(table string) []row { return m.rows(table, func(row) bool { return true }) }

func (m *nightChecks) recount() {
	m.votes = make(map[string]int)
	for _, r := range m.all("Votes") {
		m.votes[fmt.Sprint(r["round_id"], r["tmdb_movie_id"], r["vote"])]++
	}
}

// present tells rows apart by their keys, since every entity has a table of its own.
func (m *nightChecks) present(r row) row {
	r = clone(r)
	switch {
	case r["started_by"] != nil:
		m.status(r)
	case r["position"] != nil:
		r["up_votes"] = n(m.votes[fmt.Sprint(r["round_id"], r["tmdb_movie_id"], "up")])
		r["down_votes"] = n(m.votes[fmt.Sprint(r["round_id"], r["tmdb_movie_id"], "down")])
	}
	return r
}

var steps = []string{"draft", "voting", "selected", "watched", "rated", "expired"}

// status sets a round's status and times by all that is known of it.
func (m *nightChecks) status(r row) {
	status := text(r, "status")
	if now, ok := map[string]string{"picked": "selected", "closed": "voting", "discarded": "expired"}[status]; ok {
		status = now
	}
	reach := func(step, attribute string, at any) {
		r[attribute] = at
		if slices.Index(steps, step) > slices.Index(steps, status) {
			status = step
		}
	}
	for _, p := range m.of("Picks", text(r, "round_id")) {
		reach("selected", "selected_at", p["picked_at"])
		if p["watched"] == true {
			reach("watched", "watched_at", p["watched_at"])
		}
	}
	if at := m.ratedAt(r); at != "" {
		reach("rated", "rated_at", at)
	}
	r["status"] = status
}

// ratedAt is when the last of the attendees rated; empty where one has not, or none is known.
func (m *nightChecks) ratedAt(r row) string {
	last := ""
	for _, u := range m.attendeesOf(r) {
		rating := m.row("Ratings", row{"round_id": r["round_id"], "member_id": u})
		if rating == nil {
			return ""
		}
		last = max(last, text(rating, "rated_at"))
	}
	return last
}

// by is the access pattern of a table or an index with one key.
func by(table, index, hash string, value any) *access {
	return &access{table: table, index: index, hash: hash, value: value}
}

func (m *nightChecks) people() {
	for _, id := range []string{"user-1", "user-40", "маша", "managed_child", "Zoë", "Zoe\u0308", "user-left", "nobody"} {
		m.check("user", params{"user_id": id}, true, where(m.all("Users"), "user_id", id), by("Users", "", "user_id", id))
		m.check("managed-members", params{"parent_user_id": id}, false, where(m.all("Users"), "parent_user_id", id), by("Users", "parent-index", "parent_user_id", id))
		m.check("user-groups", params{"user_id": id}, false, where(m.all("GroupMemberships"), "user_id", id), by("GroupMemberships", "user-groups-index", "user_id", id))
	}
	m.check("managed-members", params{"parent_user_id": "user-0"}, false, where(m.all("Users"), "parent_user_id", "user-0"), by("Users", "parent-index", "parent_user_id", "user-0"))
	for _, email := range []string{"member7@example.com", "special1@例え.jp", "first@example.com", "second@example.com", "left@example.com"} {
		m.check("user-by-email", params{"email": email}, true, where(m.all("Users"), "email", email), by("Users", "email-index", "email", email))
	}
	for _, key := range []string{"クエリ", "over", "swept-0", "nothing", text(m.all("TmdbCache")[0], "cache_key"), text(m.all("TmdbCache")[3], "cache_key")} {
		rows := slices.DeleteFunc(where(m.all("TmdbCache"), "cache_key", key), isOver)
		a := by("TmdbCache", "", "cache_key", key)
		a.keep = func(r row) bool { return !isOver(r) }
		m.check("cached", params{"cache_key": key}, true, rows, a)
	}
}

// isOver tells a row past its time to live: what is left of those is from 2020, all others end in 2099.
func isOver(r row) bool { return compareNums(r["ttl"].(num), "2000000000") < 0 }

func (m *nightChecks) invites() {
	live := slices.DeleteFunc(m.all("Invites"), isOver)
	tokens := []string{"token-invite-known", "token-invite-swept-0", "token-invite-over-0", "token-invite-over-1", "nothing"}
	for i := 0; i < len(live); i += 9 {
		if t := text(live[i], "invite_token"); !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
	}
	for _, t := range tokens {
		a := by("Invites", "token-index", "invite_token", t)
		a.keep = func(r row) bool { return !isOver(r) }
		m.check("invite-by-token", params{"invite_token": t}, true, where(live, "invite_token", t), a)
	}
	for _, g := range []string{hotGroup, "g-1", "家族", "nothing"} {
		for _, status := range []string{"", "pending", "accepted", "revoked", "expired"} {
			p, want := params{"group_id": g}, "pending"
			if status != "" {
				p["status"], want = status, status
			}
			a := by("Invites", "group-invites-index", "group_id", g)
			a.keep = func(r row) bool { return !isOver(r) && r["status"] == want }
			m.check("group-invites", p, true, sorted(where(where(live, "group_id", g), "status", want), false, field("created_at")), a)
		}
	}
}

func (m *nightChecks) roundIDs() []string {
	ids := []string{hotRound, lateRound, ghostRound, openRound, noneRound, backRound, againRound, unseen, "r-strangers", "r-members", "r-expired", "r-gone", "nothing"}
	ids = append(ids, sortedKeys(legacyRounds)...)
	for i, r := range m.all("Rounds") {
		if id := text(r, "round_id"); i%5 == 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (m *nightChecks) roundChecks() {
	for i, id := range m.roundIDs() {
		p := params{"round_id": id}
		round := m.row("Rounds", row{"round_id": id})
		m.check("round", p, true, where(m.all("Rounds"), "round_id", id), by("Rounds", "", "round_id", id))
		m.progress(p, round)
		suggestions := m.of("Suggestions", id)
		slices.SortFunc(suggestions, func(a, b row) int { return compareNums(a["position"].(num), b["position"].(num)) })
		m.check("suggestions", p, true, suggestions, nil)
		m.check("votes", p, true, sorted(m.of("Votes", id), false, field("vote_key")), by("Votes", "", "round_id", id))
		m.check("ratings", p, true, sorted(m.of("Ratings", id), false, field("member_id")), by("Ratings", "", "round_id", id))
		m.check("round-pick", p, true, m.of("Picks", id), by("Picks", "round-pick-index", "round_id", id))
		m.attendeePreferences(p, round)
		if i%2 == 0 {
			m.single(id)
		}
	}
	for _, id := range []string{"pick-again-1", "pick-again-2", "pick-unseen", "pick-" + lateRound, "pick-" + ghostRound, "sp-6", text(m.all("Picks")[0], "pick_id"), "nothing"} {
		m.check("pick", params{"pick_id": id}, true, where(m.all("Picks"), "pick_id", id), by("Picks", "", "pick_id", id))
	}
}

// progress counts who voted against who is expected; a round that is not there has none.
func (m *nightChecks) progress(p params, round row) {
	var want []row
	if round != nil {
		voted := make(map[string]bool)
		for _, v := range m.of("Votes", p["round_id"]) {
			voted[text(v, "member_id")] = true
		}
		want = []row{{"round_id": p["round_id"], "voted": n(len(voted)), "expected": n(len(m.attendeesOf(round)))}}
	}
	m.derived("vote-progress", p, true, want)
}

func (m *nightChecks) attendeePreferences(p params, round row) {
	var rows []row
	if round != nil {
		for _, u := range m.attendeesOf(round) {
			if r := m.row("Preferences", row{"group_id": round["group_id"], "user_id": u}); r != nil {
				rows = append(rows, r)
			}
		}
	}
	m.check("attendee-preferences", p, false, rows, nil)
}

// single asks for one vote and one rating of a round, and for some that are not there.
func (m *nightChecks) single(round string) {
	ask := func(movie, member string) {
		key := movie + "#" + member
		m.check("vote", params{"round_id": round, "tmdb_movie_id": movie, "member_id": member}, true, where(m.of("Votes", round), "vote_key", key),
			&access{table: "Votes", hash: "round_id", value: round, rng: "vote_key", op: "=", arg: key})
	}
	if votes := m.of("Votes", round); len(votes) > 0 {
		v := votes[len(votes)/2]
		ask(string(v["tmdb_movie_id"].(num)), text(v, "member_id"))
	}
	ask("9", "nobody")
	member := "nobody"
	if ratings := m.of("Ratings", round); len(ratings) > 0 {
		member = text(ratings[0], "member_id")
	}
	m.check("rating", params{"round_id": round, "member_id": member}, true, where(m.of("Ratings", round), "member_id", member),
		&access{table: "Ratings", hash: "round_id", value: round, rng: "member_id", op: "=", arg: member})
}

func (m *nightChecks) groupChecks() {
	for _, g := range []string{hotGroup, "g-1", "g-2", "g-4", "g-6", "g-7", "família 🎬", "家族", "g-gone", "nothing"} {
		p := params{"group_id": g}
		m.check("group", p, true, where(m.all("Groups"), "group_id", g), by("Groups", "", "group_id", g))
		m.check("group-members", p, true, sorted(where(m.all("GroupMemberships"), "group_id", g), false, field("user_id")), by("GroupMemberships", "", "group_id", g))
		prefs := sorted(where(m.all("Preferences"), "group_id", g), false, field("user_id"))
		m.check("preferences", p, true, prefs, by("Preferences", "", "group_id", g))
		for _, u := range append([]string{"nobody"}, m.members(g)[:min(1, len(m.members(g)))]...) {
			m.check("preferences", params{"group_id": g, "user_id": u}, true, where(prefs, "user_id", u),
				&access{table: "Preferences", hash: "group_id", value: g, rng: "user_id", op: "=", arg: u})
		}
		rounds := sorted(where(m.all("Rounds"), "group_id", g), true, field("created_at"))
		newest := by("Rounds", "group-rounds-index", "group_id", g)
		newest.desc = true
		m.check("group-rounds", p, true, rounds, newest)
		m.check("active-rounds", p, false, slices.DeleteFunc(slices.Clone(rounds), func(r row) bool { return m.present(r)["status"] != "voting" }), nil)
		history := by("Picks", "group-picks-index", "group_id", g)
		history.desc = true
		m.check("group-history", p, true, sorted(where(m.all("Picks"), "group_id", g), true, field("picked_at")), history)
	}
}

func (m *nightChecks) searches() {
	for _, c := range []struct {
		group, q string
		want     int
	}{
		{"家族", "amelie", 1}, {"família 🎬", "amelie", 1}, {"g-1", "amelie", 0}, {"家族", "montmar", 1}, {"家族", "七人の侍", 1}, {"家族", "七人", 1},
		{"家族", "сталкер", 1}, {"家族", "apollo 13", 1}, {"家族", "apollo 14", 0}, {"家族", "kestrel", 1}, {"家族", "kistrel", 2},
		{"家族", "quicksand", 0}, {"家族", "squid", 0}, {"家族", "tiny shrimp", 1}, {"g-6", "second thought", 1}, {"g-6", "premonition", 0}, {"g-1", "ready", 2},
	} {
		m.search(searched{"search-picks", []string{"title"}, where(m.all("Picks"), "group_id", c.group)}, params{"group_id": c.group, "q": c.q}, c.want)
	}
}
