package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/ingest"
)

// TestDerivable: a command is refused if something could never be derived from its row.
// The refusal names the attribute at fault and the limit.
func TestDerivable(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	item := func(user, name, at string) string {
		return fmt.Sprintf(`{"op":"put","entity":"Item","item":{"itemId":"i","UserId":%q,"Name":%q,"Category":"c","Season":"all-season","CreatedAt":%q}}`, user, name, at)
	}
	added := func(content, at string) string {
		return fmt.Sprintf(`{"op":"put","entity":"Item","item":{"watchlistId":"w","contentType":"MOVIE","contentId":%q,"addedAt":%q}}`, content, at)
	}
	const day = "2025-01-01T00:00:00Z"
	for _, one := range []struct {
		name, model string
		lines       []string
		want        []string // pointer and reason of the last
	}{
		{"as long as may be", "wardrobe", []string{item(text(2048-len("USER##SEASON#all-season")), "n", day)}, nil},
		{"a key and an index key of a copy", "wardrobe", []string{item(text(140<<10), "n", day)}, []string{
			"/UserId makes the key PK of UserItem 143365 bytes long, 2048 are possible",
			"/UserId makes the key GSI1PK of UserItem 143383 bytes long, 2048 are possible",
			"/UserId makes the key PK of Activity 143365 bytes long, 2048 are possible",
		}},
		{"an index key alone", "wardrobe", []string{item(text(2040), "n", day)}, []string{
			"/UserId makes the key GSI1PK of UserItem 2063 bytes long, 2048 are possible",
		}},
		{"a key of a history", "wardrobe", []string{item("u", "n", "2025-01-01T00:00:00."+strings.Repeat("0", 1100)+"Z")}, []string{
			"/CreatedAt makes the key GSI1SK of UserItem 1126 bytes long, 1024 are possible",
			"/CreatedAt makes the key SK of Activity 1144 bytes long, 1024 are possible",
		}},
		{"nothing in a key", "wardrobe", []string{item("", "n", day)}, []string{
			"/UserId cannot be empty: it is in the key of UserItem",
			"/UserId cannot be empty: it is in the key of Activity",
		}},
		{"the id of a document", "watchlists", []string{`{"op":"put","entity":"Watchlist","item":{"watchlistId":"` + text(500) + `","curatorId":"c","title":"t","createdAt":"` + day + `","updatedAt":"` + day + `"}}`}, []string{
			"/watchlistId makes the id of a document in search watchlists 526 bytes long, 512 are possible",
		}},
		{"a notification's key", "watchlists", []string{added(text(960), day)}, []string{
			"/contentId makes the key SK of Notification 1043 bytes long, 1024 are possible",
		}},
		{"an entry of two images", "watchlists", []string{
			`{"op":"put","entity":"Watchlist","item":{"watchlistId":"w","curatorId":"c","title":"t","description":"` + text(210<<10) + `","createdAt":"` + day + `","updatedAt":"` + day + `"}}`,
			`{"op":"update","entity":"Watchlist","item":{"watchlistId":"w","description":"` + text(209<<10) + `"}}`,
		}, []string{"/description makes a row of Audit of 429330 bytes, 409600 are possible"}},
		{"an entry of what will be deleted", "watchlists", []string{
			`{"op":"put","entity":"Watchlist","item":{"watchlistId":"w","curatorId":"c","title":"t","description":"` + text(400<<10-320) + `","createdAt":"` + day + `","updatedAt":"` + day + `"}}`,
		}, []string{"/description makes a row of Audit of 409698 bytes, 409600 are possible"}},
		{"no room for what is derived", "gallery", []string{`{"op":"put","entity":"Album","item":{"id":"a","title":"` + text(409600-180) + `","createdAt":"` + day + `"}}`}, []string{
			"/title makes a row of 409604 bytes, 409600 are possible",
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			w := newWorld(t, one.model)
			rs := w.Do(t.Context(), readAll(t, one.lines))
			var got []string
			for i, r := range rs {
				var refusal *ingest.Refusal
				if !errors.As(r.Err, &refusal) {
					if i < len(rs)-1 && r.Err != nil {
						t.Fatal(r.Err)
					}
					continue
				}
				for _, p := range refusal.Problems {
					got = append(got, p.String())
				}
			}
			if d := cmp.Diff(one.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
