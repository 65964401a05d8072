package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/web"
)

// askerOf is who asks from an address.
func askerOf(addr string) web.Asker {
	return web.AskerOf(&http.Request{RemoteAddr: addr})
}

// TestTurnsAreShared: one asker has half of the turns, however many it waits for, and
// what it waits for holds up nobody else.
func TestTurnsAreShared(t *testing.T) {
	turns := newTurns(4, time.Minute)
	one, two := askerOf("10.0.0.1:1"), askerOf("10.0.0.2:1")
	if one != askerOf("10.0.0.1:2") || one == two {
		t.Fatal("an asker is an address")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i, want := range []bool{true, true, false, false} {
		if turns.take(over, one, 1) != want {
			t.Errorf("turn %d of one", i)
		}
	}
	next := make(chan bool)
	go func() { next <- turns.take(t.Context(), one, 1) }()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		turns.mu.Lock()
		waits = len(turns.waiting)
		turns.mu.Unlock()
	}
	for i, want := range []bool{true, true, false} {
		if turns.take(over, two, 1) != want {
			t.Errorf("turn %d of another, while one waits", i)
		}
	}
	turns.give(two, 1)
	if turns.take(over, one, 1) {
		t.Error("one has more than its share")
	}
	turns.give(one, 1)
	if !<-next {
		t.Error("the turn is not handed over")
	}
	for _, who := range []web.Asker{one, one, two} {
		turns.give(who, 1)
	}
	if turns.free != 4 || len(turns.held) > 0 || len(turns.waiting) > 0 {
		t.Errorf("%d are free, %v held, %v wait", turns.free, turns.held, turns.waiting)
	}
}

// stuck is an answer that is not read until it is told.
type stuck struct {
	*httptest.ResponseRecorder
	begun func()
	read  chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.begun()
	<-s.read
	return s.ResponseRecorder.Write(b)
}

// TestSlowReadersKeepNoTurn: while pages are written no query waits for them, and large
// ones, which hold memory, are written so many at once.
func TestSlowReadersKeepNoTurn(t *testing.T) {
	r := newRig(t, 1)
	r.api.turns, r.api.pages = newTurns(2, time.Minute), newTurns(4, time.Millisecond)
	for i := range 3 {
		r.put(fmt.Sprintf("ALBUM#big%d", i), "METADATA", "EntityType", "Album", "id", fmt.Sprintf("big%d", i), "title", strings.Repeat("x", smallPage), "isPublic", "true",
			"GSI1PK", "ALBUM", "GSI1SK", "2025-01-02T00:00:00Z#big", "createdAt", "2025-01-02T00:00:00Z")
	}
	begun := make(chan struct{})
	slow := &stuck{httptest.NewRecorder(), sync.OnceFunc(func() { close(begun) }), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.api.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "/v1/gallery/album?albumId=big0", nil))
	}()
	<-begun
	if r.api.turns.free != 2 || r.api.pages.free != 2 {
		t.Errorf("%d turns are free, and %d pages", r.api.turns.free, r.api.pages.free)
	}
	if w := r.do("GET", "/v1/gallery/album?albumId=big1"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a second large page: %d", w.Code)
	}
	r.page("/v1/gallery/album?albumId=a0")
	close(slow.read)
	<-done
	if r.page("/v1/gallery/album?albumId=big2"); r.api.pages.free != 4 {
		t.Errorf("%d pages are free", r.api.pages.free)
	}
}
