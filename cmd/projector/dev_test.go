package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"weir/internal/console"
	"weir/internal/metrics"
	"weir/internal/model"
	"weir/internal/system"
)

// TestTries: each command that dev suggests is answered, for every built-in model. The search of
// movienight needs a parameter besides the words, so it is not suggested.
func TestTries(t *testing.T) {
	curl := regexp.MustCompile(`^curl -s (?:-X (\w+) )?'(http://dev[^']*)'`)
	for _, name := range model.Builtin() {
		t.Run(name, func(t *testing.T) {
			p := &program{ctx: t.Context(), stdout: io.Discard, stderr: io.Discard}
			m, err := model.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{Writes: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := p.fill(s); err != nil {
				t.Fatal(err)
			}
			c := &devCommand{}
			if err := c.samples(p, s); err != nil {
				t.Fatal(err)
			}
			h, leave, err := c.handler(s, slog.New(slog.DiscardHandler), metrics.New(), console.NewActivity(s.Models), newKillable())
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
			suggested := tries(context.Background(), s.Store, s.Models[0], "http://dev")
			if name == "gallery" && len(suggested) != 4 {
				t.Errorf("a search, and a count before and after a write, should be suggested: %q", suggested)
			}
			for _, line := range slices.Concat(suggested, []string{"curl -s 'http://dev/openapi.json'", "curl -s 'http://dev/metrics'"}) {
				found := curl.FindStringSubmatch(line)
				if found == nil {
					t.Errorf("not a command: %s", line)
					continue
				}
				method := found[1]
				if method == "" {
					method = http.MethodGet
				}
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, httptest.NewRequest(method, found[2], nil)); w.Code/100 != 2 {
					t.Errorf("%s: %d %s", line, w.Code, w.Body)
				}
			}
		})
	}
}
