package main

import (
	"fmt"
	"strings"
)

// What the watchlists' application does all day.

func (w *watchApp) anyList() (string, row, bool) { return w.living(watchTable, w.lists, watchlistKey) }

// anyTitle picks a movie or a show.
func (w *watchApp) anyTitle() (kind, id string, r row, ok bool) {
	if w.chance(0.6) {
		id, r, ok = w.living(watchTable, w.movies, movieKey)
		return "MOVIE", id, r, ok
	}
	id, r, ok = w.living(watchTable, w.shows, showKey)
	return "SHOW", id, r, ok
}

func (w *watchApp) addItem() {
	list, _, ok := w.anyList()
	kind, id, _, found := w.anyTitle()
	if !ok || !found || w.row(watchTable, entryKey(list, kind, id)) != nil {
		return
	}
	add := put(watchTable, w.entry(list, kind, id))
	if w.chance(0.25) {
		// An application that keeps the count itself, and gets it wrong.
		w.transact(add, update(watchTable, watchlistKey(list), row{"itemCount": n(w.rand.IntN(30)), "updatedAt": w.now()}))
		return
	}
	w.write(add)
}

// anyEntry picks an item of a watchlist.
func (w *watchApp) anyEntry() (row, bool) {
	for range 30 {
		list, _, ok := w.anyList()
		if !ok {
			break
		}
		entries := w.rows(watchTable, func(r row) bool {
			return r["PK"] == "WATCHLIST#"+list && strings.HasPrefix(text(r, "SK"), "ITEM#")
		})
		if len(entries) > 0 {
			return one(w.app, entries), true
		}
	}
	return nil, false
}

func (w *watchApp) key(r row) row { return w.tables[watchTable].key(r) }

// editItem writes over an item, which is no addition.
func (w *watchApp) editItem() {
	r, ok := w.anyEntry()
	if !ok {
		return
	}
	if w.chance(0.5) {
		w.write(update(watchTable, w.key(r), row{"position": n(w.rand.IntN(99)), "curatorNote": w.title()}))
		return
	}
	w.write(put(watchTable, merge(r, row{"addedAt": w.now()})))
}

func (w *watchApp) removeItem() {
	if r, ok := w.anyEntry(); ok {
		w.stale[text(r, "PK")+" "+text(r, "SK")] = r
		w.write(del(watchTable, w.key(r)))
	}
}

// readdItem puts an item back that was removed: a second addition.
func (w *watchApp) readdItem() {
	for _, key := range sortedKeys(w.stale) {
		r := w.stale[key]
		if text(r, "entityType") == "WATCHLIST_ITEM" && w.row(watchTable, r) == nil {
			delete(w.stale, key)
			w.write(put(watchTable, merge(r, row{"addedAt": w.now()})))
			return
		}
	}
}

func (w *watchApp) moveItem() {
	r, ok := w.anyEntry()
	to, _, found := w.anyList()
	if !ok || !found || entityID(r) == to {
		return
	}
	moved := w.entry(to, text(r, "contentType"), text(r, "contentId"))
	if w.row(watchTable, moved) == nil {
		w.transact(del(watchTable, w.key(r)), put(watchTable, moved))
	}
}

func (w *watchApp) rate() {
	if kind, id, _, ok := w.anyTitle(); ok {
		w.write(put(watchTable, w.rating(one(w.app, w.users), kind, id, w.mark())))
	}
}

// anyRating picks a rating of one of the users.
func (w *watchApp) anyRating() (user string, r row, ok bool) {
	for range 30 {
		user = one(w.app, w.users)
		ratings := w.rows(watchTable, func(r row) bool {
			return r["PK"] == "USER#"+user && strings.HasPrefix(text(r, "SK"), "RATING#")
		})
		if len(ratings) > 0 {
			return user, one(w.app, ratings), true
		}
	}
	return "", nil, false
}

func (w *watchApp) rerate() {
	if user, r, ok := w.anyRating(); ok {
		w.write(put(watchTable, w.rating(user, text(r, "contentType"), text(r, "contentId"), w.mark())))
	}
}

func (w *watchApp) unrate() {
	if _, r, ok := w.anyRating(); ok {
		w.write(del(watchTable, w.key(r)))
	}
}

func (w *watchApp) moveRating() {
	user, r, ok := w.anyRating()
	kind, id, _, found := w.anyTitle()
	if ok && found && w.row(watchTable, ratingKey(user, kind, id)) == nil {
		w.transact(del(watchTable, w.key(r)), put(watchTable, w.rating(user, kind, id, w.mark())))
	}
}

func (w *watchApp) comment() {
	if list, _, ok := w.anyList(); ok {
		at, user := w.now(), one(w.app, w.users)
		w.write(put(watchTable, row{"PK": "WATCHLIST#" + list, "SK": "COMMENT#" + at + "#" + user, "entityType": "COMMENT",
			"userId": user, "commentText": one(w.app, []string{"Nice!", "<script>alert(1)</script>", "👏👏", "لا أحب", "e\u0301"}), "createdAt": at}))
	}
}

func (w *watchApp) uncomment() {
	list := one(w.app, w.lists)
	for _, r := range w.rows(watchTable, func(r row) bool {
		return r["PK"] == "WATCHLIST#"+list && strings.HasPrefix(text(r, "SK"), "COMMENT#")
	}) {
		w.write(del(watchTable, w.key(r)))
		return
	}
}

func (w *watchApp) editList() {
	id, r, ok := w.anyList()
	if !ok {
		return
	}
	switch w.rand.IntN(3) {
	case 0:
		w.write(w.publish(id, r["isPublic"] != true))
	case 1: // handed on to another curator
		w.write(update(watchTable, watchlistKey(id), row{"curatorId": one(w.app, curators), "updatedAt": w.now()}))
	default:
		w.write(update(watchTable, watchlistKey(id), row{"title": w.title(), "updatedAt": w.now()}, "coverImageUrl"))
	}
}

func (w *watchApp) keepCopy() {
	if id, r, ok := w.anyList(); ok {
		w.stale[id] = r
	}
}

// overwriteList writes a watchlist whole, with a count that was never right.
func (w *watchApp) overwriteList() {
	id, now, ok := w.anyList()
	if !ok {
		return
	}
	r := w.stale[id]
	if r == nil {
		r = now
	}
	w.write(put(watchTable, merge(r, row{"updatedAt": w.now(), "itemCount": one(w.app, []num{"0", "999", "-4"})})))
}

func (w *watchApp) deleteList() {
	id, _, ok := w.anyList()
	if !ok || id == hotWatchlist {
		return
	}
	w.write(del(watchTable, watchlistKey(id)))
	if w.chance(0.4) {
		for _, r := range w.rows(watchTable, func(r row) bool { return r["PK"] == "WATCHLIST#"+id }) {
			w.write(del(watchTable, w.key(r)))
		}
	}
}

func (w *watchApp) recreateList() {
	id := one(w.app, w.lists)
	if w.row(watchTable, watchlistKey(id)) == nil {
		w.write(put(watchTable, w.list(id, w.title(), one(w.app, curators), w.chance(0.5))))
	}
}

// overwriteTitle writes a movie or show whole, with a mean that was never right.
func (w *watchApp) overwriteTitle() {
	if _, _, r, ok := w.anyTitle(); ok {
		w.write(put(watchTable, merge(r, row{"updatedAt": w.now(), "rating": w.mark(), "ratingCount": n(w.rand.IntN(9))})))
	}
}

func (w *watchApp) editTitle() {
	if kind, id, _, ok := w.anyTitle(); ok {
		w.write(update(watchTable, titleKey(kind, id), row{"synopsis": "Told anew: " + w.title(), "updatedAt": w.now()}))
	}
}

func (w *watchApp) deleteTitle() {
	kind, id, r, ok := w.anyTitle()
	if !ok || id == hotMovie || id == bothID {
		return
	}
	w.stale[kind+id] = r
	w.write(del(watchTable, titleKey(kind, id)))
}

func (w *watchApp) recreateTitle() {
	for _, kind := range []string{"MOVIE", "SHOW"} {
		ids := w.movies
		if kind == "SHOW" {
			ids = w.shows
		}
		id := one(w.app, ids)
		if r := w.stale[kind+id]; r != nil && w.row(watchTable, r) == nil {
			w.write(put(watchTable, merge(r, row{"updatedAt": w.now()})))
		}
	}
}

// drift is what some do who save and drop watchlists while things are added to them. What is told to them depends on
// when an addition is handled, so no check asks for it.
func (w *watchApp) drift() {
	list, _, ok := w.anyList()
	if !ok {
		return
	}
	user := fmt.Sprintf("drifter-%d", w.rand.IntN(3))
	if w.row(watchTable, savedKey(user, list)) != nil {
		w.write(del(watchTable, savedKey(user, list)))
		return
	}
	w.write(put(watchTable, w.saved(user, list)))
}

func (w *watchApp) editUser() {
	id := one(w.app, w.users)
	w.write(update(watchTable, row{"PK": "USER#" + id, "SK": "PROFILE"}, row{"bio": w.title(), "updatedAt": w.now()}))
}

// idle writes what is there already: no record comes of it.
func (w *watchApp) idle() {
	if id, r, ok := w.anyList(); ok {
		w.write(put(watchTable, r), update(watchTable, watchlistKey(id), row{"title": r["title"]}), del(watchTable, watchlistKey("no-"+id)))
	}
}
