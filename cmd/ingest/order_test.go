package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"weir/internal/ingest"
	"weir/internal/ingest/ingesttest"
	"weir/internal/model"
	"weir/internal/system"
	"weir/internal/writeapi"
	"weir/internal/writelambda"
)

// TestEveryWayInOrder: commands that touch one another come out as one after the other,
// by a file, a batch over HTTP, and a batch of a queue.
func TestEveryWayInOrder(t *testing.T) {
	for _, name := range ingesttest.Models {
		for way, do := range map[string]way{"batch": byBatch, "queue": byQueue("q"), "queue.fifo": byQueue("q.fifo")} {
			t.Run(name+"/"+way, func(t *testing.T) {
				lines := ingesttest.Conflicts(rand.New(rand.NewPCG(7, 7)), name, 30)
				got := inWorld(t, t.TempDir(), name, func(s *system.System) { do(t, s)(0, lines) })
				want := inWorld(t, t.TempDir(), name, func(s *system.System) {
					one := do(t, s)
					for i := range lines {
						one(i, lines[i:i+1])
					}
				})
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("after\n%s\n%s", strings.Join(lines, "\n"), d)
				}
			})
		}
		t.Run(name+"/file", func(t *testing.T) { byFile(t, name) })
	}
}

// way is how commands come in; what it gives does some, the first of which is the
// nth of all.
type way func(t *testing.T, s *system.System) func(nth int, lines []string)

// inWorld does something in the directory, and gives all rows after it.
func inWorld(t *testing.T, dir, name string, do func(*system.System)) string {
	t.Helper()
	m, err := model.Load(name)
	check(t, err)
	tables, err := system.Tables([]*model.Model{m})
	check(t, err)
	s, err := openWorld(dir, m)
	check(t, err)
	defer s.Close()
	do(s)
	rows, err := ingesttest.Rows(t.Context(), s.Store, tables)
	check(t, err)
	return strings.Join(rows, "\n")
}

func handler(t *testing.T, s *system.System) (http.Handler, writeapi.Writer) {
	to := targets(s)
	api, err := writeapi.New(to, writeapi.Options{Log: slog.New(slog.DiscardHandler)})
	check(t, err)
	return api, to[0].Writer
}

func byBatch(t *testing.T, s *system.System) func(int, []string) {
	api, _ := handler(t, s)
	return func(_ int, lines []string) {
		r := httptest.NewRequest("POST", "/v1/"+s.Models[0].Model.Name+"/batch", strings.NewReader("["+strings.Join(lines, ",")+"]"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if api.ServeHTTP(w, r); w.Code != 200 || strings.Contains(w.Body.String(), `"status":5`) {
			t.Fatal(w.Code, w.Body)
		}
	}
}

// byQueue gives a function the lines as one batch of a queue, each in a group of its
// own. What has failed does not come again.
func byQueue(queue string) way {
	return func(t *testing.T, s *system.System) func(int, []string) {
		api, w := handler(t, s)
		h := &writelambda.Handler{HTTP: api, Queue: w, Log: slog.New(slog.DiscardHandler)}
		return func(nth int, lines []string) {
			var e events.SQSEvent
			for i, line := range lines {
				id := fmt.Sprint(nth + i)
				e.Records = append(e.Records, events.SQSMessage{
					MessageId: id, Body: line, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:1:" + queue,
					Attributes: map[string]string{"MessageGroupId": id},
				})
			}
			payload, err := json.Marshal(e)
			check(t, err)
			_, err = h.Invoke(t.Context(), payload)
			check(t, err)
		}
	}
}

// byFile puts the lines as one file, and does them one after the other.
func byFile(t *testing.T, name string) {
	lines := ingesttest.Conflicts(rand.New(rand.NewPCG(9, 9)), name, 300)
	dir := t.TempDir()
	file := filepath.Join(dir, "f.jsonl")
	check(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
	var out, talk bytes.Buffer
	if code := run(context.Background(), []string{"put", name, file, "--data", filepath.Join(dir, "data")}, nil, &out, &talk); code > 1 {
		t.Fatal(code, talk.String())
	}
	got := inWorld(t, filepath.Join(dir, "data"), name, func(*system.System) {})
	want := inWorld(t, t.TempDir(), name, func(s *system.System) {
		w := &ingest.Writer{Model: s.Models[0].Model, Store: s.Store, Again: true}
		for _, line := range lines {
			c, err := ingest.ReadCommand([]byte(line))
			check(t, err)
			w.Do(t.Context(), []ingest.Command{c})
		}
	})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after\n%s\n%s", strings.Join(lines, "\n"), d)
	}
}
