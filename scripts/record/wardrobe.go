package main

import (
	"fmt"
	"strings"
)

const wardrobeTable = "WardrobeTable"

var wardrobe = model{
	name: "wardrobe",
	tables: []tableSpec{{
		name: wardrobeTable, hash: "PK", rng: "SK", ttl: "TTL",
		gsis: []indexSpec{{name: "GSI1", hash: "GSI1PK", rng: "GSI1SK"}},
	}},
	play: func(a *app) {
		w := &wardrobeApp{app: a, stale: make(map[string]row), settled: make(map[string]bool)}
		w.play()
	},
	expect: wardrobeExpect,
	form:   lambdaForm("stream.jsonl.zst", zstandard),
	page:   1000,
}

// The ids that the workload's special cases and the checks share.
const (
	hotItem    = "01JHOTHOTHOTHOTHOTHOTHOTHO"
	lateItem   = "01KLATELATELATELATELATELATE"
	ghostItem  = "01KNEVERNEVERNEVERNEVERNEVE"
	goneItem   = "01JGONEGONEGONEGONEGONEGONE"
	againItem  = "01JAGAINAGAINAGAINAGAINAGAI"
	rareItem   = "01JRARE-セーター-été"
	movedItem  = "01JMOVEDMOVEDMOVEDMOVEDMOVE"
	sweptItem  = "01JSWEPTSWEPTSWEPTSWEPTSWEP"
	tidiedItem = "01JTIDYTIDYTIDYTIDYTIDYTIDY"
)

var (
	wearers    = []string{"user1", "user10", "user11", "user2", "user3", "user4", "user5", "user6", "user7", "user8", "Zoë", "Zoe\u0308", "маша", "rainbow 🌈", "ليلى", "a&b=c+d"}
	seasons    = []string{"spring", "summer", "fall", "winter", "all-season"}
	categories = []string{"dresses", "tops", "shoes", "coats", "knitwear", "Schals & Mützen"}
	colors     = []string{"blue", "écru", "dark green", "черный", "mustard"}
	brands     = []string{"Zara", "Åhléns", "Patch & Sons", "無印", "Kleid"}
	platforms  = []string{"web", "ios", "android", "instagram"}
)

// A wardrobeApp is the wardrobe's application: it keeps items, and who shared them where.
type wardrobeApp struct {
	*app
	items   []string
	stale   map[string]row  // copies that somebody took earlier
	settled map[string]bool // items that keep their name: made again after a delete, when a feed may or may not follow
}

func (w *wardrobeApp) play() {
	w.swept()
	w.profiles()
	for range w.times(60) {
		w.newItem()
	}
	w.special()
	w.searchable()
	w.live(w.times(3400), []deed{
		{46, w.newItem}, {4, w.importItems}, {130, w.share}, {26, w.unshare}, {10, w.moveShare}, {12, w.noteShare}, {5, w.reshare},
		{34, w.rename}, {18, w.reseason}, {14, w.recategorise}, {18, w.give}, {22, w.overwrite}, {14, w.keepCopy},
		{14, w.discard}, {9, w.restore}, {6, w.idle},
	})
	w.late()
	w.expired()
}

func itemKey(id string) row { return row{"PK": "ITEM#" + id, "SK": "METADATA"} }

func itemID(r row) string { return strings.TrimPrefix(text(r, "PK"), "ITEM#") }

func isItem(r row) bool  { return text(r, "EntityType") == "Item" }
func isShare(r row) bool { return text(r, "EntityType") == "Share" }

func (w *wardrobeApp) item(id, user, name string) row {
	at := w.now()
	r := merge(itemKey(id), row{
		"UserId": user, "Name": name, "Category": one(w.app, categories), "SharedCount": n(0), "IsPublic": w.chance(0.4),
		"CreatedAt": at, "UpdatedAt": at, "EntityType": "Item",
	})
	optional := row{"Season": one(w.app, seasons), "Color": one(w.app, colors), "Brand": one(w.app, brands),
		"PurchaseDate": "2024-11-03", "ImageUrl": "https://img.example.com/" + w.hex(6), "materials": strs{"wool", "Seide", "綿"},
		"price": num(fmt.Sprintf("%d.%d5", 5+w.rand.IntN(300), w.rand.IntN(10))), "care": row{"wash": n(30), "iron": nil, "notes": list("by hand")}}
	for _, k := range sortedKeys(optional) {
		if w.chance(0.55) {
			r[k] = optional[k]
		}
	}
	return r
}

// name is a name such as people give, never with a word that the search checks look for.
func (w *wardrobeApp) name() string {
	return fmt.Sprintf("%s %s %d", one(w.app, []string{"Old", "New", "Soft", "Grandma's", "Très joli", "大きい", "Best"}),
		one(w.app, []string{"jumper", "jacket", "boots", "skirt", "kaftan", "jäckchen"}), w.rand.IntN(90))
}

func (w *wardrobeApp) shareRow(item, user, platform string) row {
	at := w.now()
	return row{"PK": "ITEM#" + item, "SK": "SHARE#" + at, "EntityType": "Share", "ItemId": item, "UserId": user, "Platform": platform, "SharedAt": at}
}

func (w *wardrobeApp) idempotency(user, key, item string) row {
	return row{"PK": "USER#" + user, "SK": "IDEMPOTENCY#" + key, "GSI1PK": "USER#" + user, "GSI1SK": "IDEMPOTENCY#" + key,
		"ItemId": item, "CreatedAt": w.now(), "EntityType": "Idempotency"}
}

// newItem makes an item and its idempotency record, in one transaction.
func (w *wardrobeApp) newItem() {
	id, user := w.ulid(), one(w.app, wearers)
	w.items = append(w.items, id)
	item := w.item(id, user, w.name())
	if w.chance(0.3) {
		w.write(put(wardrobeTable, item))
		return
	}
	key := w.uuid()
	item["IdempotencyKey"] = key
	record := w.idempotency(user, key, id)
	if w.chance(0.7) {
		record["TTL"] = n(4_070_908_800 + w.rand.IntN(1_000_000)) // 2099
	}
	w.transact(put(wardrobeTable, item), put(wardrobeTable, record))
}

// importItems makes many at once.
func (w *wardrobeApp) importItems() {
	var ops []op
	for range 1 + w.rand.IntN(8) {
		id := w.ulid()
		w.items = append(w.items, id)
		ops = append(ops, put(wardrobeTable, w.item(id, one(w.app, wearers), w.name())))
	}
	w.batch(ops...)
}

func (w *wardrobeApp) anyItem() (string, row, bool) { return w.living(wardrobeTable, w.items, itemKey) }

func (w *wardrobeApp) share() {
	id, r, ok := w.anyItem()
	if !ok {
		return
	}
	user := text(r, "UserId")
	if w.chance(0.3) {
		user = one(w.app, wearers)
	}
	share := put(wardrobeTable, w.shareRow(id, user, one(w.app, platforms)))
	if w.chance(0.2) {
		// An application that keeps the count itself, and gets it wrong.
		w.transact(share, update(wardrobeTable, itemKey(id), row{"SharedCount": n(w.rand.IntN(20)), "UpdatedAt": w.now()}))
		return
	}
	w.write(share)
}

// anyShare picks a share of an item that is there.
func (w *wardrobeApp) anyShare() (row, bool) {
	for range 30 {
		id, _, ok := w.anyItem()
		if !ok {
			break
		}
		if shares := w.shares(id); len(shares) > 0 {
			return one(w.app, shares), true
		}
	}
	return nil, false
}

func (w *wardrobeApp) shares(item string) []row {
	return w.rows(wardrobeTable, func(r row) bool { return isShare(r) && text(r, "PK") == "ITEM#"+item })
}

func (w *wardrobeApp) unshare() {
	if r, ok := w.anyShare(); ok {
		w.stale[text(r, "PK")+text(r, "SK")] = clone(r)
		w.write(del(wardrobeTable, w.tables[wardrobeTable].key(r)))
	}
}

// reshare puts back a share that was taken away: the same share at the same key.
func (w *wardrobeApp) reshare() {
	for _, key := range sortedKeys(w.stale) {
		r := w.stale[key]
		if isShare(r) && w.row(wardrobeTable, r) == nil && w.row(wardrobeTable, row{"PK": r["PK"], "SK": "METADATA"}) != nil {
			w.write(put(wardrobeTable, r))
			delete(w.stale, key)
			return
		}
	}
}

// moveShare gives a share to another item.
func (w *wardrobeApp) moveShare() {
	r, ok := w.anyShare()
	to, _, found := w.anyItem()
	if !ok || !found || text(r, "ItemId") == to {
		return
	}
	moved := clone(r)
	moved["PK"], moved["ItemId"] = "ITEM#"+to, to
	if w.row(wardrobeTable, moved) == nil {
		w.transact(del(wardrobeTable, w.tables[wardrobeTable].key(r)), put(wardrobeTable, moved))
	}
}

func (w *wardrobeApp) noteShare() {
	if r, ok := w.anyShare(); ok {
		w.write(update(wardrobeTable, w.tables[wardrobeTable].key(r), row{"note": one(w.app, nouns), "clicks": n(w.rand.IntN(1000))}))
	}
}

func (w *wardrobeApp) rename() {
	if id, _, ok := w.anyItem(); ok && !w.settled[id] {
		w.write(update(wardrobeTable, itemKey(id), row{"Name": w.name(), "UpdatedAt": w.now()}))
	}
}

func (w *wardrobeApp) reseason() {
	id, r, ok := w.anyItem()
	if !ok {
		return
	}
	if r["Season"] != nil && w.chance(0.3) {
		w.write(update(wardrobeTable, itemKey(id), row{"UpdatedAt": w.now()}, "Season"))
		return
	}
	w.write(update(wardrobeTable, itemKey(id), row{"Season": one(w.app, seasons), "UpdatedAt": w.now()}))
}

func (w *wardrobeApp) recategorise() {
	if id, _, ok := w.anyItem(); ok {
		w.write(update(wardrobeTable, itemKey(id), row{"Category": one(w.app, categories), "Color": one(w.app, colors)}))
	}
}

// give hands an item to another user.
func (w *wardrobeApp) give() {
	if id, _, ok := w.anyItem(); ok {
		w.write(update(wardrobeTable, itemKey(id), row{"UserId": one(w.app, wearers), "UpdatedAt": w.now()}))
	}
}

// keepCopy reads a row into somebody's editor, from which it is written back much later.
func (w *wardrobeApp) keepCopy() {
	if id, r, ok := w.anyItem(); ok && !w.settled[id] {
		w.stale[id] = clone(r)
	}
}

// overwrite writes an item whole, with a count that was never right.
func (w *wardrobeApp) overwrite() {
	id, now, ok := w.anyItem()
	if !ok {
		return
	}
	r := w.stale[id]
	if r == nil || w.settled[id] {
		r = now
	}
	r = clone(r)
	r["UpdatedAt"], r["SharedCount"] = w.now(), one(w.app, []num{"0", "999", "7"})
	w.write(put(wardrobeTable, r))
}

// discard deletes an item, sometimes with its shares, sometimes leaving them.
func (w *wardrobeApp) discard() {
	id, r, ok := w.anyItem()
	if !ok || id == hotItem {
		return
	}
	w.stale[id] = clone(r)
	w.settled[id] = true
	ops := []op{del(wardrobeTable, itemKey(id))}
	if w.chance(0.4) {
		for _, s := range w.shares(id) {
			ops = append(ops, del(wardrobeTable, w.tables[wardrobeTable].key(s)))
		}
	}
	w.batch(ops...)
}

// restore makes a discarded item again at its key, under its last name.
func (w *wardrobeApp) restore() {
	id := one(w.app, w.items)
	if r := w.stale[id]; r != nil && w.settled[id] && w.row(wardrobeTable, itemKey(id)) == nil {
		w.write(put(wardrobeTable, w.item(id, one(w.app, wearers), text(r, "Name"))))
	}
}

// idle writes what is there already: no record comes of it.
func (w *wardrobeApp) idle() {
	if id, r, ok := w.anyItem(); ok {
		w.write(put(wardrobeTable, r), update(wardrobeTable, itemKey(id), row{"Name": r["Name"]}), del(wardrobeTable, itemKey("no-"+id)))
	}
}
