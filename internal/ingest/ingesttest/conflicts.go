// Package ingesttest makes commands for tests of the write side.
package ingesttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Models are the models that Conflicts can make commands for.
var Models = []string{"gallery", "movienight", "viewing", "wardrobe", "watchlists"}

// Conflicts makes n commands of a model, as lines of JSON. Most of them touch others:
// they share few rows, few unique values and few idempotency keys, and some supersede
// rows of others.
func Conflicts(rng *rand.Rand, model string, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		entity, item := makers[model](rng)
		op := pick(rng, "create", "create", "put", "put", "update", "delete")
		line := fmt.Sprintf(`{"op":%q,"entity":%q,"item":{%s}`, op, entity, fields(op, item))
		if rng.IntN(6) == 0 {
			line += fmt.Sprintf(`,"idempotencyKey":"k%d"`, rng.IntN(4))
		}
		if op != "create" && rng.IntN(8) == 0 {
			line += `,"ifMatch":"*"`
		}
		lines[i] = line + "}"
	}
	return lines
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// field is a member of an item; key says that it is part of the row's key.
type field struct {
	key  bool
	text string
}

func is(name, format string, args ...any) field {
	return field{text: fmt.Sprintf("%q:%s", name, fmt.Sprintf(format, args...))}
}

func key(name, format string, args ...any) field {
	return field{true, fmt.Sprintf(`%q:"%s"`, name, fmt.Sprintf(format, args...))}
}

// fields returns the members that an operation takes.
func fields(op string, all []field) string {
	var out []string
	for _, f := range all {
		if op != "delete" || f.key {
			out = append(out, f.text)
		}
	}
	return strings.Join(out, ",")
}

var makers = map[string]func(*rand.Rand) (string, []field){
	"gallery":    galleryUser,
	"movienight": movienight,
	"viewing":    history,
	"wardrobe":   wardrobe,
	"watchlists": watchlists,
}

func galleryUser(rng *rand.Rand) (string, []field) {
	out := []field{key("userId", "u%d", rng.IntN(4)), is("email", `"e%d"`, rng.IntN(3)), is("createdAt", `"2025-01-01T00:00:00Z"`)}
	if rng.IntN(2) == 0 {
		out = append(out, is("username", `"n%d"`, rng.IntN(2)))
	}
	return "User", out
}

func movienight(rng *rand.Rand) (string, []field) {
	if rng.IntN(4) == 0 {
		return "Round", []field{key("round_id", "r%d", rng.IntN(2)), is("group_id", `"g"`), is("started_by", `"m"`), is("created_at", `"2025-01-01T00:00:00Z"`),
			is("status", "%q", pick(rng, "draft", "voting", "selected", "watched", "rated"))}
	}
	return "Pick", []field{key("pick_id", "p%d", rng.IntN(4)), is("round_id", `"r%d"`, rng.IntN(3)), is("group_id", `"g"`), is("tmdb_movie_id", "%d", rng.IntN(2)),
		is("title", `"T"`), is("picked_by", `"m"`), is("picked_at", `"2025-01-01T00:00:00Z"`)}
}

func history(rng *rand.Rand) (string, []field) {
	return "History", []field{key("profileId", "p%d", rng.IntN(2)), key("a.assetId", "a%d", rng.IntN(2)), key("a.state", "%s", pick(rng, "IN_PROGRESS", "COMPLETED")),
		is("a.updateTime", `"2025-01-01T00:00:0%dZ"`, rng.IntN(6))}
}

func wardrobe(rng *rand.Rand) (string, []field) {
	user, item := rng.IntN(2), rng.IntN(4)
	switch rng.IntN(6) {
	case 0:
		return "Idempotency", []field{key("UserId", "u%d", user), key("IdempotencyKey", "k%d", rng.IntN(4)), is("ItemId", `"i%d"`, item), is("CreatedAt", `"2098-01-01T00:00:00Z"`)}
	case 1:
		return "Share", []field{key("ItemId", "i%d", item), key("SharedAt", "2025-01-01T00:00:0%dZ", rng.IntN(2)), is("UserId", `"u%d"`, user)}
	}
	out := []field{key("itemId", "i%d", item), is("UserId", `"u%d"`, user), is("Name", `"N%d"`, rng.IntN(2)), is("Category", `"C"`),
		is("CreatedAt", `"2098-01-01T00:00:00Z"`), is("UpdatedAt", `"2098-01-01T00:00:00Z"`)}
	if rng.IntN(3) == 0 {
		out = append(out, is("IdempotencyKey", `"k%d"`, rng.IntN(4)))
	}
	return "Item", out
}

func watchlists(rng *rand.Rand) (string, []field) {
	list := rng.IntN(2)
	switch rng.IntN(5) {
	case 0:
		return "User", []field{key("userId", "u%d", rng.IntN(3)), is("email", `"e%d"`, rng.IntN(2)), is("username", `"n"`),
			is("createdAt", `"2025-01-01T00:00:00Z"`), is("updatedAt", `"2025-01-01T00:00:00Z"`)}
	case 1, 2:
		return "Saved", []field{key("userId", "u%d", rng.IntN(3)), key("watchlistId", "w%d", list), is("savedAt", `"2025-01-01T00:00:00Z"`)}
	}
	return "Item", []field{key("watchlistId", "w%d", list), key("contentType", "MOVIE"), key("contentId", "m%d", rng.IntN(4)), is("addedAt", `"2025-01-01T00:00:0%dZ"`, rng.IntN(3))}
}

// Rows returns all rows of the tables, also of weir's own table, as sorted texts. It
// leaves out what differs from run to run: the tokens of claims, the expiry of
// idempotency keys, and secrets.
func Rows(ctx context.Context, s store.Store, tables []store.Table) (out []string, err error) {
	for _, t := range tables {
		for q := (store.Query{Table: t.Name}); ; {
			page, err := s.Query(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, row := range page.Rows {
				if t.Name == owntable.TableName {
					row = row.Filter(func(name string) bool { return name != owntable.Count && name != owntable.Expiry })
				}
				if row.Get("EntityType").Text() == "Idempotency" {
					row = row.Filter(func(name string) bool { return name != "CreatedAt" && name != "TTL" })
				}
				if owntable.Kind(row.Get(owntable.Partition).Text()) == owntable.KindSecret {
					continue
				}
				out = append(out, t.Name+" "+string(value.AppendPlainItem(nil, row)))
			}
			if q.After = page.Next; q.After == nil {
				break
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
