package system_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// TestSearchElsewhereOnServices: rows are searched in one place, then in another, then in the
// first again, or for a while in none. Whatever changed in between is found. Without
// a cluster it goes between here and nowhere.
func TestSearchElsewhereOnServices(t *testing.T) {
	url := os.Getenv(opensearchtest.Endpoint)
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ways := map[string]system.Options{"here": {}, "there": {OpenSearch: url}, "nowhere": {NoSearch: true}}
	title := ""
	for i, way := range []string{"here", "there", "there", "here", "nowhere", "here", "there", "nowhere", "there", "here"} {
		if way == "there" && url == "" {
			continue
		}
		s, err := system.Open(context.Background(), dir, []*model.Model{m}, ways[way])
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reach(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		last := title
		title = strings.Repeat(string(rune('a'+i)), 6)
		if way != "nowhere" && last != "" {
			searches(t, s, last, "a1")
		}
		putAlbum(t, s, "a1", title)
		settle(t, s)
		if way != "nowhere" {
			searches(t, s, title, "a1")
			searches(t, s, last)
			verifyNothing(t, s)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func putAlbum(t *testing.T, s *system.System, id, title string) {
	t.Helper()
	str := value.OfString
	row := value.Item{}
	for name, v := range map[string]string{
		"PK": "ALBUM#" + id, "SK": "METADATA", "EntityType": "Album", "id": id, "title": title,
		"isPublic": "true", "createdBy": "u", "createdAt": "2026-01-01T00:00:00Z",
	} {
		row = row.With(value.Attr{Name: name, Value: str(v)})
	}
	out, err := s.Store.Write(context.Background(), []store.Write{{
		Ref: store.Ref{Table: "gallery", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}, Put: row,
	}})
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
}

func searches(t *testing.T, s *system.System, q string, want ...string) {
	t.Helper()
	if q == "" {
		return
	}
	res, err := s.Models[0].Query.Run(context.Background(), "search-albums", map[string]string{"q": q}, query.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range res.Items {
		got = append(got, it.Get("id").Text())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s finds %v, want %v", q, got, want)
	}
}
