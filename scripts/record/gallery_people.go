package main

import (
	"fmt"
	"strings"
	"time"
)

// The gallery's people: users, admins, and their sessions.

func (g *galleryApp) user(id, email, username, google string) row {
	r := row{
		"PK": "USER#" + id, "SK": "METADATA", "GSI1PK": "USER_EMAIL", "GSI1SK": email,
		"GSI3PK": "USER_USERNAME", "GSI3SK": username, "EntityType": "User",
		"userId": id, "email": email, "username": username, "role": one(g.app, []string{"user", "user", "user", "moderator", "admin"}),
		"createdAt": g.now(), "emailVerified": g.chance(0.5),
	}
	if google != "" {
		return merge(r, row{"GSI2PK": "USER_GOOGLE", "GSI2SK": google, "googleId": google})
	}
	return merge(r, row{"passwordHash": "$2b$12$" + g.hex(20)})
}

func (g *galleryApp) people() {
	for i := range 4 {
		g.write(put(galleryTable, row{
			"PK": fmt.Sprintf("ADMIN#admin-%d", i), "SK": "METADATA", "GSI1PK": "ADMIN_USERNAME", "GSI1SK": fmt.Sprintf("curator%d", i),
			"EntityType": "AdminUser", "adminId": fmt.Sprintf("admin-%d", i), "username": fmt.Sprintf("curator%d", i),
			"passwordHash": g.hex(32), "salt": g.hex(8), "createdAt": g.now(), "isActive": i != 3,
		}))
	}
	g.write(put(galleryTable, row{
		"PK": "ADMIN#admin-é", "SK": "METADATA", "GSI1PK": "ADMIN_USERNAME", "GSI1SK": "Ève", "EntityType": "AdminUser",
		"adminId": "admin-é", "username": "Ève", "passwordHash": g.hex(32), "salt": g.hex(8), "createdAt": g.now(), "isActive": true,
	}))
	var rows []op
	for i := range g.times(110) {
		id := fmt.Sprintf("u-%d", i)
		name := one(g.app, given)
		google := ""
		if i%3 == 0 {
			google = fmt.Sprintf("1%020d", i)
		}
		g.users = append(g.users, id)
		rows = append(rows, put(galleryTable, g.user(id, fmt.Sprintf("person%d+%s@example.com", i, strings.ToLower(name)), fmt.Sprintf("%s_%d", name, i), google)))
	}
	g.batch(rows...)
	g.users = append(g.users, "ユーザー-一", "u-never-registered")
	g.write(put(galleryTable, g.user("ユーザー-一", "yui@例え.jp", "結衣", "")))
	g.writeApplicationRows()
}

// writeApplicationRows puts rows that the data model says nothing about.
func (g *galleryApp) writeApplicationRows() {
	g.write(
		put(galleryTable, row{"PK": "CONFIG#site", "SK": "METADATA", "EntityType": "SiteConfig", "motd": "", "limits": row{},
			"flags": []any{}, "logo": bin("\x89PNG\x00\xff"), "thumbs": bins{"\x00\x01", "\xff"}, "retired": nil,
			"budget": num("99999999999999999999999999999999999999"), "ratio": num("-0.00000000012345678901234567890123456789")}),
		put(galleryTable, row{"PK": "JOB#1", "SK": "RUN#1", "state": "done"}),
		update(galleryTable, row{"PK": "CONFIG#site", "SK": "METADATA"}, row{"motd": "今日は 🌞", "retired": true}),
		del(galleryTable, row{"PK": "JOB#1", "SK": "RUN#1"}),
		del(galleryTable, row{"PK": "JOB#none", "SK": "RUN#1"}),
	)
}

func (g *galleryApp) signIn() {
	id := g.uuid()
	g.sessions = append(g.sessions, id)
	at, user := g.now(), one(g.app, g.users)
	expires := fmt.Sprintf("2099-%02d-%02dT00:00:00.000Z", 1+g.rand.IntN(12), 1+g.rand.IntN(28))
	token := g.hex(10)
	g.tokens = append(g.tokens, token)
	g.write(put(galleryTable, row{
		"PK": "USER_SESSION#" + id, "SK": "METADATA", "GSI1PK": "USER_SESSION_EXPIRY", "GSI1SK": expires + "#" + id,
		"EntityType": "UserSession", "sessionId": id, "userId": user, "createdAt": at, "expiresAt": expires, "lastAccessedAt": at,
	}), put(galleryTable, row{
		"PK": "EMAIL_VERIFICATION_TOKEN#" + token, "SK": "METADATA", "EntityType": "EmailVerificationToken",
		"token": token, "userId": user, "expiresAt": expires,
	}))
	if g.chance(0.3) {
		ttl, _ := time.Parse(time.RFC3339, expires)
		g.write(put(galleryTable, row{
			"PK": "SESSION#" + id, "SK": "METADATA", "GSI1PK": "SESSION_EXPIRY", "GSI1SK": expires + "#" + id,
			"EntityType": "AdminSession", "sessionId": id, "adminId": "admin-1", "adminUsername": "curator1", "createdAt": at,
			"expiresAt": expires, "lastAccessedAt": at, "ttl": n(ttl.Unix()),
		}))
	}
}

func userSessionKey(id string) row { return row{"PK": "USER_SESSION#" + id, "SK": "METADATA"} }

func (g *galleryApp) signOut() {
	if id, _, ok := g.living(galleryTable, g.sessions, userSessionKey); ok {
		g.write(del(galleryTable, userSessionKey(id)))
	}
}

func (g *galleryApp) touchSession() {
	if id, _, ok := g.living(galleryTable, g.sessions, userSessionKey); ok {
		g.write(update(galleryTable, userSessionKey(id), row{"lastAccessedAt": g.now()}))
	}
}

func (g *galleryApp) verifyEmail() {
	key := func(token string) row { return row{"PK": "EMAIL_VERIFICATION_TOKEN#" + token, "SK": "METADATA"} }
	if token, r, ok := g.living(galleryTable, g.tokens, key); ok {
		user := row{"PK": "USER#" + text(r, "userId"), "SK": "METADATA"}
		if g.row(galleryTable, user) != nil {
			g.transact(del(galleryTable, key(token)), update(galleryTable, user, row{"emailVerified": true}))
		}
	}
}
