package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/value"
)

func people(texts ...string) value.Value {
	var vs []value.Value
	for _, t := range texts {
		vs = append(vs, value.OfString(t))
	}
	return value.OfList(vs...)
}

func TestMovienight(t *testing.T) {
	w := newRealWorld(t, loadModel(t, "movienight"))
	w.put("User", "user_id", "ann", "email", "ann@example.com", "is_managed", false)
	w.put("User", "user_id", "kid", "parent_user_id", "ann", "is_managed", true)
	w.put("Group", "group_id", "g", "name", "Us")
	for _, u := range []string{"ann", "bob", "kid"} {
		w.put("Membership", "group_id", "g", "user_id", u)
	}
	w.put("Membership", "group_id", "h", "user_id", "ann")
	w.put("Preference", "group_id", "g", "user_id", "ann", "max_content_rating", "R")
	w.put("Preference", "group_id", "g", "user_id", "kid", "max_content_rating", "G")
	w.put("Preference", "group_id", "g", "user_id", "gone", "max_content_rating", "PG")
	putInvites(w)

	w.put("Round", "round_id", "r1", "group_id", "g", "status", "voting", "attendees", value.OfNull(), "created_at", "2025-01-01T00:00:00Z")
	w.put("Round", "round_id", "r2", "group_id", "g", "status", "closed", "attendees", people("kid", "gone", "kid"), "created_at", "2025-01-03T00:00:00Z")
	w.put("Round", "round_id", "r3", "group_id", "g", "status", "picked", "attendees", people(), "created_at", "2025-01-02T00:00:00Z")
	w.put("Round", "round_id", "r4", "group_id", "h", "status", "discarded", "created_at", "2025-01-02T00:00:00Z")
	for i, movie := range []int{1000001, 27205, 9, 603} {
		w.put("Suggestion", "round_id", "r1", "tmdb_movie_id", movie, "position", []int{2, 10, 1, 2}[i], "title", "T")
	}
	w.put("Suggestion", "round_id", "r1", "tmdb_movie_id", 5, "title", "without a place")
	for _, v := range []string{"9#ann", "603#ann", "9#gone"} {
		movie, member, _ := strings.Cut(v, "#")
		w.put("Vote", "round_id", "r1", "tmdb_movie_id", value.MustNumber(movie), "member_id", member, "vote", "up")
	}
	w.put("Vote", "round_id", "r2", "tmdb_movie_id", value.MustNumber("9"), "member_id", "bob", "vote", "up")
	w.put("Pick", "pick_id", "p1", "round_id", "r1", "group_id", "g", "title", "Amélie à Montmartre", "picked_at", "2025-01-01T00:00:00Z")
	w.put("Pick", "pick_id", "p2", "round_id", "r2", "group_id", "g", "title", "Alien", "picked_at", "2025-01-03T00:00:00Z")
	w.put("Pick", "pick_id", "p3", "round_id", "r4", "group_id", "h", "title", "Amélie", "picked_at", "2025-01-03T00:00:00Z")
	w.put("Rating", "round_id", "r1", "member_id", "bob", "rating", "liked")
	w.put("Rating", "round_id", "r1", "member_id", "ann", "rating", "loved")
	w.put("Cached", "cache_key", "k", "response_data", "{}", "ttl", int(noon.Unix())+5)
	w.put("Cached", "cache_key", "over", "response_data", "{}", "ttl", int(noon.Unix())-5)
	w.settle()

	w.want("user", "user_id=ann", "ann@example.com", "email")
	w.want("user-by-email", "email=ann@example.com", "ann", "user_id")
	w.want("managed-members", "parent_user_id=ann", "kid", "user_id")
	w.want("group", "group_id=g", "Us", "name")
	w.want("group-members", "group_id=g", "ann,bob,kid", "user_id")
	w.want("user-groups", "user_id=ann", "g,h", "group_id")
	w.want("preferences", "group_id=g", "ann,gone,kid", "user_id")
	w.want("preferences", "group_id=g user_id=kid", "G", "max_content_rating")
	w.want("attendee-preferences", "round_id=r1", "ann,kid", "user_id")
	w.want("attendee-preferences", "round_id=r2", "gone,kid", "user_id")
	w.want("attendee-preferences", "round_id=r3", "", "user_id")
	w.want("attendee-preferences", "round_id=r4", "", "user_id")
	w.want("attendee-preferences", "round_id=none", "", "user_id")

	w.want("invite-by-token", "invite_token=t-fresh", "pending", "status")
	w.want("invite-by-token", "invite_token=t-late", "expired", "status")
	w.want("invite-by-token", "invite_token=t-taken", "expired", "status")
	w.want("invite-by-token", "invite_token=t-over", "", "status")
	w.want("group-invites", "group_id=g", "fresh", "invite_id")
	w.want("group-invites", "group_id=g status=pending", "fresh", "invite_id")
	w.want("group-invites", "group_id=g status=expired", "late,taken", "invite_id")
	w.want("group-invites", "group_id=g status=accepted", "", "invite_id")
	w.want("group-invites", "group_id=g status=revoked", "back", "invite_id")

	w.want("round", "round_id=r1", "voting", "status")
	w.want("round", "round_id=r2", "voting", "status")
	w.want("group-rounds", "group_id=g", "r2 voting,r3 selected,r1 voting", "round_id", "status")
	w.want("group-rounds", "group_id=h", "expired", "status")
	w.want("active-rounds", "group_id=g", "r2,r1", "round_id")
	w.want("suggestions", "round_id=r1", "9 1,603 2,1000001 2,27205 10,5 null", "tmdb_movie_id", "position")
	w.want("votes", "round_id=r1", "603#ann,9#ann,9#gone", "vote_key")
	w.want("vote", "round_id=r1 tmdb_movie_id=9 member_id=gone", "9#gone", "vote_key")
	w.want("vote-progress", "round_id=r1", "r1 2 3", "round_id", "voted", "expected")
	w.want("vote-progress", "round_id=r2", "r2 1 2", "round_id", "voted", "expected")
	w.want("vote-progress", "round_id=r3", "r3 0 0", "round_id", "voted", "expected")
	w.want("vote-progress", "round_id=r4", "r4 0 1", "round_id", "voted", "expected")
	w.want("vote-progress", "round_id=none", "", "round_id", "voted", "expected")
	w.want("pick", "pick_id=p1", "r1", "round_id")
	w.want("round-pick", "round_id=r2", "p2", "pick_id")
	w.want("group-history", "group_id=g", "p2,p1", "pick_id")
	w.want("ratings", "round_id=r1", "ann,bob", "member_id")
	w.want("rating", "round_id=r1 member_id=bob", "liked", "rating")
	w.want("cached", "cache_key=k", "k", "cache_key")
	w.want("cached", "cache_key=over", "", "cache_key")
	w.want("search-picks", "group_id=g q=amelie", "p1", "pick_id")
	w.want("search-picks", "group_id=h q=amelie", "p3", "pick_id")
	w.asked()

	for limit := 1; limit < 7; limit++ {
		for name, given := range map[string]string{"suggestions": "round_id=r1", "attendee-preferences": "round_id=r2", "group-rounds": "group_id=g"} {
			whole, pages := ask(t, w.engine, name, params(given), 0), ask(t, w.engine, name, params(given), limit)
			if rowTexts(whole) != rowTexts(pages) {
				t.Errorf("%s by %d:\n%s\nnot\n%s", name, limit, rowTexts(pages), rowTexts(whole))
			}
		}
	}
	rows := ask(t, w.engine, "vote-progress", params("round_id=r1"), 0)
	if got := string(value.AppendPlainItem(nil, rows[0])); got != `{"expected":3,"round_id":"r1","voted":2}` {
		t.Error(got)
	}
}

// putInvites puts invites before their expiry, between it and their ttl, and after.
func putInvites(w *world) {
	for i, c := range []struct{ id, status, expires string }{
		{"fresh", "pending", "2025-11-13T12:00:01Z"}, {"late", "pending", "2025-11-13T12:00:00Z"}, {"taken", "accepted", "2025-11-12T13:00:00.5Z"},
		{"back", "revoked", "2025-12-01T00:00:00Z"}, {"over", "pending", "2025-11-12T12:00:00Z"},
	} {
		ttl := []int{3600 * 24, 3600 * 24, 3600, 3600 * 999, 0}[i]
		w.put("Invite", "invite_id", c.id, "group_id", "g", "invite_token", "t-"+c.id, "status", c.status,
			"created_at", "2025-11-01T00:00:00Z", "expires_at", c.expires, "ttl", int(noon.Unix())+ttl)
	}
}

func TestWhatCannotBeGivenInPartsHasABound(t *testing.T) {
	w := newRealWorld(t, loadModel(t, "movienight"))
	long := value.OfString(string(make([]byte, 100<<10)))
	w.put("Round", "round_id", "r", "group_id", "g", "status", "voting")
	for i := range 200 {
		w.put("Vote", "round_id", "r", "tmdb_movie_id", value.OfInt(int64(i)), "member_id", fmt.Sprint("m", i), "note", long)
		w.put("Suggestion", "round_id", "r", "tmdb_movie_id", i, "position", i, "note", long)
		w.put("Membership", "group_id", "g", "user_id", fmt.Sprint("m", i), "note", long)
	}
	w.settle()
	for _, name := range []string{"vote-progress", "suggestions", "attendee-preferences"} {
		if _, err := w.engine.Run(context.Background(), name, params("round_id=r"), Page{}); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A suggestion moves, comes and goes between two pages: none that stays is lost.
func TestSortedPagesWhileRowsMove(t *testing.T) {
	w := newWorld(t, loadModel(t, "movienight"), 0)
	put := func(movie, position int) {
		w.put("Suggestion", "round_id", "r", "tmdb_movie_id", movie, "position", position)
	}
	for i := range 6 {
		put(100+i, i)
	}
	first, err := w.engine.Run(context.Background(), "suggestions", params("round_id=r"), Page{Limit: 3})
	if err != nil || brief(first.Items, "position") != "0,1,2" {
		t.Fatal(brief(first.Items, "position"), err)
	}
	put(102, 9) // the last one given
	put(100, 4) // one given
	put(50, 3)
	rest, err := w.engine.Run(context.Background(), "suggestions", params("round_id=r"), Page{Cursor: first.Cursor})
	if err != nil || brief(rest.Items, "tmdb_movie_id") != "50,103,100,104,105,102" || rest.Cursor != "" {
		t.Error(brief(rest.Items, "tmdb_movie_id"), rest.Cursor, err)
	}
}
