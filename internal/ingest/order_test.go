package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"weir/internal/ingest"
	"weir/internal/ingest/ingesttest"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// world is the empty tables of a model, and a writer of them.
type world struct {
	*ingest.Writer
	tables []store.Table
	now    time.Time
}

func newWorld(t testing.TB, name string) *world {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := &world{tables: tables, now: time.Date(2025, 11, 13, 12, 0, 0, 0, time.UTC)}
	w.Writer = &ingest.Writer{Model: m, Store: s, Secret: make([]byte, 32), Now: func() time.Time { return w.now }}
	return w
}

func (w *world) rows(t testing.TB) string {
	t.Helper()
	rows, err := ingesttest.Rows(t.Context(), w.Store, w.tables)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(rows, "\n")
}

func readAll(t testing.TB, lines []string) []ingest.Command {
	t.Helper()
	out := make([]ingest.Command, len(lines))
	for i, line := range lines {
		c, err := ingest.ReadCommand([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out[i] = c
	}
	return out
}

func described(r ingest.Result) string {
	return fmt.Sprint(r.Done, " ", r.Repeated, " ", r.Revision, " ", string(value.AppendPlainItem(nil, r.Row)), " ", r.Err)
}

// TestOneAfterTheOther: a batch has the same outcome as its commands one after the
// other, whatever they touch.
func TestOneAfterTheOther(t *testing.T) {
	soaktest.Calm(t)
	for _, name := range ingesttest.Models {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) {
				rng := rand.New(rand.NewPCG(seed, 1))
				lines := ingesttest.Conflicts(rng, name, 40)
				batch, single := newWorld(t, name), newWorld(t, name)
				batch.Store, batch.Again = slow{batch.Store}, seed%2 == 1
				single.Again = batch.Again
				var got, want []string
				for part := range slices.Chunk(readAll(t, lines), 1+rng.IntN(40)) {
					for _, r := range batch.Do(t.Context(), part) {
						got = append(got, described(r))
					}
					for _, c := range part {
						want = append(want, described(single.Do(t.Context(), []ingest.Command{c})[0]))
					}
				}
				for i := range lines {
					if got[i] != want[i] {
						t.Fatalf("seed %d: command %d of\n%s\nis answered\n%s\none after the other\n%s", seed, i, strings.Join(lines, "\n"), got[i], want[i])
					}
				}
				if d := cmp.Diff(single.rows(t), batch.rows(t)); d != "" {
					t.Fatalf("seed %d: after\n%s\nthe rows differ: %s", seed, strings.Join(lines, "\n"), d)
				}
			}
		})
	}
}

// written is a store that notes which rows of the model were written, in their order.
type written struct {
	store.Store
	mu  sync.Mutex
	log []string
}

func (w *written) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []string
	for i := range ws {
		keys = append(keys, fmt.Sprint(ws[i].Key.Sort.Text(), map[bool]string{true: " goes"}[ws[i].Delete]))
	}
	w.log = append(w.log, strings.Join(keys, ", "))
	return w.Store.Write(ctx, ws)
}

// TestTouching: which commands touch one another, and which do not.
func TestTouching(t *testing.T) {
	saved := func(op, user string) string {
		item := `"userId":"` + user + `","watchlistId":"w"`
		if op != "delete" {
			item += `,"savedAt":"2025-01-01T00:00:00Z"`
		}
		return `{"op":"` + op + `","entity":"Saved","item":{` + item + `}}`
	}
	add := func(n string) string {
		return `{"op":"create","entity":"Item","item":{"watchlistId":"w","contentType":"MOVIE","contentId":"` + n + `","addedAt":"2025-01-01T00:00:00Z"}}`
	}
	for _, one := range []struct {
		name, model string
		lines, want []string
	}{
		{"who is told, and who has left", "watchlists",
			[]string{saved("create", "u"), add("1"), saved("delete", "u"), add("2"), saved("create", "u"), add("3")},
			[]string{"SAVED#WATCHLIST#w", "ITEM#MOVIE#1", "SAVED#WATCHLIST#w goes", "ITEM#MOVIE#2", "SAVED#WATCHLIST#w", "ITEM#MOVIE#3"}},
		{"followers do not wait for one another, nor do additions", "watchlists",
			[]string{saved("create", "u"), saved("create", "v"), add("1"), add("2")},
			[]string{"SAVED#WATCHLIST#w, SAVED#WATCHLIST#w", "ITEM#MOVIE#1, ITEM#MOVIE#2"}},
		{"children of one parent", "gallery",
			[]string{
				`{"op":"create","entity":"AlbumMedia","item":{"albumId":"a","mediaId":"1","addedAt":"2025-01-01T00:00:00Z"}}`,
				`{"op":"create","entity":"AlbumMedia","item":{"albumId":"a","mediaId":"2","addedAt":"2025-01-01T00:00:00Z"}}`,
			},
			[]string{"MEDIA#1, MEDIA#2"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			w := newWorld(t, one.model)
			log := &written{Store: w.Store}
			w.Store = log
			for i, r := range w.Do(t.Context(), readAll(t, one.lines)) {
				if r.Err != nil {
					t.Errorf("%s: %v", one.lines[i], r.Err)
				}
			}
			if d := cmp.Diff(one.want, log.log); d != "" {
				t.Error(d)
			}
		})
	}
}

// lost is a store that loses the answer to the nth call that writes.
type lost struct {
	store.Store
	left int
}

var errLost = errors.New("the connection broke")

func (l *lost) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if l.left--; l.left == 0 {
		return nil, errLost
	}
	return l.Store.Write(ctx, ws)
}

// TestBehindTheUnknown: if it is unknown whether a command was done, later commands
// that touch the same row are not started, and all others are.
func TestBehindTheUnknown(t *testing.T) {
	w := newWorld(t, "gallery")
	w.Store = &lost{w.Store, 2}
	album := func(op, id, title string) string {
		return `{"op":"` + op + `","entity":"Album","item":{"id":"` + id + `","title":"` + title + `","createdAt":"2025-01-01T00:00:00Z"}}`
	}
	lines := []string{album("put", "a", "1"), album("put", "b", "1"), album("put", "a", "2"), album("put", "a", "3"), album("put", "b", "1")}
	var got []string
	for _, r := range w.Do(t.Context(), readAll(t, lines)) {
		switch {
		case r.Err == nil:
			got = append(got, string(r.Done))
		case errors.Is(r.Err, errLost):
			got = append(got, "lost")
		default:
			got = append(got, "behind")
		}
	}
	if d := cmp.Diff([]string{"created", "created", "lost", "behind", "unchanged"}, got); d != "" {
		t.Error(d)
	}
}
