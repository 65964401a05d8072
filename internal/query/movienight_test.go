package query

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"weir/internal/value"
)

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
