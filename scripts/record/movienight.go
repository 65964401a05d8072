package main

import (
	"fmt"
	"slices"
)

var movienight = model{
	name: "movienight",
	tables: []tableSpec{
		{name: "Users", hash: "user_id", gsis: []indexSpec{{name: "email-index", hash: "email"}, {name: "parent-index", hash: "parent_user_id"}}},
		{name: "Groups", hash: "group_id"},
		{name: "GroupMemberships", hash: "group_id", rng: "user_id", gsis: []indexSpec{{name: "user-groups-index", hash: "user_id"}}},
		{name: "Preferences", hash: "group_id", rng: "user_id"},
		{name: "Invites", hash: "invite_id", ttl: "ttl", gsis: []indexSpec{
			{name: "token-index", hash: "invite_token"}, {name: "group-invites-index", hash: "group_id", rng: "created_at"}}},
		{name: "Rounds", hash: "round_id", gsis: []indexSpec{{name: "group-rounds-index", hash: "group_id", rng: "created_at"}}},
		{name: "Suggestions", hash: "round_id", rng: "tmdb_movie_id", numbers: []string{"tmdb_movie_id"}},
		{name: "Votes", hash: "round_id", rng: "vote_key"},
		{name: "Picks", hash: "pick_id", gsis: []indexSpec{
			{name: "group-picks-index", hash: "group_id", rng: "picked_at"}, {name: "round-pick-index", hash: "round_id"}}},
		{name: "Ratings", hash: "round_id", rng: "member_id"},
		{name: "TmdbCache", hash: "cache_key", ttl: "ttl"},
	},
	play:   func(a *app) { (&nightApp{app: a}).play() },
	expect: nightExpect,
	form:   lambdaForm("%s.jsonl.gz", gzipped),
	page:   1000,
}

// The ids that the workload's special cases and the checks share.
const (
	hotGroup   = "g-hot"
	hotRound   = "r-hot"
	lateRound  = "r-late"  // its votes, pick and ratings come first
	ghostRound = "r-never" // and these never see their round
	openRound  = "r-open"  // attendees null: all members of the group
	noneRound  = "r-none"  // attendees: nobody
	backRound  = "r-back"  // rated, and one rating taken back
	againRound = "r-again" // picked, the pick taken back, another made
	unseen     = "r-unseen"
)

// Rounds of an older application, by their status.
var legacyRounds = map[string]string{"r-legacy-picked": "picked", "r-legacy-closed": "closed", "r-legacy-discarded": "discarded", "r-legacy-closed-picked": "closed"}

// A nightApp is the application that lets groups choose a film together.
type nightApp struct {
	*app
	groups []string
	rounds []string
	users  []string
}

func (m *nightApp) play() {
	m.swept()
	m.people()
	m.special()
	m.searchable()
	for range m.times(120) {
		m.newRound()
	}
	m.live(m.times(1900), []deed{
		{50, m.vote}, {25, m.revote}, {12, m.unvote}, {4, m.moveVote}, {24, m.pick}, {22, m.watch}, {40, m.rate}, {6, m.rerate}, {4, m.unrate},
		{8, m.overwriteRound}, {8, m.overwriteSuggestion}, {6, m.dropSuggestion}, {6, m.restoreSuggestion}, {5, m.attendees}, {4, m.membership},
		{6, m.prefer}, {4, m.invite}, {4, m.answerInvite}, {5, m.cache}, {3, m.editUser}, {2, m.deleteRound}, {3, m.idle},
	})
	m.late()
}

func (m *nightApp) user(id, email string) row {
	r := row{"user_id": id, "display_name": one(m.app, given), "avatar_key": "avatar_" + fmt.Sprint(m.rand.IntN(9)), "is_managed": email == "",
		"content_rating_ceiling": one(m.app, []string{"PG", "PG-13", "R"}), "created_at": m.now(), "last_active_at": m.now()}
	if email == "" {
		return merge(r, row{"notification_prefs": nil, "device_token": nil, "content_rating_ceiling": "PG"})
	}
	return merge(r, row{"email": email, "device_token": bin(m.bytes(8)),
		"notification_prefs": row{"vote_nudge": m.chance(0.5), "pick_announce": true, "new_round": m.chance(0.5)}})
}

func (m *nightApp) memberRow(group, user string) row {
	kind := "independent"
	if len(user) > 7 && user[:7] == "managed" {
		kind = "managed"
	}
	return row{"group_id": group, "user_id": user, "role": one(m.app, []string{"member", "member", "creator"}), "member_type": kind, "joined_at": m.now()}
}

func (m *nightApp) preferences(group, user string) row {
	return row{"group_id": group, "user_id": user, "genre_likes": list(some(m.app, 2, []string{"28", "35", "18", "878"})...),
		"genre_dislikes": list(some(m.app, 1, []string{"27", "10749"})...), "max_content_rating": one(m.app, []string{"G", "PG", "PG-13", "R"}), "updated_at": m.now()}
}

// people makes users, some of them managed by others, and groups of them.
func (m *nightApp) people() {
	var ops []op
	for i := range m.times(80) {
		id := fmt.Sprintf("user-%d", i)
		m.users = append(m.users, id)
		ops = append(ops, put("Users", m.user(id, fmt.Sprintf("member%d@example.com", i))))
		if i%4 == 0 {
			managed := "managed_" + m.uuid()
			m.users = append(m.users, managed)
			ops = append(ops, put("Users", merge(m.user(managed, ""), row{"parent_user_id": id})))
		}
	}
	for i, id := range []string{"маша", "お母さん", "Zoë", "Zoe\u0308"} {
		m.users = append(m.users, id)
		ops = append(ops, put("Users", m.user(id, fmt.Sprintf("special%d@例え.jp", i))))
	}
	ops = append(ops, put("Users", merge(m.user("managed_child", ""), row{"parent_user_id": "маша"})))
	m.users = append(m.users, "managed_child")
	m.batch(ops...)
	m.write(put("Users", m.user("user-left", "left@example.com")), del("Users", row{"user_id": "user-left"}),
		put("Users", m.user("user-mail", "first@example.com")), update("Users", row{"user_id": "user-mail"}, row{"email": "second@example.com"}),
		put("Users", m.user("user-mail-2", "first@example.com")))
	names := []string{hotGroup, "família 🎬", "家族"}
	for i := range m.times(22) {
		names = append(names, fmt.Sprintf("g-%d", i))
	}
	for _, g := range names {
		m.groups = append(m.groups, g)
		size := 2 + m.rand.IntN(5)
		if g == hotGroup {
			size = 62
		}
		members := some(m.app, size, m.users)
		m.write(put("Groups", row{"group_id": g, "name": m.title(), "created_by": members[0], "streaming_services": list("netflix", "disney_plus"),
			"created_at": m.now(), "x_total": num("12345678901234567890123456789012345678"), "x_tags": strs{"ä", "z"}, "x_sizes": nums{"10", "9"}, "x_blobs": bins{"\x00", "\x01"}}))
		var rows []op
		for _, u := range members {
			rows = append(rows, put("GroupMemberships", m.memberRow(g, u)), put("Preferences", m.preferences(g, u)))
		}
		m.batch(rows...)
	}
	m.write(put("Groups", row{"group_id": "g-gone", "name": "Gone", "created_by": "user-1", "streaming_services": []any{}, "created_at": m.now()}),
		del("Groups", row{"group_id": "g-gone"}), update("Groups", row{"group_id": hotGroup}, row{"name": "Everybody\u2028 & <all>"}))
}

// members of a group, in a fixed order.
func (m *nightApp) members(group any) []string {
	var out []string
	for _, r := range m.app.rows("GroupMemberships", func(r row) bool { return r["group_id"] == group }) {
		out = append(out, text(r, "user_id"))
	}
	return out
}

func (m *nightApp) round(id, group, status string, attendees any) row {
	at := m.now()
	r := row{"round_id": id, "group_id": group, "started_by": one(m.app, m.users), "status": status, "created_at": at,
		"relaxed_constraints": list(some(m.app, 1, []string{"runtime", "rating"})...)}
	if status != "draft" {
		r["voting_started_at"] = m.now()
	}
	if attendees != "absent" {
		r["attendees"] = attendees
	}
	return r
}

func (m *nightApp) suggestion(round string, movie, position int) row {
	return row{"round_id": round, "tmdb_movie_id": n(movie), "position": n(position), "title": m.title(), "poster_path": "/" + m.hex(4) + ".jpg",
		"year": n(1950 + m.rand.IntN(75)), "genres": list(some(m.app, 2, genres)...), "content_rating": one(m.app, []string{"G", "PG", "R"})}
}

func (m *nightApp) voteRow(round string, movie int, member, vote string) row {
	return row{"round_id": round, "vote_key": fmt.Sprintf("%d#%s", movie, member), "tmdb_movie_id": n(movie), "member_id": member, "vote": vote, "voted_at": m.now()}
}

func (m *nightApp) pickRow(id, round, group string, movie int, title string) row {
	return row{"pick_id": id, "round_id": round, "group_id": group, "tmdb_movie_id": n(movie), "title": title, "poster_path": "/" + m.hex(4) + ".jpg",
		"picked_by": one(m.app, m.users), "picked_at": m.now(), "watched": false}
}

func (m *nightApp) ratingRow(round, member string) row {
	return row{"round_id": round, "member_id": member, "rating": one(m.app, []string{"loved", "liked", "did_not_like"}), "rated_at": m.now()}
}

// newRound starts a round with its suggestions; some of it before the round itself.
func (m *nightApp) newRound() {
	id, group := m.uuid(), one(m.app, m.groups[1:])
	m.rounds = append(m.rounds, id)
	var attendees any = "absent"
	switch members := m.members(group); m.rand.IntN(5) {
	case 0:
	case 1:
		attendees = nil
	default:
		attendees = list(some(m.app, 1+m.rand.IntN(4), members)...)
	}
	status := one(m.app, []string{"draft", "voting", "voting", "voting", "voting"})
	round := put("Rounds", m.round(id, group, status, attendees))
	var ops []op
	for i := range 3 + m.rand.IntN(5) {
		ops = append(ops, put("Suggestions", m.suggestion(id, m.movieID(i), i+1)))
	}
	switch m.rand.IntN(3) {
	case 0:
		m.transact(append(ops, round)...)
	case 1:
		m.batch(append(ops, round)...)
	default:
		m.write(append(ops, round)...)
	}
}

// movieID gives the i-th of a round's suggestions an id; the ids have different lengths, so that they sort as numbers only.
func (m *nightApp) movieID(i int) int { return []int{9, 10, 110, 27205, 603, 5, 1000001, 82}[i%8] }

// special writes the rounds with which the checks deal by name.
func (m *nightApp) special() {
	members := m.members(hotGroup)
	m.write(put("Rounds", m.round(hotRound, hotGroup, "voting", list(members[:40]...))))
	var votes []op
	for i := range 8 {
		m.write(put("Suggestions", m.suggestion(hotRound, m.movieID(i), 8-i)))
		for j, u := range members {
			votes = append(votes, put("Votes", m.voteRow(hotRound, m.movieID(i), u, []string{"up", "down", "up"}[(i+j)%3])))
		}
	}
	m.batch(votes...)
	for _, u := range members[:6] {
		m.write(del("Votes", row{"round_id": hotRound, "vote_key": "9#" + u}))
	}
	// Everything before the round, or without it: votes, a pick that is watched, ratings of all who were there.
	for _, id := range []string{lateRound, ghostRound} {
		for i, u := range []string{"маша", "managed_child", "user-3"} {
			m.write(put("Votes", m.voteRow(id, m.movieID(i), u, "up")), put("Ratings", m.ratingRow(id, u)))
		}
		m.write(put("Suggestions", m.suggestion(id, 9, 1)), put("Picks", merge(m.pickRow("pick-"+id, id, "g-1", 9, "Ready already"), row{"watched": true, "watched_at": m.now()})))
	}
	m.complete(openRound, "g-2", nil, m.members("g-2"))
	m.complete(backRound, "g-3", list("user-1", "user-2"), []string{"user-1", "user-2", "user-9"})
	m.write(del("Ratings", row{"round_id": backRound, "member_id": "user-2"}))
	m.complete(noneRound, "g-4", []any{}, []string{"user-1"})
	m.complete("r-strangers", "g-4", list("user-1"), []string{"user-5", "user-6"}) // rated by others only
	m.complete("r-members", "g-5", "absent", m.members("g-5")[1:])                 // by all members but one
	m.write(put("Rounds", m.round(againRound, "g-6", "voting", list("user-1"))), put("Picks", m.pickRow("pick-again-1", againRound, "g-6", 9, "Premonition")),
		del("Picks", row{"pick_id": "pick-again-1"}), put("Picks", m.pickRow("pick-again-2", againRound, "g-6", 10, "Second thought")))
	m.write(put("Rounds", m.round(unseen, "g-6", "voting", list("user-1"))), put("Picks", m.pickRow("pick-unseen", unseen, "g-6", 10, "Fell asleep")),
		update("Picks", row{"pick_id": "pick-unseen"}, row{"watched": true, "watched_at": m.now()}),
		update("Picks", row{"pick_id": "pick-unseen"}, row{"watched": false}, "watched_at"))
	for _, id := range sortedKeys(legacyRounds) {
		m.write(put("Rounds", m.round(id, "g-7", legacyRounds[id], list("user-1", "user-2"))))
	}
	m.write(put("Picks", m.pickRow("pick-legacy", "r-legacy-closed-picked", "g-7", 5, "Once upon a legacy")))
	m.write(put("Rounds", m.round("r-expired", "g-7", "expired", list("user-1"))), put("Rounds", m.round("r-gone", "g-7", "voting", list("user-1"))),
		del("Rounds", row{"round_id": "r-gone"}))
}

// complete plays a round to its end: picked, watched, rated by these members.
func (m *nightApp) complete(id, group string, attendees any, raters []string) {
	m.write(put("Rounds", m.round(id, group, "voting", attendees)), put("Suggestions", m.suggestion(id, 603, 1)))
	for _, u := range raters {
		m.write(put("Votes", m.voteRow(id, 603, u, "up")))
	}
	m.write(put("Picks", m.pickRow("pick-"+id, id, group, 603, "Complete "+id)),
		update("Picks", row{"pick_id": "pick-" + id}, row{"watched": true, "watched_at": m.now()}))
	for _, u := range raters {
		m.write(put("Ratings", m.ratingRow(id, u)))
	}
}

func (m *nightApp) late() {
	m.write(put("Rounds", m.round(lateRound, "g-1", "voting", list("маша", "managed_child"))))
}

func (m *nightApp) searchable() {
	for i, title := range []string{"Amélie à Montmartre", "七人の侍", "Сталкер", "Apollo 13", "Kestrel", "Kastrel", "Quicksand", "Giant squid"} {
		m.write(put("Picks", m.pickRow(fmt.Sprintf("sp-%d", i), fmt.Sprintf("r-search-%d", i), "家族", 1+i, title)))
	}
	m.write(put("Picks", m.pickRow("sp-other", "r-search-other", "família 🎬", 3, "Amélie à Montmartre")),
		del("Picks", row{"pick_id": "sp-6"}), update("Picks", row{"pick_id": "sp-7"}, row{"title": "Tiny shrimp"}))
}

// invite makes an invite that is good for long.
func (m *nightApp) invite() {
	m.write(put("Invites", m.inviteRow(m.uuid(), one(m.app, m.groups), "pending", fmt.Sprintf("2099-%02d-01T00:00:00.000Z", 1+m.rand.IntN(12)))))
}

func (m *nightApp) inviteRow(id, group, status, expires string) row {
	return row{"invite_id": id, "group_id": group, "created_by": "user-1", "invite_token": "token-" + id, "status": status, "created_at": m.now(),
		"expires_at": expires, "ttl": n(unixOf(expires) + 24*3600)}
}

func (m *nightApp) cache() {
	key := m.hex(8)
	m.write(put("TmdbCache", row{"cache_key": key, "response_data": `{"id": 603, "title": "The \"Matrix\"", "genres": []}`, "cached_at": m.now(), "ttl": n(4_070_908_800 + m.rand.IntN(1000))}))
	if m.chance(0.3) {
		m.write(put("TmdbCache", row{"cache_key": key, "response_data": `{"id": 603, "überholt": false}`, "cached_at": m.now(), "ttl": n(4_070_908_800)}))
	}
}

// swept writes invites and cache rows that the service sweeps, and some that are over and too old for that.
func (m *nightApp) swept() {
	var invites, cached []row
	for i := range 5 {
		invites = append(invites, m.inviteRow(fmt.Sprintf("invite-swept-%d", i), hotGroup, "pending", "2025-01-01T00:00:00.000Z"))
		cached = append(cached, row{"cache_key": fmt.Sprintf("swept-%d", i), "response_data": "{}", "cached_at": m.now()})
	}
	m.sweep("Invites", "ttl", invites...)
	m.sweep("TmdbCache", "ttl", cached...)
	for i, status := range []string{"pending", "accepted", "expired"} {
		m.write(put("Invites", m.inviteRow(fmt.Sprintf("invite-over-%d", i), hotGroup, status, "2020-01-01T00:00:00.000Z")))
	}
	m.write(put("TmdbCache", row{"cache_key": "over", "response_data": "{}", "cached_at": m.now(), "ttl": n(1_577_836_800)}),
		put("TmdbCache", row{"cache_key": "クエリ", "response_data": "{\"ok\": \"✓\"}", "cached_at": m.now(), "ttl": n(4_070_908_800)}))
	for _, status := range []string{"pending", "pending", "accepted", "revoked"} {
		m.write(put("Invites", m.inviteRow("invite-"+status+"-"+m.hex(2), hotGroup, status, "2099-05-05T00:00:00.000Z")))
	}
	m.write(put("Invites", m.inviteRow("invite-known", hotGroup, "pending", "2099-05-05T00:00:00.000Z")))
}

// attendeesOf a round: those it names, or all members of its group.
func (m *nightApp) attendeesOf(r row) []string {
	named, ok := r["attendees"].([]any)
	if !ok {
		return m.members(r["group_id"])
	}
	var out []string
	for _, v := range named {
		if s, ok := v.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
