package main

import (
	"context"
	"sync"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// The events in the store after a picture is put into an album.
const (
	committed = "the picture is committed"
	read      = "the follower has read it"
	published = "the album's count is published"
	synced    = "the picture is on disk"
)

// watch is a store that notes when each event first happened to a picture.
type watch struct {
	*embedded.Store

	mu   sync.Mutex
	seen map[string]time.Time
}

// rows is the system's store.
func (r *running) rows() *embedded.Store { return r.Store.(*embedded.Store) }

func (w *watch) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[what].IsZero() {
		w.seen[what] = time.Now()
	}
}

func (w *watch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.seen)
}

// until adds the time from start until each event.
func (w *watch) until(start time.Time, took map[string][]time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, at := range w.seen {
		took[what] = append(took[what], at.Sub(start))
	}
}

// Write notes pictures and counts.
func (w *watch) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out, err := w.Store.Write(ctx, ws)
	for i := range ws {
		switch {
		case ws[i].Table != "gallery":
		case ws[i].Put != nil:
			w.note(committed)
		default:
			w.note(published)
		}
	}
	return out, err
}

// Read notes pictures.
func (w *watch) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := w.Store.Read(ctx, table, shard, after, limit)
	for i := range page.Records {
		if page.Records[i].New.Has("mediaId") {
			w.note(read)
		}
	}
	return page, err
}

// Sync notes the end of a sync.
func (w *watch) Sync(ctx context.Context) error {
	err := w.Store.Sync(ctx)
	w.note(synced)
	return err
}
