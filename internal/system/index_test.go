package system_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/projections/document"
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
	failtest.On(t, err)
	dir := t.TempDir()
	ways := map[string]system.Options{"here": {}, "there": {OpenSearch: url}, "nowhere": {NoSearch: true}}
	title := ""
	for i, way := range []string{"here", "there", "there", "here", "nowhere", "here", "there", "nowhere", "there", "here"} {
		if way == "there" && url == "" {
			continue
		}
		s, err := system.Open(context.Background(), dir, []*model.Model{m}, ways[way])
		failtest.On(t, err)
		failtest.On(t, s.Reach(context.Background(), nil))
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
		failtest.On(t, s.Close())
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
	failtest.On(t, err)
	var got []string
	for _, it := range res.Items {
		got = append(got, it.Get("id").Text())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s finds %v, want %v", q, got, want)
	}
}

// A program without indexes waits for nothing to go, also where it is told of a cluster.
func TestAwaitGoneWithoutIndexes(t *testing.T) {
	m, err := model.Load("viewing")
	failtest.On(t, err)
	s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{OpenSearch: "http://127.0.0.1:9", Late: true})
	failtest.On(t, err)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.AwaitGone(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestIndexGoneOnServices: an index is deleted under two programs that have it open, and a query function. Searches are refused until one
// of them has made it again and filled it, in the others too, and all documents are found then. The function makes none.
func TestIndexGoneOnServices(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	p := servicesPlace(t, m)
	open := func(o system.Options) *system.System {
		o.OpenSearch, o.Shared = p.url, true
		s, err := system.Over(t.Context(), p.db, t.TempDir(), []*model.Model{m}, o)
		failtest.On(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	one, two, asked := open(system.Options{Late: true}), open(system.Options{Late: true}), open(system.Options{WhenBuilt: true, Existing: true})
	fillNow(t, one)
	fillNow(t, two)
	putAlbum(t, one, "a1", "aaaaaa")
	settle(t, one)
	failtest.On(t, asked.Built(t.Context(), asked.Models[0]))
	for _, s := range []*system.System{one, two, asked} {
		searches(t, s, "aaaaaa", "a1")
	}
	refused := func(s *system.System) {
		t.Helper()
		if _, err := s.Models[0].Query.Run(t.Context(), "search-albums", map[string]string{"q": "aaaaaa"}, query.Page{}); !errors.Is(err, query.ErrBuilding) {
			t.Error(err)
		}
	}
	for _, of := range m.Searches {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, p.url+"/"+one.Index.Place(document.IndexName(m, of))+".docs", nil)
		failtest.On(t, err)
		if answer, err := http.DefaultClient.Do(r); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
	}
	putAlbum(t, one, "a2", "bbbbbb")
	refused(asked)
	for range 2 {
		if err := asked.Built(t.Context(), asked.Models[0]); err == nil {
			t.Error("the function finds the indexes built")
		}
	}
	refused(one)
	for _, s := range []*system.System{one, two} { // the second one was not asked, and sees that its index was made again
		failtest.On(t, s.AwaitGone(t.Context()))
		refused(s)
		fillNow(t, s)
		settle(t, s)
		searches(t, s, "aaaaaa", "a1")
		searches(t, s, "bbbbbb", "a2")
	}
	failtest.On(t, asked.Built(t.Context(), asked.Models[0]))
	searches(t, asked, "bbbbbb", "a2")
}
