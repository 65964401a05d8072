package main

import (
	"fmt"
	"slices"
	"strings"
)

const watchTable = "worthwatch"

var watchlists = model{
	name: "watchlists",
	tables: []tableSpec{{
		name: watchTable, hash: "PK", rng: "SK",
		gsis: []indexSpec{
			{name: "GSI1", hash: "email"},
			{name: "GSI2", hash: "curatorId", rng: "createdAt"},
			{name: "GSI3", hash: "isPublicStr", rng: "createdAt"},
			{name: "GSI4", hash: "entityType", rng: "createdAt", keysOnly: true},
		},
	}},
	play:   func(a *app) { (&watchApp{app: a, stale: make(map[string]row)}).play() },
	expect: watchExpect,
	form:   bareForm("stream.jsonl.gz"),
	page:   1000,
}

// The ids that the workload's special cases and the checks share.
const (
	hotWatchlist   = "w-hot"
	popular        = "w-popular"
	lateWatchlist  = "w-late"
	ghostWatchlist = "w-never"
	goneWatchlist  = "w-gone"
	againWatchlist = "w-again"
	hotMovie       = "tt-hot"
	bothID         = "tt-both" // a movie and a show
	halfMovie      = "tt-half" // its mean ends in 5
	lateMovie      = "tt-late"
	ghostMovie     = "tt-never"
	goneMovie      = "tt-gone"
	againMovie     = "tt-again"
	unratedMovie   = "tt-unrated"
	tidiedMovie    = "tt-tidied" // all its ratings were taken back
	fan            = "u-fan"
)

var (
	curators = []string{"c-1", "c-10", "c-2", "куратор", "キュレーター"}
	genres   = []string{"Drama", "Comedy", "Sci-Fi", "Thriller", "Documentary", "Film noir"}
)

// A watchApp is the watchlists' application.
type watchApp struct {
	*app
	users, lists, movies, shows []string
	stale                       map[string]row // copies that somebody took earlier
}

func (w *watchApp) play() {
	w.people()
	w.firstLists()
	w.saves()
	// Between the saves of a watchlist and the additions to it lies everything about movies: whoever counts a
	// follower when an addition is handled comes to the same followers, however far behind.
	w.catalogue()
	w.ratings()
	w.special()
	w.searchable()
	w.live(w.times(2700), []deed{
		{100, w.addItem}, {16, w.editItem}, {18, w.removeItem}, {8, w.moveItem}, {8, w.readdItem},
		{70, w.rate}, {14, w.rerate}, {12, w.unrate}, {4, w.moveRating}, {16, w.comment}, {3, w.uncomment},
		{5, w.newList}, {16, w.editList}, {14, w.overwriteList}, {8, w.keepCopy}, {4, w.deleteList}, {4, w.recreateList},
		{10, w.overwriteTitle}, {8, w.editTitle}, {3, w.deleteTitle}, {4, w.recreateTitle}, {6, w.drift}, {5, w.editUser}, {4, w.idle},
	})
	w.late()
}

func watchlistKey(id string) row { return row{"PK": "WATCHLIST#" + id, "SK": "METADATA"} }
func movieKey(id string) row     { return row{"PK": "MOVIE#" + id, "SK": "METADATA"} }
func showKey(id string) row      { return row{"PK": "SHOW#" + id, "SK": "METADATA"} }
func entryKey(list, kind, id string) row {
	return row{"PK": "WATCHLIST#" + list, "SK": "ITEM#" + kind + "#" + id}
}
func ratingKey(user, kind, id string) row {
	return row{"PK": "USER#" + user, "SK": "RATING#" + kind + "#" + id}
}
func savedKey(user, list string) row {
	return row{"PK": "USER#" + user, "SK": "SAVED#WATCHLIST#" + list}
}

func (w *watchApp) user(id, email string) row {
	at := w.now()
	r := row{"PK": "USER#" + id, "SK": "PROFILE", "entityType": "USER", "userId": id, "email": email, "username": one(w.app, given),
		"createdAt": at, "updatedAt": at, "isCurator": slices.Contains(curators, id)}
	if r["isCurator"] == true {
		r["curatorStatus"] = one(w.app, []string{"pending", "approved", "suspended"})
		r["bio"] = "Watches " + one(w.app, genres) + "\nand \"more\" <b>🎬</b>"
	}
	return r
}

func (w *watchApp) list(id, title, curator string, public bool) row {
	at := w.now()
	r := merge(watchlistKey(id), row{"entityType": "WATCHLIST", "watchlistId": id, "curatorId": curator, "title": title,
		"description": "For " + one(w.app, nouns) + "s", "isPublic": public, "isPublicStr": fmt.Sprint(public),
		"tags": list(some(w.app, 2, tagPool)...), "itemCount": n(0), "createdAt": at, "updatedAt": at})
	if w.chance(0.3) {
		delete(r, "itemCount")
	}
	if w.chance(0.3) {
		r["coverImageUrl"] = "https://img.example.com/" + w.hex(5)
	}
	return r
}

func (w *watchApp) entry(list, kind, id string) row {
	r := merge(entryKey(list, kind, id), row{"entityType": "WATCHLIST_ITEM", "contentType": kind, "contentId": id,
		"position": n(1 + w.rand.IntN(50)), "addedAt": w.now()})
	if w.chance(0.3) {
		r["curatorNote"] = one(w.app, []string{"A masterpiece", "Sehr schön", "必見", "skip the ending…", ""})
	}
	return r
}

func (w *watchApp) movie(id, title string) row {
	at := w.now()
	return merge(movieKey(id), row{"entityType": "MOVIE", "movieId": id, "title": title, "releaseYear": n(1930 + w.rand.IntN(95)),
		"genres": list(some(w.app, 2, genres)...), "directors": list(one(w.app, given) + " Director"),
		"cast": list(one(w.app, given)+" Actor", one(w.app, given)+" Player"), "synopsis": "A " + one(w.app, adverbs) + " story",
		"posterUrl": nil, "runtime": n(60 + w.rand.IntN(120)), "tmdbId": fmt.Sprint(w.rand.IntN(100000)), "createdAt": at, "updatedAt": at})
}

func (w *watchApp) show(id, title string) row {
	at := w.now()
	return merge(showKey(id), row{"entityType": "SHOW", "showId": id, "title": title, "startYear": n(1990 + w.rand.IntN(30)), "endYear": nil,
		"genres": list(some(w.app, 2, genres)...), "creators": list(one(w.app, given) + " Creator"), "cast": list(one(w.app, given) + " Actor"),
		"synopsis": "A " + one(w.app, adverbs) + " series", "numberOfSeasons": n(1 + w.rand.IntN(9)), "numberOfEpisodes": n(8 + w.rand.IntN(90)),
		"status": one(w.app, []string{"ongoing", "ended", "cancelled"}), "createdAt": at, "updatedAt": at})
}

func (w *watchApp) rating(user, kind, id string, value num) row {
	r := merge(ratingKey(user, kind, id), row{"entityType": "RATING", "contentType": kind, "contentId": id, "rating": value, "ratedAt": w.now()})
	if w.chance(0.2) {
		r["review"] = one(w.app, []string{"👍", "meh", "Großartig!", "…"})
	}
	return r
}

func (w *watchApp) mark() num {
	return one(w.app, []num{"1", "2", "3", "3.5", "4", "4.5", "5", "4.25"})
}

func (w *watchApp) saved(user, list string) row {
	return merge(savedKey(user, list), row{"entityType": "USER_SAVED_WATCHLIST", "savedAt": w.now()})
}

func (w *watchApp) people() {
	var ops []op
	for i := range w.times(50) {
		id := fmt.Sprintf("u-%d", i)
		w.users = append(w.users, id)
		ops = append(ops, put(watchTable, w.user(id, fmt.Sprintf("viewer%d@example.com", i))))
	}
	for i, id := range append([]string{fan, "观众", "Zoë", "Zoe\u0308"}, curators...) {
		w.users = append(w.users, id)
		ops = append(ops, put(watchTable, w.user(id, fmt.Sprintf("special+%d@例え.jp", i))))
	}
	w.batch(ops...)
	w.write(put(watchTable, row{"PK": "CONFIG#site", "SK": "METADATA", "theme": "dark", "logo": bin("\x89PNG"), "limits": nums{"10", "9", "2.5"},
		"blobs": bins{"\x00", "\x01"}, "regions": strs{"ä", "z", "a"}, "max": num("99999999999999999999999999999999999999"), "off": nil, "nested": row{"a": []any{row{}}}}),
		update(watchTable, row{"PK": "CONFIG#site", "SK": "METADATA"}, row{"theme": "light"}, "off"))
}

func (w *watchApp) firstLists() {
	for range w.times(60) {
		w.newList()
	}
	for i, id := range []string{hotWatchlist, popular, againWatchlist, "list-été", "list-e\u0301te\u0301", "映画 🎬"} {
		w.lists = append(w.lists, id)
		w.write(put(watchTable, w.list(id, w.title(), curators[i%len(curators)], i%3 != 2)))
	}
}

func (w *watchApp) newList() {
	id := w.uuid()
	w.lists = append(w.lists, id)
	w.write(put(watchTable, w.list(id, w.title(), one(w.app, curators), w.chance(0.6))))
}

// saves lets users save watchlists, and change their minds, before anything is added to them.
func (w *watchApp) saves() {
	var undo []op
	save := func(user, list string) {
		w.write(put(watchTable, w.saved(user, list)))
		if w.chance(0.12) {
			undo = append(undo, del(watchTable, savedKey(user, list)))
		}
	}
	for _, list := range w.lists {
		if list == hotWatchlist {
			continue
		}
		users := some(w.app, 1+w.rand.IntN(6), w.users)
		if list == popular {
			users = w.users[:len(w.users)-8]
		}
		for _, user := range users {
			save(user, list)
		}
	}
	for _, list := range []string{lateWatchlist, ghostWatchlist, goneWatchlist} {
		for _, user := range []string{"u-1", "u-2", "观众"} {
			save(user, list)
		}
	}
	w.write(undo...)
	w.write(put(watchTable, w.saved(fan, hotWatchlist)), put(watchTable, w.saved("u-3", hotWatchlist)),
		put(watchTable, w.saved("u-4", popular)), del(watchTable, savedKey("u-4", popular)))
}

func (w *watchApp) catalogue() {
	var ops []op
	for i := range w.times(150) {
		id := fmt.Sprintf("tt%07d", i*37)
		w.movies = append(w.movies, id)
		ops = append(ops, put(watchTable, w.movie(id, w.title())))
	}
	for i := range w.times(80) {
		id := fmt.Sprintf("sh%d", i)
		w.shows = append(w.shows, id)
		ops = append(ops, put(watchTable, w.show(id, w.title())))
	}
	w.batch(ops...)
	for _, id := range []string{hotMovie, bothID, againMovie, goneMovie, "映画-1", "caf\u00e9", "cafe\u0301"} {
		w.movies = append(w.movies, id)
		w.write(put(watchTable, w.movie(id, w.title())))
	}
	for _, id := range []string{halfMovie, unratedMovie, tidiedMovie} { // nobody else rates these
		w.write(put(watchTable, w.movie(id, w.title())))
	}
	w.shows = append(w.shows, bothID, "番組-1")
	w.write(put(watchTable, w.show(bothID, w.title())), put(watchTable, w.show("番組-1", w.title())))
	// Whole again from somebody's spreadsheet, with a mean and a count of nothing.
	w.write(update(watchTable, movieKey(unratedMovie), row{"rating": num("9.9"), "ratingCount": n(12)}))
}

// ratings gives one movie very many ratings, and others a few that are special.
func (w *watchApp) ratings() {
	var ops []op
	for i := range w.times(430) {
		ops = append(ops, put(watchTable, w.rating(fmt.Sprintf("anon-%d", i), "MOVIE", hotMovie, w.mark())))
	}
	for i := range 8 { // 9 / 8 = 1.125
		ops = append(ops, put(watchTable, w.rating(fmt.Sprintf("half-%d", i), "MOVIE", halfMovie, num([]string{"1", "2"}[i/7]))))
	}
	for i := range 6 {
		ops = append(ops, put(watchTable, w.rating(fmt.Sprintf("half-%d", i), "MOVIE", bothID, "1")),
			put(watchTable, w.rating(fmt.Sprintf("half-%d", i), "SHOW", bothID, "5")))
	}
	for i, id := range []string{lateMovie, ghostMovie, goneMovie, againMovie} {
		for j := range 7 {
			ops = append(ops, put(watchTable, w.rating(fmt.Sprintf("half-%d", j), "MOVIE", id, n(1+(i+j)%5))))
		}
	}
	w.batch(ops...)
	// Rated, and all ratings taken back: no mean, and a count of none.
	w.write(put(watchTable, w.rating("half-0", "MOVIE", tidiedMovie, "4")), put(watchTable, w.rating("half-0", "MOVIE", tidiedMovie, "2")),
		put(watchTable, w.rating("half-1", "MOVIE", tidiedMovie, "5")),
		del(watchTable, ratingKey("half-0", "MOVIE", tidiedMovie)), del(watchTable, ratingKey("half-1", "MOVIE", tidiedMovie)))
}

// special writes the watchlists with which the checks deal by name.
func (w *watchApp) special() {
	for i := range w.times(420) {
		kind, id := "MOVIE", one(w.app, w.movies)
		if i%3 == 0 {
			kind, id = "SHOW", one(w.app, w.shows)
		}
		if w.row(watchTable, entryKey(hotWatchlist, kind, id)) == nil {
			w.write(put(watchTable, w.entry(hotWatchlist, kind, id)))
			continue
		}
		id = fmt.Sprintf("x%04d", i)
		w.write(put(watchTable, w.entry(hotWatchlist, kind, id)))
	}
	for i := range 10 {
		w.write(put(watchTable, w.entry(popular, "MOVIE", w.movies[i])))
	}
	for i := range 9 { // before their watchlist comes, and for one that never does
		w.write(put(watchTable, w.entry(lateWatchlist, "SHOW", w.shows[i])), put(watchTable, w.entry(ghostWatchlist, "SHOW", w.shows[i])))
	}
	w.write(put(watchTable, w.list(goneWatchlist, "Gone with the list", "c-1", true)), put(watchTable, w.entry(goneWatchlist, "MOVIE", hotMovie)),
		put(watchTable, w.entry(goneWatchlist, "MOVIE", halfMovie)), del(watchTable, entryKey(goneWatchlist, "MOVIE", halfMovie)),
		del(watchTable, watchlistKey(goneWatchlist)))
	for i := range 5 {
		w.write(put(watchTable, w.entry(againWatchlist, "MOVIE", w.movies[i])))
	}
	again := w.row(watchTable, watchlistKey(againWatchlist))
	w.write(del(watchTable, watchlistKey(againWatchlist)), del(watchTable, entryKey(againWatchlist, "MOVIE", w.movies[0])),
		put(watchTable, merge(again, row{"itemCount": n(0), "updatedAt": w.now()})),
		// Removed and added again is a second addition; written over is none.
		put(watchTable, w.entry(againWatchlist, "MOVIE", w.movies[0])),
		put(watchTable, w.entry(againWatchlist, "MOVIE", w.movies[1])))
	w.write(del(watchTable, movieKey(goneMovie)), del(watchTable, movieKey(againMovie)),
		put(watchTable, merge(w.movie(againMovie, "Once more"), row{"rating": num("1"), "ratingCount": n(1)})))
	w.write(put(watchTable, w.user("u-left", "left@example.com")), del(watchTable, row{"PK": "USER#u-left", "SK": "PROFILE"}),
		put(watchTable, w.user("u-mail", "one@example.com")),
		update(watchTable, row{"PK": "USER#u-mail", "SK": "PROFILE"}, row{"email": "two@example.com", "updatedAt": w.now()}),
		put(watchTable, w.user("u-mail-2", "one@example.com")))
}

// late writes the targets for which something has been waiting since the beginning.
func (w *watchApp) late() {
	w.write(put(watchTable, merge(w.list(lateWatchlist, "Better late", "c-2", true), row{"itemCount": n(999)})),
		put(watchTable, w.movie(lateMovie, "The latecomer")))
}

func (w *watchApp) searchable() {
	movie := func(id, title, synopsis, director, actor string) {
		w.write(put(watchTable, merge(w.movie(id, title), row{"synopsis": synopsis, "directors": list(director), "cast": list(actor, "Extra One")})))
	}
	movie("sm-1", "Amélie à Montmartre", "A shy waitress", "Jean-Pierre Jeunet", "Audrey Tautou")
	movie("sm-2", "七人の侍", "Seven warriors", "黒澤明", "三船敏郎")
	movie("sm-3", "Сталкер", "The zone", "Андрей Тарковский", "Александр Кайдановский")
	movie("sm-4", "Apollo 13", "Houston", "Ron Howard", "Tom Hanks")
	movie("sm-5", "Kestrel", "A boy and a bird", "Ken Loach", "David Bradley")
	movie("sm-6", "Kastrel", "An imitation", "Nobody Known", "Somebody Else")
	movie("sm-7", "Quicksand", "Sinking", "Someone Other", "Peter Lorre")
	w.write(del(watchTable, movieKey("sm-7")), update(watchTable, movieKey("sm-6"), row{"title": "Merlin hawk"}))
	show := func(id, title, creator string) {
		w.write(put(watchTable, merge(w.show(id, title), row{"creators": list(creator)})))
	}
	show("ss-1", "Borgen", "Adam Price")
	show("ss-2", "Élite", "Carlos Montero")
	show("ss-3", "Twin Peaks", "Mark Frost")
	show("ss-4", "Firefly", "Joss Whedon")
	w.write(del(watchTable, showKey("ss-4")))
	lists := func(id, title, description string, public bool, tags ...string) {
		w.write(put(watchTable, merge(w.list(id, title, "c-10", public), row{"description": description, "tags": list(tags...)})))
	}
	lists("sw-1", "Fjörd noir", "Cold evenings", true, "skandinavien")
	lists("sw-2", "Fjord cruises", "Secret", false, "skandinavien")
	lists("sw-3", "Werewolves", "Full moon", true, "howling")
	lists("sw-4", "Zeppelins", "Slow travel", true, "airship")
	lists("sw-5", "Submarines", "Deep", false, "periscope")
	w.write(w.publish("sw-4", false), w.publish("sw-5", true),
		update(watchTable, watchlistKey("sw-3"), row{"title": "Vampires", "updatedAt": w.now()}))
}

func (w *watchApp) publish(id string, public bool) op {
	return update(watchTable, watchlistKey(id), row{"isPublic": public, "isPublicStr": fmt.Sprint(public), "updatedAt": w.now()})
}

// kindOf gives the key of a movie or show.
func titleKey(kind, id string) row {
	if kind == "MOVIE" {
		return movieKey(id)
	}
	return showKey(id)
}

func entityID(r row) string {
	_, id, _ := strings.Cut(text(r, "PK"), "#")
	return id
}
