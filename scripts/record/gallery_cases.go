package main

import "fmt"

// The gallery's edits and its special cases.

func (g *galleryApp) editAlbum() {
	id, r, ok := g.anyAlbum()
	if !ok {
		return
	}
	set := row{"updatedAt": g.now()}
	switch g.rand.IntN(4) {
	case 0:
		set["title"] = g.title()
	case 1:
		set["isPublic"] = map[string]string{"true": "false", "false": "true"}[text(r, "isPublic")]
	case 2: // handed on: the index key goes with it
		to := one(g.app, creators)
		set["createdBy"], set["GSI4SK"] = to, to+"#"+text(r, "createdAt")+"#"+id
	default:
		set["tags"] = list(some(g.app, 2, tagPool)...)
		g.write(update(galleryTable, albumKey(id), set, "coverImageUrl"))
		return
	}
	g.write(update(galleryTable, albumKey(id), set))
}

// keepCopy reads a row into somebody's editor, from which it is written back much later.
func (g *galleryApp) keepCopy() {
	if id, r, ok := g.anyAlbum(); ok {
		g.stale[id] = clone(r)
	}
}

// overwriteAlbum writes an album whole, with a count that was never right.
func (g *galleryApp) overwriteAlbum() {
	id, now, ok := g.anyAlbum()
	if !ok {
		return
	}
	r := g.stale[id]
	if r == nil {
		r = now
	}
	r = clone(r)
	r["updatedAt"] = g.now()
	if g.chance(0.2) {
		delete(r, "mediaCount")
	} else {
		r["mediaCount"] = one(g.app, []num{"0", "999", "3"})
	}
	g.write(put(galleryTable, r))
}

// deleteAlbum deletes an album, sometimes with its relationships, sometimes leaving them.
func (g *galleryApp) deleteAlbum() {
	id, _, ok := g.anyAlbum()
	if !ok || id == hotAlbum {
		return
	}
	var ops []op
	if g.chance(0.5) {
		for _, r := range g.rows(galleryTable, func(r row) bool { return text(r, "albumId") == id }) {
			ops = append(ops, del(galleryTable, g.tables[galleryTable].key(r)))
		}
	}
	g.batch(append(ops, del(galleryTable, albumKey(id)))...)
}

func (g *galleryApp) recreateAlbum() {
	id := one(g.app, g.albums)
	if g.row(galleryTable, albumKey(id)) == nil {
		g.write(put(galleryTable, g.album(id, g.title(), one(g.app, creators), g.chance(0.5))))
	}
}

func (g *galleryApp) editMedia() {
	if id, _, ok := g.anyMedia(); ok {
		g.write(update(galleryTable, mediaKey(id), row{"status": "processed", "updatedAt": g.now(), "metadata": g.metadata()}))
	}
}

func (g *galleryApp) overwriteMedia() {
	if _, r, ok := g.anyMedia(); ok {
		r = clone(r)
		r["updatedAt"] = g.now()
		r["likeCount"], r["bookmarkCount"] = n(g.rand.IntN(50)), n(0)
		g.write(put(galleryTable, r))
	}
}

func (g *galleryApp) deleteMedia() {
	id, r, ok := g.anyMedia()
	if !ok || id == hotMedia {
		return
	}
	g.stale[id] = clone(r)
	ops := []op{del(galleryTable, mediaKey(id))}
	if g.chance(0.7) {
		for _, l := range g.rows(galleryTable, func(r row) bool { return text(r, "mediaId") == id && text(r, "EntityType") == "AlbumMedia" }) {
			ops = append(ops, del(galleryTable, g.tables[galleryTable].key(l)))
		}
	}
	g.batch(ops...)
}

func (g *galleryApp) restoreMedia() {
	if len(g.media) == 0 {
		return
	}
	id := one(g.app, g.media)
	if r := g.stale[id]; r != nil && g.row(galleryTable, mediaKey(id)) == nil {
		g.write(put(galleryTable, r))
	}
}

// special writes the rows with which the checks deal by name.
func (g *galleryApp) special() {
	g.hot()
	g.searchable()
	g.usernames()
	// One row of every type, and numbers at the limits.
	rare := g.mediaRow(rareMedia, "Everything at once.tiff", "u-10")
	rare["metadata"] = row{
		"big": num("12345678901234567890123456789012345678"), "small": num("-0.00000000000000000000000000000000000001"),
		"long": num("3.1415926535897932384626433832795028841"), "zero": n(0), "none": nil, "empty": "", "no": false,
		"list": []any{n(1), "two", nil, []any{}, row{}}, "deep": row{"a": row{"b": row{"c": []any{row{"d": bin("\x00\xfe")}}}}},
		"words": strs{"b", "a", "ä", "🌊"}, "numbers": nums{"10", "9", "-1", "0.5"}, "blobs": bins{"\x00", "\x01\x02"},
		"quote": "\"\\/\b\f\n\r\t\u2028</script>", "rtl": "שלום \u202eabc", "zalgo": "e\u0301\u0323",
	}
	g.write(put(galleryTable, rare))
	// What never gets its target.
	g.write(put(galleryTable, g.link(ghostAlbum, rareMedia)), put(galleryTable, g.link(unicodeAlbums[0], ghostMedia)),
		put(galleryTable, g.reaction("u-1", "like", ghostMedia)), put(galleryTable, g.reaction("u-10", "like", ghostMedia)))
	// Comes later (late): what counts towards it is here first.
	for i := range 30 {
		g.write(put(galleryTable, g.link(lateAlbum, fmt.Sprintf("m-hot-%04d", i+1))))
	}
	// Here and gone again; and here again, with what it had.
	for _, id := range []string{goneAlbum, againAlbum} {
		g.write(put(galleryTable, g.album(id, "Rooftops of Zanzibar", "u-1", true)))
		for i := range 7 {
			g.write(put(galleryTable, g.link(id, fmt.Sprintf("m-hot-%04d", i+1))))
		}
		g.write(del(galleryTable, albumKey(id)))
	}
	g.write(del(galleryTable, linkKey(againAlbum, hotMedia)))
	again := g.album(againAlbum, "Here again", "u-1", true)
	again["mediaCount"] = n(0)
	g.write(put(galleryTable, again))
}

// hot makes an album with very many media and a media with very many likes.
func (g *galleryApp) hot() {
	g.albums = append(g.albums, hotAlbum)
	g.write(put(galleryTable, g.album(hotAlbum, "All of them", "u-1", true)))
	var media, links, likes []op
	for i := range g.times(650) {
		id := fmt.Sprintf("m-hot-%04d", i+1)
		g.media = append(g.media, id)
		media = append(media, put(galleryTable, g.mediaRow(id, fmt.Sprintf("DSC%05d.NEF", i), "admin-1")))
		links = append(links, put(galleryTable, g.link(hotAlbum, id)))
	}
	for i, u := range g.users {
		likes = append(likes, put(galleryTable, g.reaction(u, "like", hotMedia)))
		if i%4 == 0 {
			likes = append(likes, put(galleryTable, g.reaction(u, "bookmark", hotMedia)))
		}
	}
	// Half of the relationships come before their media.
	half := len(links) / 2
	g.batch(links[:half]...)
	g.batch(media...)
	g.batch(links[half:]...)
	g.batch(likes...)
}

// searchable writes albums and media that the search checks find, and some that they must not.
func (g *galleryApp) searchable() {
	add := func(id, title string, public bool, tags ...string) {
		r := g.album(id, title, "u-100", public)
		r["tags"] = list(tags...)
		g.write(put(galleryTable, r))
	}
	add("s-1", "Crème brûlée à Montréal", true, "dessert", "hiver")
	add("s-2", "Sunset over Valparaíso", true, "pacífico")
	add("s-3", "Valparaíso, private", false, "pacífico")
	add("s-4", "Nocturne in Reykjavík", true, "polarnacht", "aurora")
	add("s-5", "桜の木の下で", true, "花見")
	add("s-6", "Путешествие по Байкалу", true, "зима")
	add("s-7", "ليالي القاهرة", true, "سفر")
	add("s-8", "Route 66 roadtrip", true, "desert")
	add("s-9", "Glacier walk", true)
	add("s-10", "Glazier at work", true)
	add("s-11", "The fox and the owl", true)
	add("s-12", "Cable cars of Lissabon", true, "elétrico")
	add("s-13", "Pelican study", false)
	// Public, then private; private, then public; renamed; deleted.
	g.write(
		update(galleryTable, albumKey("s-4"), row{"isPublic": "false", "updatedAt": g.now()}),
		update(galleryTable, albumKey("s-13"), row{"isPublic": "true", "updatedAt": g.now()}),
		update(galleryTable, albumKey("s-12"), row{"title": "Funiculars of Napoli", "updatedAt": g.now()}),
	)
	for i, name := range []string{"Ärgerlich_März_2024.JPG", "naïve-façade.png", "파노라마 서울.heic", "Walrus (1).webp", "walrus-2.webp", "żółw.gif", "Hedgehog.jpeg"} {
		id := fmt.Sprintf("sm-%d", i+1)
		g.write(put(galleryTable, g.mediaRow(id, name, "u-100")))
	}
	g.write(del(galleryTable, mediaKey("sm-7")), put(galleryTable, g.reaction("u-1", "like", "sm-1")))
}

// usernames renames people, and gives a name that became free to somebody else.
func (g *galleryApp) usernames() {
	key := row{"PK": "USER#u-star", "SK": "METADATA"}
	g.write(
		put(galleryTable, g.user("u-star", "star@example.com", "starlight", "")),
		update(galleryTable, key, row{"username": "moonlight", "GSI3SK": "moonlight"}),
		update(galleryTable, key, row{"email": "moon@example.com", "GSI1SK": "moon@example.com", "googleId": "117", "GSI2PK": "USER_GOOGLE", "GSI2SK": "117"}),
		put(galleryTable, g.user("u-star-2", "star@example.com", "starlight", "")),
		put(galleryTable, g.user("u-left", "left@example.com", "left", "118")),
		del(galleryTable, row{"PK": "USER#u-left", "SK": "METADATA"}),
	)
}

// late writes the targets for which something has been waiting since the beginning.
func (g *galleryApp) late() {
	r := g.album(lateAlbum, "Better late", "u-10", true)
	r["mediaCount"] = n(999)
	g.write(put(galleryTable, r))
}

// legacy plays the first version's media rows, of which the application itself turns some into the new form.
func (g *galleryApp) legacy() {
	for i := range 44 {
		id, album := fmt.Sprintf("v1-%02d", i), legacyAlbums[i%2]
		at := g.now()
		r := merge(linkKey(album, id), row{
			"GSI1PK": "MEDIA#" + album, "GSI1SK": at + "#" + id,
			"id": id, "albumId": album, "filename": fmt.Sprintf("legacy%04d.jpg", i), "originalFilename": fmt.Sprintf("LEGACY%04d.JPG", i),
			"mimeType": "image/jpeg", "size": n(1000 + i), "url": fmt.Sprintf("https://cdn.example.com/v1/%d", i),
			"createdAt": at, "updatedAt": at, "createdBy": legacyAuthor, "createdByType": "admin",
		})
		if i%4 < 2 { // not every release of the first version wrote it
			r["EntityType"] = "Media"
		}
		g.write(put(galleryTable, r))
	}
	for i := range 44 {
		id, album := fmt.Sprintf("v1-%02d", i), legacyAlbums[i%2]
		switch {
		case i < 14: // in one transaction, at the same key
			m := g.mediaRow(id, fmt.Sprintf("LEGACY%04d.JPG", i), legacyAuthor)
			g.transact(put(galleryTable, m), put(galleryTable, g.link(album, id)))
		case i < 20: // the media first, the relationship some time later
			g.write(put(galleryTable, g.mediaRow(id, fmt.Sprintf("LEGACY%04d.JPG", i), legacyAuthor)))
			g.write(put(galleryTable, g.link(album, id)))
		case i < 25:
			g.write(del(galleryTable, linkKey(album, id)))
		case i < 30: // edited as it is
			g.write(update(galleryTable, linkKey(album, id), row{"status": "processed"}))
		}
	}
	g.write(put(galleryTable, g.link(legacyAlbums[0], hotMedia)), put(galleryTable, g.link(legacyAlbums[1], rareMedia)))
	stale := g.row(galleryTable, albumKey(legacyAlbums[1]))
	g.write(put(galleryTable, merge(stale, row{"mediaCount": n(0), "updatedAt": g.now()})))
}

// backfill does what the two scripts of the document do.
func (g *galleryApp) backfill() {
	for i := range 8 {
		key := albumKey(fmt.Sprintf("old-%d", i))
		r := g.row(galleryTable, key)
		if r == nil {
			continue
		}
		if _, ok := r["isPublic"]; !ok {
			g.write(update(galleryTable, key, row{"isPublic": "true"}))
		}
		g.write(update(galleryTable, key, row{"GSI4PK": "ALBUM_BY_CREATOR",
			"GSI4SK": text(r, "createdBy") + "#" + text(r, "createdAt") + "#" + text(r, "id")}))
	}
}

func adminSession(id, expires string) row {
	return row{"PK": "SESSION#" + id, "SK": "METADATA", "GSI1PK": "SESSION_EXPIRY", "GSI1SK": expires + "#" + id,
		"EntityType": "AdminSession", "sessionId": id, "adminId": "admin-0", "adminUsername": "curator0",
		"createdAt": "2020-01-01T00:00:00.000Z", "expiresAt": expires, "lastAccessedAt": "2020-01-01T00:00:00.000Z"}
}

// expired writes sessions and tokens that are over.
func (g *galleryApp) expired() {
	for i := range 12 {
		id := fmt.Sprintf("over-%02d", i)
		expires := fmt.Sprintf("2020-%02d-15T10:00:00.000Z", i+1)
		g.write(put(galleryTable, adminSession(id, expires)), put(galleryTable, row{
			"PK": "USER_SESSION#" + id, "SK": "METADATA", "GSI1PK": "USER_SESSION_EXPIRY", "GSI1SK": expires + "#" + id,
			"EntityType": "UserSession", "sessionId": id, "userId": "u-1", "createdAt": "2020-01-01T00:00:00.000Z",
			"expiresAt": expires, "lastAccessedAt": "2020-01-01T00:00:00.000Z"}),
			put(galleryTable, row{"PK": "EMAIL_VERIFICATION_TOKEN#" + id, "SK": "METADATA", "EntityType": "EmailVerificationToken",
				"token": id, "userId": "u-1", "expiresAt": expires}))
	}
	for _, id := range []string{"over-02", "over-03"} {
		g.write(del(galleryTable, row{"PK": "SESSION#" + id, "SK": "METADATA"}), del(galleryTable, userSessionKey(id)))
	}
}

// swept writes rows that the service sweeps. It comes first, because the sweep of DynamoDB Local takes very long in
// a table of many rows.
func (g *galleryApp) swept() {
	var swept []row
	for i := range 4 {
		swept = append(swept, adminSession(fmt.Sprintf("swept-%d", i), fmt.Sprintf("2021-03-0%dT00:00:00.000Z", i+1)))
	}
	g.write(put(galleryTable, g.mediaRow(sweptMedia, "promotion.jpg", "u-1")))
	for i := range 9 {
		g.write(put(galleryTable, g.reaction(fmt.Sprintf("u-%d", i), "like", sweptMedia)))
		swept = append(swept, g.reaction(fmt.Sprintf("u-%d", 20+i), "like", sweptMedia))
	}
	swept = append(swept, g.link(hotAlbum, sweptMedia), g.link(unicodeAlbums[2], sweptMedia))
	g.sweep(galleryTable, "ttl", swept...)
}
