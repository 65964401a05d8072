package reader_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
)

// TestRefusedProcessLeaves: a process whose model is no longer the right one ends with the
// refusal and releases the lease, so that a process with the right model need not wait until
// the lease runs out, and counts what the other was refused.
func TestRefusedProcessLeaves(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile("../../models/gallery.yaml")
	failtest.On(t, err)
	const likes = "  Media.likeCount: {count: UserInteraction, where: {interactionType: like}, to: {id: mediaId}}\n"
	path := filepath.Join(t.TempDir(), "gallery.yaml")
	more := strings.Replace(string(text), likes, likes+"  Media.allCount: {count: UserInteraction, to: {id: mediaId}}\n", 1)
	failtest.On(t, os.WriteFile(path, []byte(more), 0o600))
	newer, err := model.Load(path)
	failtest.On(t, err)

	follow := func(m *model.Model) (stop func(), ended chan error) {
		ctx, stop := context.WithCancel(t.Context())
		run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: w.db, Now: time.Now}
		run.Catalog = catalog.New(m, w.db, time.Now, catalog.Options{})
		o := w.options()
		o.Lease, o.List = time.Hour, 20*time.Millisecond
		ended = make(chan error, 1)
		go func() { ended <- reader.Follow(ctx, run, o) }()
		return stop, ended
	}
	picture := func(id string) {
		w.put(item("PK", "ALBUM#a1", "SK", "MEDIA#"+id, "EntityType", "AlbumMedia", "albumId", "a1", "mediaId", id, "addedAt", "2025-01-01T00:00:00Z"))
	}
	w.put(item("PK", "ALBUM#a1", "SK", "METADATA", "EntityType", "Album", "id", "a1", "title", "sea", "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z"))
	picture("m1")
	gallery := w.model
	w.model = newer
	stop, ended := follow(newer)
	w.settles()
	stop()
	failtest.On(t, <-ended)

	stop, ended = follow(gallery)
	picture("m2")
	select {
	case err := <-ended:
		if !errors.Is(err, catalog.ErrRefused) || !strings.Contains(err.Error(), "Media.allCount") {
			t.Fatalf("the older process ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the older process is refused, and keeps its shards")
	}
	stop()

	stop, ended = follow(newer)
	w.settles()
	stop()
	failtest.On(t, <-ended)
}
