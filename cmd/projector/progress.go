package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress shows on stderr how far long work has come: on a terminal as one line
// that changes, elsewhere as a line every ten seconds. Work that is over within
// the first interval shows nothing.
type progress struct {
	out   io.Writer
	what  string
	total int64 // of the measure; 0 when unknown
	live  bool

	mu      sync.Mutex
	start   time.Time
	shown   time.Time
	started bool
}

func (p *program) progress(what string, total int64) *progress {
	live := false
	if f, ok := p.stderr.(*os.File); ok {
		info, err := f.Stat()
		live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	now := time.Now()
	return &progress{out: p.stderr, what: what, total: total, live: live, start: now, shown: now}
}

// set says how many units are done, and how much of the total that is.
func (g *progress) set(units, measure int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	every := 10 * time.Second
	if g.live {
		every = 200 * time.Millisecond
	}
	if now.Sub(g.shown) < every {
		return
	}
	g.shown = now
	spent := now.Sub(g.start)
	line := fmt.Sprintf("%d %s, %.0f/s", units, g.what, float64(units)/spent.Seconds())
	if g.total > 0 && measure > 0 {
		share := min(1, float64(measure)/float64(g.total))
		left := time.Duration(float64(spent) * (1 - share) / share)
		line += fmt.Sprintf(", %.0f %%, %s left", 100*share, left.Round(time.Second))
	}
	if g.live {
		fmt.Fprintf(g.out, "\r\x1b[K%s", line)
		g.started = true
		return
	}
	fmt.Fprintln(g.out, line)
}

// end clears the line.
func (g *progress) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		fmt.Fprint(g.out, "\r\x1b[K")
		g.started = false
	}
}
