package console

import (
	"crypto/rand"
	"maps"
	"sync"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/system"
)

// The most that waits for one tail, and that is kept for pages. More than that is dropped, the
// oldest first.
const (
	maxQueued     = 256
	maxQueueBytes = 1 << 20
	maxKept       = 2048
	maxKeptBytes  = 4 << 20
)

// applied is a record that was applied. It never changes.
type applied struct {
	number uint64 // counts the records of the process, from 1
	table  *model.Table
	record events.Record
	// size is the bytes of the record's keys and images, by which queues are bounded.
	size int
}

// hub passes records on to tails. publish never waits for a tail: records for which a tail has no room
// are dropped, and the tail learns how many these were.
// Its cost for a process without tails is one push into recent for each record.
type hub struct {
	mu     sync.Mutex
	number uint64
	recent queue
	counts map[string]uint64 // all records, by entity
	subs   map[*subscription]struct{}
}

// queue is the newest records, within the bounds, and how many were dropped before them.
type queue struct {
	all    []*applied
	bytes  int
	missed uint64
}

// addRecord adds a record and drops the oldest ones over the bounds. The newest record always stays,
// however large it is.
func (q *queue) addRecord(r *applied, most, mostBytes int) {
	q.all, q.bytes = append(q.all, r), q.bytes+r.size
	for len(q.all) > most || q.bytes > mostBytes && len(q.all) > 1 {
		q.bytes -= q.all[0].size
		q.all[0] = nil
		q.all = q.all[1:]
		q.missed++
	}
}

// subscription is one tail. wake has a token while there is something to take.
type subscription struct {
	hub   *hub
	queue queue
	wake  chan struct{}
}

// publish queues records for each tail. A record that no queue has room for is only counted, so
// the cost of a large batch is bounded, too.
// All records of a call are numbered in order and without a gap, also those that are only counted.
// A tail is woken once, however many records came.
func (h *hub) publish(t *model.Table, records []events.Record) {
	came := map[string]uint64{}
	for i := range records {
		e := t.Classify(records[i].New)
		if e == nil {
			e = t.Classify(records[i].Old)
		}
		if e != nil {
			came[e.Name]++
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for e, n := range came {
		h.counts[e] += n
	}
	skip := max(0, len(records)-maxKept)
	h.number += uint64(skip)
	for s := range h.subs {
		s.queue.missed += uint64(skip)
	}
	for _, rec := range records[skip:] {
		h.number++
		r := &applied{h.number, t, rec, rec.Size()}
		h.recent.addRecord(r, maxKept, maxKeptBytes)
		for s := range h.subs {
			s.queue.addRecord(r, maxQueued, maxQueueBytes)
		}
	}
	for s := range h.subs {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// read returns how many records of each entity came until now.
func (h *hub) read() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counts)
}

// openTail opens a tail behind the record with a number; 0 begins with the next record. Each record that
// the hub still has after that record is queued, and the rest counts as missed. The caller
// closes it.
// A number that the hub has not reached yet, as of a browser that saw another process, begins with
// the next record too.
func (h *hub) openTail(after uint64) *subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &subscription{hub: h, wake: make(chan struct{}, 1)}
	if after > 0 && after < h.number {
		s.queue.missed = h.number - after
		for _, r := range h.recent.all {
			if r.number > after {
				s.queue.addRecord(r, maxQueued, maxQueueBytes)
				s.queue.missed--
			}
		}
		s.wake <- struct{}{}
	}
	h.subs[s] = struct{}{}
	return s
}

// endTail ends the tail. It may be called once; records that were queued are dropped.
func (s *subscription) endTail() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subs, s)
}

// take returns the records that wait, how many records before that were missed, and the number of the
// newest record.
// The records belong to the caller from then on. take does not wait: it returns none if nothing
// waits.
func (s *subscription) take() (all []*applied, missed, number uint64) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	all, missed = s.queue.all, s.queue.missed
	s.queue = queue{}
	return all, missed, s.hub.number
}

// last returns the newest records, the newest first, and the number of the newest.
// The slice belongs to the caller; the records are shared and must not be changed.
func (h *hub) last() (out []*applied, number uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.recent.all) - 1; i >= 0; i-- {
		out = append(out, h.recent.all[i])
	}
	return out, h.number
}

// Activity has records that the followers of a process have applied, a bounded number of them. Its
// methods may be called from many goroutines.
type Activity struct {
	run    string // names this process, so that numbers of another one are not taken for its own
	began  time.Time
	models map[string]*hub
}

// NewActivity returns an Activity of models that has seen nothing.
func NewActivity(models []*system.Part) *Activity {
	a := &Activity{run: rand.Text()[:8], began: time.Now(), models: map[string]*hub{}}
	for _, p := range models {
		a.models[p.Model.Name] = &hub{counts: map[string]uint64{}, subs: map[*subscription]struct{}{}}
	}
	return a
}

// Records returns the function that takes in the records of a model once they are applied: a
// reader.Follower.Applied. It never waits for a browser.
// The records are kept after the call, so they must not change. The model must be one that
// NewActivity was given.
func (a *Activity) Records(model string) func(*model.Table, []events.Record) {
	return a.models[model].publish
}
