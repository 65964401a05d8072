package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is one request for one row: it puts a title, deletes the row (title ""), or reads it.
type op struct {
	row   int
	read  bool
	title string
}

// oneRow is the model of a row for the linearizability check: a row holds the title that was
// put last.
var oneRow = porcupine.Model{
	Init: func() any { return "" },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[int][]porcupine.Operation{}
		for _, o := range history {
			by[o.Input.(op).row] = append(by[o.Input.(op).row], o)
		}
		return slices.Collect(maps.Values(by))
	},
	Step: func(state, input, output any) (bool, any) {
		if o := input.(op); !o.read {
			return true, o.title
		}
		return state == output, state
	},
}

// attackRows lets clients put, delete and read a few rows concurrently. The titles that they saw must be
// linearizable.
func (a *attack) attackRows() (string, error) {
	s, err := a.startServer(1024, nil, "ingest", "serve", "gallery", "--rate", "0")
	if err != nil {
		return "", err
	}
	defer s.killServer()
	const clients, few = 16, 6
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var failed error
	var wg sync.WaitGroup
	for c := range clients {
		rng := rand.New(rand.NewPCG(a.rng.Uint64(), uint64(c)))
		wg.Go(func() {
			for i := range a.shortOrFull(400, 40) {
				o := op{row: rng.IntN(few), read: rng.IntN(2) == 0}
				if !o.read && rng.IntN(4) > 0 {
					o.title = fmt.Sprintf("%d-%d", c, i)
				}
				call := time.Since(began).Nanoseconds()
				saw, err := s.doOperation(o)
				end := time.Since(began).Nanoseconds()
				mu.Lock()
				failed = errors.Join(failed, err)
				history = append(history, porcupine.Operation{ClientId: c, Input: o, Output: saw, Call: call, Return: end})
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return "", failed
	}
	if got := porcupine.CheckOperationsTimeout(oneRow, history, time.Minute); got != porcupine.Ok {
		return "", fmt.Errorf("%d operations on %d rows by %d clients are not linearizable: %s", len(history), few, clients, got)
	}
	return fmt.Sprintf("%d operations are linearizable", len(history)), s.stopServer()
}

// doOperation does an operation and returns the title that a read saw.
func (s *server) doOperation(o op) (string, error) {
	url := fmt.Sprintf("%sAlbum?id=row%d", s.base, o.row)
	method, body := "DELETE", ""
	if o.read {
		method = "GET"
	} else if o.title != "" {
		method, body = "PUT", fmt.Sprintf(`{"title": %q, "createdAt": "2026-01-31T12:00:00Z"}`, o.title)
	}
	status, answer, err := sendRequest(method, url, body)
	if err != nil {
		return "", err
	}
	if status >= 300 && status != http.StatusNotFound {
		return "", fmt.Errorf("%s %s: %d %.200s", method, url, status, answer)
	}
	if !o.read || status == http.StatusNotFound {
		return "", nil
	}
	var row struct{ Title string }
	err = json.Unmarshal([]byte(answer), &row)
	return row.Title, err
}

// attackByKills kills a server under load, again and again. Each time the process must start again
// without help and have every write that it had answered.
func (a *attack) attackByKills() (string, error) {
	kills, acked := a.shortOrFull(30, 3), []string{}
	for round := range kills {
		s, err := a.startServer(1024, nil, "ingest", "serve", "gallery", "--rate", "0")
		if err != nil {
			return "", fmt.Errorf("start after %d kills: %w", round, err)
		}
		acked = append(acked, a.writeUntilKilled(s, round)...)
	}
	s, err := a.startServer(1024, nil, "ingest", "serve", "gallery", "--rate", "0")
	if err != nil {
		return "", err
	}
	defer s.killServer()
	for _, id := range acked {
		if status, answer, err := sendRequest("GET", s.base+"Album?id="+id, ""); err != nil || status != 200 {
			return "", fmt.Errorf("%s was answered and is lost: %d %.200s %v", id, status, answer, err)
		}
	}
	if len(acked) < kills {
		return "", fmt.Errorf("only %d writes were answered in %d rounds", len(acked), kills)
	}
	return fmt.Sprintf("%d kills, %d writes, none lost", kills, len(acked)), s.stopServer()
}

// writeUntilKilled writes until the server is killed and returns the ids of the answered writes.
func (a *attack) writeUntilKilled(s *server, round int) (acked []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var dead atomic.Bool
	for c := range 8 {
		wg.Go(func() {
			for i := 0; !dead.Load(); i++ {
				id := fmt.Sprintf("k%d-%d-%d", round, c, i)
				status, _, err := sendRequest("POST", s.base+"Album", albumCommand(id, "x"))
				if err != nil {
					return
				}
				if status == http.StatusCreated {
					mu.Lock()
					acked = append(acked, id)
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(time.Duration(100+a.rng.IntN(400)) * time.Millisecond)
	s.killServer()
	dead.Store(true)
	wg.Wait()
	client.CloseIdleConnections()
	return acked
}
