package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/api"
	"weir/internal/ingest"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/web"
	"weir/internal/writeapi"
)

// served is a system that accepts writes, derives and answers queries, at an address.
type served struct {
	*running
	base   string
	timing *atomic.Pointer[load] // is told how long handlers take, nil for nothing
	stop   func() error
}

// serveIt serves a system, and removes it at the end.
func (b *bench) serveIt(r *running) (*served, error) {
	log := slog.New(slog.DiscardHandler)
	queries, err := api.New([]*query.Engine{r.part.Query}, api.Options{Log: log})
	if err != nil {
		return nil, err
	}
	writes, err := writeapi.New([]writeapi.Target{{Model: r.part.Model, Writer: &ingest.Writer{Model: r.part.Model, Store: r.Store}}}, writeapi.Options{Log: log})
	if err != nil {
		return nil, err
	}
	timing, handler := new(atomic.Pointer[load]), writes.Beside(queries)
	server, err := web.Listen("127.0.0.1:0", web.Bounds{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		handler.ServeHTTP(w, r)
		if l := timing.Load(); l != nil {
			l.noteHandled(time.Since(began))
		}
	}), log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	errs := make(chan error, 2)
	go func() { errs <- server.Run(ctx) }()
	go func() {
		f := reader.Follower{Runner: r.part.Runner, Prompt: true}
		errs <- f.CatchUp(context.WithoutCancel(ctx), ctx.Done())
	}()
	stop := func() error {
		cancel()
		return errors.Join(<-errs, <-errs, r.removeSystem())
	}
	return &served{r, "http://" + server.Addr().String(), timing, stop}, nil
}

// sendRequest sends a request and returns the body of the answer. It is an error if the answer does
// not have the given status.
func (s *served) sendRequest(method, path, body string, status int) ([]byte, error) {
	req, err := http.NewRequest(method, s.base+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%s %s: %s %s", method, path, res.Status, answer)
	}
	return answer, err
}

const (
	visibleGoal = 5 * time.Millisecond
	at          = `"2026-01-31T12:00:00Z"`
)

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}

func percentile(ds []time.Duration, p int) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[min(len(ds)-1, len(ds)*p/100)]
}

// awaitCount queries until an album that counts made has a count.
func (s *served) awaitCount(album, count int) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		body, err := s.sendRequest("GET", fmt.Sprintf("/v1/gallery/album?albumId=own%d", album), "", 200)
		if err != nil {
			return err
		}
		var page struct{ Items []struct{ MediaCount int } }
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		if len(page.Items) == 1 && page.Items[0].MediaCount == count {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("album own%d has no %d pictures within 10 s: %s", album, count, body)
		}
	}
}
