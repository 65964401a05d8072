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
// the first interval shows nothing. What else is said meanwhile goes through
// Write, so that it does not run into the line.
type progress struct {
	out   io.Writer
	what  string
	total int64 // of the measure; 0 when unknown
	live  bool

	mu    sync.Mutex
	start time.Time
	shown time.Time // when something was shown last
	drawn bool      // the line is there
	held  bool      // nothing is shown yet
	units int64
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
	g.units = units
	g.show(measure)
}

// add says that n more units are done.
func (g *progress) add(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.units += n
	g.show(0)
}

// hold shows nothing until release, while other work has the line.
func (g *progress) hold() { g.quiet(true) }

func (g *progress) release() { g.quiet(false) }

func (g *progress) quiet(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = on
}

func (g *progress) show(measure int64) {
	now := time.Now()
	every := 10 * time.Second
	if g.live {
		every = 200 * time.Millisecond
	}
	if g.held || now.Sub(g.shown) < every {
		return
	}
	g.shown = now
	spent := now.Sub(g.start)
	line := fmt.Sprintf("%d %s, %.0f/s", g.units, g.what, float64(g.units)/spent.Seconds())
	if g.total > 0 && measure > 0 {
		share := min(1, float64(measure)/float64(g.total))
		left := time.Duration(float64(spent) * (1 - share) / share)
		line += fmt.Sprintf(", %.0f %%, %s left", 100*share, left.Round(time.Second))
	}
	if g.live {
		g.clear()
		fmt.Fprint(g.out, line)
		g.drawn = true
		return
	}
	fmt.Fprintln(g.out, line)
}

// Write writes whole lines, above the line that changes.
func (g *progress) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	return g.out.Write(b)
}

// end clears the line.
func (g *progress) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
}

func (g *progress) clear() {
	if g.drawn {
		fmt.Fprint(g.out, "\r\x1b[K")
		g.drawn = false
	}
}
