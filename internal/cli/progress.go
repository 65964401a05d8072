// This file says on stderr how far long work has come.

package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Progress shows how far long work has come: on a terminal as one line that changes,
// elsewhere as a line every ten seconds. Work that is over within the first interval
// shows nothing. Other output meanwhile goes through Write, so that it does not
// run into the line.
type Progress struct {
	Total int64 // of the measure; 0 when unknown

	out  io.Writer
	line io.Writer // out itself, or beneath a writer that escapes its text
	what string
	live bool

	mu    sync.Mutex
	start time.Time
	shown time.Time // when something was shown last
	drawn bool      // the line is on the screen
	held  bool      // nothing is shown yet
	units int64
}

// Over is a writer that changes the text written to it: the line that changes, with its
// movements of the cursor, goes to Raw beneath.
type Over interface {
	io.Writer
	Raw() io.Writer
}

// New begins to measure work, in units of what, such as "rows read". Set Total before the first Set.
// Several goroutines may call the other methods. The owner calls End before anything else is written
// to out, or writes through the Progress itself.
func New(out io.Writer, what string) *Progress {
	live, line := false, out
	if over, ok := out.(Over); ok {
		line = over.Raw()
	}
	if f, ok := line.(*os.File); ok {
		info, err := f.Stat()
		live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	now := time.Now()
	return &Progress{out: out, line: line, what: what, live: live, start: now, shown: now}
}

// Set says how many units are done since New, and how much of Total that is, in Total's measure.
// Without a total no time left is shown.
func (g *Progress) Set(units, measure int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.units = units
	g.printLine(measure)
}

// Add says that n more units are done. It tells nothing of the total, so it shows a pace without the
// time left.
func (g *Progress) Add(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.units += n
	g.printLine(0)
}

// Hold shows nothing until Release, while other work has the line.
func (g *Progress) Hold() { g.quiet(true) }

// Release ends Hold.
func (g *Progress) Release() { g.quiet(false) }

// quiet holds the line or gives it back. Progress that was added meanwhile is shown by the next call that shows.
func (g *Progress) quiet(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = on
}

// printLine prints how far the work is: on a terminal five times a second, over the line before, and
// elsewhere each ten seconds, a line each time. measure is in the unit of Total, and the time left
// is the time of the rest at the pace of the whole. The caller holds the lock.
func (g *Progress) printLine(measure int64) {
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
	if g.Total > 0 && measure > 0 {
		share := min(1, float64(measure)/float64(g.Total))
		left := time.Duration(float64(spent) * (1 - share) / share)
		line += fmt.Sprintf(", %.0f %%, %s left", 100*share, left.Round(time.Second))
	}
	if g.live {
		g.clearLine()
		fmt.Fprint(g.line, line)
		g.drawn = true
		return
	}
	fmt.Fprintln(g.out, line)
}

// Write writes whole lines, above the line that changes. It writes while the line is held too, and
// returns the result of out.
func (g *Progress) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clearLine()
	return g.out.Write(b)
}

// End clears the line. It may be called several times, and progress that is set afterwards may be shown again.
func (g *Progress) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clearLine()
}

// clearLine takes the line off the terminal. g.mu is locked.
func (g *Progress) clearLine() {
	if g.drawn {
		fmt.Fprint(g.line, "\r\x1b[K")
		g.drawn = false
	}
}
