package main

import "slices"

// wardrobeExpect states what the wardrobe must answer.
func wardrobeExpect(a *app, e *expect) {
	w := &wardrobeChecks{app: a, expect: e}
	w.recount()
	e.present = w.present
	w.itemChecks()
	w.userChecks()
	w.searches()
}

// A wardrobeChecks has the booked items, and the recount of what is derived from everything that was written.
type wardrobeChecks struct {
	*app
	*expect
	items, userItems, activities []row
	shared                       map[string]int // by item id
}

func (w *wardrobeChecks) recount() {
	w.items = w.rows(wardrobeTable, isItem)
	w.shared = make(map[string]int)
	for _, r := range w.rows(wardrobeTable, isShare) {
		w.shared[itemID(r)]++
	}
	for _, r := range w.items {
		w.userItems = append(w.userItems, userItem(r))
	}
	w.activities = w.feed()
	w.history["Activity"] = len(w.activities)
}

func userItem(r row) row {
	out := row{"PK": "USER#" + text(r, "UserId"), "SK": "ITEM#" + itemID(r), "EntityType": "UserItem",
		"ItemId": itemID(r), "Name": r["Name"], "Category": r["Category"]}
	if season, ok := r["Season"]; ok {
		out["Season"] = season
		out["GSI1PK"] = text(out, "PK") + "#SEASON#" + text(r, "Season")
		out["GSI1SK"] = "ITEM#" + text(r, "CreatedAt")
	}
	return out
}

// feed makes the activities of everything that ever happened, under the names that the items had last.
func (w *wardrobeChecks) feed() []row {
	made := make(map[string]row) // by key: an activity that comes again is the same one
	names := make(map[string]any)
	activity := func(r row, kind, at string) row {
		id := itemID(r)
		out := row{"PK": "USER#" + text(r, "UserId"), "SK": "ACTIVITY#" + at + "#" + kind + "#" + id,
			"ActivityType": kind, "ItemId": id, "Timestamp": at, "EntityType": "Activity"}
		made[text(out, "PK")+" "+text(out, "SK")] = out
		return out
	}
	for _, c := range w.log {
		switch {
		case isItem(c.new):
			names[itemID(c.new)] = c.new["Name"]
			if c.old == nil {
				activity(c.new, "ItemCreated", text(c.new, "CreatedAt"))
			}
		case isShare(c.new) && c.old == nil:
			activity(c.new, "ItemShared", text(c.new, "SharedAt"))["Metadata"] = row{"action": "share", "platform": c.new["Platform"]}
		}
	}
	var out []row
	for _, key := range sortedKeys(made) {
		if name, ok := names[text(made[key], "ItemId")]; ok {
			made[key]["ItemName"] = name
		}
		out = append(out, made[key])
	}
	return out
}

func (w *wardrobeChecks) present(r row) row {
	r = clone(r)
	if isItem(r) {
		r["SharedCount"] = n(w.shared[itemID(r)])
	}
	return r
}

func (w *wardrobeChecks) itemChecks() {
	ids := []string{hotItem, lateItem, ghostItem, goneItem, againItem, rareItem, movedItem, sweptItem, tidiedItem, "01JS01", "01JS09", "nothing"}
	for i, r := range w.items {
		if id := itemID(r); i%14 == 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		w.check("item", params{"itemId": id}, true, where(w.items, "PK", "ITEM#"+id), exactly(wardrobeTable, "ITEM#"+id, "METADATA"))
	}
	keys := []params{{"userId": "user5", "key": "clé-键"}, {"userId": "user6", "key": "clé-键"}, {"userId": "user6", "key": "gone"},
		{"userId": "user7", "key": "swept-0"}, {"userId": "nobody", "key": "none"}}
	for i, r := range w.rows(wardrobeTable, func(r row) bool { return text(r, "EntityType") == "Idempotency" && r["TTL"] != nil }) {
		if n := text(r, "PK"); i%40 == 0 && n != "USER#user5" {
			keys = append(keys, params{"userId": n[len("USER#"):], "key": text(r, "SK")[len("IDEMPOTENCY#"):]})
		}
	}
	for _, p := range keys {
		rows := w.rows(wardrobeTable, func(r row) bool {
			return text(r, "EntityType") == "Idempotency" && text(r, "PK") == "USER#"+p["userId"] && text(r, "SK") == "IDEMPOTENCY#"+p["key"]
		})
		w.check("idempotency", p, true, rows, &access{table: wardrobeTable, index: "GSI1", hash: "GSI1PK", value: "USER#" + p["userId"],
			rng: "GSI1SK", op: "=", arg: "IDEMPOTENCY#" + p["key"]})
	}
	for _, key := range []string{"over-0", "over-4"} { // past their time, swept or not
		w.derived("idempotency", params{"userId": "user5", "key": key}, true, nil)
	}
}

func (w *wardrobeChecks) userChecks() {
	for i, user := range append(slices.Clone(wearers), "user", "nobody") {
		pk := "USER#" + user
		items := sorted(where(w.userItems, "PK", pk), true, field("SK"))
		w.derived("user-items", params{"userId": user}, true, items)
		activities := sorted(where(w.activities, "PK", pk), true, field("SK"))
		w.derived("user-activities", params{"userId": user}, true, activities)
		if i%3 == 0 || user == "маша" || user == "user3" {
			for _, category := range []string{"shoes", "Schals & Mützen", "hats"} {
				w.derived("user-items", params{"userId": user, "category": category}, true, where(items, "Category", category))
			}
			for _, season := range append(slices.Clone(seasons), "monsoon") {
				w.derived("user-items-by-season", params{"userId": user, "season": season}, true,
					sorted(where(items, "Season", season), true, field("GSI1SK")))
			}
			for _, kind := range []string{"ItemCreated", "ItemShared", "ItemLost"} {
				w.derived("user-activities", params{"userId": user, "type": kind}, true, where(activities, "ActivityType", kind))
			}
		}
	}
}

func (w *wardrobeChecks) searches() {
	s := searched{query: "search-items", fields: []string{"Name", "Category", "Brand", "Color"}, rows: w.items}
	for _, c := range []struct {
		q, user string
		want    int
	}{
		{"senorita", "", 2}, {"SEÑORITA", "user2", 1}, {"señorita flamenco", "", 1}, {"flamen", "", 1}, {"flamenko", "", 1},
		{"übergangsjacke", "", 1}, {"ubergangs", "user1", 1}, {"ubergangs", "user2", 0}, {"浴衣", "", 1}, {"夏祭り", "user3", 1}, {"着物", "", 1},
		{"levi 501", "", 1}, {"levi 502", "", 0}, {"cadiz", "", 1}, {"kimono", "", 1}, {"kimonu", "", 2}, {"kimonu", "user6", 0}, {"kyo", "user5", 2},
		{"пальто", "", 1}, {"balaclava", "", 0}, {"sombrero", "", 0}, {"panama", "user8", 1}, {"tutu", "", 1}, {"senorita indigo", "", 0},
		{"neill raincoat", "", 1}, {"o'neill's", "", 1}, {"umbrella", "", 1}, {"scarf travelled", "маша", 1}, {"tuxedo", "", 0}, {"xylophone", "", 0},
	} {
		p := params{"q": c.q}
		in := s
		if c.user != "" {
			p["userId"] = c.user
			in.rows = where(in.rows, "UserId", c.user)
		}
		w.search(in, p, c.want)
	}
}
