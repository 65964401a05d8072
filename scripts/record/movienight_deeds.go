package main

import "time"

// What the groups do all evening.

func unixOf(at string) int64 {
	t, _ := time.Parse(time.RFC3339, at)
	return t.Unix()
}

func (m *nightApp) anyRound() (string, row, bool) {
	return m.living("Rounds", m.rounds, func(id string) row { return row{"round_id": id} })
}

// of returns the booked rows of a table that belong to a round.
func (m *nightApp) of(table, round string) []row {
	return m.rows(table, func(r row) bool { return r["round_id"] == round })
}

// anyOf picks a row of a table that belongs to one of the ordinary rounds.
func (m *nightApp) anyOf(table string) (row, bool) {
	for range 30 {
		if rows := m.of(table, one(m.app, m.rounds)); len(rows) > 0 {
			return one(m.app, rows), true
		}
	}
	return nil, false
}

func (m *nightApp) key(table string, r row) row { return m.tables[table].key(r) }

func (m *nightApp) vote() {
	id, r, ok := m.anyRound()
	if !ok {
		return
	}
	voters := append(m.attendeesOf(r), one(m.app, m.users))
	var ops []op
	for i := range 1 + m.rand.IntN(4) {
		ops = append(ops, put("Votes", m.voteRow(id, m.movieID(i), voters[m.rand.IntN(len(voters))], one(m.app, []string{"up", "up", "down"}))))
	}
	m.write(ops...)
}

func (m *nightApp) revote() {
	if r, ok := m.anyOf("Votes"); ok {
		m.write(put("Votes", merge(r, row{"vote": one(m.app, []string{"up", "down"}), "voted_at": m.now()})))
	}
}

func (m *nightApp) unvote() {
	if r, ok := m.anyOf("Votes"); ok {
		m.write(del("Votes", m.key("Votes", r)))
	}
}

// moveVote takes a vote to another round.
func (m *nightApp) moveVote() {
	r, ok := m.anyOf("Votes")
	to, _, found := m.anyRound()
	if ok && found && r["round_id"] != to {
		m.transact(del("Votes", m.key("Votes", r)), put("Votes", merge(r, row{"round_id": to})))
	}
}

// pick settles a round that has no pick. Some versions of the application move the status on by themselves.
func (m *nightApp) pick() {
	id, r, ok := m.anyRound()
	if !ok || r["status"] != "voting" || len(m.of("Picks", id)) > 0 {
		return
	}
	p := m.pickRow(m.uuid(), id, text(r, "group_id"), 9, m.title())
	if m.chance(0.3) {
		m.transact(put("Picks", p), update("Rounds", row{"round_id": id}, row{"status": "selected", "selected_at": p["picked_at"]}))
		return
	}
	m.write(put("Picks", p))
	if m.chance(0.15) { // changed their minds
		m.write(del("Picks", m.key("Picks", p)))
		if m.chance(0.5) {
			m.write(put("Picks", m.pickRow(m.uuid(), id, text(r, "group_id"), 10, m.title())))
		}
	}
}

func (m *nightApp) watch() {
	if p, ok := m.anyOf("Picks"); ok && p["watched"] == false {
		m.write(update("Picks", m.key("Picks", p), row{"watched": true, "watched_at": m.now()}))
	}
}

// rate lets one who was there, or sometimes all of them, rate what they watched.
func (m *nightApp) rate() {
	p, ok := m.anyOf("Picks")
	if !ok || p["watched"] != true {
		return
	}
	id := text(p, "round_id")
	r := m.row("Rounds", row{"round_id": id})
	if r == nil {
		return
	}
	raters := m.attendeesOf(r)
	if len(raters) == 0 {
		return
	}
	if m.chance(0.6) {
		raters = []string{one(m.app, raters)}
	}
	for _, u := range raters {
		m.write(put("Ratings", m.ratingRow(id, u)))
	}
}

func (m *nightApp) rerate() {
	if r, ok := m.anyOf("Ratings"); ok {
		m.write(put("Ratings", m.ratingRow(text(r, "round_id"), text(r, "member_id"))))
	}
}

func (m *nightApp) unrate() {
	if r, ok := m.anyOf("Ratings"); ok {
		m.write(del("Ratings", m.key("Ratings", r)))
	}
}

// overwriteRound writes a round back as it was while people voted.
func (m *nightApp) overwriteRound() {
	if _, r, ok := m.anyRound(); ok && r["status"] != "draft" {
		r = merge(r, row{"status": "voting", "relaxed_constraints": list("year", m.hex(2))})
		delete(r, "selected_at")
		m.write(put("Rounds", r))
	}
}

// overwriteSuggestion writes a suggestion whole, with votes that were never right.
func (m *nightApp) overwriteSuggestion() {
	if r, ok := m.anyOf("Suggestions"); ok {
		m.write(put("Suggestions", merge(r, row{"title": m.title(), "up_votes": one(m.app, []num{"0", "99"}), "down_votes": n(0)})))
	}
}

func (m *nightApp) dropSuggestion() {
	if r, ok := m.anyOf("Suggestions"); ok {
		m.write(del("Suggestions", m.key("Suggestions", r)))
	}
}

// restoreSuggestion puts one back that was dropped: its votes are still there.
func (m *nightApp) restoreSuggestion() {
	id, _, ok := m.anyRound()
	if !ok {
		return
	}
	have := m.of("Suggestions", id)
	for i := range 8 {
		movie := m.movieID(i)
		if m.row("Suggestions", row{"round_id": id, "tmdb_movie_id": n(movie)}) == nil && len(have) < 8 {
			m.write(put("Suggestions", m.suggestion(id, movie, m.freePosition(have))))
			return
		}
	}
}

// freePosition is a place in the list that no suggestion has.
func (m *nightApp) freePosition(have []row) int {
	for at := 1; ; at++ {
		if len(where(have, "position", n(at))) == 0 {
			return at
		}
	}
}

func (m *nightApp) attendees() {
	id, r, ok := m.anyRound()
	if !ok {
		return
	}
	members := m.members(r["group_id"])
	switch {
	case m.chance(0.2):
		m.write(update("Rounds", row{"round_id": id}, row{"attendees": nil}))
	case len(members) > 0:
		m.write(update("Rounds", row{"round_id": id}, row{"attendees": list(some(m.app, 1+m.rand.IntN(len(members)), members)...)}))
	}
}

// membership lets somebody join or leave a group; preferences go with the membership.
func (m *nightApp) membership() {
	group, user := one(m.app, m.groups[1:]), one(m.app, m.users)
	key := row{"group_id": group, "user_id": user}
	if m.row("GroupMemberships", key) == nil {
		m.transact(put("GroupMemberships", m.memberRow(group, user)), put("Preferences", m.preferences(group, user)))
		return
	}
	if len(m.members(group)) > 2 {
		m.transact(del("GroupMemberships", key), del("Preferences", key))
	}
}

func (m *nightApp) prefer() {
	group := one(m.app, m.groups)
	if members := m.members(group); len(members) > 0 {
		m.write(put("Preferences", m.preferences(group, one(m.app, members))))
	}
}

func (m *nightApp) answerInvite() {
	pending := m.rows("Invites", func(r row) bool { return r["status"] == "pending" && r["expires_at"].(string) > "2099" })
	if len(pending) > 3 {
		r := one(m.app, pending)
		if r["invite_id"] != "invite-known" {
			m.write(update("Invites", m.key("Invites", r), row{"status": one(m.app, []string{"accepted", "revoked"})}))
		}
	}
}

func (m *nightApp) editUser() {
	if id, _, ok := m.living("Users", m.users, func(id string) row { return row{"user_id": id} }); ok {
		m.write(update("Users", row{"user_id": id}, row{"display_name": one(m.app, given), "last_active_at": m.now()}))
	}
}

// deleteRound deletes a round alone, and sometimes makes it again.
func (m *nightApp) deleteRound() {
	id, r, ok := m.anyRound()
	if !ok {
		return
	}
	m.write(del("Rounds", row{"round_id": id}))
	if m.chance(0.7) {
		m.write(put("Rounds", m.round(id, text(r, "group_id"), "voting", r["attendees"])))
	}
}

// idle writes what is there already: no record comes of it.
func (m *nightApp) idle() {
	if _, r, ok := m.anyRound(); ok {
		m.write(put("Rounds", r), del("Rounds", row{"round_id": "no-round"}))
	}
}
