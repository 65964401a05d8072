package dynamodb

import (
	"context"
	"sync"
	"time"

	"weir/internal/parallel"
)

// hotRows are rows whose partition has refused a write because of its rate. Their writes are
// spaced: a refusal halves how many are sent in a second, and each second without one adds one.
// So a batch that has such a row takes longer, the next one has more records, and the row is
// written less often, instead of being refused all the time. Other rows are sent as ever.
// It is only kept in memory, by each process for itself, and never delays rows that were not refused.
type hotRows struct {
	mu  sync.Mutex
	now func() time.Time
	of  map[rowID]*hotRow
}

// hotRow is how often one row may be written.
type hotRow struct {
	rate     float64   // writes in a second, 0 while the row was refused only once
	at, next time.Time // when rate was computed, and when the next write may be sent
}

const (
	// The limits of the rates, and of the rows that are remembered.
	hotFirst = 8.0 // writes in a second, once the row was refused twice within hotTwice and not taken in between
	hotTwice = time.Second
	hotLeast = 0.5
	hotCold  = 64.0 // a row that takes so many in a second is not hot
	mostHot  = 1024 // rows that are remembered
	// hotLife is how long a row is remembered that is not written.
	hotLife = time.Minute
)

// await waits until the rows may be written.
// Rows are awaited one after the other, so a transaction of several hot rows waits for each.
func (h *hotRows) await(ctx context.Context, rows []rowID) error {
	for _, id := range rows {
		if wait := h.turn(id); wait > 0 {
			if err := parallel.Sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn is how long a write of a row waits. Its turn is taken.
// The turn counts even if the caller then does not write. The rate grows by one write a second in
// each second; at hotCold, or if it was not written for hotLife, the row is forgotten and waits no
// more.
func (h *hotRows) turn(id rowID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.of[id]
	if r == nil || r.rate == 0 {
		return 0
	}
	now := h.now()
	r.rate += now.Sub(r.at).Seconds()
	r.at = now
	if r.rate >= hotCold || now.Sub(r.next) > hotLife {
		delete(h.of, id)
		return 0
	}
	at := now
	if r.next.After(now) {
		at = r.next
	}
	r.next = at.Add(time.Duration(float64(time.Second) / r.rate))
	return at.Sub(now)
}

// noteTaken notes that rows were written: a refusal before that was by chance, or of a moment.
func (h *hotRows) noteTaken(rows []rowID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range rows {
		if r := h.of[id]; r != nil && r.rate == 0 {
			delete(h.of, id)
		}
	}
}

// noteRefused notes that a row was refused because of its rate.
// One refusal is only remembered; a second one within hotTwice, if the row was not taken in between, makes
// the row hot, and each further one halves its rate, down to hotLeast. At most mostHot rows are remembered.
func (h *hotRows) noteRefused(id rowID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	r := h.of[id]
	if r == nil {
		if len(h.of) >= mostHot {
			for old := range h.of { // any: one that is hot comes back
				delete(h.of, old)
				break
			}
		}
		h.of[id] = &hotRow{at: now}
		return
	}
	switch {
	case r.rate > 0:
		r.rate = max(hotLeast, r.rate/2)
	case now.Sub(r.at) > hotTwice:
		r.at = now
		return
	default:
		r.rate = hotFirst
	}
	r.at, r.next = now, now.Add(time.Duration(float64(time.Second)/r.rate))
}
