package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/store"
	"weir/internal/value"
)

func (w *moveWorld) albums(n int) {
	for i := range n {
		a := row("PK", fmt.Sprintf("ALBUM#%02d", i), "SK", "METADATA", "EntityType", "Album", "id", fmt.Sprintf("%02d", i), "title", "T",
			"createdBy", "ida", "createdAt", "2025-01-01T00:00:00Z", "GSI1PK", "ALBUM", "GSI1SK", fmt.Sprintf("2025-01-01T00:00:00Z#%02d", i))
		if i%3 == 0 {
			a = a.With(row("isPublic", "false")...)
		}
		w.put("gallery", a)
	}
}

// cutting breaks the connection at one write: parts of the call may have happened.
type cutting struct {
	store.Store
	at    int
	after bool

	mu    sync.Mutex
	calls int
}

// reaches reports which of n writes is the one to break, if any.
func (c *cutting) reaches(n int) (i int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i = c.at - c.calls
	c.calls += n
	return i, i >= 0 && i < n
}

func (c *cutting) Transact(ctx context.Context, ws []store.Write) error {
	if _, now := c.reaches(1); !now {
		return c.Store.Transact(ctx, ws)
	}
	if c.after {
		_ = c.Store.Transact(ctx, ws)
	}
	return errBroken
}

func (c *cutting) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	i, now := c.reaches(len(ws))
	if !now {
		return c.Store.Write(ctx, ws)
	}
	if c.after {
		i++
	}
	if i > 0 {
		_, _ = c.Store.Write(ctx, ws[:i])
	}
	return nil, errBroken
}

// TestBackfillResumes: a backfill that is interrupted at every single write, and run
// again, has the same outcome, and counts each thing once.
func TestBackfillResumes(t *testing.T)           { onEmbedded(t, "gallery", backfillResumes) }
func TestBackfillResumesOnDynamoDB(t *testing.T) { onDynamoDB(t, "gallery", backfillResumes) }

func backfillResumes(w *moveWorld) {
	const albums = 12
	w.albums(albums)
	want := ""
	for at := 0; ; at++ {
		for _, after := range []bool{false, true} {
			w.albums(albums)
			db := &cutting{Store: w.store, at: at, after: after}
			broken := false
			pages, read := 0, 0
			fill := ingest.Backfill{Model: w.model, Store: db, Rows: 4, Page: func(rows int) { pages, read = pages+1, read+rows }}
			got, err := fill.Run(context.Background())
			if broken = errors.Is(err, errBroken); broken {
				done, noted := 4*pages >= albums, max(0, pages-1) // the last page may not have been
				read = 0
				if got, err = fill.Run(context.Background()); !done && read > albums-4*noted {
					w.Errorf("broken at %d after %d pages, and %d rows were read again", at, noted+1, read)
				}
			}
			failtest.On(w, err)
			have := w.dump("gallery")
			if want == "" {
				want = have
			}
			if have != want {
				w.Fatalf("broken at %d (after: %v):\n%s\nnot\n%s", at, after, have, want)
			}
			if got.Read != albums {
				w.Errorf("broken at %d: %d read, not %d", at, got.Read, albums)
			}
			// A page that failed before its counts were saved is done, but its rows are
			// not counted.
			if got.Rows > albums || !broken && got.Rows != albums {
				w.Errorf("broken at %d: %d filled of %d", at, got.Rows, albums)
			}
			if !broken {
				fill.Store = w.store
				if again, err := fill.Run(context.Background()); err != nil || again.Rows != 0 || len(again.Gets) != 0 {
					w.Errorf("again: %+v, %v", again, err)
				}
				return
			}
		}
	}
}

func (w *moveWorld) dump(table string) string {
	var lines []string
	for _, r := range w.scan(table) {
		lines = append(lines, string(value.AppendPlainItem(nil, r)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// meddler runs an application before each write of a row.
type meddler struct {
	store.Store
	before func(*store.Write)
}

func (m *meddler) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	for i := range ws {
		m.before(&ws[i])
	}
	return m.Store.Write(ctx, ws)
}

// TestBackfillBesideApplications: between the read and the write of a row an
// application deletes it, gives it what it lacks, or changes what its keys are made
// from. The application's changes stay, and no deleted row comes back.
func TestBackfillBesideApplications(t *testing.T) {
	onEmbedded(t, "gallery", backfillBesideApplications)
}
func TestBackfillBesideApplicationsOnDynamoDB(t *testing.T) {
	onDynamoDB(t, "gallery", backfillBesideApplications)
}

func backfillBesideApplications(w *moveWorld) {
	const albums = 9
	w.albums(albums)
	done := map[string]bool{}
	db := &meddler{Store: w.store, before: func(wr *store.Write) {
		key := wr.Key.Partition.Text()
		if wr.Table != "gallery" || done[key] {
			return
		}
		done[key] = true
		at := row("PK", key, "SK", "METADATA")
		switch len(done) % 4 {
		case 0:
			w.delete("gallery", at)
		case 1:
			w.set("gallery", at, "isPublic", value.OfString("false"))
		case 2:
			w.set("gallery", at, "createdBy", value.OfString("bo"))
		case 3:
			w.put("gallery", at.With(row("EntityType", "Other", "createdBy", "ida", "createdAt", "x", "id", "y")...))
		}
	}}
	fill := ingest.Backfill{Model: w.model, Store: db, Rows: 4}
	_, err := fill.Run(context.Background())
	failtest.On(w, err)
	var gone, others, bos, hidden int
	for _, r := range w.scan("gallery") {
		creator := r.Get("createdBy").Text()
		switch {
		case r.Get("EntityType").Text() == "Other":
			others++
			if r.Has("isPublic") || r.Has("GSI4SK") {
				w.Errorf("a row of another kind was filled: %v", r)
			}
			continue
		case creator == "bo":
			bos++
		}
		if r.Get("isPublic").Text() == "false" {
			hidden++
		}
		if want := creator + "#2025-01-01T00:00:00Z#" + r.Get("id").Text(); r.Get("GSI4SK").Text() != want {
			w.Errorf("GSI4SK is %v, not %s", r.Get("GSI4SK"), want)
		}
		if !r.Has("isPublic") {
			w.Errorf("no isPublic: %v", r)
		}
	}
	gone = albums - len(w.scan("gallery"))
	if gone != 2 || others != 2 || bos != 2 || hidden < 3 {
		w.Errorf("%d gone, %d others, %d of bo, %d hidden", gone, others, bos, hidden)
	}
}

// TestBackfillCounts: a dry run counts what a run then does, and writes nothing.
func TestBackfillCounts(t *testing.T)           { onEmbedded(t, "gallery", backfillCounts) }
func TestBackfillCountsOnDynamoDB(t *testing.T) { onDynamoDB(t, "gallery", backfillCounts) }

func backfillCounts(w *moveWorld) {
	w.albums(7)
	before := w.dump("gallery") + w.dump("weir")
	dry := ingest.Backfill{Model: w.model, Store: w.store, DryRun: true, Rows: 3}
	would, err := dry.Run(context.Background())
	failtest.On(w, err)
	if before != w.dump("gallery")+w.dump("weir") {
		w.Error("a dry run wrote")
	}
	wet := ingest.Backfill{Model: w.model, Store: w.store}
	did, err := wet.Run(context.Background())
	failtest.On(w, err)
	if would.Rows != 7 || did.Rows != would.Rows || !maps.Equal(did.Gets, would.Gets) || did.Gets["Album.isPublic"] != 4 || did.Gets["Album.GSI4PK"] != 7 {
		w.Errorf("would %+v, did %+v", would, did)
	}
}
