package main

import (
	"fmt"
	"slices"
	"strings"
)

const galleryTable = "gallery"

var gallery = model{
	name: "gallery",
	tables: []tableSpec{{
		name: galleryTable, hash: "PK", rng: "SK", ttl: "ttl",
		gsis: []indexSpec{
			{name: "GSI1", hash: "GSI1PK", rng: "GSI1SK"},
			{name: "GSI2", hash: "GSI2PK", rng: "GSI2SK"},
			{name: "GSI3", hash: "GSI3PK", rng: "GSI3SK"},
			{name: "GSI4", hash: "GSI4PK", rng: "GSI4SK"},
			{name: "isPublic-createdAt-index", hash: "isPublic", rng: "createdAt"},
		},
	}},
	play:   func(a *app) { (&galleryApp{app: a, stale: make(map[string]row)}).play() },
	expect: galleryExpect,
	form:   pagesForm("stream.jsonl.gz"),
	page:   250,
}

// The ids that the workload's special cases and the checks share.
const (
	hotAlbum     = "a-hot-0001"
	hotMedia     = "m-hot-0001"
	lateAlbum    = "late-album"
	ghostAlbum   = "never-an-album"
	ghostMedia   = "never-a-media"
	goneAlbum    = "gone-album"
	againAlbum   = "again-album"
	rareMedia    = "m-rare"
	sweptMedia   = "m-with-sweepings"
	legacyAuthor = "legacy-uploader"
)

var (
	unicodeAlbums = []string{"été-2024", "e\u0301te\u0301-2024", "夏の思い出", "🌊 waves & more", "قصص-٧"}
	legacyAlbums  = []string{"legacy-1", "legacy-2"}
	creators      = []string{"u-1", "u-10", "u-100", "admin-1", "ユーザー-一"}
)

// A galleryApp is the gallery's application: it keeps albums, media and who likes them.
type galleryApp struct {
	*app
	albums, media, users []string
	sessions, tokens     []string
	stale                map[string]row // copies that somebody took earlier
}

func (g *galleryApp) play() {
	g.swept()
	g.people()
	g.firstAlbums()
	g.special()
	g.live(g.times(2300), []deed{
		{12, g.newAlbum}, {60, g.upload}, {70, g.addToAlbum}, {14, g.removeFromAlbum}, {12, g.moveMedia},
		{110, func() { g.react("like") }}, {50, func() { g.react("bookmark") }}, {6, func() { g.react("flag") }},
		{40, g.unreact}, {8, g.moveLike}, {25, g.editAlbum}, {20, g.overwriteAlbum}, {12, g.keepCopy},
		{6, g.deleteAlbum}, {5, g.recreateAlbum}, {14, g.editMedia}, {12, g.overwriteMedia}, {10, g.deleteMedia},
		{5, g.restoreMedia}, {14, g.signIn}, {8, g.signOut}, {8, g.touchSession}, {4, g.verifyEmail}, {4, g.idle},
	})
	g.late()
	g.legacy()
	g.backfill()
	g.expired()
}

func albumKey(id string) row { return row{"PK": "ALBUM#" + id, "SK": "METADATA"} }
func mediaKey(id string) row { return row{"PK": "MEDIA#" + id, "SK": "METADATA"} }
func linkKey(album, media string) row {
	return row{"PK": "ALBUM#" + album, "SK": "MEDIA#" + media}
}
func reactionKey(user, kind, media string) row {
	return row{"PK": "USER#" + user, "SK": "INTERACTION#" + kind + "#" + media}
}

// merge gives the key with attributes.
func merge(rows ...row) row {
	out := row{}
	for _, r := range rows {
		for k, v := range r {
			out[k] = v
		}
	}
	return out
}

func (g *galleryApp) album(id, title, creator string, public bool) row {
	at := g.now()
	kind := "user"
	if strings.HasPrefix(creator, "admin") {
		kind = "admin"
	}
	return merge(albumKey(id), row{
		"GSI1PK": "ALBUM", "GSI1SK": at + "#" + id,
		"GSI4PK": "ALBUM_BY_CREATOR", "GSI4SK": creator + "#" + at + "#" + id,
		"EntityType": "Album", "id": id, "title": title, "tags": list(some(g.app, 3, tagPool)...),
		"coverImageUrl": "https://cdn.example.com/albums/" + g.hex(6) + ".jpg",
		"thumbnailUrls": row{"small": "https://cdn.example.com/s/" + g.hex(4), "large": "https://cdn.example.com/l/" + g.hex(4)},
		"createdAt":     at, "updatedAt": at, "mediaCount": n(0), "isPublic": fmt.Sprint(public),
		"createdBy": creator, "createdByType": kind,
	})
}

func (g *galleryApp) mediaRow(id, original, creator string) row {
	at := g.now()
	file := g.hex(8) + ".jpg"
	return merge(mediaKey(id), row{
		"GSI1PK": "MEDIA_BY_CREATOR", "GSI1SK": creator + "#" + at + "#" + id,
		"GSI2PK": "MEDIA_ID", "GSI2SK": id,
		"EntityType": "Media", "id": id, "filename": file, "originalFilename": original, "mimeType": "image/jpeg",
		"size": n(20_000 + g.rand.IntN(9_000_000)), "width": n(640 + g.rand.IntN(5000)), "height": n(480 + g.rand.IntN(4000)),
		"url": "https://cdn.example.com/o/" + file, "thumbnailUrls": row{"small": "https://cdn.example.com/s/" + file},
		"status": one(g.app, []string{"pending", "processed", "processed", "failed"}), "createdAt": at, "updatedAt": at,
		"createdBy": creator, "createdByType": "user", "metadata": g.metadata(),
	})
}

// metadata is what a camera leaves in a file: nested, and of every type that a table can hold.
func (g *galleryApp) metadata() row {
	m := row{"iso": n(100 << g.rand.IntN(6)), "exposure": num(fmt.Sprintf("0.%04d", 1+g.rand.IntN(999)*10+1))}
	if g.chance(0.15) {
		m["gps"] = []any{num("38.7223"), num("-9.1393")}
		m["camera"] = row{"make": "Ōlymp", "lens": nil, "firmware": list("1.0", "1.1")}
	}
	if g.chance(0.08) {
		m["palette"] = strs{"rot", "grün", "blau", "蓝"}
		m["histogram"] = nums{"10", "9", "0.5", "-3"}
		m["checksum"] = bin(g.bytes(16))
	}
	return m
}

func (g *galleryApp) link(album, media string) row {
	at := g.now()
	return merge(linkKey(album, media), row{
		"GSI1PK": "MEDIA#" + media, "GSI1SK": "ALBUM#" + album + "#" + at,
		"GSI2PK": "ALBUM_MEDIA_BY_DATE", "GSI2SK": at + "#" + album + "#" + media,
		"EntityType": "AlbumMedia", "albumId": album, "mediaId": media, "addedAt": at, "addedBy": one(g.app, creators),
	})
}

func (g *galleryApp) reaction(user, kind, media string) row {
	return merge(reactionKey(user, kind, media), row{
		"GSI1PK": "MEDIA_INTERACTION#" + media, "GSI1SK": kind + "#" + user, "EntityType": "UserInteraction",
		"userId": user, "mediaId": media, "interactionType": kind, "createdAt": g.now(),
	})
}

func (g *galleryApp) firstAlbums() {
	for range g.times(40) {
		g.newAlbum()
	}
	for i, id := range unicodeAlbums {
		g.albums = append(g.albums, id)
		g.write(put(galleryTable, g.album(id, "Ünïcode "+id, creators[i%len(creators)], i != 3)))
	}
	// Albums from before isPublic and GSI4 were there: backfilled at the end of the workload.
	for i := range 8 {
		id := fmt.Sprintf("old-%d", i)
		r := g.album(id, g.title(), one(g.app, creators), true)
		delete(r, "GSI4PK")
		delete(r, "GSI4SK")
		if i%2 == 0 {
			delete(r, "isPublic")
		}
		g.write(put(galleryTable, r))
	}
	for i, id := range legacyAlbums {
		g.write(put(galleryTable, g.album(id, fmt.Sprintf("From the first version %d", i), legacyAuthor+"-albums", false)))
	}
}

func (g *galleryApp) newAlbum() {
	id := g.uuid()
	g.albums = append(g.albums, id)
	r := g.album(id, g.title(), one(g.app, creators), g.chance(0.6))
	if g.chance(0.2) { // a client that knows nothing of the count
		delete(r, "mediaCount")
	}
	if g.chance(0.1) {
		r["labels"] = strs{"staff pick", "été", "2025"}
	}
	g.write(put(galleryTable, r))
}

// upload puts a media and its relationships, in one transaction or batch or one after the other.
func (g *galleryApp) upload() {
	id := g.uuid()
	g.media = append(g.media, id)
	ops := []op{put(galleryTable, g.mediaRow(id, fmt.Sprintf("IMG_%04d.jpg", g.rand.IntN(10000)), one(g.app, creators)))}
	for _, album := range some(g.app, g.rand.IntN(3), g.albums) {
		ops = append(ops, put(galleryTable, g.link(album, id)))
	}
	switch g.rand.IntN(4) {
	case 0:
		g.transact(ops...)
	case 1:
		g.batch(ops...)
	case 2: // the relationships first
		slices.Reverse(ops)
		g.write(ops...)
	default:
		g.write(ops...)
	}
}

func (g *galleryApp) anyAlbum() (string, row, bool) {
	return g.living(galleryTable, g.albums, albumKey)
}
func (g *galleryApp) anyMedia() (string, row, bool) { return g.living(galleryTable, g.media, mediaKey) }

func (g *galleryApp) addToAlbum() {
	album, _, ok := g.anyAlbum()
	media, r, found := g.anyMedia()
	if !ok || !found {
		return
	}
	if g.chance(0.25) {
		// An application that keeps the count itself, and sometimes gets it wrong.
		count := one(g.app, []num{"1", "999", "-1"})
		g.transact(put(galleryTable, g.link(album, media)), update(galleryTable, albumKey(album), row{"mediaCount": count, "updatedAt": g.now()}))
		return
	}
	g.write(put(galleryTable, g.link(album, media)))
	if g.chance(0.1) { // sent again, as it stands: no record
		g.write(put(galleryTable, g.row(galleryTable, linkKey(album, media))), put(galleryTable, r))
	}
}

// anyLink picks a relationship of one of the media.
func (g *galleryApp) anyLink() (row, bool) {
	for range 20 {
		if len(g.media) == 0 {
			break
		}
		id := one(g.app, g.media)
		for _, album := range g.albums {
			if r := g.row(galleryTable, linkKey(album, id)); r != nil {
				return r, true
			}
		}
	}
	return nil, false
}

func (g *galleryApp) removeFromAlbum() {
	if r, ok := g.anyLink(); ok {
		g.write(del(galleryTable, g.tables[galleryTable].key(r)))
	}
}

// moveMedia takes a media out of one album and into another.
func (g *galleryApp) moveMedia() {
	r, ok := g.anyLink()
	to, _, found := g.anyAlbum()
	if !ok || !found || text(r, "albumId") == to {
		return
	}
	g.transact(del(galleryTable, g.tables[galleryTable].key(r)), put(galleryTable, g.link(to, text(r, "mediaId"))))
}

func (g *galleryApp) react(kind string) {
	if media, _, ok := g.anyMedia(); ok {
		g.write(put(galleryTable, g.reaction(one(g.app, g.users), kind, media)))
	}
}

func (g *galleryApp) anyReaction() (row, bool) {
	for range 200 {
		if len(g.media) == 0 {
			break
		}
		kind := one(g.app, []string{"like", "like", "bookmark"})
		media := one(g.app, g.media)
		for _, u := range g.users {
			if r := g.row(galleryTable, reactionKey(u, kind, media)); r != nil {
				return r, true
			}
		}
	}
	return nil, false
}

func (g *galleryApp) unreact() {
	if r, ok := g.anyReaction(); ok {
		g.write(del(galleryTable, g.tables[galleryTable].key(r)))
	}
}

func (g *galleryApp) moveLike() {
	r, ok := g.anyReaction()
	to, _, found := g.anyMedia()
	if ok && found && text(r, "mediaId") != to {
		g.transact(del(galleryTable, g.tables[galleryTable].key(r)), put(galleryTable, g.reaction(text(r, "userId"), text(r, "interactionType"), to)))
	}
}

// idle writes what is there already: no record comes of it.
func (g *galleryApp) idle() {
	if id, r, ok := g.anyAlbum(); ok {
		g.write(put(galleryTable, r), update(galleryTable, albumKey(id), row{"title": r["title"]}), del(galleryTable, albumKey("nobody-"+id)))
	}
}
