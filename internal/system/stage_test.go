package system_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/drivers"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/stage"
	"weir/internal/system"
)

// TestStagesInOneDirectory: two stages are open at the same time in one directory, and
// each has its own rows, documents and cursors.
func TestStagesInOneDirectory(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func(s stage.Stage) *system.System {
		t.Helper()
		sys, err := system.OpenAt(t.Context(), drivers.Place{Data: dir, Stage: s}, []*model.Model{m}, system.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sys.Close() })
		if err := sys.Reach(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return sys
	}
	search := func(s *system.System, name string, p query.Page, params ...string) query.Result {
		t.Helper()
		res, err := s.Models[0].Query.Run(t.Context(), name, map[string]string{params[0]: params[1]}, p)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	prod := open(stage.Stage{Name: "prod", Tables: []stage.Pair{{Logical: "gallery", Real: "gallery-prod"}}})
	plain := open(stage.Stage{})
	for id, s := range map[string]*system.System{"p": prod, "d": plain} {
		putAlbum(t, s, id+"1", "harbor one")
		putAlbum(t, s, id+"2", "harbor two")
		settle(t, s)
		if diffs, err := verifyAll(s); err != nil || len(diffs) > 0 {
			t.Errorf("%s: %v, %v", id, diffs, err)
		}
		for _, ask := range [][3]string{{"public-albums", "isPublic", "true"}, {"search-albums", "q", "harbor"}} {
			res := search(s, ask[0], query.Page{}, ask[1], ask[2])
			if len(res.Items) != 2 || res.Items[0].Get("id").Text()[:1] != id {
				t.Errorf("%s in %s gives %v", ask[0], id, res.Items)
			}
		}
	}
	cursor := search(prod, "public-albums", query.Page{Limit: 1}, "isPublic", "true").Cursor
	if cursor == "" {
		t.Fatal("no cursor")
	}
	next := query.Page{Limit: 1, Cursor: cursor}
	if res := search(prod, "public-albums", next, "isPublic", "true"); len(res.Items) != 1 {
		t.Errorf("the next page has %v", res.Items)
	}
	if _, err := plain.Models[0].Query.Run(t.Context(), "public-albums", map[string]string{"isPublic": "true"}, next); !errors.Is(err, query.ErrCursor) {
		t.Errorf("a cursor of another stage: %v", err)
	}
	for _, path := range []string{"store", "search", "stage-prod/store", "stage-prod/search"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Error(err)
		}
	}
}
