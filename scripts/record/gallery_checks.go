package main

import (
	"fmt"
	"slices"
	"strings"
)

// galleryExpect states what the gallery must answer.
func galleryExpect(a *app, e *expect) {
	g := &galleryChecks{app: a, expect: e}
	g.count()
	e.present = g.present
	g.albums()
	g.media()
	g.links()
	g.people()
	g.sessions()
	g.reactions()
	g.searches()
}

// A galleryChecks has the booked rows by entity, and the recount of what is derived from them.
type galleryChecks struct {
	*app
	*expect
	album, mediaRows, link, user, reaction []row
	mediaCount                             map[string]int // by album id
	reacted                                map[string]int // by kind and media id
}

func (g *galleryChecks) count() {
	of := func(entity string) []row {
		return g.rows(galleryTable, func(r row) bool { return text(r, "EntityType") == entity })
	}
	g.album, g.link, g.user, g.reaction = of("Album"), of("AlbumMedia"), of("User"), of("UserInteraction")
	g.mediaRows = slices.DeleteFunc(of("Media"), isV1)
	g.mediaCount, g.reacted = make(map[string]int), make(map[string]int)
	for _, r := range g.rows(galleryTable, func(r row) bool { return isV1(r) || text(r, "EntityType") == "AlbumMedia" }) {
		g.mediaCount[text(r, "albumId")]++
	}
	for _, r := range g.reaction {
		g.reacted[text(r, "interactionType")+" "+text(r, "mediaId")]++
	}
}

// isV1 tells a media row of the first version: a file's attributes at a relationship's key.
func isV1(r row) bool {
	return strings.HasPrefix(text(r, "PK"), "ALBUM#") && strings.HasPrefix(text(r, "SK"), "MEDIA#") && r["filename"] != nil
}

func (g *galleryChecks) present(r row) row {
	r = clone(r)
	id := text(r, "id")
	switch text(r, "EntityType") {
	case "Album":
		r["mediaCount"] = n(g.mediaCount[id])
		r["isPublic"] = r["isPublic"] == "true"
	case "Media":
		r["likeCount"], r["bookmarkCount"] = n(g.reacted["like "+id]), n(g.reacted["bookmark "+id])
	}
	delete(r, "passwordHash")
	delete(r, "salt")
	return r
}

// where filters rows by one attribute.
func where(rows []row, name string, value any) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r[name] != value })
}

func field(names ...string) func(row) string {
	return func(r row) string {
		var parts []string
		for _, name := range names {
			parts = append(parts, text(r, name))
		}
		return strings.Join(parts, "#")
	}
}

// exactly is the access pattern that gets one row by its key.
func exactly(table, pk, sk string) *access {
	return &access{table: table, hash: "PK", value: pk, rng: "SK", op: "=", arg: sk}
}

func (g *galleryChecks) albums() {
	ids := append([]string{hotAlbum, lateAlbum, goneAlbum, againAlbum, ghostAlbum, "old-0", "old-1", "s-4", ""}, unicodeAlbums...)
	ids = append(ids[:len(ids):len(ids)], legacyAlbums...)
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	for i, r := range g.album {
		if id := text(r, "id"); i%9 == 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		g.check("album", params{"albumId": id}, true, where(g.album, "id", id), exactly(galleryTable, "ALBUM#"+id, "METADATA"))
	}
	g.check("albums", nil, true, sorted(g.album, true, field("createdAt", "id")),
		&access{table: galleryTable, index: "GSI1", hash: "GSI1PK", value: "ALBUM", desc: true})
	for _, who := range append(creators, legacyAuthor+"-albums", "u-100", "u-1000", "u-") {
		if slices.ContainsFunc(g.checks, func(c *check) bool { return c.Query == "albums-by-creator" && c.Params["createdBy"] == who }) {
			continue
		}
		g.check("albums-by-creator", params{"createdBy": who}, true, sorted(where(g.album, "createdBy", who), false, field("createdAt", "id")),
			&access{table: galleryTable, index: "GSI4", hash: "GSI4PK", value: "ALBUM_BY_CREATOR", rng: "GSI4SK", op: "begins", arg: who + "#"})
	}
	for _, public := range []string{"true", "false"} {
		g.check("public-albums", params{"isPublic": public}, true, sorted(where(g.album, "isPublic", public), true, field("createdAt")),
			&access{table: galleryTable, index: "isPublic-createdAt-index", hash: "isPublic", value: public, desc: true})
	}
}

func (g *galleryChecks) media() {
	ids := []string{hotMedia, rareMedia, ghostMedia, sweptMedia, "sm-1", "sm-7", "v1-00", "v1-13", "v1-16"}
	for i, r := range g.mediaRows {
		if id := text(r, "id"); i%60 == 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		g.check("media", params{"mediaId": id}, true, where(g.mediaRows, "id", id),
			&access{table: galleryTable, index: "GSI2", hash: "GSI2PK", value: "MEDIA_ID", rng: "GSI2SK", op: "=", arg: id})
	}
	for _, who := range append(slices.Clone(creators[1:]), "u-1000") {
		g.check("media-by-creator", params{"createdBy": who}, true, sorted(where(g.mediaRows, "createdBy", who), false, field("createdAt", "id")),
			&access{table: galleryTable, index: "GSI1", hash: "GSI1PK", value: "MEDIA_BY_CREATOR", rng: "GSI1SK", op: "begins", arg: who + "#"})
	}
	public := make(map[string]bool) // media ids
	for _, l := range g.link {
		if r := g.row(galleryTable, albumKey(text(l, "albumId"))); r != nil && r["isPublic"] == "true" {
			public[text(l, "mediaId")] = true
		}
	}
	g.check("public-media", nil, false, slices.DeleteFunc(slices.Clone(g.mediaRows), func(r row) bool { return !public[text(r, "id")] }), nil)
}

func (g *galleryChecks) links() {
	albums := append([]string{hotAlbum, lateAlbum, goneAlbum, againAlbum, ghostAlbum, "nobody"}, unicodeAlbums...)
	for i, r := range g.album {
		if id := text(r, "id"); i%25 == 1 && !slices.Contains(albums, id) && !slices.Contains(legacyAlbums, id) {
			albums = append(albums, id)
		}
	}
	for _, id := range albums {
		g.check("album-media", params{"albumId": id}, true, sorted(where(g.link, "albumId", id), false, field("mediaId")),
			&access{table: galleryTable, hash: "PK", value: "ALBUM#" + id, rng: "SK", op: "begins", arg: "MEDIA#"})
	}
	ids := []string{hotMedia, rareMedia, ghostMedia, sweptMedia, "m-hot-0002", "m-hot-0007", "nobody"}
	for i, r := range g.mediaRows {
		if id := text(r, "id"); i%120 == 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		g.check("media-albums", params{"mediaId": id}, true, sorted(where(g.link, "mediaId", id), false, field("albumId", "addedAt")),
			&access{table: galleryTable, index: "GSI1", hash: "GSI1PK", value: "MEDIA#" + id})
	}
	// A live migration makes relationships of what the legacy albums still have of the first version.
	current := func(r row) bool { return !slices.Contains(legacyAlbums, text(r, "albumId")) }
	c := g.check("album-media-by-date", nil, true,
		sorted(slices.DeleteFunc(slices.Clone(g.link), func(r row) bool { return !current(r) }), false, field("addedAt", "albumId", "mediaId")),
		&access{table: galleryTable, index: "GSI2", hash: "GSI2PK", value: "ALBUM_MEDIA_BY_DATE", keep: current})
	c.Except = map[string][]string{"albumId": legacyAlbums}
}

func (g *galleryChecks) people() {
	byKey := func(query, param, index, pk, attribute string, values ...string) {
		for _, v := range values {
			entity := g.rows(galleryTable, func(r row) bool {
				return text(r, attribute) == v && (text(r, "EntityType") == "User" || text(r, "EntityType") == "AdminUser" && pk == "ADMIN_USERNAME") &&
					(pk != "ADMIN_USERNAME" || text(r, "EntityType") == "AdminUser")
			})
			g.check(query, params{param: v}, true, entity,
				&access{table: galleryTable, index: index, hash: index + "PK", value: pk, rng: index + "SK", op: "=", arg: v})
		}
	}
	byKey("admin-by-username", "username", "GSI1", "ADMIN_USERNAME", "username", "curator0", "curator3", "Ève", "nobody")
	for _, id := range []string{"u-1", "u-10", "ユーザー-一", "u-star", "u-star-2", "u-left", "u-never-registered"} {
		g.check("user", params{"userId": id}, true, where(g.user, "userId", id), exactly(galleryTable, "USER#"+id, "METADATA"))
	}
	byKey("user-by-email", "email", "GSI1", "USER_EMAIL", "email", text(g.user[3], "email"), "yui@例え.jp", "star@example.com", "moon@example.com", "left@example.com", "STAR@example.com")
	byKey("user-by-google", "googleId", "GSI2", "USER_GOOGLE", "googleId", fmt.Sprintf("1%020d", 3), "117", "118", "1")
	byKey("user-by-username", "username", "GSI3", "USER_USERNAME", "username", text(g.user[5], "username"), "結衣", "starlight", "moonlight", "left", "curator0")
}

func (g *galleryChecks) sessions() {
	one := func(query, param, prefix, entity string, ids ...string) {
		for _, id := range ids {
			rows := g.rows(galleryTable, func(r row) bool {
				return text(r, "EntityType") == entity && text(r, "PK") == prefix+id && strings.HasPrefix(text(r, "expiresAt"), "2099")
			})
			by := exactly(galleryTable, prefix+id, "METADATA")
			by.keep = func(r row) bool { return strings.HasPrefix(text(r, "expiresAt"), "2099") }
			g.check(query, params{param: id}, true, rows, by)
		}
	}
	live := func(entity, id string) []string {
		var ids []string
		for i, r := range g.rows(galleryTable, func(r row) bool {
			return text(r, "EntityType") == entity && strings.HasPrefix(text(r, "expiresAt"), "2099")
		}) {
			if i%8 == 0 && len(ids) < 5 {
				ids = append(ids, text(r, id))
			}
		}
		return ids
	}
	gone := []string{"over-00", "over-02", "over-11", "swept-0", "nobody"}
	one("session", "sessionId", "SESSION#", "AdminSession", append(live("AdminSession", "sessionId"), gone...)...)
	one("user-session", "sessionId", "USER_SESSION#", "UserSession", append(live("UserSession", "sessionId"), gone...)...)
	one("verification-token", "token", "EMAIL_VERIFICATION_TOKEN#", "EmailVerificationToken", append(live("EmailVerificationToken", "token"), "over-00", "over-05", "nobody")...)
	for _, q := range [][3]string{{"expired-sessions", "AdminSession", "SESSION_EXPIRY"}, {"expired-user-sessions", "UserSession", "USER_SESSION_EXPIRY"}} {
		query, entity, pk := q[0], q[1], q[2]
		for _, before := range []string{"2019-12-31T00:00:00.000Z", "2020-06-30T00:00:00.000Z", "2021-01-01T00:00:00.000Z"} {
			rows := g.rows(galleryTable, func(r row) bool { return text(r, "EntityType") == entity && text(r, "expiresAt") < before })
			g.check(query, params{"before": before}, true, sorted(rows, false, field("expiresAt", "sessionId")),
				&access{table: galleryTable, index: "GSI1", hash: "GSI1PK", value: pk, rng: "GSI1SK", op: "<", arg: before})
		}
	}
}

func (g *galleryChecks) reactions() {
	for _, user := range []string{"u-1", "u-10", "ユーザー-一", "u-never-registered", "u-star", "nobody"} {
		for _, kind := range []string{"", "like", "bookmark", "flag"} {
			if kind == "flag" && user != "u-1" {
				continue
			}
			p, prefix := params{"userId": user}, "INTERACTION#"
			rows := where(g.reaction, "userId", user)
			if kind != "" {
				p["type"] = kind
				rows = where(rows, "interactionType", kind)
				prefix += kind + "#"
			}
			g.check("user-interactions", p, true, sorted(rows, false, field("interactionType", "mediaId")),
				&access{table: galleryTable, hash: "PK", value: "USER#" + user, rng: "SK", op: "begins", arg: prefix})
		}
	}
	for _, media := range []string{hotMedia, rareMedia, ghostMedia, sweptMedia, "m-hot-0002", "sm-1"} {
		for _, kind := range []string{"", "like", "bookmark"} {
			p := params{"mediaId": media}
			by := &access{table: galleryTable, index: "GSI1", hash: "GSI1PK", value: "MEDIA_INTERACTION#" + media}
			rows := where(g.reaction, "mediaId", media)
			if kind != "" {
				p["type"] = kind
				rows = where(rows, "interactionType", kind)
				by.rng, by.op, by.arg = "GSI1SK", "begins", kind+"#"
			}
			g.check("media-interactions", p, true, sorted(rows, false, field("interactionType", "userId")), by)
		}
	}
}

func (g *galleryChecks) searches() {
	albums := searched{"search-albums", []string{"title", "tags"}, where(g.album, "isPublic", "true")}
	for _, c := range []struct {
		q    string
		want int
	}{
		{"creme brulee", 1}, {"CRÈME", 1}, {"montréal brûlée", 1}, {"valparaíso", 1}, {"valpar", 1}, {"valparaizo", 1},
		{"pacifico", 1}, {"reykjavik", 0}, {"aurora", 0}, {"桜の木の下で", 1}, {"桜の", 1}, {"花見", 1}, {"байкал", 1}, {"القاهرة", 1},
		{"route 66", 1}, {"route 67", 0}, {"glacier", 1}, {"glasier", 2}, {"fux", 0}, {"fox owl", 1}, {"funiculars", 1}, {"cable", 0},
		{"zanzibar", 0}, {"pelican", 1}, {"sunset glacier", 0}, {"xylophone", 0}, {"nocturne polarnacht", 0},
	} {
		g.search(albums, params{"q": c.q}, c.want)
	}
	media := searched{"search-media", []string{"originalFilename", "filename"}, g.mediaRows}
	for _, c := range []struct {
		q    string
		want int
	}{
		{"argerlich", 1}, {"ärgerlich märz", 1}, {"naive facade", 1}, {"파노라마", 1}, {"walrus", 2}, {"walrus webp", 2},
		{"walruz", 2}, {"zołw", 1}, {"żółw", 1}, {"hedgehog", 0}, {"everything at once", 1}, {"everithing", 1}, {"promotion", 1},
	} {
		g.search(media, params{"q": c.q}, c.want)
	}
}
