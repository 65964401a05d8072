package main

import (
	"errors"
	"math/big"
	"slices"
	"strings"
)

// watchExpect states what the watchlists must answer.
func watchExpect(a *app, e *expect) {
	w := &watchChecks{app: a, expect: e}
	w.recount()
	e.present = w.present
	w.users()
	w.lists()
	w.titles()
	w.feeds()
	w.searches()
}

// A watchChecks has the booked rows by entity, and the recount of what is derived.
type watchChecks struct {
	*app
	*expect
	byType        map[string][]row
	itemCount     map[string]int   // by watchlist id
	marks         map[string][]num // by title key
	notifications map[string][]row // by user
	audit         map[string][]row // by watchlist id
}

func (w *watchChecks) of(entity string) []row { return w.byType[entity] }

func (w *watchChecks) recount() {
	w.byType = make(map[string][]row)
	for _, r := range w.rows(watchTable, func(row) bool { return true }) {
		w.byType[text(r, "entityType")] = append(w.byType[text(r, "entityType")], r)
	}
	w.itemCount, w.marks = make(map[string]int), make(map[string][]num)
	for _, r := range w.of("WATCHLIST_ITEM") {
		w.itemCount[entityID(r)]++
	}
	for _, r := range w.of("RATING") {
		key := text(r, "contentType") + "#" + text(r, "contentId")
		w.marks[key] = append(w.marks[key], r["rating"].(num))
	}
	w.replay()
}

// replay goes once through all that was ever written.
func (w *watchChecks) replay() {
	w.notifications, w.audit = make(map[string][]row), make(map[string][]row)
	savers := make(map[string]map[string]bool) // by watchlist
	for _, c := range w.recorded {
		r := c.new
		if r == nil {
			r = c.old
		}
		switch text(r, "entityType") {
		case "USER_SAVED_WATCHLIST":
			list := strings.TrimPrefix(text(r, "SK"), "SAVED#WATCHLIST#")
			if savers[list] == nil {
				savers[list] = make(map[string]bool)
			}
			savers[list][entityID(r)] = c.new != nil
		case "WATCHLIST":
			w.note(c, r)
		case "WATCHLIST_ITEM":
			w.note(c, r)
			if c.old == nil {
				w.notify(savers[entityID(r)], r)
			}
		}
	}
}

// without copies a row without an attribute.
func without(r row, name string) row {
	r = clone(r)
	delete(r, name)
	return r
}

// note makes the audit's entry of a change.
func (w *watchChecks) note(c change, r row) {
	event := "MODIFY"
	switch {
	case c.old == nil:
		event = "INSERT"
	case c.new == nil:
		event = "REMOVE"
	}
	if c.old != nil && c.new != nil && same(without(c.old, "itemCount"), without(c.new, "itemCount")) {
		w.problem("watchlist-audit", params{"watchlistId": entityID(r)}, errors.New("a change of the derived count alone: whether that is audited is open"))
	}
	w.audit[entityID(r)] = append(w.audit[entityID(r)], row{"event": event})
	w.history["AUDIT"]++
}

func (w *watchChecks) notify(savers map[string]bool, r row) {
	list, kind, id, at := entityID(r), text(r, "contentType"), text(r, "contentId"), text(r, "addedAt")
	for user, saved := range savers {
		if saved {
			w.notifications[user] = append(w.notifications[user], row{"PK": "USER#" + user, "entityType": "NOTIFICATION",
				"SK": "NOTIFICATION#" + at + "#" + list + "#" + kind + "#" + id, "watchlistId": list, "contentType": kind, "contentId": id, "at": at})
		}
	}
}

func (w *watchChecks) present(r row) row {
	r = clone(r)
	switch kind := text(r, "entityType"); kind {
	case "WATCHLIST":
		r["itemCount"] = n(w.itemCount[entityID(r)])
	case "MOVIE", "SHOW":
		marks := w.marks[kind+"#"+entityID(r)]
		r["ratingCount"] = n(len(marks))
		delete(r, "rating")
		if len(marks) > 0 {
			r["rating"] = mean(marks)
		}
	}
	return r
}

// mean is the mean, rounded half up to two decimals.
func mean(of []num) num {
	sum := new(big.Rat)
	for _, v := range of {
		r, _ := new(big.Rat).SetString(string(v))
		sum.Add(sum, r)
	}
	sum.Quo(sum, big.NewRat(int64(len(of)), 1))
	// Half up to hundredths: the floor of a hundredfold and a half.
	sum.Add(sum.Mul(sum, big.NewRat(100, 1)), big.NewRat(1, 2))
	whole := new(big.Int).Div(sum.Num(), sum.Denom())
	out := new(big.Rat).SetFrac(whole, big.NewInt(100)).FloatString(2)
	return num(strings.TrimSuffix(strings.TrimRight(out, "0"), "."))
}

func (w *watchChecks) users() {
	for _, id := range []string{"u-0", "u-7", fan, "观众", "Zoë", "Zoe\u0308", "c-1", "куратор", "u-left", "nobody"} {
		w.check("user", params{"userId": id}, true, where(w.of("USER"), "userId", id), exactly(watchTable, "USER#"+id, "PROFILE"))
	}
	for _, email := range []string{"viewer3@example.com", "special+1@例え.jp", "one@example.com", "two@example.com", "left@example.com", "ONE@example.com"} {
		w.check("user-by-email", params{"email": email}, true, where(w.of("USER"), "email", email),
			&access{table: watchTable, index: "GSI1", hash: "email", value: email})
	}
	for _, id := range []string{"u-1", "u-10", "u-3", fan, "观众", "Zoë", "Zoe\u0308", "u-4", "nobody"} {
		w.check("saved-watchlists", params{"userId": id}, true, sorted(where(w.of("USER_SAVED_WATCHLIST"), "PK", "USER#"+id), false, field("SK")),
			&access{table: watchTable, hash: "PK", value: "USER#" + id, rng: "SK", op: "begins", arg: "SAVED#WATCHLIST#"})
	}
	for _, id := range []string{"u-1", "u-10", "half-0", "anon-5", "观众", "Zoe\u0308", "nobody"} {
		w.check("user-ratings", params{"userId": id}, true, sorted(where(w.of("RATING"), "PK", "USER#"+id), false, field("SK")),
			&access{table: watchTable, hash: "PK", value: "USER#" + id, rng: "SK", op: "begins", arg: "RATING#"})
	}
}

// sampled gives ids with every nth of the rows' ids.
func sampled(rows []row, every int, ids ...string) []string {
	for i, r := range rows {
		if id := entityID(r); i%every == 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *watchChecks) lists() {
	lists := w.of("WATCHLIST")
	ids := sampled(lists, 7, hotWatchlist, popular, lateWatchlist, ghostWatchlist, goneWatchlist, againWatchlist, "list-été", "list-e\u0301te\u0301", "映画 🎬", "sw-4", "nothing")
	for _, id := range ids {
		w.check("watchlist", params{"watchlistId": id}, true, where(lists, "watchlistId", id), exactly(watchTable, "WATCHLIST#"+id, "METADATA"))
		w.check("watchlist-items", params{"watchlistId": id}, true, sorted(where(w.of("WATCHLIST_ITEM"), "PK", "WATCHLIST#"+id), false, field("SK")),
			&access{table: watchTable, hash: "PK", value: "WATCHLIST#" + id, rng: "SK", op: "begins", arg: "ITEM#"})
		w.check("comments", params{"watchlistId": id}, true, sorted(where(w.of("COMMENT"), "PK", "WATCHLIST#"+id), false, field("SK")),
			&access{table: watchTable, hash: "PK", value: "WATCHLIST#" + id, rng: "SK", op: "begins", arg: "COMMENT#"})
	}
	items := w.of("WATCHLIST_ITEM")
	keys := [][3]string{{popular, "MOVIE", "tt0000037"}, {ghostWatchlist, "SHOW", "sh1"}, {goneWatchlist, "MOVIE", halfMovie}, {popular, "SHOW", "tt0000037"}}
	for i := 0; i < len(items); i += 150 {
		keys = append(keys, [3]string{entityID(items[i]), text(items[i], "contentType"), text(items[i], "contentId")})
	}
	for _, k := range keys {
		key := entryKey(k[0], k[1], k[2])
		w.check("watchlist-item", params{"watchlistId": k[0], "contentType": k[1], "contentId": k[2]}, true,
			where(where(items, "PK", key["PK"]), "SK", key["SK"]), exactly(watchTable, text(key, "PK"), text(key, "SK")))
	}
	for _, id := range append(slices.Clone(curators), "c-", "nobody") {
		w.check("watchlists-by-curator", params{"curatorId": id}, true, sorted(where(lists, "curatorId", id), false, field("createdAt")),
			&access{table: watchTable, index: "GSI2", hash: "curatorId", value: id})
	}
	w.check("public-watchlists", nil, true, sorted(where(lists, "isPublic", true), true, field("createdAt")),
		&access{table: watchTable, index: "GSI3", hash: "isPublicStr", value: "true", desc: true})
	for _, entity := range []string{"USER", "WATCHLIST", "MOVIE", "SHOW", "COMMENT", "ALIEN"} {
		var keys []row
		for _, r := range sorted(w.of(entity), false, field("createdAt")) {
			keys = append(keys, row{"PK": r["PK"], "SK": r["SK"], "entityType": entity, "createdAt": r["createdAt"]})
		}
		if err := w.auditAnswer(access{table: watchTable, index: "GSI4", hash: "entityType", value: entity}, true, keys); err != nil {
			w.problem("entities-by-type", params{"entityType": entity}, err)
		}
		w.derived("entities-by-type", params{"entityType": entity}, true, keys)
	}
}

func (w *watchChecks) titles() {
	for _, id := range sampled(w.of("MOVIE"), 8, hotMovie, bothID, halfMovie, lateMovie, ghostMovie, goneMovie, againMovie, unratedMovie, tidiedMovie, "映画-1", "caf\u00e9", "cafe\u0301") {
		w.check("movie", params{"movieId": id}, true, where(w.of("MOVIE"), "movieId", id), exactly(watchTable, "MOVIE#"+id, "METADATA"))
	}
	for _, id := range sampled(w.of("SHOW"), 8, bothID, "番組-1", "ss-4", hotMovie) {
		w.check("show", params{"showId": id}, true, where(w.of("SHOW"), "showId", id), exactly(watchTable, "SHOW#"+id, "METADATA"))
	}
}

func (w *watchChecks) feeds() {
	for _, rows := range w.notifications {
		w.history["NOTIFICATION"] += len(rows)
	}
	for _, id := range []string{fan, "u-1", "u-2", "u-3", "u-4", "u-5", "u-10", "观众", "Zoë", "Zoe\u0308", "c-1", "куратор", "nobody"} {
		var told []row // what the end of the key is to be is open
		for _, r := range sorted(w.notifications[id], true, field("SK")) {
			told = append(told, without(r, "SK"))
		}
		w.derived("notifications", params{"userId": id}, true, told).Subset = true
	}
	for _, id := range sampled(w.of("WATCHLIST"), 9, hotWatchlist, popular, lateWatchlist, ghostWatchlist, goneWatchlist, againWatchlist, "映画 🎬", "sw-4", "nothing") {
		w.derived("watchlist-audit", params{"watchlistId": id}, true, w.audit[id]).Subset = true
	}
}

func (w *watchChecks) searches() {
	run := func(s searched, want map[string]int) {
		for _, q := range sortedKeys(want) {
			w.search(s, params{"q": q}, want[q])
		}
	}
	run(searched{"search-movies", []string{"title", "synopsis", "genres", "cast", "directors"}, w.of("MOVIE")}, map[string]int{
		"amelie": 1, "AMÉLIE montmartre": 1, "tautou": 1, "jeunet": 1, "montmart": 1, "七人の侍": 1, "黒澤": 1, "三船敏郎": 1, "сталкер": 1, "тарк": 1,
		"apollo 13": 1, "apollo 14": 0, "kestrel": 1, "kastrel": 1, "merlin": 1, "quicksand": 0, "houston": 1, "hauston": 1, "tautou tarkovsky": 0,
	})
	run(searched{"search-shows", []string{"title", "synopsis", "genres", "cast", "creators"}, w.of("SHOW")}, map[string]int{
		"borgen": 1, "elite": 1, "twin pea": 1, "twin peakz": 1, "firefly": 0, "montero": 1, "borgon": 1, "latecomer": 0,
	})
	run(searched{"search-watchlists", []string{"title", "description", "tags"}, where(w.of("WATCHLIST"), "isPublic", true)}, map[string]int{
		"fjord": 1, "fjörd noir": 1, "cruises": 0, "skandinavien": 1, "werewolves": 0, "vampires": 1, "zeppelins": 0, "airship": 0,
		"submarines": 1, "periscope": 1, "perixcope": 1, "howl": 1,
	})
}
