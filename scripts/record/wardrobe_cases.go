package main

import (
	"fmt"
	"strings"
)

// The wardrobe's special cases.

// profiles puts rows that the data model says nothing about.
func (w *wardrobeApp) profiles() {
	for i, user := range wearers {
		w.write(put(wardrobeTable, row{"PK": "USER#" + user, "SK": "PROFILE", "EntityType": "User", "displayName": one(w.app, given),
			"avatar": bin(w.bytes(12)), "sizes": nums{"38", "42.5", n(i)}, "keys": bins{"\x00", "\x01"}, "newsletter": nil,
			"balance": num("12345678901234567890123456789012345678")}))
	}
	w.write(update(wardrobeTable, row{"PK": "USER#user1", "SK": "PROFILE"}, row{"displayName": "Åse"}, "newsletter"),
		del(wardrobeTable, row{"PK": "USER#user8", "SK": "PROFILE"}))
}

// special writes the rows with which the checks deal by name.
func (w *wardrobeApp) special() {
	w.items = append(w.items, hotItem)
	w.write(put(wardrobeTable, w.item(hotItem, "user1", "Everybody's coat")))
	for i := range w.times(430) {
		w.write(put(wardrobeTable, w.shareRow(hotItem, wearers[i%5], one(w.app, platforms))))
		if i%150 == 100 {
			w.write(update(wardrobeTable, itemKey(hotItem), row{"Name": fmt.Sprintf("Everybody's coat, take %d", i), "SharedCount": n(i)}))
		}
	}
	// Shares of items that come later, and of one that never comes.
	for _, id := range []string{lateItem, ghostItem} {
		for range 12 {
			w.write(put(wardrobeTable, w.shareRow(id, one(w.app, wearers[:4]), one(w.app, platforms))))
		}
	}
	// Here and gone; here, gone and here again, with what it had.
	for _, id := range []string{goneItem, againItem} {
		w.write(put(wardrobeTable, w.item(id, "user2", "Red umbrella")),
			put(wardrobeTable, w.shareRow(id, "user2", "web")), put(wardrobeTable, w.shareRow(id, "Zoë", "ios")),
			update(wardrobeTable, itemKey(id), row{"Name": "Red umbrella, torn"}), del(wardrobeTable, itemKey(id)))
	}
	w.write(put(wardrobeTable, w.item(againItem, "user3", "Red umbrella, torn")), put(wardrobeTable, w.shareRow(againItem, "user3", "web")))
	// Given from hand to hand, with season and category changing on the way.
	moved := w.item(movedItem, "user1", "Travelling scarf")
	moved["Season"] = "winter"
	w.write(put(wardrobeTable, moved),
		update(wardrobeTable, itemKey(movedItem), row{"UserId": "user2"}),
		update(wardrobeTable, itemKey(movedItem), row{"UserId": "user3", "Season": "fall", "Category": "Schals & Mützen"}),
		update(wardrobeTable, itemKey(movedItem), row{"Name": "Well-travelled scarf"}),
		update(wardrobeTable, itemKey(movedItem), row{"UserId": "маша"}, "Season"))
	// Shared, and all shares taken back.
	w.write(put(wardrobeTable, w.item(tidiedItem, "user4", "Tidy drawer")))
	var back []op
	for range 9 {
		s := w.shareRow(tidiedItem, "user4", "web")
		w.write(put(wardrobeTable, s))
		back = append(back, del(wardrobeTable, w.tables[wardrobeTable].key(s)))
	}
	w.batch(back...)
	w.write(put(wardrobeTable, merge(w.item(rareItem, "rainbow 🌈", strings.Repeat("長い名前 ", 33)), row{
		"Season": "all-season", "deep": row{"a": []any{row{"b": nil}, bin("\x00\xff"), list()}}, "empty": "",
		"big": num("99999999999999999999999999999999999999"), "small": num("-0.0000000000000000000000000000001"),
		"odd": "\"\\\b\f\n\r\t\u2028</script>", "labels": strs{"ä", "a", "z", "🌊"}, "sizes": nums{"10", "9", "-1.5"}, "blobs": bins{"\x00", "\x01\x02"},
	})), put(wardrobeTable, w.shareRow(rareItem, "rainbow 🌈", "web")))
}

// late writes the item for whose sake shares have been waiting since the beginning.
func (w *wardrobeApp) late() {
	w.write(put(wardrobeTable, w.item(lateItem, "user4", "Late arrival")),
		update(wardrobeTable, itemKey(lateItem), row{"Name": "Latest arrival", "SharedCount": n(999)}))
}

// expired writes idempotency records that are over.
func (w *wardrobeApp) expired() {
	for i := range 5 {
		r := w.idempotency("user5", fmt.Sprintf("over-%d", i), hotItem)
		r["TTL"] = n(1_577_836_800 + i) // 2020
		w.write(put(wardrobeTable, r))
	}
	live := w.idempotency("user5", "clé-键", hotItem)
	w.write(put(wardrobeTable, live), put(wardrobeTable, w.idempotency("user6", "gone", hotItem)),
		del(wardrobeTable, row{"PK": "USER#user6", "SK": "IDEMPOTENCY#gone"}))
}

// swept writes rows that the service sweeps: a rented item, shares and idempotency records with an end. It comes
// first, because the sweep of DynamoDB Local takes very long in a table of many rows.
func (w *wardrobeApp) swept() {
	swept := []row{w.item(sweptItem, "user7", "Rented tuxedo")}
	for range 6 {
		swept = append(swept, w.shareRow(hotItem, "user7", "web"), w.shareRow(sweptItem, "user7", "ios"))
	}
	for i := range 4 {
		swept = append(swept, w.idempotency("user7", fmt.Sprintf("swept-%d", i), sweptItem))
	}
	w.sweep(wardrobeTable, "TTL", swept...)
}

// searchable writes items that the search checks find, and some that they must not.
func (w *wardrobeApp) searchable() {
	add := func(id, user, name, category, brand, color string) {
		r := w.item(id, user, name)
		r["Category"], r["Brand"], r["Color"] = category, brand, color
		w.write(put(wardrobeTable, r))
	}
	add("01JS01", "user1", "Señorita flamenco gown", "costumes", "Sevilla", "crimson")
	add("01JS02", "user2", "Señorita petticoat", "costumes", "Cádiz", "ivory")
	add("01JS03", "user1", "Übergangsjacke", "outerwear", "Jack", "petrol")
	add("01JS04", "user3", "浴衣 夏祭り", "着物", "京都", "藍色")
	add("01JS05", "user4", "Levi 501 original", "denim", "Lévis", "indigo")
	add("01JS06", "user5", "Kimono silk", "robes", "Kyo", "vermilion")
	add("01JS07", "user6", "Kimona replica", "robes", "Kyo", "saffron")
	add("01JS08", "user7", "Пальто зимнее", "верхняя", "Москва", "серый")
	add("01JS09", "user8", "Balaclava", "headgear", "Alp", "teal")
	add("01JS10", "user8", "Sombrero", "headgear", "Sol", "straw")
	add("01JS12", "user8", "O'Neill's raincoat", "outdoors", "Sol", "lime")
	add("01JS11", "user8", "Tutu", "ballet", "Sol", "rose")
	w.write(update(wardrobeTable, itemKey("01JS10"), row{"Name": "Panama"}), del(wardrobeTable, itemKey("01JS09")),
		update(wardrobeTable, itemKey("01JS07"), row{"UserId": "user5"}))
	w.write(put(wardrobeTable, w.shareRow("01JS01", "user1", "web")), put(wardrobeTable, w.shareRow("01JS06", "user1", "web")))
}
